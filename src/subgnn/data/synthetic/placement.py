"""Find the nodes of subgraphs in a base graph, and put small graphs there (paper, appendix B, figure 5).

BFS finds subgraphs by breadth-first search and adds nothing to the graph; PLANT lays small graphs on nodes of the
graph; STAPLE attaches small graphs as new nodes.

Subgraphs of :func:`bfs_subgraphs` overlap freely. A node belongs to at most ``max_uses`` of the sets that
:func:`planting_nodes` draws, and any two of these share at most one node. So no pair of nodes lies in two of them, and
edges of one can be set without changing the edges of another.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.data.graph import Graph
from subgnn.data.synthetic.base_graphs import SmallGraphs, stream_word
from subgnn.data.synthetic.edges import with_edges
from subgnn.data.synthetic.recipe import require
from subgnn.errors import DataError
from subgnn.kernels.arrays import Array, compiled, csr
from subgnn.kernels.draws import open_stream, uniform_below
from subgnn.kernels.induced import lower_bound
from subgnn.ragged import Ragged

_TRIES = 400  # starts for one subgraph before giving up
_DRAWS = 200  # draws for one node to plant on
_SET_SLOTS = 32  # slots of a Python set of 5 to 18 integers


@compiled
def _may_join(node: int, usage: tuple[Array, Array, Array], attempt: int) -> bool:
    """Whether a node has a use left, and shares no subgraph with a node that joined in this attempt.

    ``usage`` is, for each node, in how many subgraphs it is and in which; and, for each subgraph, the last attempt that
    took one of its nodes.
    """
    uses, subgraphs, met = usage
    if uses[node] >= subgraphs.shape[1]:
        return False
    for j in range(uses[node]):  # noqa: SIM110
        if met[subgraphs[node, j]] == attempt:
            return False
    return True


@compiled
def _join(node: int, usage: tuple[Array, Array, Array], attempt: int) -> None:
    uses, subgraphs, met = usage
    for j in range(uses[node]):
        met[subgraphs[node, j]] = attempt


@compiled
def _record(members: Array, usage: tuple[Array, Array, Array], s: int) -> None:
    """Make a set of nodes subgraph s."""
    uses, subgraphs, _ = usage
    for i in range(len(members)):
        node = members[i]
        subgraphs[node, uses[node]] = s
        uses[node] += 1


@compiled
def _draw_nodes(offsets: Array, neighbors: Array, max_uses: int, max_degree: int, key: np.uint64, out: Array) -> Any:
    """Fill the rows of ``out`` with the two ends of an edge and further nodes; returns how many were found."""
    n, count, size = len(offsets) - 1, out.shape[0], out.shape[1]
    usage = (np.zeros(n, np.int64), np.empty((n, max_uses), np.int32), np.zeros(count, np.int64))
    taken = np.zeros(n, np.int64)
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
                if 0 < degree <= max_degree and taken[u] != attempt and _may_join(u, usage, attempt):
                    _join(u, usage, attempt)
                    out[s, found], taken[u] = u, attempt
                    found += 1
                    if found == size:
                        break
            if found == size:
                break
        if found < size:
            return s
        _record(out[s], usage, s)
    return count


@compiled
def _search_from(graph: tuple[Array, Array], starts: Array, max_depth: int, out: Array, lengths: Array) -> None:
    """Fill row s of ``out`` with the nodes that a breadth-first search from ``starts[s]`` reaches first."""
    offsets, neighbors = graph
    seen, depth = np.full(len(offsets) - 1, -1, np.int64), np.empty(out.shape[1], np.int64)
    for s in range(len(starts)):
        out[s, 0], depth[0], seen[starts[s]] = starts[s], 0, s
        found, at = 1, 0
        while at < found < out.shape[1] and depth[at] < max_depth:
            v = out[s, at]
            lo, hi = offsets[v], offsets[v + 1]
            middle = lower_bound(neighbors, lo, hi, v)
            older = neighbors[lo:middle]
            older = older[np.argsort(older % _SET_SLOTS, kind="mergesort")]
            for u in np.append(older, neighbors[middle:hi]):
                if seen[u] != s and found < out.shape[1]:
                    out[s, found], depth[found], seen[u] = u, depth[at] + 1, s
                    found += 1
            at += 1
        lengths[s] = found


def bfs_subgraphs(graph: Graph, count: int, *, size: int, max_depth: int, rng: np.random.Generator) -> Ragged:
    """BFS (paper, appendix B): the first nodes that breadth-first searches from random starts reach.

    Subgraphs may overlap, and even be equal. The neighbours of a node are visited in the order in which the authors'
    networkx lists those of a Barabasi-Albert graph: first the older ones, in the order of a small Python set (the id
    modulo 32), then the newer ones by age. Hubs have small ids, so they tend to come early.

    Args:
        size: nodes of a subgraph; it has fewer where fewer are within ``max_depth`` hops.

    Returns:
        ``count`` node sets, each in the order of the search.

    Example:
        >>> path = Graph.from_edges([0, 1, 2], [1, 2, 3])
        >>> bfs_subgraphs(path, 1, size=3, max_depth=3, rng=np.random.default_rng(0))[0].tolist()
        [3, 2, 1]
    """
    require(max_depth >= 1, f"max_depth is {max_depth}", where="max_depth", hint="at least 1 is needed")
    starts = rng.integers(graph.num_nodes, size=count)
    out, lengths = np.empty((count, size), np.int32), np.empty(count, np.int64)
    _search_from(csr(*graph.csr), starts, max_depth, out, lengths)
    return Ragged.from_lengths(out[np.arange(size) < lengths[:, None]], lengths)


def planting_nodes(
    graph: Graph,
    count: int,
    *,
    size: int,
    rng: np.random.Generator,
    max_uses: int = 1,
    max_degree: int | None = None,
) -> NDArray[np.int32]:
    """Sets of ``size`` random nodes for :func:`plant`; the first two of a set are joined by an edge of the graph.

    Args:
        max_uses: how many sets a node may belong to; any two sets share one node at most.
        max_degree: nodes of greater degree are left out; by default none.

    Shapes:
        returns: (count, size) int32.

    Raises:
        DataError: where so many do not fit; the message says how many do.
    """
    _check_room(graph.num_nodes, count, size, max_uses)
    limit = graph.num_nodes if max_degree is None else max_degree
    out = np.empty((count, size), np.int32)
    found = _draw_nodes(*csr(*graph.csr), max_uses, limit, stream_word(rng), out)
    _check_found(out, found, "to plant on", "more uses a node")
    return out


def _check_room(num_nodes: int, count: int, size: int, max_uses: int) -> None:
    require(max_uses >= 1, f"max_uses is {max_uses}", where="max_uses", hint="at least 1 is needed")
    most = num_nodes * min(max_uses, count) // size
    what = f"{count:,} subgraphs of {size} nodes on {num_nodes:,} nodes, each in {max_uses} at most"
    require(count <= most, what, where="num_subgraphs", hint=f"at most {most:,} are possible")


def _check_found(out: Array, found: int, how: str, remedy: str) -> None:
    count, size = out.shape
    if found < count:
        what = f"{found:,} of {count:,} subgraphs of {size} nodes could be found {how}"
        hint = f"ask for {f'{found:,} or for ' if found else ''}smaller ones, or allow more nodes, {remedy}"
        raise DataError(what, where="num_subgraphs", hint=hint)


def plant(graph: Graph, small: SmallGraphs, nodes: Array) -> Graph:
    """PLANT: lay small graphs onto nodes of the graph, as the union of node and edge sets.

    Args:
        nodes: for every node of the small graphs, the node of the graph it becomes (:func:`planting_nodes`).

    Raises:
        DataError: where two nodes of a small graph would become one.

    Example:
        A triangle on the path 0 - 1 - 2 - 3 shares two edges with it and adds one.

        >>> path = Graph.from_edges([0, 1, 2], [1, 2, 3])
        >>> plant(path, SmallGraphs.of([(3, [0, 0, 1], [1, 2, 2])]), np.array([1, 2, 3])).num_edges
        4
    """
    nodes = np.asarray(nodes, np.int64)
    n, where = graph.num_nodes, "nodes"
    what = f"{len(nodes)} nodes of the graph for {small.num_nodes} nodes of small graphs"
    require(len(nodes) == small.num_nodes, what, where=where, hint="one for each is needed")
    known = len(nodes) == 0 or (int(nodes.min()) >= 0 and int(nodes.max()) < n)
    require(known, "a node outside the graph", where=where, hint=f"ids run 0..{n - 1}")
    places = np.sort(np.repeat(np.arange(len(small)), np.diff(small.offsets)) * n + nodes)
    distinct = bool((np.diff(places) > 0).all())
    require(distinct, "a small graph with two nodes on one node", where=where, hint="its nodes must differ")
    return with_edges(graph, nodes[small.tails], nodes[small.heads])


def staple(graph: Graph, small: SmallGraphs, *, targets: Array, contacts: Array) -> Graph:
    """STAPLE: add small graphs as new nodes, each attached to the graph by one edge.

    Node j of the small graphs becomes node ``graph.num_nodes + j``.

    Args:
        targets: for each small graph, the node it is attached to: one of the graph, or one of an earlier small graph
            under its new id.
        contacts: for each small graph, its node that the edge begins at, counted within the small graph.

    Raises:
        DataError: for an edge that does not lead from a small graph to a node that is there before it.

    Example:
        >>> g = staple(Graph.from_edges([0], [1]), SmallGraphs.of([(2, [0], [1])]), targets=[1], contacts=[0])
        >>> g.num_nodes, [a.tolist() for a in g.edges()[:2]]
        (4, [[0, 1, 2], [1, 2, 3]])
    """
    targets, contacts = np.asarray(targets, np.int64), np.asarray(contacts, np.int64)
    n = graph.num_nodes
    what = f"{len(targets)} targets and {len(contacts)} contacts for {len(small)} small graphs"
    require(len(targets) == len(contacts) == len(small), what, where="staples", hint="one of each is needed")
    known = bool(((targets >= 0) & (targets < n + small.offsets[:-1])).all())
    hint = "nodes of the graph and of earlier small graphs are accepted"
    require(known, "a staple to a node that is not there yet", where="targets", hint=hint)
    own = bool(((contacts >= 0) & (contacts < np.diff(small.offsets))).all())
    hint = "nodes of a small graph are counted from 0 within it"
    require(own, "a staple from a node outside its small graph", where="contacts", hint=hint)
    tails = np.concatenate([n + small.tails, targets])
    heads = np.concatenate([n + small.heads, n + small.offsets[:-1] + contacts])
    return with_edges(graph, tails, heads, num_nodes=n + small.num_nodes)
