"""Diffusion of node sets: how often a random walk that starts in a set is at each node.

A walk starts at a node of the set c, and goes on with probability a before each step. With s = 1_c / |c|, P = D^-1 A
and pi(v) = d_v / sum of d, the node where it ends is distributed as

    p_c = (1 - a) sum over k of a^k s P^k = (1 - a) s (I - a P)^-1

*Undirected graphs*: both kernels work with ratios to chance, q = p_c / pi, which obey
q = (1 - a) q_0 + a D^-1 A q with q_0 = s / pi. A node without edges has a loop: its walk stays where it is.

*Exact*: the Chebyshev series of (1 - a) / (1 - a x) in D^-1 A, whose eigenvalues are in [-1, 1]:

    q = sum over k of c_k T_k(D^-1 A) q_0
    c_0 = (1 - a) / sqrt(1 - a^2),   c_k = 2 c_0 rho^k,   rho = a / (1 + sqrt(1 - a^2))


*Push* (Andersen, Chung and Lang, 2006, here in rounds): an estimate p' and a residual r, with
p_c = p' + (1 - a) r (I - a P)^-1, from p' = 0, r = s. In a round, a node with r(u) >= epsilon d_u moves (1 - a) r(u)
into p'(u) and hands a r(u) to its neighbours. At the end r(u) < epsilon d_u everywhere, and as walks are reversible,
0 <= p_c(v) - p'(v) <= epsilon d_v. All pushes together follow at most 1 / ((1 - a) epsilon) edges (in units of their
weight), as each adds at least (1 - a) epsilon d_u to p', which sums to at most 1.

*Directed graphs*: D is the matrix of out-weights, and eigenvalues need not be real, so p_c is summed as it is written
(:func:`power_series`), until the rest sums to less than the tolerance. Push works as above, with the same bound on the
edges that are followed; but as walks are not reversible, the error is bounded by the sum of residuals alone.
"""

import numpy as np

from subgnn.kernels.arrays import Array, Csr, Sets, compiled, compiled_parallel, csr, frozen, num_chunks, sets
from subgnn.kernels.nearby_distances import slot
from subgnn.ragged import Ragged

Pair = tuple[Array, Array]
Triple = tuple[Array, Array, Array]
Walk = tuple[float, float, float]
"""The weight of the loop at a node without edges, the damping a, and the bound epsilon on the error of a push."""

COLUMNS = 32
"""Node sets that :func:`chebyshev_series` takes at once: a row of ratios fills two lines of the processor's cache."""


def chebyshev_series(
    offsets: Array, neighbors: Array, weights: Array | None, degrees: Array, start: Array, coefficients: Array
) -> Array:
    """The sum (N, B) of c_k T_k(D^-1 A) q_0, of ``coefficients`` c (K + 1,) and ``start`` q_0 (N, B).

    ``weights`` of entries are from 0 on, None where all are 1; ``degrees`` (N,) are their sums, 0 where a walk stays.
    """
    graph, scaling = csr(offsets, neighbors), _scaling(weights, degrees)
    series = coefficients.astype(np.float32)
    now = np.ascontiguousarray(start, np.float32).copy()
    total, before = series[0] * now, np.zeros_like(now)
    bounds = _bounds_by_edges(graph[0])
    for k in range(1, len(series)):
        _chebyshev_step(bounds, graph, scaling, (now, before), np.float32(1 if k == 1 else 2), series[k], total)
        now, before = before, now
    return total


def _scaling(weights: Array | None, degrees: Array) -> Pair:
    """The weights, empty where all are 1, and one over the degrees, 0 where a walk stays."""
    inverse = np.divide(1, degrees, out=np.zeros(len(degrees)), where=degrees > 0)
    return frozen(np.empty(0) if weights is None else weights, np.float32), frozen(inverse, np.float32)


def _bounds_by_edges(offsets: Array) -> Array:
    """Where pieces of the nodes with about equally many edges begin and end."""
    work = offsets + np.arange(len(offsets))
    return frozen(np.searchsorted(work, np.linspace(0, work[-1], 1 + num_chunks(len(offsets) - 1))), np.int64)


@compiled
def _gather(neighbors: Array, weights: Array, begin: int, end: int, values: Array, out: Array) -> None:
    """Sum the rows of the neighbours of one node into ``out``, four at a time, in the order of the entries."""
    width, one, single = len(out), np.float32(1), np.float32(0)
    whole = end - (end - begin) % 4
    if width == 1 and len(weights) == 0:  # a loop over one number would cost more than the sum
        for e in range(begin, whole, 4):
            left = values[neighbors[e], 0] + values[neighbors[e + 1], 0]
            single += left + (values[neighbors[e + 2], 0] + values[neighbors[e + 3], 0])
        for e in range(whole, end):
            single += values[neighbors[e], 0]
        out[0] = single
        return
    out[:] = 0
    for e in range(begin, whole, 4):
        a, b, c, d = values[neighbors[e]], values[neighbors[e + 1]], values[neighbors[e + 2]], values[neighbors[e + 3]]
        if len(weights) == 0:
            for j in range(width):
                out[j] += (a[j] + b[j]) + (c[j] + d[j])
        else:
            for j in range(width):
                near = weights[e] * a[j] + weights[e + 1] * b[j]
                out[j] += near + (weights[e + 2] * c[j] + weights[e + 3] * d[j])
    for e in range(whole, end):
        a, weight = values[neighbors[e]], one if len(weights) == 0 else weights[e]
        for j in range(width):
            out[j] += weight * a[j]


@compiled_parallel
def _chebyshev_step(
    begin: int, end: int, graph: Csr, scaling: Pair, pair: Pair, factor: float, c: float, total: Array
) -> None:
    """T_{k+1} = factor D^-1 A T_k - T_{k-1} in the place of T_{k-1}; adds c T_{k+1} to the sums."""
    offsets, neighbors = graph
    weights, inverse = scaling
    now, before = pair
    width = now.shape[1]
    mean = np.empty(width, np.float32)
    for v in range(begin, end):
        scale = factor * inverse[v]
        if inverse[v] == 0:
            scale = factor
            for j in range(width):
                mean[j] = now[v, j]
        else:
            _gather(neighbors, weights, offsets[v], offsets[v + 1], now, mean)
        for j in range(width):
            new = scale * mean[j] - before[v, j]
            before[v, j] = new
            total[v, j] += c * new


def power_series(
    offsets: Array, neighbors: Array, weights: Array | None, degrees: Array, start: Array, *, damping: float, terms: int
) -> Array:
    """The sum p (N, B) of (1 - a) a^k s P^k over k < ``terms``, for a directed graph and ``start`` s (N, B).

    Rows and weights are those of the in-edges; ``degrees`` (N,) are sums of out-weights, 0 where a walk stays.
    """
    graph, scaling = csr(offsets, neighbors), _scaling(weights, degrees)
    now = np.ascontiguousarray(start, np.float32).copy()
    total, handed = np.float32(1 - damping) * now, np.empty_like(now)
    bounds = _bounds_by_edges(graph[0])
    for _ in range(1, terms):
        np.multiply(now, scaling[1][:, None], out=handed)
        _power_step(bounds, graph, scaling, (handed, now), np.float32(damping), total)
    return total


@compiled_parallel
def _power_step(begin: int, end: int, graph: Csr, scaling: Pair, pair: Pair, damping: float, total: Array) -> None:
    """x_{k+1} = a x_k P in the place of x_k, and adds (1 - a) x_{k+1} to the sums."""
    offsets, neighbors = graph
    weights, inverse = scaling
    handed, now = pair
    width = now.shape[1]
    arrived = np.empty(width, np.float32)
    for v in range(begin, end):
        _gather(neighbors, weights, offsets[v], offsets[v + 1], handed, arrived)
        for j in range(width):
            if inverse[v] == 0:
                arrived[j] += now[v, j]
            now[v, j] = damping * arrived[j]
            total[v, j] += (np.float32(1) - damping) * now[v, j]


def push(
    offsets: Array,
    neighbors: Array,
    weights: Array | None,
    degrees: Array,
    rows: Ragged,
    *,
    walk: Walk,
    most: int,
    chance: Array | None = None,
) -> Triple:
    """The nodes of every set with the largest p'(v) / d_v, the largest first; ties are broken by the lower node.

    (1 - a) r(v) is added to p'(v) at the end. For directed graphs, p' is divided by ``chance`` (N,). Returns nodes
    (C, most), their p'(v) / d_v, and how many there are (C,); places beyond hold 0.
    """
    size = len(rows)
    out = np.zeros((size, most), np.int32), np.zeros((size, most)), np.zeros(size, np.int64)
    divisors = frozen(np.empty(0) if chance is None else chance, np.float64)
    given = frozen(np.empty(0) if weights is None else weights, np.float32), frozen(degrees, np.float32), divisors
    _push_all(size, csr(offsets, neighbors), given, sets(rows), walk, out)
    return out


@compiled
def _enlarge(keys: Array, estimate: Array, residual: Array, stamp: Array) -> tuple[Array, Array, Array, Array]:
    size = 2 * len(keys)
    new_keys, new_stamp = np.full(size, -1, np.int32), np.zeros(size, np.int32)
    new_estimate, new_residual = np.zeros(size, np.float64), np.zeros(size, np.float64)
    for i in range(len(keys)):
        if keys[i] != -1:
            at = slot(new_keys, keys[i])
            new_keys[at], new_stamp[at] = keys[i], stamp[i]
            new_estimate[at], new_residual[at] = estimate[i], residual[i]
    return new_keys, new_estimate, new_residual, new_stamp


@compiled
def _push_one(graph: Csr, weights: Array, degrees: Array, chance: Array, members: Array, walk: Walk) -> Pair:
    """The nodes that were met, in rising order, and their estimates over degrees."""
    offsets, neighbors = graph
    loop, damping, epsilon = walk
    size = 64
    while size < 4 * len(members):
        size *= 2
    keys, stamp = np.full(size, -1, np.int32), np.zeros(size, np.int32)
    estimate, residual = np.zeros(size, np.float64), np.zeros(size, np.float64)
    for v in members:
        at = slot(keys, v)
        keys[at] = v
        residual[at] = 1 / len(members)
    count, turn = len(members), 0
    changed = members.copy()
    while len(changed) > 0:
        turn += 1
        amounts, reach = np.zeros(len(changed), np.float64), 0
        for i in range(len(changed)):
            u = changed[i]
            at = slot(keys, u)
            given = residual[at]
            if degrees[u] == 0:
                estimate[at] += given
                residual[at] = 0
            elif given >= epsilon * degrees[u]:
                estimate[at] += (1 - damping) * given
                residual[at] = 0
                amounts[i] = damping * given / degrees[u]
                reach += offsets[u + 1] - offsets[u]
        arrived, num_arrived = np.empty(reach, np.int32), 0
        for i in range(len(changed)):
            if amounts[i] == 0:
                continue
            for e in range(offsets[changed[i]], offsets[changed[i] + 1]):
                v = neighbors[e]
                at = slot(keys, v)
                if keys[at] == -1:
                    if 2 * count >= len(keys):
                        keys, estimate, residual, stamp = _enlarge(keys, estimate, residual, stamp)
                        at = slot(keys, v)
                    keys[at] = v
                    count += 1
                residual[at] += amounts[i] if len(weights) == 0 else amounts[i] * weights[e]
                if stamp[at] != turn:
                    stamp[at] = turn
                    arrived[num_arrived] = v
                    num_arrived += 1
        changed = arrived[:num_arrived]
    nodes = np.sort(keys[keys != -1])
    ratios = np.empty(len(nodes), np.float64)
    for i in range(len(nodes)):
        at, degree = slot(keys, nodes[i]), degrees[nodes[i]]
        found = estimate[at] + (1 - damping) * residual[at]
        if len(chance) > 0:
            ratios[i] = found / chance[nodes[i]]
        else:
            ratios[i] = found / (degree if degree > 0 else loop)
    return nodes, ratios


@compiled_parallel
def _push_all(begin: int, end: int, graph: Csr, given: Triple, family: Sets, walk: Walk, out: Triple) -> None:
    weights, degrees, chance = given
    members, rows = family
    out_nodes, out_ratios, counts = out
    most = out_nodes.shape[1]
    for c in range(begin, end):
        nodes, ratios = _push_one(graph, weights, degrees, chance, members[rows[c] : rows[c + 1]], walk)
        if len(nodes) > most:
            kept = ratios >= np.partition(ratios, len(nodes) - most)[len(nodes) - most]
            nodes, ratios = nodes[kept], ratios[kept]
        # In single precision: sums that differ by the order of their terms alone are ties.
        order = np.argsort(-ratios.astype(np.float32), kind="mergesort")[:most]
        counts[c] = len(order)
        for k in range(len(order)):
            out_nodes[c, k], out_ratios[c, k] = nodes[order[k]], ratios[order[k]]
