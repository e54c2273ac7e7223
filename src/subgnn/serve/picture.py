"""A drawing as SVG, for a notebook or a file: the same nodes, places and marks as on the page of ``subgnn serve``.

A colour for each component, neighbours faint, anchors as diamonds, rings for contributions of nodes. Names are pushed
apart where they would overlap; on the page, people move nodes themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.reports.render import cut, render
from subgnn.serve.drawing import Drawing
from subgnn.storage.files import atomic_write

# As in static/dom.js and static/picture.js.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#b0579a", "#b8860b", "#56a0d3", "#444b54")
FAINT, ANCHOR, ANCHOR_EDGE = "#c3ccd6", "#f3e2a9", "#7a5c00"
TOWARDS, AWAY = "#00665e", "#a3351c"
EDGE, INSIDE_EDGE = "#dfe5eb", "#6b7a8c"
_INK, _FAINT_INK, _PAPER = "#1b2430", "#55606e", "#fcfdfe"
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
        pushes: the contribution of each node of the subgraph to a class or value. Those of at least a twentieth of the
            largest have a ring, solid where they push towards it and dashed where they push away; the wider, the more.
        towards: the class or value, for the key.
    """
    nodes = drawing.nodes
    at = push_apart(np.array([(node["x"], node["y"]) for node in nodes]).reshape(-1, 2) * (1.25, 0.9), nodes)
    boxes, rings = name_boxes(nodes), _rings(pushes or {})
    # A mark stands above the middle of its box, as its name is below it.
    place = {node["id"]: (at[i] - (0, 0.5 * _font(node))).tolist() for i, node in enumerate(nodes)}
    low = (at - boxes).min(axis=0, initial=0) - _MARGIN
    size = (at + boxes).max(axis=0, initial=0) + _MARGIN - low
    size[0] = max(size[0], 520)  # the width of the key
    key = _key(drawing, bool(rings), towards)
    inside = {node["id"] for node in nodes if node["kind"] == "inside"}
    # Edges among neighbours would hide the subgraph.
    edges = [edge for edge in drawing.edges if edge["source"] in inside or edge["target"] in inside]
    svg = render(
        "picture.svg",
        title=f"{len(inside)} nodes of the subgraph in {_count(drawing.num_components, 'component')}, "
        f"{_neighbours(drawing)} of {drawing.num_border} neighbours",
        left=round(float(low[0])),
        top=round(float(low[1])),
        width=round(float(size[0])),
        height=round(float(size[1]) + _LINE * len(key) + _MARGIN / 2),
        edges=[(*place[edge["source"]], *place[edge["target"]], edge["inside"]) for edge in reversed(edges)],
        nodes=[_node_values(node, place[node["id"]], rings.get(node["id"], 0.0)) for node in reversed(nodes)],
        key=key,
        key_left=round(float(low[0]) + _MARGIN),
        key_top=round(float(low[1] + size[1])),
        line=_LINE,
        colours={"faint": FAINT, "anchor": ANCHOR, "anchor_edge": ANCHOR_EDGE, "towards": TOWARDS, "away": AWAY,
                 "edge": EDGE, "inside_edge": INSIDE_EDGE, "ink": _INK, "faint_ink": _FAINT_INK, "paper": _PAPER},
    )  # fmt: skip
    return Picture(svg.rstrip("\n"))


def _count(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"


def _neighbours(drawing: Drawing) -> int:
    return sum(node["kind"] == "border" for node in drawing.nodes)


def _font(node: Mapping[str, Any]) -> int:
    return 14 if node["kind"] == "inside" else 10


def name_boxes(nodes: list[dict[str, Any]]) -> NDArray[np.float64]:
    """Half the width and height that a node and its name take; (n, 2)."""
    sizes = [(0.29 * _font(node) * len(cut(node["name"], _LONGEST)), 2 * _font(node)) for node in nodes]
    return np.array(sizes, np.float64).reshape(-1, 2)


def push_apart(at: NDArray[np.float64], nodes: list[dict[str, Any]]) -> NDArray[np.float64]:
    """Push nodes whose names overlap apart, each pair along the side where less is needed."""
    boxes = name_boxes(nodes)
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


def _node_values(node: Mapping[str, Any], place: list[float], ring: float) -> dict[str, Any]:
    inside = node["kind"] == "inside"
    channels = f"; anchor of {', '.join(node['channels'])}" if node["channels"] else ""
    return {
        "mark": "disk" if inside else "diamond" if node["channels"] else "dot",
        "x": place[0],
        "y": place[1],
        "colour": COLOURS[node["component"] % len(COLOURS)] if inside else "",
        "ring": ring,
        "name": cut(node["name"], _LONGEST),
        "title": f"{node['name']} (#{node['id']}), {node['degree']} neighbours{channels}",
        "font": _font(node),
        "name_y": place[1] + (12 + abs(ring) if inside else 8) + _font(node),
        "inside": inside,
    }


def _key(drawing: Drawing, rings: bool, towards: str) -> list[tuple[str, str, float, str]]:
    """Mark, colour, ring and words of each kind of mark that is drawn."""
    anchors = {bool(node["channels"]) for node in drawing.nodes if node["kind"] != "inside"}
    key = [("disk", COLOURS[0], 0.0, "in the subgraph; a colour for each component")]
    if False in anchors:
        key.append(("dot", "", 0.0, f"neighbour ({_neighbours(drawing)} of {drawing.num_border:,} are drawn)"))
    if True in anchors:
        key.append(("diamond", "", 0.0, "anchor of the model"))
    if rings:
        key.append(("disk", _PAPER, 5.0, f"pushes towards {towards or 'the class'}"))
        key.append(("disk", _PAPER, -5.0, "pushes away from it"))
    return key
