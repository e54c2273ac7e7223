"""Hooks of MkDocs: parts of the site that are not pages of docs/.

- Files elsewhere in the repository that pages link to, as ``../CONTRIBUTING.md``, so that links work on the site and in
  the repository.
- Notebooks of docs/notebooks with their outputs, as pages.
- The Python reference, from docstrings of the names in ``subgnn.__all__``.
- The options of every command, as ``--help`` prints them.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from pathlib import Path
from typing import Any

import typer
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from subgnn.cli.app import app

ROOT = Path(__file__).parents[2]
_ELSEWHERE = re.compile(r"\]\(\.\./([^)#]+)")
_INTO_DOCS = re.compile(r"\]\(docs/")
_SHORT_CODE = re.compile(r"<code>([^<\n]{1,28})</code>")
_ROOT_FILES = {"CHANGELOG.md", "CITATION.cff", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "SECURITY.md"}
_REFERENCE = """# Python reference

The public names of the package, all as `subgnn.NAME`; [python.md](python.md) has examples.

::: subgnn
"""


def on_files(files: Files, config: Any) -> Files:
    """Add the files that are not in docs/."""
    texts = [file.content_string for file in files if file.is_documentation_page()]
    linked = {path for text in texts for path in _ELSEWHERE.findall(text)} | _ROOT_FILES
    for path in sorted(linked):
        files.append(File.generated(config, path, abs_src_path=str(ROOT / path)))
    files.append(File.generated(config, "reference.md", content=_REFERENCE))
    files.append(File.generated(config, "options.md", content=options_page()))
    for path in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")):
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=notebook_page(path)))
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


def options_page() -> str:
    """Every command with its arguments and options, from what ``--help`` prints."""
    parts = [
        "# Options of every command",
        "What `subgnn COMMAND --help` prints; [command_line.md](command_line.md) has examples.",
    ]

    def describe(command: Any, path: str) -> None:
        for name, inner in getattr(command, "commands", {}).items():
            describe(inner, f"{path} {name}")
        if hasattr(command, "commands"):
            return
        text = command.help.partition("\n\n")[0].replace("\n", " ")
        rows = [f"| `{_spelling(one)}` | {(one.help or '').replace('|', '&#124;')} |" for one in command.params]
        parts.extend([f"## {path}", text, "\n".join(["| option | |", "|---|---|", *rows])])

    describe(typer.main.get_command(app), "subgnn")
    return "\n\n".join(parts) + "\n"


def _spelling(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return str(parameter.make_metavar(None) if parameter.metavar is None else parameter.metavar)
    named = ", ".join([*parameter.opts, *parameter.secondary_opts])
    return named if parameter.is_flag or not parameter.metavar else f"{named} {parameter.metavar}"


def on_page_markdown(markdown: str, page: Page, config: Any, files: Files) -> str:
    """Point links into the site."""
    if page.file.src_uri in _ROOT_FILES:
        markdown = _INTO_DOCS.sub("](", markdown)
    return _ELSEWHERE.sub(r"](\1", markdown)


def on_page_content(html: str, page: Page, config: Any, files: Files) -> str:
    """Mark short code, such as an option, which a line does not break."""
    return _SHORT_CODE.sub(r'<code class="short">\1</code>', html)
