"""Where the nodes of a subgraph and of its border are drawn: the subgraph in the middle, its border on a ring."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

from subgnn.data.graph import Graph
from subgnn.kernels import border_sets, induced_components
from subgnn.ragged import Ragged

MAX_BORDER, MAX_NODES = 60, 200
_RADIUS = 1.45
_STEPS = 150


@dataclass(frozen=True, slots=True, eq=False)
class Drawing:
    """Where a subgraph and part of its border are drawn.

    Shapes:
        inside, colour: (n,), nodes and their components, the largest component 0. border: (m,).
        at: (n + m, 2). edges, cut_edges: (e, 2) places in ``at``.
    """

    inside: NDArray[np.int64]
    colour: NDArray[np.int64]
    border: NDArray[np.int64]
    at: NDArray[np.float64]
    edges: NDArray[np.int64]
    cut_edges: NDArray[np.int64]
    size: int
    components: int
    border_size: int

    @classmethod
    def of(cls, graph: Graph, nodes: NDArray[Any], rng: np.random.Generator) -> Drawing:
        """Find components and border of a subgraph, thin out what is too much to see, and lay it out."""
        one = Ragged.from_rows([nodes])
        components = induced_components(*graph.csr, one).nodes
        by_size = np.argsort(-components.lengths, kind="stable")
        colour_of = dict(zip(components.take(by_size).values.tolist(), components.take(by_size).row_ids, strict=True))
        whole_border = border_sets(*graph.csr, one)[0]
        inside, border = _thin(nodes, MAX_NODES, rng), _thin(whole_border, MAX_BORDER, rng)
        place = {int(v): i for i, v in enumerate(inside)}
        edges = [
            (i, place[int(u)]) for v, i in place.items() for u in graph.neighbors_of(v) if place.get(int(u), -1) > i
        ]
        cut = [
            (place[int(u)], len(inside) + i)
            for i, v in enumerate(border.tolist())
            for u in graph.neighbors_of(v)
            if int(u) in place
        ]
        pairs, cut_pairs = np.array(edges, np.int64).reshape(-1, 2), np.array(cut, np.int64).reshape(-1, 2)
        middle = stress_layout(len(inside), pairs, rng)
        return cls(
            inside=inside,
            colour=np.array([colour_of[int(v)] for v in inside], np.int64),
            border=border,
            at=np.concatenate([middle, _ring(middle, cut_pairs, len(border))]),
            edges=pairs,
            cut_edges=cut_pairs,
            size=len(nodes),
            components=len(components),
            border_size=len(whole_border),
        )


def _thin(nodes: NDArray[Any], most: int, rng: np.random.Generator) -> NDArray[np.int64]:
    kept = nodes if len(nodes) <= most else np.sort(rng.choice(nodes, most, replace=False))
    return np.asarray(kept, np.int64)


def stress_layout(n: int, edges: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Places in the unit disk whose distances are near hop distances: springs between all pairs (Kamada and Kawai).

    The stress, the sum of ((|x_i - x_j| - d_ij) / d_ij)^2, is lowered by majorisation from classical scaling. Pieces
    that are not joined are held apart by springs of their own.

    Shapes:
        edges: (e, 2). returns: (n, 2).
    """
    if n == 1:
        return np.zeros((1, 2))
    joined = csr_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(n, n))
    hops = shortest_path(joined, directed=False, unweighted=True)
    far = hops[np.isfinite(hops)].max() / 2 + 1.25
    hops[~np.isfinite(hops)] = far
    centred = hops**2 - (hops**2).mean(axis=0) - (hops**2).mean(axis=1)[:, None] + (hops**2).mean()
    values, vectors = (found[..., -2:] for found in np.linalg.eigh(-centred / 2))
    signs = np.where(vectors[np.abs(vectors).argmax(axis=0), range(2)] < 0, -1, 1)
    at = vectors * np.sqrt(np.maximum(values, 0)) * signs
    at += rng.normal(0, 0.05, at.shape)
    np.fill_diagonal(hops, 1)
    weight = hops**-2
    np.fill_diagonal(weight, 0)
    inverse = np.linalg.pinv(np.diag(weight.sum(axis=1)) - weight, hermitian=True)
    for _ in range(_STEPS):
        apart = np.hypot(at[:, :1] - at[:, 0], at[:, 1:] - at[:, 1])
        pull = weight * hops / np.maximum(apart, 1e-9)
        at = inverse @ (pull.sum(axis=1)[:, None] * at - pull @ at)
    at -= at.mean(axis=0)
    return np.asarray(at / np.linalg.norm(at, axis=1).max())


def _ring(middle: NDArray[np.float64], cut_edges: NDArray[np.int64], border: int) -> NDArray[np.float64]:
    """Border nodes on a circle round the subgraph, in the order of the directions of their neighbours inside."""
    if not border:
        return np.empty((0, 2))
    towards = np.zeros((border, 2))
    np.add.at(towards, cut_edges[:, 1] - len(middle), middle[cut_edges[:, 0]])
    wanted = np.arctan2(towards[:, 1], towards[:, 0])
    order = np.argsort(wanted, kind="stable")
    angle = np.empty(border)
    even = 2 * np.pi * np.arange(border) / border
    # Turned as a whole so that places are near the wanted directions.
    turn = np.angle(np.exp(1j * (wanted[order] - even)).sum())
    angle[order] = even + turn
    return _RADIUS * np.stack([np.cos(angle), np.sin(angle)], axis=1)
