"""Fill HTML, SVG and Markdown templates with plain values.

Text is escaped, so that no name from a dataset can become a tag. A float in a template is a coordinate and is written
to a tenth of a unit; numbers that people read are formatted before.
"""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from subgnn.storage.files import atomic_write

if TYPE_CHECKING:
    from jinja2 import Environment

# Characters that neither HTML nor XML takes, not even escaped.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


@cache
def templates(package: str = "subgnn.reports") -> Environment:
    """The templates of a package and of ``reports``; all but Markdown escape the values that are filled in."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    found = Environment(
        loader=ChoiceLoader([PackageLoader(name) for name in (package, "subgnn.reports")]),
        autoescape=lambda name: name is None or not name.endswith(".md"),
        undefined=StrictUndefined,
        finalize=lambda value: coordinate(value) if isinstance(value, float) else value,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    script = (files("subgnn.reports") / "templates" / "page.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    found.globals |= {"script": Markup(script), "script_hash": f"sha256-{digest}"}
    found.filters |= {"breakable": breakable, "cut": cut, "cells": markdown_cells}
    return found


def render(template: str, package: str = "subgnn.reports", /, **values: Any) -> str:
    """Fill a template of the package, or of ``reports``, with all the values that it names."""
    return _CONTROL.sub("\ufffd", templates(package).get_template(template).render(**values))


def write_page(page: str, out: Path, *, overwrite: bool = True) -> None:
    """Write a page; the file appears whole or not at all."""
    with atomic_write(out, overwrite=overwrite) as temporary:
        temporary.write_text(page, encoding="utf-8")


def coordinate(value: float) -> str:
    """A coordinate, rounded to a tenth."""
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def cut(text: str, width: int) -> str:
    """Text of at most ``width`` characters, with an ellipsis where it was longer."""
    return text if len(text) <= width else text[: width - 1] + "…"


def breakable(text: str) -> Markup:
    """Text that a browser may break after ``_``, ``/`` and ``:``, for long names."""
    return Markup("<wbr/>").join(re.split("(?<=[_/:])", text))


def markdown_cells(cells: Any) -> str:
    """A row of a Markdown table."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
