"""Drawings of a subgraph and its surroundings, for the server's page and for :mod:`subgnn.serve.picture`.

A drawing has the nodes of the subgraph, as far as there is room, border nodes, those with most edges into the subgraph
first, and anchors; see :func:`~subgnn.data.layout.lay_out`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.data.graph import Graph
from subgnn.data.layout import lay_out
from subgnn.inference.predictor import Predictor
from subgnn.prepare.measure import Prepared
from subgnn.ragged import Ragged
from subgnn.serve.nodes import NodeIndex

_MAX_NODES = 500
_NODE_SPACING, _RING_SPACING, _LEAST_RADIUS = 60, 4.4, 80  # pixels, where a node is 24 pixels wide


@dataclass(frozen=True, slots=True)
class Drawing:
    """Nodes and edges as plain values, and how many there are in all.

    The kind of a node is ``inside``, ``border`` (one hop away) or ``anchor`` (farther away); ``channels`` are those it
    is an anchor of; ``x`` and ``y`` are its place in pixels.
    """

    nodes: list[dict[str, Any]]
    edges: list[dict[str, Any]]
    num_components: int
    num_border: int
    num_inside_edges: int
    left_out: dict[str, int]

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {name: getattr(self, name) for name in self.__slots__}


def anchor_channels(prepared: Prepared | None, most: int) -> dict[int, list[str]]:
    """The anchor nodes of a subgraph and their channels; of shared ones, only the nearest ``most``.

    Patches of the structure channels are shapes that lie anywhere, and are left out.
    """
    found: dict[int, list[str]] = {}
    if prepared is None:
        return found
    for shared_row, inputs_row in zip(prepared.frame.shared, prepared.inputs, strict=True):
        for channel, shared, inputs in zip(prepared.frame.channels, shared_row, inputs_row, strict=True):
            if inputs.own is not None:
                nodes = np.unique(inputs.own.nodes[inputs.own.present])
            elif shared is not None and shared.walks is None:
                near = inputs.measured.similarity.max(axis=0)
                nodes = shared.nodes[np.argsort(-near, kind="stable")[:most]]
            else:
                continue
            for node in nodes.tolist():
                names = found.setdefault(node, [])
                if channel.name not in names:
                    names.append(channel.name)
    return found


def draw_with_anchors(predictor: Predictor, index: NodeIndex, subgraph: NDArray[np.int32], *, most: int) -> Drawing:
    """Draw one subgraph with the anchors that a run's model compares it with, where it has any; see :func:`draw`."""
    prepared: Prepared | None = None
    if predictor.model.has_channels:
        prepared = predictor.measured(Ragged.from_rows([subgraph]), draws=1).prepared[0]
    return draw(predictor.graph, index, subgraph, most=most, prepared=prepared)


def draw(
    graph: Graph, index: NodeIndex, subgraph: NDArray[np.int32], *, most: int, prepared: Prepared | None = None
) -> Drawing:
    """Draw one subgraph.

    Args:
        subgraph: sorted nodes.
        most: nodes besides those of the subgraph.
        prepared: the subgraph alone, measured, where the run has anchors.
    """
    anchors = anchor_channels(prepared, max(1, most // 10))
    layout = lay_out(graph, subgraph, max_nodes=_MAX_NODES, max_border=most, anchors=anchors)
    inside, border = layout.count("inside"), layout.count("border")
    at = layout.positions * max(_NODE_SPACING * np.sqrt(inside), _RING_SPACING * border, _LEAST_RADIUS)
    nodes = [
        {
            "id": node,
            "name": index.name(node),
            "kind": layout.roles[i],
            "component": int(layout.components[i]) if i < inside else None,
            "links": int(layout.links[i]),
            "degree": int(graph.offsets[node + 1] - graph.offsets[node]),
            "channels": anchors.get(node, []),
            "x": round(float(at[i, 0]), 1),
            "y": round(float(at[i, 1]), 1),
        }
        for i, node in enumerate(layout.nodes.tolist())
    ]
    ends = np.sort(layout.nodes[layout.edges], axis=1).tolist()
    return Drawing(
        nodes=nodes,
        edges=[
            {"source": a, "target": b, "inside": outside == 0}
            for (a, b), outside in zip(ends, layout.ends_outside.tolist(), strict=True)
        ],
        num_components=layout.num_components,
        num_border=layout.num_border,
        num_inside_edges=layout.num_inside_edges,
        left_out={"inside": layout.size - inside, "border": layout.num_border - border},
    )
