"""Pictures of pages for the documentation, of runs on the gene sets of the quick start.

``pytest tests/browser/screenshots.py`` takes them again and writes them, with few colours, to docs/figures.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.cli.command import call
from tests.pages import ROOT

from .tabs import Tab
from .test_served_page import Page, serving

OUT = ROOT / "docs" / "figures"
GENES = ROOT / "examples" / "genes"
PHONE, HEIGHT, LARGEST = 390, 1300, 150_000


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
    return found


def save(page: Any, name: str) -> None:
    """Write what a browser shows as a small file."""
    path = OUT / f"{name}.png"
    page.screenshot(path=path)
    Image.open(path).convert("RGB").quantize(128).save(path, optimize=True)
    assert path.stat().st_size < LARGEST


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    with serving(str(folder / "runs" / "bag")) as found:
        yield found


@pytest.mark.parametrize(("name", "file"), [("run", "runs/genes/report.html"), ("compare", "compare.html")])
def test_pages_of_runs(browser, folder, name, file):
    tab = Tab(browser)
    tab.page.set_viewport_size({"width": 1280, "height": HEIGHT})
    tab.page.goto((folder / file).as_uri())
    save(tab.page, name)
    tab.close()


@pytest.mark.parametrize(("name", "width", "scheme"), [("serve", 1280, "light"), ("serve_phone", PHONE, "dark")])
def test_the_served_page(browser, address, name, width, scheme):
    page = Page(browser, address, width=width, scheme=scheme)
    page.open()
    for gene in ("TP53", "BAX", "HLA-A"):
        page.pick(gene, gene)
    page.settle()
    save(page.page, name)
    page.close()
