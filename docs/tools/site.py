"""Hooks of MkDocs: parts of the site that are not pages of docs/.

- Files elsewhere in the repository that pages link to, as ``../CONTRIBUTING.md``, so that links work on the site and in
  the repository.
- Notebooks of docs/notebooks with their outputs, as pages.
- The Python reference, from docstrings of the names in ``subgnn.__all__``.
- Pictures of pages in a browser, which ``tests/browser/screenshots.py`` takes before the site is built. A page has a
  comment in the place of a picture, ``<!-- screenshot: run.png: The page of a run -->``, so that the repository has no
  pictures that could be out of date. Without a browser, the site has none either.
"""

from __future__ import annotations

import json
import logging
import re
from base64 import b64encode
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
SCREENSHOTS = ROOT / "build" / "screenshots"
_ELSEWHERE = re.compile(r"\]\(\.\./([^)#]+)")
_INTO_DOCS = re.compile(r"\]\(docs/")
_ROOT_FILES = {"CHANGELOG.md", "CITATION.cff", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "SECURITY.md"}
_COMMENT = re.compile(r"^<!-- screenshot: (\S+\.png): (.+) -->$", re.MULTILINE)
_REFERENCE = """# Python reference

The public names of the package, all as `subgnn.NAME`; [python.md](python.md) has examples.

::: subgnn
"""
_log = logging.getLogger("mkdocs.hooks")


def on_files(files: Files, config: Any) -> Files:
    """Add the files that are not in docs/."""
    texts = [file.content_string for file in files if file.is_documentation_page()]
    linked = {path for text in texts for path in _ELSEWHERE.findall(text)} | _ROOT_FILES
    for path in sorted(linked):
        files.append(File.generated(config, path, abs_src_path=str(ROOT / path)))
    files.append(File.generated(config, "reference.md", content=_REFERENCE))
    for path in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")):
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=notebook_page(path)))
    pictures = {name for text in texts for name, _ in _COMMENT.findall(text)}
    for name in sorted(name for name in pictures if (SCREENSHOTS / name).is_file()):
        files.append(File.generated(config, f"screenshots/{name}", abs_src_path=str(SCREENSHOTS / name)))
    if pictures and not SCREENSHOTS.is_dir():
        _log.info("there are no pictures of pages; make docs takes them if there is a browser")
    return files


def notebook_page(path: Path) -> str:
    """A notebook with its outputs as Markdown: text below the code, and pictures."""
    parts = [f"[The notebook]({path.name}) was run as it stands; `docs/tools/notebooks.py` runs it again."]
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        texts = []
        for output in cell.get("outputs", ()):
            shown = output.get("data", {"text/plain": output.get("text", "")})
            if "image/svg+xml" in shown:
                svg = b64encode("".join(shown["image/svg+xml"]).encode()).decode()
                parts.append(f"![The drawing of the cell above](data:image/svg+xml;base64,{svg})")
            else:
                texts.append("".join(shown["text/plain"]).rstrip())
        if texts:
            parts.append("```text\n" + "\n".join(texts) + "\n```")
    title = parts.pop(1).split("\n", 1)  # the page begins with its title
    return "\n\n".join([title[0], parts[0], *title[1:], *parts[1:]]) + "\n"


def on_page_markdown(markdown: str, page: Page, config: Any, files: Files) -> str:
    """Point links into the site, and put pictures in the place of their comments."""

    def picture(found: re.Match[str]) -> str:
        there = files.get_file_from_path(f"screenshots/{found[1]}")
        return f"![{found[2]}](screenshots/{found[1]})" if there else ""

    if page.file.src_uri in _ROOT_FILES:
        markdown = _INTO_DOCS.sub("](", markdown)
    return _COMMENT.sub(picture, _ELSEWHERE.sub(r"](\1", markdown))
