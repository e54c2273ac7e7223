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

from subgnn.kernels.arrays import Array, Csr, Sets, compiled, compiled_parallel, csr, frozen, sets
from subgnn.kernels.nearby_distances import slot
from subgnn.ragged import Ragged

Pair = tuple[Array, Array]
Triple = tuple[Array, Array, Array]
Walk = tuple[float, float, float]
"""The weight of the loop at a node without edges, the damping a, and the bound epsilon on the error of a push."""

COLUMNS = 16
"""Node sets that :func:`relax` takes at once: a row of their values fills a line of the processor's cache."""


def relax(
    offsets: Array,
    neighbors: Array,
    weights: Array | None,
    equations: tuple[Array, Array, Array],
    start: Array,
    *,
    omega: float,
    tolerance: float,
    most: int,
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
        len(start), csr(offsets, neighbors), given, rows, how, frozen(start, np.float32), x
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
