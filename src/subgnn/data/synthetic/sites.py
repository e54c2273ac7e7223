"""Where subgraphs lie in a base graph: by breadth-first search, or around an edge that a planted graph will share.

Every node belongs to at most ``max_uses`` subgraphs, and any two subgraphs share at most one node. So no pair of nodes
lies in two subgraphs, and edges inside one can be set without touching the inside of another.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.data.graph import Graph
from subgnn.data.synthetic.base_graphs import stream_word
from subgnn.data.synthetic.settings import require
from subgnn.errors import DataError
from subgnn.kernels.arrays import Array, csr, frozen
from subgnn.kernels.compile import compiled
from subgnn.kernels.draws import open_stream, uniform_below
from subgnn.ragged import Ragged

_TRIES = 400  # starts for one subgraph before giving up
_DRAWS = 200  # draws for one node of a planting site


@compiled
def _may_join(node: int, uses: Array, of: Array, met: Array, attempt: int) -> bool:
    """Whether a node has a use left, and no subgraph it is in has given this attempt a node yet."""
    if uses[node] >= of.shape[1]:
        return False
    for j in range(uses[node]):  # noqa: SIM110
        if met[of[node, j]] == attempt:
            return False
    return True


@compiled
def _join(node: int, members: Array, found: int, uses: Array, of: Array, met: Array, attempt: int) -> None:
    members[found] = node
    for j in range(uses[node]):
        met[of[node, j]] = attempt


@compiled
def _settle(members: Array, uses: Array, of: Array, s: int) -> None:
    """Make a found node set subgraph s."""
    for i in range(len(members)):
        node = members[i]
        of[node, uses[node]] = s
        uses[node] += 1


@compiled
def _search(
    offsets: Array,
    neighbors: Array,
    allowed: Array,
    limits: tuple[int, int, int],
    key: np.uint64,
    out: Array,
) -> Any:
    """Fill the rows of ``out`` with breadth-first subgraphs; returns how many were found."""
    n, count, size = len(offsets) - 1, out.shape[0], out.shape[1]
    max_depth, fan_out, max_uses = limits
    uses, of = np.zeros(n, np.int64), np.empty((n, max_uses), np.int32)
    met, taken = np.zeros(count, np.int64), np.zeros(n, np.int64)
    depth = np.empty(size, np.int64)
    attempt = 0
    for s in range(count):
        state = open_stream(key, s)
        found = 0
        for _ in range(_TRIES):
            start = uniform_below(state, n)
            attempt += 1
            if not (allowed[start] and _may_join(start, uses, of, met, attempt)):
                continue
            _join(start, out[s], 0, uses, of, met, attempt)
            depth[0], taken[start] = 0, attempt
            found, at = 1, 0
            while at < found and found < size and depth[at] < max_depth:
                v = out[s, at]
                row = neighbors[offsets[v] : offsets[v + 1]].copy()
                brought, left = 0, len(row)
                while left > 0 and brought < fan_out and found < size:
                    j = uniform_below(state, left)
                    u = row[j]
                    left -= 1
                    row[j] = row[left]
                    if allowed[u] and taken[u] != attempt and _may_join(u, uses, of, met, attempt):
                        _join(u, out[s], found, uses, of, met, attempt)
                        depth[found], taken[u] = depth[at] + 1, attempt
                        found += 1
                        brought += 1
                at += 1
            if found == size:
                break
        if found < size:
            return s
        _settle(out[s], uses, of, s)
    return count


@compiled
def _find_sites(offsets: Array, neighbors: Array, max_uses: int, max_degree: int, key: np.uint64, out: Array) -> Any:
    """Fill the rows of ``out`` with the two ends of an edge and further nodes; returns how many were found."""
    n, count, size = len(offsets) - 1, out.shape[0], out.shape[1]
    uses, of = np.zeros(n, np.int64), np.empty((n, max_uses), np.int32)
    met, taken = np.zeros(count, np.int64), np.zeros(n, np.int64)
    attempt = 0
    for s in range(count):
        state = open_stream(key, s)
        found = 0
        for _ in range(_TRIES):
            attempt += 1
            found = 0
            for _ in range(_DRAWS * size):
                u = uniform_below(state, n)
                if found == 1:
                    first = out[s, 0]
                    u = neighbors[offsets[first] + uniform_below(state, offsets[first + 1] - offsets[first])]
                degree = offsets[u + 1] - offsets[u]
                if 0 < degree <= max_degree and taken[u] != attempt and _may_join(u, uses, of, met, attempt):
                    _join(u, out[s], found, uses, of, met, attempt)
                    taken[u] = attempt
                    found += 1
                    if found == size:
                        break
            if found == size:
                break
        if found < size:
            return s
        _settle(out[s], uses, of, s)
    return count


def smallest_fan_out(size: int, max_depth: int) -> int:
    """The smallest number of nodes each node brings with which ``size`` nodes are reached within ``max_depth`` hops.

    Example:
        >>> smallest_fan_out(20, 3)
        3
    """
    fan_out = 1
    while sum(fan_out**d for d in range(max_depth + 1)) < size:
        fan_out += 1
    return fan_out


def bfs_subgraphs(
    graph: Graph,
    count: int,
    *,
    size: int,
    max_depth: int,
    rng: np.random.Generator,
    fan_out: int | None = None,
    max_uses: int = 1,
    within: NDArray[np.bool_] | None = None,
) -> Ragged:
    """BFS (paper, appendix B): subgraphs found by breadth-first search from random starts.

    Args:
        graph: the base graph.
        count: how many subgraphs.
        size: nodes of each.
        max_depth: hops from the start within which they lie.
        rng: where the draws come from.
        fan_out: how many new nodes a node brings at most, chosen at random among its neighbours; by default as few as
            reach ``size``, so that searches do use their depth.
        max_uses: how many subgraphs a node may belong to; any two share one node at most.
        within: the nodes that may be used; all by default.

    Returns:
        The node sets, each sorted.

    Raises:
        DataError: where so many do not fit; the message says how many do.
    """
    require(max_depth >= 1, f"max_depth is {max_depth}", where="max_depth", hint="at least 1 is needed")
    _check_room(graph.num_nodes if within is None else int(np.count_nonzero(within)), count, size, max_uses)
    limits = (max_depth, smallest_fan_out(size, max_depth) if fan_out is None else fan_out, max_uses)
    allowed = frozen(np.ones(graph.num_nodes) if within is None else within, np.bool_)
    out = np.empty((count, size), np.int32)
    found = _search(*csr(*graph.csr), allowed, limits, stream_word(rng), out)
    return _node_sets(
        out, found, f"by breadth-first search to depth {max_depth}", "a greater depth or more uses a node"
    )


def planting_sites(
    graph: Graph,
    count: int,
    *,
    size: int,
    rng: np.random.Generator,
    max_uses: int = 1,
    max_degree: int | None = None,
) -> NDArray[np.int32]:
    """Where PLANT may lay graphs of ``size`` nodes: all nodes in common with the graph, and the edge 0 - 1.

    Args:
        graph: the base graph.
        count: how many sites.
        size: nodes of each.
        rng: where the draws come from.
        max_uses: how many sites a node may belong to; any two share one node at most.
        max_degree: nodes of greater degree are left out; by default none.

    Shapes:
        returns: (count, size) int32; the first two nodes of a row are joined by an edge of the graph.

    Raises:
        DataError: where so many do not fit; the message says how many do.
    """
    _check_room(graph.num_nodes, count, size, max_uses)
    limit = graph.num_nodes if max_degree is None else max_degree
    out = np.empty((count, size), np.int32)
    found = _find_sites(*csr(*graph.csr), max_uses, limit, stream_word(rng), out)
    _check_found(out, found, "as sites to plant on", "more uses a node")
    return out


def _check_room(num_nodes: int, count: int, size: int, max_uses: int) -> None:
    require(max_uses >= 1, f"max_uses is {max_uses}", where="max_uses", hint="at least 1 is needed")
    most = num_nodes * min(max_uses, count) // size
    require(
        count <= most,
        f"{count:,} subgraphs of {size} nodes on {num_nodes:,} nodes, each in {max_uses} at most",
        where="num_subgraphs",
        hint=f"at most {most:,} are possible",
    )


def _check_found(out: Array, found: int, how: str, remedy: str) -> None:
    count, size = out.shape
    if found < count:
        raise DataError(
            f"{found:,} of {count:,} subgraphs of {size} nodes could be found {how}",
            where="num_subgraphs",
            hint=f"ask for {f'{found:,} or for ' if found else ''}smaller ones, or allow more nodes, {remedy}",
        )


def _node_sets(out: Array, found: int, how: str, remedy: str) -> Ragged:
    _check_found(out, found, how, remedy)
    out.sort(axis=1)
    return Ragged.from_lengths(out.reshape(-1), np.full(len(out), out.shape[1]))
