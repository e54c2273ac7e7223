"""The notebooks of the documentation run, and what is stored in them is what a reader may see."""

import json
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

from tests.pages import ROOT

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def tool(name: str) -> dict[str, Any]:
    """The names of a module of docs/tools."""
    return runpy.run_path(str(ROOT / "docs" / "tools" / f"{name}.py"))


def outputs(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [output for cell in cells for output in cell.get("outputs", ())]


def pictures(cells: list[dict[str, Any]]) -> list[str]:
    return ["".join(found) for one in outputs(cells) if (found := one.get("data", {}).get("image/svg+xml"))]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_stored_outputs(path):
    text = path.read_text(encoding="utf-8")
    cells = json.loads(text)["cells"]
    assert all(cell["execution_count"] for cell in cells if cell["cell_type"] == "code")
    assert not re.search(r"/(home|root|tmp|work|Users)/|ipykernel_|Traceback", text)
    assert len(text) < 100_000
    assert len(pictures(cells)) == 1
    assert "generated from a seed" in "".join(cells[0]["source"])
    assert outputs(cells[-1:])


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs_as_it_stands(path, tmp_path, monkeypatch):
    for package in ("nbclient", "ipykernel"):
        pytest.importorskip(package)
    monkeypatch.setenv("SUBGNN_CACHE", str(tmp_path / "cache"))
    cells = tool("notebooks")["run_notebook"](path, tmp_path).cells
    assert len(pictures(cells)) == 1
    assert not [one for one in outputs(cells) if one["output_type"] == "error" or one.get("name") == "stderr"]
    stored = json.loads(path.read_text(encoding="utf-8"))["cells"]
    # The same cells print; numbers may differ in their last digits on another machine.
    assert [len(cell.get("outputs", ())) > 0 for cell in cells] == [len(c.get("outputs", ())) > 0 for c in stored]


def test_pages_of_the_site():
    pytest.importorskip("mkdocs")
    for path in NOTEBOOKS:
        page: str = tool("site")["notebook_page"](path)
        assert page.startswith("# ")
        assert page.count("data:image/svg+xml;base64,") == 1
        assert f"[The notebook]({Path(path).name})" in page
