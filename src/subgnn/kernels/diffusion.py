"""Diffusion of node sets: how often a random walk that starts in a set is at each node.

A walk starts at a node of the set c, and goes on with probability a before each step. With s = 1_c / |c|, P = D^-1 A
and pi(v) = d_v / sum of d, the node where it ends is distributed as

    p_c = (1 - a) sum over k of a^k s P^k = (1 - a) s (I - a P)^-1

*Exact*: successive over-relaxation. A sweep moves the value of one node after another to what its equation says, or by
a factor omega as far. For undirected graphs the values are ratios to chance, q = p_c / pi, which obey

    q = (1 - a) q_0 + a D^-1 A q,   q_0 = s / pi,   omega = 2 / (1 + sqrt(1 - a^2))

In the long run, a sweep leaves at most sqrt(omega - 1) of an error (Kahan, 1958, as D - a A is a symmetric M-matrix),
mostly about omega - 1. A node without edges has a loop: its walk stays where it is. For directed graphs the values are
p_c, and omega is 1.

*Push* (Andersen, Chung and Lang, 2006, here in rounds): an estimate p' and a residual r, with
p_c = p' + (1 - a) r (I - a P)^-1, from p' = 0, r = s. In a round, a node with r(u) >= epsilon d_u moves (1 - a) r(u)
into p'(u) and hands a r(u) to its neighbours. At the end r(u) < epsilon d_u everywhere, and as walks are reversible,
0 <= p_c(v) - p'(v) <= epsilon d_v. All pushes together follow at most 1 / ((1 - a) epsilon) edges (in units of their
weight), as each adds at least (1 - a) epsilon d_u to p', which sums to at most 1.

*Directed graphs*: D is the matrix of out-weights. Push follows as many edges at most; but as walks are not reversible,
its error is bounded by the sum of residuals alone.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core import cgutils, types
from numba.extending import intrinsic

from subgnn.kernels.arrays import Array, Csr, Sets, Triple, compiled, compiled_parallel, csr, frozen, sets
from subgnn.ragged import Ragged

Walk = tuple[float, float, float]
"""The weight of the loop at a node without edges, the damping a, and the bound epsilon on the error of a push."""

COLUMNS = 16
"""Node sets that :func:`relax` takes at once: a row of their values fills a line of the processor's cache."""


def relax(
    graph: Csr, weights: Array | None, equations: Triple, start: Array, *, omega: float, tolerance: float, most: int
) -> Array:
    """Solve x(v) = own(v) start(v) + scale(v) sum over neighbours u of w(u, v) x(u), from x = own start.

    A column is finished when a sweep changes it by at most the tolerance, beside its start, or after ``most`` sweeps.
    Changes are sums over all nodes of magnitudes times ``measure``. Other columns do not matter.

    Args:
        weights: of entries, from 0 on; None if all are 1.
        equations: own, scale and measure (N,).

    Shapes:
        start, returns: (blocks, N, width), the width being 1 or :data:`COLUMNS`.
    """
    x, rows = np.empty_like(start), tuple(frozen(one, np.float32) for one in equations)
    given = None if weights is None else frozen(weights, np.float32)
    how = np.float32(omega), np.float32(tolerance), most
    (_relax_one if start.shape[2] == 1 else _relax_many)(
        len(start), csr(*graph), given, rows, how, frozen(start, np.float32), x
    )
    return x


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def _sum_rows(_: Any, values: Any, rows: Any, weights: Any, begin: Any, end: Any, out: Any, width: Any) -> Any:
    """In compiled code: the weighted sum of the rows of some neighbours. It stays in registers; LLVM would store it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def data(i: int) -> Any:
            return context.make_array(signature.args[i])(context, builder, arguments[i]).data

        ir = cgutils.ir
        vector = ir.VectorType(ir.FloatType(), width.literal_value)
        table, columns, total = builder.bitcast(data(0), vector.as_pointer()), data(1), ir.Constant(vector, None)
        found = cgutils.alloca_once_value(builder, total)
        with cgutils.for_range_slice(builder, arguments[3], arguments[4], arguments[3].type(1)) as (i, _):
            column = builder.sext(builder.load(builder.gep(columns, [i])), arguments[3].type)
            row = builder.load(builder.gep(table, [column]), align=4)
            if weights is not types.none:
                weight = builder.insert_element(total, builder.load(builder.gep(data(2), [i])), ir.IntType(32)(0))
                places = ir.Constant(ir.VectorType(ir.IntType(32), width.literal_value), None)
                row = builder.fmul(row, builder.shuffle_vector(weight, total, places))
            builder.store(builder.fadd(builder.load(found), row), found)
        builder.store(builder.load(found), builder.bitcast(data(5), vector.as_pointer()), align=4)
        return context.get_dummy_value()

    return types.void(values, rows, weights, begin, end, out, width), generate


def _relax_of(width: int) -> Callable[..., None]:
    """The kernel of :func:`relax` for blocks of some width, which the compiler has to know."""

    def relax_blocks(
        begin: int, end: int, graph: Csr, weights: Array | None, rows: Any, how: Any, start: Array, out: Array
    ) -> None:
        offsets, neighbors = graph
        own, scale, measure = rows
        omega, tolerance, most = how
        near, steps = np.empty(width, np.float32), np.empty(width, np.float32)
        bounds, changes = np.empty(width, np.float32), np.empty(width, np.float32)
        for block in range(begin, end):
            given, x = start[block], out[block]
            for j in range(width):
                steps[j], bounds[j] = omega, 0
            for v in range(len(x)):
                for j in range(width):
                    x[v, j] = own[v] * given[v, j]
                    bounds[j] += tolerance * measure[v] * abs(given[v, j])
            for _ in range(most):
                for j in range(width):
                    changes[j] = 0
                for v in range(len(x)):
                    _sum_rows(x, neighbors, weights, offsets[v], offsets[v + 1], near, width)
                    for j in range(width):
                        change = steps[j] * (own[v] * given[v, j] + scale[v] * near[j] - x[v, j])
                        x[v, j] += change
                        changes[j] += measure[v] * abs(change)
                unfinished = 0
                for j in range(width):
                    if changes[j] <= bounds[j]:
                        steps[j] = 0
                    unfinished += int(steps[j] > 0)
                if unfinished == 0:
                    break

    return compiled_parallel(relax_blocks)


_relax_one, _relax_many = _relax_of(1), _relax_of(COLUMNS)


def sum_walks(rows: Ragged, nodes: Triple, links: Triple, own: Array, ratios: Array) -> Array:
    """p_c / pi of every set (C, N) over an undirected graph, from that of single nodes of a core.

    Args:
        nodes: those of the core (m,), the k others, which have no edges among each other, and for each node its place
            i in the core or -1 - i among the others (N,).
        links: a P of the others, which lead to the core, as offsets (k + 1,), places in the core and values.
        own: (1 - a) / pi(u) of the others, 1 / pi(u) where walks stay (k,).
        ratios: p_u / pi from and at the nodes of the core (m, m).
    """
    out = np.empty((len(rows), len(nodes[2])), np.float32)
    given = tuple(frozen(one, np.int32) for one in nodes), (*csr(*links[:2]), frozen(links[2], np.float32))
    _sum_walks(len(rows), sets(rows), *given, frozen(own, np.float32), frozen(ratios, np.float32), out)
    return out


@compiled_parallel
def _sum_walks(
    begin: int, end: int, family: Sets, nodes: Triple, links: Triple, own: Array, ratios: Array, out: Array
) -> None:
    members, rows = family
    core, others, place = nodes
    offsets, neighbors, values = links
    parts, sums = np.empty(len(core), np.float32), np.empty(len(core), np.float32)
    for c in range(begin, end):
        share, row = np.float32(1 / (rows[c + 1] - rows[c])), out[c]
        for i in range(len(core)):
            parts[i] = sums[i] = 0
        for u in members[rows[c] : rows[c + 1]]:
            if place[u] >= 0:
                parts[place[u]] += share
            else:
                for e in range(offsets[-1 - place[u]], offsets[-place[u]]):
                    parts[neighbors[e]] += share * values[e]
        for i in range(len(core)):
            if parts[i] > 0:
                for j in range(len(core)):
                    sums[j] += parts[i] * ratios[i, j]
        for i in range(len(core)):
            row[core[i]] = sums[i]
        for i in range(len(others)):
            near = np.float32(0)
            for e in range(offsets[i], offsets[i + 1]):
                near += values[e] * sums[neighbors[e]]
            row[others[i]] = near
        for u in members[rows[c] : rows[c + 1]]:
            if place[u] < 0:
                row[u] += share * own[-1 - place[u]]


def push(
    graph: Csr, weights: Array | None, degrees: Array, rows: Ragged, *, walk: Walk, most: int, chance: Array | None
) -> Triple:
    """The nodes of every set with the largest p'(v) / d_v, the largest first; ties are broken by the lower node.

    (1 - a) r(v) is added to p'(v) at the end. For directed graphs, p' is divided by ``chance`` (N,). Returns nodes
    (C, most), their p'(v) / d_v, and how many there are (C,); places beyond hold 0.
    """
    size = len(rows)
    out = np.zeros((size, most), np.int32), np.zeros((size, most)), np.zeros(size, np.int64)
    divisors = frozen(np.empty(0) if chance is None else chance, np.float64)
    given = frozen(np.empty(0) if weights is None else weights, np.float32), frozen(degrees, np.float32), divisors
    _push_all(size, csr(*graph), given, sets(rows), walk, out)
    return out


Met = tuple[Array, Array, Array, Array, Array, Array, Array]
"""The nodes that a walk met, in order: their ids, places in the table, degrees, last rounds, estimates and residuals;
and the table, an open hash table of ids and of places in this order, in one number each."""
_HASH, _PLACE = np.uint64(0x9E3779B97F4A7C15), np.int64(2**32 - 1)


@compiled
def _room(met: Met, count: int, size: int) -> Met:
    """Arrays for ``size`` nodes, that hold the first ``count``."""
    nodes, _, degree, turns, estimate, residual, _ = met
    wide = 64
    while wide < 2 * size:
        wide *= 2
    half, table = wide // 2, np.full(wide, -1, np.int64)
    new_nodes, new_places = np.empty(half, np.int32), np.empty(half, np.int64)
    new_degree, new_turns = np.empty(half, np.float32), np.empty(half, np.int32)
    new_estimate, new_residual = np.empty(half, np.float64), np.empty(half, np.float64)
    for k in range(count):
        at = _place(table, nodes[k])
        table[at] = (np.int64(nodes[k]) << 32) | k
        new_nodes[k], new_places[k], new_degree[k], new_turns[k] = nodes[k], at, degree[k], turns[k]
        new_estimate[k], new_residual[k] = estimate[k], residual[k]
    return new_nodes, new_places, new_degree, new_turns, new_estimate, new_residual, table


@compiled
def _place(table: Array, node: int) -> Any:
    """Where a node is in the table, or the free place, which holds -1, where it would be."""
    mask = len(table) - 1
    at = np.int64((np.uint64(node) * _HASH) >> np.uint64(32)) & mask
    while table[at] != -1 and table[at] >> 32 != node:
        at = (at + 1) & mask
    return at


@compiled
def _push_one(graph: Csr, weights: Array, degrees: Array, members: Array, walk: Walk, met: Met) -> tuple[int, Met]:
    """How many nodes are met, and these.

    Loops that fetch what is far apart in memory do nothing else, so that the processor waits for many numbers at once.
    """
    offsets, neighbors = graph
    _, damping, epsilon = walk
    if 2 * len(members) > len(met[6]):
        met = _room(met, 0, len(members))
    nodes, places, degree, turns, estimate, residual, table = met
    for k in range(len(members)):
        at = _place(table, members[k])
        table[at] = (np.int64(members[k]) << 32) | k
        nodes[k], places[k], degree[k], turns[k] = members[k], at, degrees[members[k]], 0
        estimate[k], residual[k] = 0, 1 / len(members)
    count, turn = len(members), 0
    changed: Array = np.arange(count)
    while len(changed) > 0:
        turn += 1
        pushed, amounts, num_pushed, reach = np.empty_like(changed), np.empty(len(changed), np.float64), 0, 0
        for k in changed:
            given = residual[k]
            if degree[k] == 0:
                estimate[k] += given
                residual[k] = 0
            elif given >= epsilon * degree[k]:
                estimate[k] += (1 - damping) * given
                residual[k] = 0
                pushed[num_pushed], amounts[num_pushed] = nodes[k], damping * given / degree[k]
                num_pushed += 1
        ends = np.empty(num_pushed, np.int64)
        for i in range(num_pushed):
            reach += offsets[pushed[i] + 1] - offsets[pushed[i]]
            ends[i] = reach
        heads, edge = np.empty(reach, np.int32), 0
        for i in range(num_pushed):
            for e in range(offsets[pushed[i]], offsets[pushed[i] + 1]):
                heads[edge] = neighbors[e]
                edge += 1
        if 2 * (count + reach) > len(table):
            met = _room(met, count, count + reach)
            nodes, places, degree, turns, estimate, residual, table = met
        known, arrived, num_arrived, edge = count, np.empty(reach, np.int64), 0, 0
        for i in range(num_pushed):
            first = offsets[pushed[i]] - edge
            while edge < ends[i]:
                at = _place(table, heads[edge])
                k = table[at] & _PLACE
                if table[at] == -1:
                    k = count
                    table[at] = (np.int64(heads[edge]) << 32) | k
                    nodes[k], places[k], turns[k], estimate[k], residual[k] = heads[edge], at, 0, 0, 0
                    count += 1
                residual[k] += amounts[i] if len(weights) == 0 else amounts[i] * weights[first + edge]
                if turns[k] != turn:
                    turns[k] = turn
                    arrived[num_arrived] = k
                    num_arrived += 1
                edge += 1
        for k in range(known, count):
            degree[k] = degrees[nodes[k]]
        changed = arrived[:num_arrived]
    return count, met


@compiled_parallel
def _push_all(begin: int, end: int, graph: Csr, given: Triple, family: Sets, walk: Walk, out: Triple) -> None:
    weights, degrees, chance = given
    members, rows = family
    out_nodes, out_ratios, counts = out
    most = out_nodes.shape[1]
    loop, damping, _ = walk
    small, large = np.empty(0, np.int32), np.empty(0, np.float64)
    met = _room(
        (small, np.empty(0, np.int64), np.empty(0, np.float32), small, large, large, np.empty(0, np.int64)), 0, 32
    )
    for c in range(begin, end):
        count, met = _push_one(graph, weights, degrees, members[rows[c] : rows[c + 1]], walk, met)
        nodes, places, degree, _, estimate, residual, table = met
        ratios = np.empty(count, np.float64)
        for k in range(count):
            found = estimate[k] + (1 - damping) * residual[k]
            if len(chance) > 0:
                ratios[k] = found / chance[nodes[k]]
            else:
                ratios[k] = found / (degree[k] if degree[k] > 0 else loop)
        least = np.partition(ratios, count - most)[count - most] if count > most else 0.0
        # The largest first, then the lower node. In single precision: sums that differ by the order of their terms
        # alone are ties.
        bits = ratios.astype(np.float32).view(np.int32)
        order, kept = np.empty(count, np.int64), 0
        for k in range(count):
            if ratios[k] >= least:
                order[kept] = (-np.int64(bits[k]) << 32) | nodes[k]
                kept += 1
        order = np.sort(order[:kept])[:most]
        counts[c] = len(order)
        for i in range(len(order)):
            node = order[i] & _PLACE
            out_nodes[c, i], out_ratios[c, i] = node, ratios[table[_place(table, node)] & _PLACE]
        if len(table) > 8 * count + 64:  # a hub was met: a large table would slow down the others
            met = _room(met, 0, count)
        for k in range(count):
            table[places[k]] = -1
