"""Hop distances beside networkx, scipy and igraph.

scipy has no unweighted search that returns distances, so three ways to them are timed: its Dijkstra, the levels read
off its breadth-first order, and one sparse matrix product a level for all sources at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernel_cases.measure import Case, Rival
from kernel_cases.workloads import Workload
from subgnn.kernels.distances import hop_distances

Nodes = NDArray[np.int64]


def distance_cases(load: Workload) -> Iterator[Case]:
    """200 sources to all nodes, and to 300 of them."""
    graph, sources = load.graph, load.sources
    everywhere = np.arange(graph.num_nodes)
    for kernel, targets in (("hop_distances, all targets", None), ("hop_distances, 300 targets", load.targets)):
        yield Case(
            kernel,
            load.name,
            len(sources),
            "sources",
            lambda targets=targets: hop_distances(*graph.csr, sources, targets),
            _rivals(load, everywhere if targets is None else targets, whole=targets is None),
        )


def _rivals(load: Workload, targets: Nodes, *, whole: bool) -> list[Rival]:
    forms, sources = load.rivals, load.sources
    goals = None if whole else targets.tolist()
    slow, medium, fast = load.part(40, 2 if whole else 1), load.part(200, 4), load.part(200, 16)

    def igraph_call() -> Any:
        return forms.igraph().distances(sources[:medium].tolist(), goals)

    return [
        Rival(
            "networkx single_source_shortest_path_length",
            "networkx",
            lambda: _networkx(forms.networkx(), sources[:slow], goals),
            lambda ours, theirs: np.array_equal(ours[:slow], [_row(d, targets) for d in theirs]),
            part=slow,
            prepare=forms.networkx,
        ),
        _scipy(load, "dijkstra", _dijkstra, targets, medium, whole),
        _scipy(load, "breadth_first_order", _breadth_first, targets, medium, whole),
        _scipy(load, "matrix product a level", _products, targets, fast, whole),
        Rival(
            "igraph distances",
            "igraph",
            igraph_call,
            lambda ours, theirs: np.array_equal(ours[:medium], _finite(np.array(theirs, np.float64))),
            part=medium,
            prepare=forms.igraph,
        ),
    ]


def _networkx(graph: Any, sources: Nodes, goals: list[int] | None) -> list[dict[int, int]]:
    import networkx

    found = [networkx.single_source_shortest_path_length(graph, s) for s in sources.tolist()]
    return found if goals is None else [{t: d.get(t, -1) for t in goals} for d in found]


def _scipy(
    load: Workload, way: str, search: Callable[[Any, Nodes], Any], targets: Nodes, part: int, whole: bool
) -> Rival:
    matrix, sources = load.rivals.scipy, load.sources[:part]

    def call() -> Any:
        found = search(matrix(), sources)
        return found if whole else found[:, targets]

    def agrees(ours: Any, theirs: Any) -> bool:
        return np.array_equal(ours[:part], _finite(theirs))

    return Rival(f"scipy {way}", "scipy", call, agrees, part=part, prepare=matrix)


def _dijkstra(matrix: Any, sources: Nodes) -> Any:
    from scipy.sparse.csgraph import dijkstra

    return dijkstra(matrix, unweighted=True, indices=sources)


def _breadth_first(matrix: Any, sources: Nodes) -> Any:
    """Along a breadth-first order the parents' places rise, so the end of a level is found by bisection."""
    from scipy.sparse.csgraph import breadth_first_order

    out = np.full((len(sources), matrix.shape[0]), -1, np.int32)
    place = np.empty(matrix.shape[0], np.int64)
    for row, source in zip(out, sources.tolist(), strict=True):
        order, parent = breadth_first_order(matrix, source)
        place[order] = np.arange(len(order))
        parent_place = place[parent[order[1:]]]
        begin, end, depth = 0, 1, 0
        while begin < end:
            row[order[begin:end]] = depth
            begin, end, depth = end, 1 + int(np.searchsorted(parent_place, end)), depth + 1
    return out


def _products(matrix: Any, sources: Nodes) -> Any:
    links = matrix.astype(np.float32)
    out = np.full((matrix.shape[0], len(sources)), -1, np.int32)
    front = np.zeros(out.shape, bool)
    front[sources, np.arange(len(sources))] = True
    depth = 0
    while front.any():
        out[front] = depth
        front = (links @ front.astype(np.float32) > 0) & (out < 0)
        depth += 1
    return out.T


def _finite(distances: NDArray[Any]) -> NDArray[Any]:
    return np.where(np.isinf(distances), -1, distances)


def _row(found: dict[int, int], targets: Nodes) -> list[int]:
    return [found.get(t, -1) for t in targets.tolist()]
