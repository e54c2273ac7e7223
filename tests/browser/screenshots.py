"""Pictures of pages for the documentation site, of runs on the gene sets of the quick start.

They are taken by ``pytest tests/browser/screenshots.py``, which ``make docs`` calls before it builds the site, and are
written to build/screenshots; a page of docs/ names them (docs/tools/site.py).
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.command import call
from tests.pages import ROOT

from .tabs import Tab
from .test_served_page import Page, serving

OUT = ROOT / "build" / "screenshots"
GENES = ROOT / "examples" / "genes"
PHONE, HEIGHT = 390, 1300


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs on one dataset, and the page that compares them."""
    found = tmp_path_factory.mktemp("screenshots")
    data, runs = found / "genes", found / "runs"
    for arguments in (
        ("data", "convert", GENES / "edges.csv", "--subgraphs", GENES / "members.csv", "--out", data),
        ("train", data, "--set", 'auto.only=["bag", "profiles", "diffusion"]', "--out", runs / "genes"),
        ("train", data, "--recipe", "bag", "--out", runs / "bag"),
        ("train", data, "--recipe", "topology", "--out", runs / "topology"),
        ("runs", runs, "--page", found / "compare.html"),
    ):
        called = call(*arguments)
        assert called.code == 0, called.err
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    return found


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    with serving(str(folder / "runs" / "bag")) as found:
        yield found


@pytest.mark.parametrize(("name", "file"), [("run", "runs/genes/report.html"), ("compare", "compare.html")])
def test_pages_of_runs(browser, folder, name, file):
    tab = Tab(browser)
    tab.page.set_viewport_size({"width": 1280, "height": HEIGHT})
    tab.page.goto((folder / file).as_uri())
    tab.page.screenshot(path=OUT / f"{name}.png")
    tab.close()


@pytest.mark.parametrize(("name", "width", "scheme"), [("serve", 1280, "light"), ("serve_phone", PHONE, "dark")])
def test_the_served_page(browser, address, name, width, scheme):
    page = Page(browser, address, width=width, scheme=scheme)
    page.open()
    for gene in ("TP53", "BAX", "HLA-A"):
        page.pick(gene, gene)
    page.settle()
    page.page.screenshot(path=OUT / f"{name}.png")
    page.close()


def test_pages_name_pictures_that_were_taken():
    named = {
        name
        for page in (ROOT / "docs").glob("*.md")
        for name in re.findall(r"^<!-- screenshot: (\S+): ", page.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert named == {path.name for path in OUT.iterdir()}
