"""Random walks: triangular ones (paper, appendix A.2; Boldi and Rosa, 2012), and simple ones.

X_0 is uniform over the nodes a walk may start at, X_1 uniform over the allowed neighbours of X_0. Then, from the last
two nodes x and y, with T = N(y) & N(x) and U = N(y) - N(x), both cut down to allowed nodes, the next node is uniform
over T with probability beta and over U otherwise; if one is empty the other is taken, and if both are the walk ends.

Simple walks draw every step uniformly from all edges of a node. Random numbers are keyed by the walk.
"""

import numpy as np

from subgnn.kernels.arrays import Array, Csr, Sets, compiled, compiled_parallel, csr, frozen, sets
from subgnn.kernels.borders import border_sets
from subgnn.kernels.draws import Key, item_keys, open_stream, uniform_below, uniform_unit
from subgnn.kernels.induced import contains, induced_csr, inside_degrees, lower_bound
from subgnn.ragged import Ragged

_TRIES = 8
_END = -1
Walks = tuple[Array, Array]
"""The lengths of walks, and their nodes in rows of equal length."""


@compiled
def _may_visit(allowed: Array, node: int) -> bool:
    """Whether a node is marked; without marks, all nodes are."""
    return len(allowed) == 0 or allowed[node] != 0


@compiled
def _common(graph: Csr, allowed: Array, x: int, y: int, rank: int) -> tuple[int, int]:
    """How many allowed common neighbours x and y have, and the one of that rank; the shorter row is looked up."""
    offsets, neighbors = graph
    if offsets[x + 1] - offsets[x] > offsets[y + 1] - offsets[y]:
        x, y = y, x
    count, found = 0, _END
    place, end = offsets[y], offsets[y + 1]
    for e in range(offsets[x], offsets[x + 1]):
        place = lower_bound(neighbors, place, end, neighbors[e])
        if place == end:
            break
        if neighbors[place] == neighbors[e] and _may_visit(allowed, neighbors[e]):
            if count == rank:
                found = neighbors[e]
            count += 1
    return count, found


@compiled
def _step(graph: Csr, allowed: Array, x: int, y: int, beta: float, state: Array) -> int:
    """A node after (x, y), or the end; x is below 0 in the first step, where all neighbours are in U.

    First by rejection: a uniform neighbour of y that falls into the wanted set is uniform over it. After a few
    misses the sets are counted, which does not change the distribution, as draws have no memory.
    """
    offsets, neighbors = graph
    lo, hi = offsets[y], offsets[y + 1]
    if lo == hi:
        return _END
    x_lo, x_hi = (offsets[x], offsets[x + 1]) if x >= 0 else (0, 0)
    triangle = x >= 0 and uniform_unit(state) < beta
    for _ in range(_TRIES):
        z = neighbors[lo + uniform_below(state, hi - lo)]
        if _may_visit(allowed, z) and contains(neighbors, x_lo, x_hi, z) == triangle:
            return z
    # A rank that no common neighbour has.
    closed = _common(graph, allowed, x, y, hi - lo)[0] if x >= 0 else 0
    opened = -closed
    for e in range(lo, hi):
        opened += _may_visit(allowed, neighbors[e])
    if closed + opened == 0:
        return _END
    if closed == 0:
        triangle = False
    elif opened == 0:
        triangle = True
    rank = uniform_below(state, closed if triangle else opened)
    if triangle:
        return _common(graph, allowed, x, y, rank)[1]
    for e in range(lo, hi):
        z = neighbors[e]
        if _may_visit(allowed, z) and not contains(neighbors, x_lo, x_hi, z):
            if rank == 0:
                return z
            rank -= 1
    return _END


@compiled
def _walk(graph: Csr, allowed: Array, start: int, beta: float, state: Array, out: Array) -> int:
    for t in range(len(out)):
        node = np.int64(start)
        if t > 0:
            x, y = int(out[t - 2]) if t > 1 else -1, int(out[t - 1])
            node = np.int64(_step(graph, allowed, x, y, beta, state))
        if node == _END:
            return t
        out[t] = node
    return len(out)


@compiled_parallel
def _graph_walks(begin: int, end: int, graph: Csr, beta: float, keys: Array, out: Walks) -> None:
    lengths, walks = out
    n, everything = len(graph[0]) - 1, np.empty(0, np.uint8)
    for w in range(begin, end):
        state = open_stream(keys[w], 0)
        lengths[w] = _walk(graph, everything, uniform_below(state, n), beta, state, walks[w])


@compiled_parallel
def _inside_walks(begin: int, end: int, graph: Csr, patches: Sets, beta: float, keys: Array, out: Walks) -> None:
    lengths, walks = out
    values, rows = patches
    everything = np.empty(0, np.uint8)
    for p in range(begin, end):
        members = values[rows[p] : rows[p + 1]]
        local = induced_csr(graph, members)
        for w in range(walks.shape[1] if len(members) > 0 else 0):
            state = open_stream(keys[p], w)
            walk, start = walks[p, w], uniform_below(state, len(members))
            lengths[p, w] = _walk(local, everything, start, beta, state, walk)
            for t in range(lengths[p, w]):
                walk[t] = members[walk[t]]


@compiled_parallel
def _set_walks(
    begin: int, end: int, graph: Csr, starts: Sets, allowed: Sets, beta: float, keys: Array, out: Walks
) -> None:
    lengths, walks = out
    marks = np.zeros(len(graph[0]) - 1, np.uint8)
    for p in range(begin, end):
        first, last = starts[1][p], starts[1][p + 1]
        around = allowed[0][allowed[1][p] : allowed[1][p + 1]]
        for v in around:
            marks[v] = 1
        for w in range(walks.shape[1] if first < last else 0):
            state = open_stream(keys[p], w)
            start = starts[0][first + uniform_below(state, last - first)]
            lengths[p, w] = _walk(graph, marks, start, beta, state, walks[p, w])
        for v in around:
            marks[v] = 0


def _empty_walks(count: int, each: int, length: int) -> Walks:
    return np.zeros((count, each), np.int64), np.zeros((count, each, length), np.int32)


def _true_steps(walks: Walks) -> Ragged:
    lengths, rows = walks[0].reshape(-1), walks[1].reshape(-1, walks[1].shape[-1])
    return Ragged.from_lengths(rows[np.arange(rows.shape[1]) < lengths[:, None]], lengths)


def graph_walks(offsets: Array, neighbors: Array, *, walks: int, length: int, beta: float, key: Key) -> Ragged:
    """Triangular walks of at most ``length`` nodes from uniform nodes, closing triangles with chance ``beta``."""
    lengths, out = _empty_walks(walks, 1, length)
    if len(offsets) > 1:
        _graph_walks(walks, csr(offsets, neighbors), float(beta), item_keys(key, walks), (lengths[:, 0], out[:, 0]))
    return _true_steps((lengths, out))


def inside_walks(
    offsets: Array, neighbors: Array, patches: Ragged, *, walks: int, length: int, beta: float, key: Key
) -> Ragged:
    """Triangular walks that stay inside a patch, from a uniform node of it; row ``p * walks + w`` is walk w of p."""
    count = len(patches)
    out, keys = _empty_walks(count, walks, length), item_keys(key, count)
    _inside_walks(count, csr(offsets, neighbors), sets(patches), float(beta), keys, out)
    return _true_steps(out)


def border_walks(
    offsets: Array, neighbors: Array, patches: Ragged, *, hops: int, walks: int, length: int, beta: float, key: Key
) -> Ragged:
    """Triangular walks around a patch, from a uniform border node of it; row ``p * walks + w`` is walk w of patch p.

    They move over its nodes with a neighbour outside, and the nodes outside within ``hops`` of it. *Differs from
    the paper:* the first step is uniform over all allowed neighbours, not only those outside.
    """
    count = len(patches)
    at_border = inside_degrees(offsets, neighbors, patches)[1].values > 0
    starts = Ragged.from_lengths(patches.values[at_border], np.bincount(patches.row_ids[at_border], minlength=count))
    pairs = zip(starts, border_sets(offsets, neighbors, patches, hops=hops), strict=True)
    around = Ragged.from_rows([np.concatenate(pair) for pair in pairs])
    out, keys = _empty_walks(count, walks, length), item_keys(key, count)
    _set_walks(count, csr(offsets, neighbors), sets(starts), sets(around), float(beta), keys, out)
    return _true_steps(out)


@compiled_parallel
def _from_members(begin: int, end: int, graph: Csr, family: Sets, keys: Array, out: Array) -> None:
    offsets, neighbors = graph
    values, rows = family
    for r in range(begin, end):
        for i in range(rows[r], rows[r + 1]):
            for w in range(out.shape[1]):
                state = open_stream(keys[r], (i - rows[r]) * out.shape[1] + w)
                node = values[i]
                for t in range(out.shape[2]):
                    lo, hi = offsets[node], offsets[node + 1]
                    if lo < hi:
                        node = neighbors[lo + uniform_below(state, hi - lo)]
                    out[i, w, t] = node


def walk_from_members(offsets: Array, neighbors: Array, rows: Ragged, *, walks: int, length: int, keys: Array) -> Array:
    """Walks (total, walks, length) from each node, under a key per set; one that cannot go on stays."""
    out = np.empty((len(rows.values), walks, length), np.int32)
    _from_members(len(rows), csr(offsets, neighbors), sets(rows), frozen(keys, np.uint64), out)
    return out
