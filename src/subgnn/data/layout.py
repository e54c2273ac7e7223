"""The layout of a subgraph for pictures: which nodes and edges are drawn, their roles, and where they stand."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

from subgnn.data.graph import Graph
from subgnn.kernels.induced import induced_components
from subgnn.ragged import Ragged
from subgnn.rng import stream

Role = Literal["inside", "border", "anchor"]
MAX_NODES, MAX_BORDER, MAX_EDGES = 200, 60, 4_000
RING = 1.45
"""Radius of the ring of border nodes; a second ring has twice the distance from the unit disk."""
_STEPS = 150


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """What is drawn of a subgraph."""

    nodes: NDArray[np.int64]  # (n,) inside, then border, then anchors farther away
    roles: tuple[Role, ...]  # (n,)
    components: NDArray[np.int64]  # (n,) of a node inside, -1 outside
    links: NDArray[np.int64]  # (n,) edges from a border node into the subgraph, 0 for others
    positions: NDArray[np.float64]  # (n, 2)
    edges: NDArray[np.int64]  # (e, 2) indices into nodes
    ends_outside: NDArray[np.int64]  # (e,) 0 for an edge inside, 1 across the border, 2 outside
    size: int  # of all of it, drawn or not, as the next two
    num_components: int
    num_border: int
    num_inside_edges: int

    def summary(self) -> str:
        """Sizes of the subgraph and its border, and how many of their nodes are drawn where that is not all."""
        drawn = {"node": self.roles.count("inside"), "border node": self.roles.count("border")}
        sizes = {"node": self.size, "component": self.num_components, "border node": self.num_border}
        text = ", ".join(f"{size:,} {word}{'' if size == 1 else 's'}" for word, size in sizes.items())
        fewer = [f"{shown} of the {word}s are drawn" for word, shown in drawn.items() if shown < sizes[word]]
        return "; ".join([text, *fewer])


def lay_out(
    graph: Graph,
    nodes: NDArray[Any],
    *,
    max_nodes: int = MAX_NODES,
    max_border: int = MAX_BORDER,
    anchors: Collection[int] = (),
) -> Layout:
    """Choose what is drawn of a subgraph in an undirected graph, half of its border ``anchors``, and lay it out."""
    inside = np.asarray(nodes, np.int64)
    if len(nodes) > max_nodes:
        inside = inside[np.linspace(0, len(nodes) - 1, max_nodes).round().astype(np.int64)]
    border, links = border_links(graph, nodes)
    order = border[np.lexsort((border, -links))]
    is_anchor = np.array([int(node) in anchors for node in order], np.bool_)
    half = (max_border + 1) // 2
    first = np.concatenate([order[is_anchor][:half], order[~is_anchor], order[is_anchor][half:]])
    chosen = np.sort(first[:max_border])
    far = np.setdiff1d(np.array(sorted(anchors), np.int64), np.concatenate([nodes, border]))
    far = far[: max(0, max_border - len(chosen))]
    drawn = np.concatenate([inside, chosen, far])
    components = induced_components(*graph.csr, Ragged.from_rows([nodes])).nodes
    component_of = dict(zip(components.values.tolist(), components.row_ids.tolist(), strict=True))
    links_of = dict(zip(border.tolist(), links.tolist(), strict=True))
    roles = np.repeat(["inside", "border", "anchor"], [len(inside), len(chosen), len(far)])
    # Edges among drawn nodes, as places; those with fewer ends outside come first.
    near, by_node = Ragged(graph.neighbors, graph.offsets).take(drawn), np.argsort(drawn)
    a, b = drawn[near.row_ids], near.values.astype(np.int64)
    kept = (a < b) & np.isin(b, drawn)
    places = by_node[np.searchsorted(drawn, np.stack([a[kept], b[kept]], axis=1), sorter=by_node)]
    ends_outside = (places >= len(inside)).sum(axis=1)
    order = np.lexsort((b[kept], a[kept], ends_outside))
    edges, ends_outside = places[order], ends_outside[order]
    middle, towards = stress_layout(len(inside), edges[ends_outside == 0]), np.zeros((len(chosen), 2))
    crossing = np.sort(edges[ends_outside == 1], axis=1)
    crossing = crossing[crossing[:, 1] < len(inside) + len(chosen)]
    np.add.at(towards, crossing[:, 1] - len(inside), middle[crossing[:, 0]])
    # Border nodes are evenly spaced in the order of the wanted directions, and turned as a whole to be near these.
    wanted = np.arctan2(towards[:, 1], towards[:, 0])
    order, angle = np.argsort(wanted, kind="stable"), np.empty(len(chosen))
    even = 2 * np.pi * np.arange(len(chosen)) / max(1, len(chosen))
    angle[order] = even + np.angle(np.exp(1j * (wanted[order] - even)).sum())
    ring = RING * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    even = 2 * np.pi * np.arange(len(far)) / max(1, len(far))
    beyond = (2 * RING - 1) * np.stack([np.cos(even), np.sin(even)], axis=1)
    return Layout(
        nodes=drawn,
        roles=tuple(roles.tolist()),
        components=np.array([component_of.get(v, -1) for v in drawn.tolist()], np.int64),
        links=np.array([links_of.get(v, 0) for v in drawn.tolist()], np.int64),
        positions=np.concatenate([middle, ring, beyond]),
        edges=edges[:MAX_EDGES],
        ends_outside=ends_outside[:MAX_EDGES],
        size=len(nodes),
        num_components=len(components),
        num_border=len(border),
        num_inside_edges=int((ends_outside == 0).sum()),
    )


def border_links(graph: Graph, nodes: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Nodes one hop away from a subgraph, and how many edges each has into it."""
    rows = [graph.neighbors_of(int(node)) for node in nodes]
    around, links = np.unique(np.concatenate([np.empty(0, np.int64), *rows]), return_counts=True)
    outside = ~np.isin(around, nodes)
    return around[outside], links[outside]


def stress_layout(n: int, edges: NDArray[np.int64]) -> NDArray[np.float64]:
    """Places (n, 2) in the unit disk at distances near hop distances: springs between all pairs (Kamada and Kawai).

    The stress, the sum of ((|x_i - x_j| - d_ij) / d_ij)^2, is lowered by majorisation from classical scaling.
    """
    if n < 2:
        return np.zeros((n, 2))
    joined = csr_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(n, n))
    hops = shortest_path(joined, directed=False, unweighted=True)
    hops[~np.isfinite(hops)] = hops[np.isfinite(hops)].max() / 2 + 1.25
    centred = hops**2 - (hops**2).mean(axis=0) - (hops**2).mean(axis=1)[:, None] + (hops**2).mean()
    values, vectors = (found[..., -2:] for found in np.linalg.eigh(-centred / 2))
    signs = np.where(vectors[np.abs(vectors).argmax(axis=0), range(2)] < 0, -1, 1)
    at = vectors * np.sqrt(np.maximum(values, 0)) * signs
    at += stream(0, "layout").normal(0, 0.05, at.shape)
    np.fill_diagonal(hops, 1)
    weight = hops**-2
    np.fill_diagonal(weight, 0)
    inverse = np.linalg.pinv(np.diag(weight.sum(axis=1)) - weight, hermitian=True)
    for _ in range(_STEPS * MAX_NODES // max(n, MAX_NODES)):
        apart = np.hypot(at[:, :1] - at[:, 0], at[:, 1:] - at[:, 1])
        pull = weight * hops / np.maximum(apart, 1e-9)
        at = inverse @ (pull.sum(axis=1)[:, None] * at - pull @ at)
    at -= at.mean(axis=0)
    return np.asarray(at / np.linalg.norm(at, axis=1).max())
