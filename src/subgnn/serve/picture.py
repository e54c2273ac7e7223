"""A drawing as SVG, for a notebook or a file: what the page of ``subgnn serve`` shows of a subgraph, without a browser.

What is drawn is the page's (:func:`~subgnn.serve.drawing.draw`), and so are its marks: a colour for each component,
neighbours faint, anchors as diamonds, rings for what a node adds. Where things stand is not: the page lays nodes out in
the browser, and lets people move them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.data.layout import stress_layout
from subgnn.reports.markup import Markup, cut, tag
from subgnn.rng import stream
from subgnn.serve.drawing import Drawing
from subgnn.storage.files import atomic_write

# As in static/dom.js and static/picture.js.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#b0579a", "#b8860b", "#56a0d3", "#444b54")
FAINT, ANCHOR, ANCHOR_EDGE = "#c3ccd6", "#f3e2a9", "#7a5c00"
TOWARDS, AWAY = "#00665e", "#a3351c"
EDGE, INSIDE_EDGE = "#dfe5eb", "#6b7a8c"
_INK, _FAINT_INK, _PAPER = "#1b2430", "#55606e", "#fcfdfe"
_SPACING = 75  # between nodes, about
_LEAST_PUSH = 0.05
_LONGEST = 34
_MARGIN, _LINE = 24, 20


@dataclass(frozen=True, slots=True)
class Picture:
    """SVG that a notebook shows by itself where it is the last value of a cell."""

    svg: str

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: Path, *, overwrite: bool = False) -> None:
        """Write it as a file, which browsers open."""
        with atomic_write(path, overwrite=overwrite) as temporary:
            temporary.write_text(self.svg + "\n", encoding="utf-8")


def picture(drawing: Drawing, *, pushes: Mapping[int, float] | None = None, towards: str = "") -> Picture:
    """Render a drawing.

    Args:
        pushes: what each node of the subgraph adds to a class or value. Those of at least a twentieth of the largest
            have a ring, whole where they push towards it and dashed where they push away; the wider, the more.
        towards: what they push towards, for the key.
    """
    at = _apart(_places(drawing), drawing.nodes)
    # A mark stands above the middle of its box, as its name is below it.
    place = {node["id"]: at[i] - (0, 0.5 * _font(node)) for i, node in enumerate(drawing.nodes)}
    rings = _rings(pushes or {})
    key = _key(drawing, bool(rings), towards)
    boxes = _boxes(drawing.nodes)
    low = (at - boxes).min(axis=0, initial=0) - _MARGIN
    size = (at + boxes).max(axis=0, initial=0) + _MARGIN - low
    size[0] = max(size[0], 520)  # the key's lines
    rows = [tag("g", mark, transform=f"translate(0 {_LINE * i})") for i, mark in enumerate(key)]
    under = f"translate({low[0] + _MARGIN:.0f} {low[1] + size[1]:.0f})"
    height = float(size[1]) + _LINE * len(key) + _MARGIN / 2
    svg = tag(
        "svg",
        tag("title", _said(drawing)),
        tag("rect", x=float(low[0]), y=float(low[1]), width=float(size[0]), height=height, fill=_PAPER),
        tag("g", *(_edge(edge, place) for edge in reversed(_shown_edges(drawing)))),
        tag("g", *(_node(node, place[node["id"]], rings.get(node["id"], 0.0)) for node in reversed(drawing.nodes))),
        tag("g", *rows, transform=under),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"{low[0]:.0f} {low[1]:.0f} {size[0]:.0f} {height:.0f}",
        width=float(size[0]),
        height=height,
        font_family="system-ui, sans-serif",
        role="img",
    )
    return Picture(str(svg))


def _said(drawing: Drawing) -> str:
    inside = sum(node["kind"] == "inside" for node in drawing.nodes)
    parts = f"{drawing.num_components} component{'' if drawing.num_components == 1 else 's'}"
    around = sum(node["kind"] == "border" for node in drawing.nodes)
    return f"{inside} nodes of the subgraph in {parts}, {around} of {drawing.num_border} neighbours"


def _shown_edges(drawing: Drawing) -> list[dict[str, Any]]:
    """Edges with an end in the subgraph, as on the page: those among neighbours would hide it."""
    inside = {node["id"] for node in drawing.nodes if node["kind"] == "inside"}
    return [edge for edge in drawing.edges if edge["source"] in inside or edge["target"] in inside]


def _places(drawing: Drawing) -> NDArray[np.float64]:
    """Where nodes stand, by how many shown edges apart they are; (n, 2)."""
    order = {node["id"]: i for i, node in enumerate(drawing.nodes)}
    pairs = [(order[edge["source"]], order[edge["target"]]) for edge in _shown_edges(drawing)]
    if not order:
        return np.zeros((0, 2))
    at = stress_layout(len(order), np.array(pairs, np.int64).reshape(-1, 2), stream(0, "picture"))
    stretched: NDArray[np.float64] = at * _SPACING * np.sqrt(len(order)) * np.array([1.4, 0.8])  # names are wide
    return stretched


def _font(node: Mapping[str, Any]) -> int:
    return 14 if node["kind"] == "inside" else 10


def _boxes(nodes: list[dict[str, Any]]) -> NDArray[np.float64]:
    """Half the width and height that a node and its name take; (n, 2)."""
    sizes = [(0.29 * _font(node) * len(cut(node["name"], _LONGEST)), 2 * _font(node)) for node in nodes]
    return np.array(sizes, np.float64).reshape(-1, 2)


def _apart(at: NDArray[np.float64], nodes: list[dict[str, Any]]) -> NDArray[np.float64]:
    """Push nodes whose names overlap apart, each pair along the side where less is needed."""
    boxes = _boxes(nodes)
    room = boxes[:, None] + boxes[None] + 4
    for _ in range(200):
        away = at[:, None] - at[None]
        overlap = room - np.abs(away)
        overlap[(overlap <= 0).any(axis=2)] = 0
        overlap[np.arange(len(at)), np.arange(len(at))] = 0
        if not overlap.any():
            break
        narrow = overlap[..., 0] < overlap[..., 1]
        overlap[..., 0] *= narrow
        overlap[..., 1] *= ~narrow
        at = at + (np.where(away < 0, -1, 1) * overlap * 0.3).sum(axis=1)
    return at


def _rings(pushes: Mapping[int, float]) -> dict[int, float]:
    """Widths of rings, below 0 for those that push away."""
    largest = max(map(abs, pushes.values()), default=0.0)
    strong = {node: push for node, push in pushes.items() if push and abs(push) >= _LEAST_PUSH * largest}
    return {node: float(np.sign(push)) * (2 + 5 * abs(push) / largest) for node, push in strong.items()}


def _node(node: Mapping[str, Any], at: NDArray[np.float64], ring: float) -> Markup:
    x, y = float(at[0]), float(at[1])
    if node["kind"] == "inside":
        mark, ink, below = _disk(x, y, COLOURS[node["component"] % len(COLOURS)], ring), _INK, 12 + max(0, abs(ring))
    else:
        mark, ink, below = _diamond(x, y) if node["channels"] else _dot(x, y), _FAINT_INK, 8
    font = _font(node)
    name = tag(
        "text",
        cut(node["name"], _LONGEST),
        x=x,
        y=y + below + font,
        fill=ink,
        font_size=font,
        font_weight="bold" if node["kind"] == "inside" else None,
        text_anchor="middle",
        stroke=_PAPER,
        stroke_width=3,
        paint_order="stroke",
    )
    heard = f"; anchor of {', '.join(node['channels'])}" if node["channels"] else ""
    return tag("g", tag("title", f"{node['name']} (#{node['id']}), {node['degree']} neighbours{heard}"), mark, name)


def _disk(x: float, y: float, colour: str, ring: float = 0.0) -> Markup:
    way, dashes = (AWAY, "5 4") if ring < 0 else (TOWARDS if ring else None, None)
    width = abs(ring)
    return tag(
        "circle", cx=x, cy=y, r=12 + width / 2, fill=colour, stroke=way, stroke_width=width, stroke_dasharray=dashes
    )


def _dot(x: float, y: float) -> Markup:
    return tag("circle", cx=x, cy=y, r=6, fill=FAINT)


def _diamond(x: float, y: float) -> Markup:
    corners = f"{x:.1f},{y - 8:.1f} {x + 8:.1f},{y:.1f} {x:.1f},{y + 8:.1f} {x - 8:.1f},{y:.1f}"
    return tag("polygon", points=corners, fill=ANCHOR, stroke=ANCHOR_EDGE, stroke_width=2)


def _edge(edge: Mapping[str, Any], place: Mapping[int, NDArray[np.float64]]) -> Markup:
    (x1, y1), (x2, y2) = place[edge["source"]].tolist(), place[edge["target"]].tolist()
    colour, width = (INSIDE_EDGE, 2.5) if edge["inside"] else (EDGE, 1.0)
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, stroke=colour, stroke_width=width)


def _key(drawing: Drawing, rings: bool, towards: str) -> list[Markup]:
    """What marks mean, of those that are drawn."""
    outside = [bool(node["channels"]) for node in drawing.nodes if node["kind"] != "inside"]
    around = sum(node["kind"] == "border" for node in drawing.nodes)
    found = [(_disk(0, 0, COLOURS[0]), "in the subgraph; a colour for each component")]
    if False in outside:
        found.append((_dot(0, 0), f"neighbour ({around} of {drawing.num_border:,} are drawn)"))
    if True in outside:
        found.append((_diamond(0, 0), "anchor that the model hears"))
    if rings:
        found.append((_disk(0, 0, _PAPER, 5), f"pushes towards {towards or 'the class'}"))
        found.append((_disk(0, 0, _PAPER, -5), "pushes away from it"))
    return [
        tag(
            "g",
            tag("g", mark, transform="translate(8 -4) scale(0.55)"),
            tag("text", words, x=24, y=0, font_size=12, fill=_FAINT_INK),
        )
        for mark, words in found
    ]
