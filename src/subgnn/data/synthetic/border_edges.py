"""Edges that leave subgraphs, added until each has the wanted number."""

from __future__ import annotations

from typing import Any

import numpy as np

from subgnn.data.graph import Graph
from subgnn.data.synthetic.base_graphs import stream_word
from subgnn.data.synthetic.edits import owners, with_edges
from subgnn.errors import DataError
from subgnn.kernels import shapes
from subgnn.kernels.arrays import Array, csr, frozen, sets
from subgnn.kernels.compile import compiled
from subgnn.kernels.draws import open_stream, uniform_below
from subgnn.kernels.induced import contains
from subgnn.ragged import Ragged

_DRAWS = 64  # random partners tried before only nodes of no subgraph are looked at


@compiled
def _all_short(owned: Array, lo: int, hi: int, short: Array) -> bool:
    """Whether every subgraph in ``owned[lo:hi]`` still lacks an edge."""
    for j in range(lo, hi):  # noqa: SIM110
        if short[owned[j]] == 0:
            return False
    return True


@compiled
def _share(owned: Array, begin: Array, u: int, v: int) -> bool:
    """Whether two nodes lie in one subgraph; both lists of subgraphs rise."""
    i, j = begin[u], begin[v]
    while i < begin[u + 1] and j < begin[v + 1]:
        if owned[i] == owned[j]:
            return True
        if owned[i] < owned[j]:
            i += 1
        else:
            j += 1
    return False


@compiled
def _partner(
    offsets: Array,
    neighbors: Array,
    owned: Array,
    begin: Array,
    free: Array,
    short: Array,
    added: set[Any],
    u: Any,
    state: Array,
) -> Any:
    """A node that an edge from ``u`` can lead to without giving a subgraph more than it lacks; -1 if there is none."""
    n = len(offsets) - 1
    start = uniform_below(state, len(free)) if len(free) else 0
    for t in range(_DRAWS + len(free)):
        v = uniform_below(state, n) if t < _DRAWS else free[(start + t) % len(free)]
        if v == u or _share(owned, begin, u, v) or not _all_short(owned, begin[v], begin[v + 1], short):
            continue
        key = min(u, v) * n + max(u, v)
        if key not in added and not contains(neighbors, offsets[u], offsets[u + 1], v):
            return v
    return -1


@compiled
def _fill(
    offsets: Array,
    neighbors: Array,
    values: Array,
    rows: Array,
    owned: Array,
    begin: Array,
    free: Array,
    short: Array,
    key: np.uint64,
) -> tuple[Array, Array]:
    """Add random edges round by round, one a subgraph; ``short`` ends at what could not be added."""
    n, count = len(offsets) - 1, len(rows) - 1
    state = open_stream(key, 0)
    room = 1024
    tails, heads = np.empty(room, np.int32), np.empty(room, np.int32)
    added: set[Any] = {np.int64(-1)}
    total, stuck = 0, np.zeros(count, np.bool_)
    going = True
    while going:
        going = False
        for s in range(count):
            if short[s] == 0 or stuck[s]:
                continue
            size = rows[s + 1] - rows[s]
            start = uniform_below(state, size)
            u, v = np.int64(-1), np.int64(-1)
            for t in range(size):
                u = np.int64(values[rows[s] + (start + t) % size])
                if _all_short(owned, begin[u], begin[u + 1], short):
                    v = _partner(offsets, neighbors, owned, begin, free, short, added, u, state)
                    if v >= 0:
                        break
            if v < 0:
                stuck[s] = True
                continue
            if total == room:
                room *= 2
                tails, heads = np.append(tails, np.empty_like(tails)), np.append(heads, np.empty_like(heads))
            tails[total], heads[total] = u, v
            total += 1
            added.add(min(u, v) * n + max(u, v))
            for w in (u, v):
                for j in range(begin[w], begin[w + 1]):
                    short[owned[j]] -= 1
            going = True
    return tails[:total], heads[:total]


def add_border_edges(graph: Graph, subgraphs: Ragged, missing: Array, rng: np.random.Generator) -> Graph:
    """The graph with edges added such that exactly ``missing[i]`` more leave subgraph i; no pair inside one is touched.

    An edge leads from a random node of a subgraph to a random node outside, and counts for every subgraph that either
    end belongs to.

    Raises:
        DataError: where there are not enough pairs left; the message says how many edges could be added.

    Example:
        >>> path = Graph.from_edges([0, 1, 2], [1, 2, 3])
        >>> g = add_border_edges(path, Ragged.from_rows([[0, 1]]), np.array([2]), np.random.default_rng(0))
        >>> g.num_edges
        5
    """
    belongs = owners(subgraphs, graph.num_nodes)
    free = np.flatnonzero(belongs.lengths == 0)
    short = np.array(missing, np.int64)
    tails, heads = _fill(
        *csr(*graph.csr), *sets(subgraphs), *sets(belongs), frozen(free, np.int64), short, stream_word(rng)
    )
    if short.any():
        worst = int(np.argmax(short))
        shape = shapes(*graph.csr, subgraphs)
        asked, possible = int(missing[worst]), int(missing[worst] - short[worst])
        most = (shape.cut_edges[worst] + possible) / (shape.nodes[worst] * (graph.num_nodes - shape.nodes[worst]))
        raise DataError(
            f"{asked:,} more edges should leave subgraph {worst}, and {possible:,} can",
            where="cut ratio",
            hint=f"its cut ratio can be {most:.5f}; lower the largest target, or use fewer or smaller subgraphs",
        )
    return with_edges(graph, tails, heads)
