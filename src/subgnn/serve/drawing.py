"""A subgraph and what lies around it, few enough nodes to be drawn.

Drawn are all nodes of the subgraph, as far as there is room, and nodes of its border, those with most edges into the
subgraph first; up to half of them are anchors. Edges are those among drawn nodes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.channels.anchors import NodeAnchors
from subgnn.data.graph import Graph
from subgnn.inference.predictor import Predictor
from subgnn.kernels import induced_components
from subgnn.prepare.measure import Prepared
from subgnn.ragged import Ragged
from subgnn.serve.nodes import NodeIndex

_MOST_INSIDE = 500
_MOST_EDGES = 4_000


@dataclass(slots=True)
class Drawing:
    """Nodes and edges, and how many there are in all.

    kind of a node is ``inside``, ``border`` (one hop away) or ``anchor`` (farther away); channels are those it is an
    anchor of.
    """

    nodes: list[dict[str, Any]] = field(default_factory=list)
    edges: list[dict[str, Any]] = field(default_factory=list)
    num_components: int = 0
    num_border: int = 0
    num_inside_edges: int = 0
    left_out: dict[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {name: getattr(self, name) for name in self.__slots__}


def anchor_channels(prepared: Prepared | None, subgraph: NDArray[np.int32], most: int) -> dict[int, list[str]]:
    """Which nodes the subgraph hears as anchors, and by which channels; shared ones, the nearest first, are bounded.

    Patches of the structure channels are shapes that lie anywhere; they are none of these.
    """
    found: dict[int, list[str]] = {}
    if prepared is None:
        return found
    for shared_row, inputs_row in zip(prepared.frame.shared, prepared.inputs, strict=True):
        for channel, shared, inputs in zip(prepared.frame.channels, shared_row, inputs_row, strict=True):
            if inputs.own is not None:
                nodes = np.unique(inputs.own.nodes[inputs.own.present])
            elif isinstance(shared, NodeAnchors):
                near = inputs.nearness.similarity.max(axis=0)
                nodes = shared.nodes[np.argsort(-near, kind="stable")[:most]]
            else:
                continue
            for node in nodes.tolist():
                names = found.setdefault(node, [])
                if channel.name not in names:
                    names.append(channel.name)
    return found


def draw_heard(predictor: Predictor, index: NodeIndex, subgraph: NDArray[np.int32], *, most: int) -> Drawing:
    """Draw one subgraph with the anchors that a run hears, where its method has any; see :func:`draw`."""
    prepared: Prepared | None = None
    if predictor.checkpoint.spec.method == "subgnn":
        prepared = predictor.measured(Ragged.from_rows([subgraph]), draws=1).prepared[0]
    return draw(predictor.graph, index, subgraph, most=most, prepared=prepared)


def draw(
    graph: Graph, index: NodeIndex, subgraph: NDArray[np.int32], *, most: int, prepared: Prepared | None = None
) -> Drawing:
    """Choose what to draw of one subgraph.

    Args:
        subgraph: sorted nodes.
        most: nodes beside the subgraph's own.
        prepared: the subgraph alone, measured, where the run has anchors.
    """
    components = induced_components(*graph.csr, Ragged.from_rows([subgraph]))
    component = {int(node): c for c, row in enumerate(components.nodes) for node in row}
    inside = subgraph[:_MOST_INSIDE]
    border, links = _border(graph, subgraph)
    anchors = anchor_channels(prepared, subgraph, max(1, most // 10))
    chosen = _chosen(border, links, anchors, most)
    far = np.setdiff1d(np.array(sorted(anchors), np.int32), np.concatenate([subgraph, border]))
    far = far[: max(0, most - len(chosen))]
    links_of = dict(zip(border.tolist(), links.tolist(), strict=True))
    found = Drawing(num_components=len(components.nodes), num_border=len(border))
    for kind, nodes in (("inside", inside), ("border", np.sort(chosen)), ("anchor", far)):
        for node in nodes.tolist():
            found.nodes.append(
                {
                    "id": node,
                    "name": index.name(node),
                    "kind": kind,
                    "component": component.get(node),
                    "links": links_of.get(node, 0),
                    "degree": int(graph.offsets[node + 1] - graph.offsets[node]),
                    "channels": anchors.get(node, []),
                }
            )
    _edges(graph, found, set(inside.tolist()))
    drawn = len(inside) + len(chosen)
    found.left_out = {
        "inside": len(subgraph) - len(inside),
        "border": len(subgraph) + len(border) - drawn - (len(subgraph) - len(inside)),
    }
    return found


def _chosen(
    border: NDArray[np.int32], links: NDArray[np.int64], anchors: dict[int, list[str]], most: int
) -> NDArray[np.int32]:
    """Nodes of the border: half of them anchors, where there are so many; all by their edges into the subgraph."""
    order = border[np.lexsort((border, -links))]
    is_anchor = np.array([int(node) in anchors for node in order], np.bool_)
    first = np.concatenate([order[is_anchor][: (most + 1) // 2], order[~is_anchor]])[:most]
    rest = order[is_anchor][(most + 1) // 2 :][: most - len(first)]
    return np.concatenate([first, rest])


def _border(graph: Graph, subgraph: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Nodes one hop away, and how many edges each has into the subgraph."""
    rows = [graph.neighbors_of(int(node)) for node in subgraph]
    around, links = np.unique(np.concatenate([np.empty(0, np.int32), *rows]), return_counts=True)
    outside = ~np.isin(around, subgraph, assume_unique=True)
    return around[outside], links[outside]


def _edges(graph: Graph, found: Drawing, inside: set[int]) -> None:
    """Edges among the drawn nodes; those of the subgraph first, then those into it, as many as there is room for."""
    drawn = np.array(sorted(node["id"] for node in found.nodes), np.int32)
    ranked: list[tuple[int, int, int]] = []
    for node in drawn.tolist():
        row = graph.neighbors_of(node)
        for other in row[np.isin(row, drawn, assume_unique=True)].tolist():
            if node < other:
                ranked.append((2 - (node in inside) - (other in inside), node, other))
    ranked.sort()
    found.num_inside_edges = sum(outside == 0 for outside, _, _ in ranked)
    found.edges = [{"source": u, "target": v, "inside": not outside} for outside, u, v in ranked[:_MOST_EDGES]]
