"""Subgraphs as inline SVG: components coloured, border nodes faint, names under the pointer."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from subgnn.data.graph import Graph
from subgnn.data.layout import Drawing
from subgnn.reports.markup import Markup, cut, join, tag
from subgnn.reports.svg import thin

COLOURS = 8  # as many as the style sheet has, c0 to c7
_HALF = 160  # of the square it is drawn in
_SCALE = 100
_MAX_EDGES, _MAX_CUT_EDGES = 800, 300


def draw_subgraph(graph: Graph, nodes: NDArray[np.int64], rng: np.random.Generator, *, name: str) -> Markup:
    """A subgraph and part of its border; what is too much to see is thinned out, and the words beside it say so."""
    drawn = Drawing.of(graph, nodes, rng)
    n = len(drawn.inside)
    at = np.stack([drawn.at[:, 0], -drawn.at[:, 1]], axis=1) * _SCALE + _HALF
    radius = max(3.0, min(7.0, 26 / np.sqrt(n)))
    groups = [
        tag("g", *(_node(graph, int(drawn.inside[i]), at[i], radius, f", component {colour + 1} of {drawn.components}")
                   for i in np.flatnonzero(drawn.colour == colour)), class_=f"node c{colour % COLOURS}")
        for colour in np.unique(drawn.colour).tolist()
    ]  # fmt: skip
    border = (_node(graph, int(v), at[n + i], 2.5, ", at the border") for i, v in enumerate(drawn.border))
    picture = tag(
        "svg",
        tag("path", d=_lines(at, drawn.cut_edges, _MAX_CUT_EDGES), class_="cut"),
        # A dense subgraph would be a blot: the more edges, the lighter each.
        tag("path", d=_lines(at, drawn.edges, _MAX_EDGES), style=f"opacity:{_opacity(drawn.edges):.2f}", class_="edge"),
        tag("g", *border, class_="border"),
        *groups,
        viewBox=f"0 0 {2 * _HALF} {2 * _HALF}",
        role="img",
        aria_label=f"Drawing of {name}: {_count(drawn)}",
        class_="subgraph",
    )
    shown = [_count(drawn)]
    if n < drawn.size:
        shown.append(f"{n} of the nodes are drawn")
    if len(drawn.border) < drawn.border_size:
        shown.append(f"{len(drawn.border)} of the border nodes are drawn")
    return join([picture, tag("p", "; ".join(shown), class_="note")])


def _opacity(edges: NDArray[np.int64]) -> float:
    return min(1.0, max(0.2, 70 / max(1, len(edges))))


def _count(drawn: Drawing) -> str:
    def some(count: int, what: str) -> str:
        return f"{count:,} {what}{'' if count == 1 else 's'}"

    return ", ".join(
        [some(drawn.size, "node"), some(drawn.components, "component"), some(drawn.border_size, "border node")]
    )


def _node(graph: Graph, node: int, at: NDArray[np.float64], radius: float, where: str) -> Markup:
    name = f"node {node}" if graph.names is None else f"{cut(graph.names[node], 60)} (#{node})"
    return tag("circle", tag("title", name + where), cx=float(at[0]), cy=float(at[1]), r=radius)


def _lines(at: NDArray[np.float64], pairs: NDArray[np.int64], most: int) -> str:
    ends = at.round().astype(int)
    return "".join("M{} {}L{} {}".format(*ends[a], *ends[b]) for a, b in pairs[thin(len(pairs), most)])
