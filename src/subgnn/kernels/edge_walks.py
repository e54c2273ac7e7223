"""Random walks over edges that have weights or a direction: a step is drawn by weight from the edges of a node.

Triangular walks are those of :mod:`subgnn.kernels.walks`, with weights: after the nodes x and y, the next one is drawn
from T = N(y) & N(x) with probability beta and from U = N(y) - N(x) otherwise, by the weights of y's edges; N has the
out-edges of a directed graph, where both sets may be empty and the walk then ends. Simple walks draw every step from
all edges of a node; without weights, uniformly.

An edge is drawn by binary search in the cumulative weights of a row. Edges of weight 0 are left out, so they are in no
N. Random numbers are keyed by the walk, never by the thread.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from subgnn.kernels.arrays import Array, Csr, Sets, compiled, compiled_parallel, csr, frozen, sets
from subgnn.kernels.draws import item_keys, open_stream, uniform_below, uniform_unit
from subgnn.kernels.induced import contains
from subgnn.ragged import Ragged

_TRIES = 8
_END = -1


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """Edges that walks follow.

    Shapes:
        graph: offsets (N + 1,) and neighbors (entries,). cumulative: (entries + 1,) float64, sums of the weights of all
        entries before each; empty where all weights are 1.
    """

    graph: Csr
    cumulative: Array

    @classmethod
    def of(cls, offsets: Array, neighbors: Array, weights: Array | None = None) -> Steps:
        """The edges of CSR arrays, without those of weight 0.

        Args:
            weights: (entries,), from 0 on; None where all are 1.
        """
        if weights is None:
            return cls(csr(offsets, neighbors), frozen(np.empty(0), np.float64))
        kept = weights != 0
        if not kept.all():
            offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(kept)])[offsets]
            neighbors, weights = neighbors[kept], weights[kept]
        sums = np.zeros(len(neighbors) + 1)
        np.cumsum(weights, dtype=np.float64, out=sums[1:])
        return cls(csr(offsets, neighbors), frozen(sums, np.float64))


@compiled
def _draw(cumulative: Array, lo: int, hi: int, state: Array) -> int:
    """An entry of lo..hi-1, drawn by weight."""
    if len(cumulative) == 0:
        return lo + uniform_below(state, hi - lo)
    wanted = cumulative[lo] + uniform_unit(state) * (cumulative[hi] - cumulative[lo])
    first, last = lo, hi - 1
    while first < last:
        middle = (first + last) >> 1
        if cumulative[middle + 1] > wanted:
            last = middle
        else:
            first = middle + 1
    return first


@compiled
def _may_visit(allowed: Array, everywhere: bool, node: int) -> bool:
    return everywhere or contains(allowed, 0, len(allowed), node)


@compiled
def _step(
    graph: Csr, cumulative: Array, allowed: Array, everywhere: bool, x: int, y: int, beta: float, state: Array
) -> int:
    """A node after (x, y), or the end; x is below 0 in the first step, where all neighbours are in U.

    First by rejection: an edge of y, drawn by weight, that leads into the wanted set is one drawn by weight among those
    that do. After a few misses the weights of the two sets are summed.
    """
    offsets, neighbors = graph
    lo, hi = offsets[y], offsets[y + 1]
    if lo == hi:
        return _END
    x_lo, x_hi = (offsets[x], offsets[x + 1]) if x >= 0 else (0, 0)
    triangle = x >= 0 and uniform_unit(state) < beta
    for _ in range(_TRIES):
        z = neighbors[_draw(cumulative, lo, hi, state)]
        if _may_visit(allowed, everywhere, z) and contains(neighbors, x_lo, x_hi, z) == triangle:
            return z
    closed, opened = 0.0, 0.0
    for e in range(lo, hi):
        if _may_visit(allowed, everywhere, neighbors[e]):
            weight = cumulative[e + 1] - cumulative[e] if len(cumulative) > 0 else 1.0
            if contains(neighbors, x_lo, x_hi, neighbors[e]):
                closed += weight
            else:
                opened += weight
    if closed + opened == 0:
        return _END
    if closed == 0:
        triangle = False
    elif opened == 0:
        triangle = True
    left = uniform_unit(state) * (closed if triangle else opened)
    last = _END
    for e in range(lo, hi):
        z = neighbors[e]
        if _may_visit(allowed, everywhere, z) and contains(neighbors, x_lo, x_hi, z) == triangle:
            last = z
            left -= cumulative[e + 1] - cumulative[e] if len(cumulative) > 0 else 1.0
            if left < 0:
                break
    return last


@compiled_parallel
def _triangular(
    begin: int,
    end: int,
    steps: tuple[Csr, Array],
    starts: Sets,
    allowed: Sets,
    everywhere: bool,
    beta: float,
    keys: Array,
    lengths: Array,
    out: Array,
) -> None:
    graph, cumulative = steps
    n = len(graph[0]) - 1
    for p in range(begin, end):
        members = allowed[0][:0] if everywhere else allowed[0][allowed[1][p] : allowed[1][p + 1]]
        first = starts[0][:0] if everywhere else starts[0][starts[1][p] : starts[1][p + 1]]
        for w in range(out.shape[1]):
            if not everywhere and len(first) == 0:
                continue
            state = open_stream(keys[p], w)
            walk, count = out[p, w], 0
            for t in range(len(walk)):
                if t == 0:
                    node = uniform_below(state, n) if everywhere else np.int64(first[uniform_below(state, len(first))])
                else:
                    x, y = int(walk[t - 2]) if t > 1 else -1, int(walk[t - 1])
                    node = np.int64(_step(graph, cumulative, members, everywhere, x, y, beta, state))
                if node == _END:
                    break
                walk[t] = node
                count = t + 1
            lengths[p, w] = count


def triangular_walks(
    steps: Steps,
    *,
    walks: int,
    length: int,
    beta: float,
    key: int | Array,
    starts: Ragged | None = None,
    allowed: Ragged | None = None,
) -> Ragged:
    """Triangular walks by weight, over the whole graph or over the allowed nodes of each of some sets.

    Args:
        walks: how many; with ``allowed``, of each set.
        length: nodes in a walk, at most.
        beta: probability of closing a triangle if both kinds of step are possible.
        key: a stream key, or one for each walk or, with ``allowed``, set.
        starts: the nodes that a walk of each set starts at, drawn uniformly; those of a set without any are empty. By
            default, and without ``allowed``, all nodes.
        allowed: the nodes that it may visit, sorted.

    Returns:
        Row ``p * walks + w`` is walk ``w`` of set ``p``.
    """
    everywhere = allowed is None
    count, each = (walks, 1) if allowed is None else (len(allowed), walks)
    nothing = Ragged.from_rows([])
    out, lengths = np.zeros((count, each, length), np.int32), np.zeros((count, each), np.int64)
    if len(steps.graph[0]) > 1:
        first, may = sets(nothing if starts is None else starts), sets(nothing if allowed is None else allowed)
        given = (steps.graph, steps.cumulative)
        _triangular(count, given, first, may, everywhere, float(beta), item_keys(key, count), lengths, out)
    rows = out.reshape(-1, length)
    taken = np.arange(length) < lengths.reshape(-1, 1)
    return Ragged.from_lengths(rows[taken], lengths.reshape(-1))


@compiled_parallel
def _from_members(begin: int, end: int, steps: tuple[Csr, Array], family: Sets, keys: Array, out: Array) -> None:
    (offsets, neighbors), cumulative = steps
    values, rows = family
    for r in range(begin, end):
        for i in range(rows[r], rows[r + 1]):
            for w in range(out.shape[1]):
                state = open_stream(keys[r], (i - rows[r]) * out.shape[1] + w)
                node = values[i]
                for t in range(out.shape[2]):
                    lo, hi = offsets[node], offsets[node + 1]
                    if lo < hi:
                        node = neighbors[_draw(cumulative, lo, hi, state)]
                    out[i, w, t] = node


def walk_from_members(steps: Steps, rows: Ragged, *, walks: int, length: int, keys: Array) -> Array:
    """Walks of ``length`` steps from each node of every set; a walk that cannot go on stays where it is.

    Args:
        rows: node sets.
        keys: one for each set (:func:`~subgnn.kernels.draws.node_set_keys`).

    Shapes:
        keys: (sets,) uint64. returns: (total, walks, length) int32, the nodes after each step.
    """
    out = np.empty((len(rows.values), walks, length), np.int32)
    _from_members(len(rows), (steps.graph, steps.cumulative), sets(rows), frozen(keys, np.uint64), out)
    return out
