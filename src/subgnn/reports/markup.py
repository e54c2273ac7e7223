"""HTML and SVG from Python: whatever is not markup already is escaped, so no text from data can become a tag."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence

# Elements that stay empty: they are closed where they open.
_EMPTY = {"meta", "line", "rect", "circle", "path", "polyline", "br", "wbr"}
# What neither HTML nor XML takes, not even escaped.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def escape(text: str) -> Markup:
    """Plain text as HTML; markup stays as it is.

    Example:
        >>> escape('<b> & "c"')
        '&lt;b&gt; &amp; &quot;c&quot;'
    """
    return text if isinstance(text, Markup) else Markup(html.escape(_CONTROL.sub("\ufffd", text)))


def join(children: Iterable[str], between: str = "") -> Markup:
    """Children one after the other."""
    return Markup(between.join(map(escape, children)))


def tag(name: str, /, *children: str, **attributes: str | float | None) -> Markup:
    """An element.

    Args:
        attributes: an underscore at the end is dropped (``class_``), others become ``-``; None leaves one out.

    Example:
        >>> tag("p", "a < b", class_="note")
        '<p class="note">a &lt; b</p>'
    """
    pairs = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items() if value is not None}
    given = "".join(
        f' {key}="{escape(value) if isinstance(value, str) else short(value)}"' for key, value in pairs.items()
    )
    if name in _EMPTY and not children:
        return Markup(f"<{name}{given}/>")
    return Markup(f"<{name}{given}>{join(children)}</{name}>")


def short(value: float) -> str:
    """A number for an attribute: a tenth is fine enough to draw with."""
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def cut(text: str, width: int) -> str:
    """Text that is cut where it is long."""
    return text if len(text) <= width else text[: width - 1] + "…"


def breakable(text: str) -> Markup:
    """Text that may be broken behind ``_``, ``/`` and ``:``, as long names of classes are written.

    Example:
        >>> breakable("a_b")
        'a_<wbr/>b'
    """
    return join(re.split("(?<=[_/:])", text), tag("wbr"))


def table(caption: str, header: Sequence[str], rows: Iterable[Sequence[str]], *, class_: str = "") -> Markup:
    """A table with a caption; the first cell of each row heads it. Wide ones scroll by themselves."""
    head = tag("thead", tag("tr", *(tag("th", cell, scope="col") for cell in header)))
    body = join(
        tag("tr", tag("th", row[0], scope="row"), *(cell if _is_cell(cell) else tag("td", cell) for cell in row[1:]))
        for row in rows
    )
    whole = tag("table", tag("caption", caption), head, tag("tbody", body), class_=class_ or None)
    return tag("div", whole, class_="scroll", tabindex="0", role="region", aria_label=caption)


def _is_cell(cell: str) -> bool:
    return isinstance(cell, Markup) and cell.startswith(("<td", "<th"))


def facts(pairs: Iterable[tuple[str, str]], *, class_: str = "facts") -> Markup:
    """Names and what they stand for."""
    return tag("dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in pairs), class_=class_)


def section(name: str, title: str, *children: str) -> Markup:
    """A part of the page, under a heading that can be linked to."""
    heading = tag("h2", title, id=f"{name}-title")
    return tag("section", heading, *children, id=name, aria_labelledby=f"{name}-title")


def paragraph(*children: str, class_: str | None = None) -> Markup:
    """A paragraph."""
    return tag("p", *children, class_=class_)
