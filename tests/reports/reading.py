"""A page, read back as a browser would: its elements, its text, and whether every tag is closed."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

from subgnn.render import templates

VOID = {"meta", "br", "wbr", "input"}


@dataclass
class Element:
    """An element: its name, attributes, children and the text right inside it."""

    name: str
    attributes: dict[str, str]
    children: list[Element] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """All text inside, in order of the elements."""
        return "".join(self.pieces) + "".join(child.text for child in self.children)

    def all(self, name: str = "", **attributes: str) -> list[Element]:
        """All elements below of that name and with these attributes."""
        found = []
        for child in self.children:
            wanted = all(child.attributes.get(k.rstrip("_")) == v for k, v in attributes.items())
            if wanted and name in ("", child.name):
                found.append(child)
            found += child.all(name, **attributes)
        return found

    def one(self, name: str = "", **attributes: str) -> Element:
        """The only such element."""
        (found,) = self.all(name, **attributes)
        return found


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.root = Element("", {})
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"an attribute twice in <{tag}>: {names}"
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.open[-1].children.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1].name == tag, f"</{tag}> closes <{self.open[-1].name}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].pieces.append(data)


def drawn(template: str, macro: str, *values: object) -> str:
    """A part of a page: what a macro of a template makes of values."""
    return str(getattr(templates().get_template(template).module, macro)(*values))


def read(page: str) -> Element:
    """Parse a page or a piece of one; every tag must be closed in its order."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == [reader.root], f"left open: {[e.name for e in reader.open[1:]]}"
    return reader.root
