"""The documentation site builds without a warning, and has every page, the Python reference and the linked files."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import subgnn
from tests.pages import ROOT

pytestmark = pytest.mark.slow
DOCS = sorted((ROOT / "docs").glob("*.md"))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for package in ("material", "mkdocstrings"):
        pytest.importorskip(package, reason="the extra docs builds the site")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_the_site_has_all_pages_and_linked_files(site):
    written = {path.relative_to(site).as_posix() for path in site.rglob("*.*")}
    assert {f"{page.stem}.html" for page in DOCS if page.stem != "README"} <= written
    assert {"index.html", "CONTRIBUTING.html", "examples/rare_disease.py", "search/search_index.json"} <= written
    assert not any(path.startswith("tools/") for path in written)


def test_the_reference_has_every_public_name(site):
    page = (site / "reference.html").read_text(encoding="utf-8")
    shown = set(re.findall(r'<h2 id="subgnn\.(\w+)"', page))
    assert shown == set(subgnn.__all__) - {"__version__"}
    assert not re.search(r":(class|func|meth|mod):", page)


def test_nothing_is_loaded_from_another_host(site):
    for path in site.glob("*.html"):
        loaded = re.findall(
            r'<(?:script|img|link)[^>]+(?:src|href)="(https?://[^"]+)"', path.read_text(encoding="utf-8")
        )
        assert loaded == [], path.name
