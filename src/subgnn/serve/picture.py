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
_MARGIN = 24


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
    nodes, rings = drawing.nodes, _rings(pushes or {})
    at = push_apart(np.array([(node["x"], node["y"]) for node in nodes]).reshape(-1, 2) * (1.25, 0.9), nodes)
    boxes = name_boxes(nodes)
    low = (at - boxes).min(axis=0, initial=0) - _MARGIN
    width, height = (at + boxes).max(axis=0, initial=0) + _MARGIN - low
    placed = {
        # A mark stands above the middle of its box, as its name is below it.
        node["id"]: node | {"x": x, "y": y - 0.5 * _font(node), "font": _font(node), "ring": rings.get(node["id"], 0.0),
                            "inside": node["kind"] == "inside"}
        for node, (x, y) in zip(nodes, at.tolist(), strict=True)
    }  # fmt: skip
    ends = [(placed[edge["source"]], placed[edge["target"]], edge["inside"]) for edge in reversed(drawing.edges)]
    svg = render(
        "picture.svg",
        drawing=drawing,
        nodes=list(reversed(placed.values())),
        # Edges among neighbours would hide the subgraph.
        edges=[(a, b, inside) for a, b, inside in ends if a["inside"] or b["inside"]],
        neighbours=sum(node["kind"] == "border" for node in nodes),
        anchors={bool(node["channels"]) for node in nodes if node["kind"] != "inside"},
        rings=bool(rings),
        towards=towards or "the class",
        box=(*low.round().astype(int).tolist(), round(max(float(width), 520)), round(float(height))),  # 520: of the key
        margin=_MARGIN,
        longest=_LONGEST,
        components=COLOURS,
        colours={"faint": FAINT, "anchor": ANCHOR, "anchor_edge": ANCHOR_EDGE, "towards": TOWARDS, "away": AWAY,
                 "edge": EDGE, "inside_edge": INSIDE_EDGE, "ink": _INK, "faint_ink": _FAINT_INK, "paper": _PAPER},
    )  # fmt: skip
    return Picture(svg.rstrip("\n"))


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
