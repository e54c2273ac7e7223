"""Duplication-divergence pieces drawn for a wanted mean core number."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from subgnn.data.graph import Graph
from subgnn.data.synthetic.base_graphs import MAX_COPIED_EDGES, copy_and_diverge, stream_word
from subgnn.kernels.arrays import Array, csr, frozen
from subgnn.kernels.compile import compiled
from subgnn.kernels.draws import open_stream, uniform_word
from subgnn.kernels.induced import contains

_TRIES = 2_000  # pieces drawn for one site before giving up


@dataclass(frozen=True, slots=True, eq=False)
class CorePiece:
    """A piece for a site, and the sum of core numbers that the site has once it is planted.

    ``seen`` is the smallest and largest sum of the pieces drawn on the way; ``tails`` is empty where none would do.
    """

    tails: Array
    heads: Array
    core_sum: int
    seen: tuple[int, int]


@compiled
def _core_sum(adjacent: Array) -> int:
    """The sum of core numbers: nodes are removed by rising degree."""
    size = len(adjacent)
    degree, removed = np.zeros(size, np.int64), np.zeros(size, np.bool_)
    for i in range(size):
        for j in range(size):
            degree[i] += adjacent[i, j]
    total, core = 0, 0
    for _ in range(size):
        v = -1
        for i in range(size):
            if not removed[i] and (v < 0 or degree[i] < degree[v]):
                v = i
        core = max(core, degree[v])
        total += core
        removed[v] = True
        for i in range(size):
            degree[i] -= adjacent[v, i]
    return total


@compiled
def _draw(
    offsets: Array, neighbors: Array, site: Array, retention: float, low: int, high: int, key: np.uint64
) -> tuple[Array, Array, int, int, int]:
    """Draw pieces until the site, its own edges included, has a sum of core numbers within low..high."""
    size = len(site)
    own = np.zeros((size, size), np.bool_)
    for i in range(size):
        for j in range(size):
            own[i, j] = contains(neighbors, offsets[site[i]], offsets[site[i] + 1], site[j])
    state = open_stream(key, 0)
    least, most = np.iinfo(np.int64).max, 0
    for _ in range(_TRIES):
        tails, heads, count = copy_and_diverge(size, retention, MAX_COPIED_EDGES, uniform_word(state))
        adjacent = own.copy()
        for e in range(count):
            adjacent[tails[e], heads[e]] = True
            adjacent[heads[e], tails[e]] = True
        total = _core_sum(adjacent)
        least, most = min(least, total), max(most, total)
        if low <= total <= high:
            return tails, heads, total, least, most
    return np.empty(0, np.int32), np.empty(0, np.int32), -1, least, most


def draw_core_piece(
    graph: Graph, site: Array, *, retention: float, low: int, high: int, rng: np.random.Generator
) -> CorePiece:
    """A duplication-divergence graph which, planted on ``site``, gives its nodes core numbers that sum to low..high.

    The edge 0 - 1 of the piece comes to lie on the first two nodes of the site.
    """
    tails, heads, total, least, most = _draw(
        *csr(*graph.csr), frozen(site, np.int32), retention, low, high, stream_word(rng)
    )
    return CorePiece(tails, heads, int(total), (int(least), int(most)))
