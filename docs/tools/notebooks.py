"""Run the notebooks of docs/notebooks and write their outputs into them: ``python docs/tools/notebooks.py [NAME ...]``.

Outputs are stored without times, paths and versions, so that a notebook changes only if what it shows does.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
SECONDS = 600


def run_notebook(path: Path, folder: Path) -> Any:
    """The notebook with new outputs; its commands run in a folder.

    Raises:
        nbclient.exceptions.CellExecutionError: for a cell that fails.
    """
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=SECONDS, resources={"metadata": {"path": str(folder)}}).execute()
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook.metadata = nbformat.from_dict({"kernelspec": kernel, "language_info": {"name": "python"}})
    for place, cell in enumerate(notebook.cells):
        cell.id, cell.metadata = f"cell-{place}", nbformat.from_dict({})
    return notebook


def main() -> None:
    """Run the notebooks that are named, or all, and write them."""
    from tempfile import TemporaryDirectory

    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        if len(sys.argv) == 1 or path.stem in sys.argv[1:]:
            with TemporaryDirectory() as folder:
                nbformat.write(run_notebook(path, Path(folder)), path)
            print(f"{path.stem}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
