"""Time kernels and other packages on the same graphs, and check that their results agree.

    python benchmarks/kernels.py [--quick] [--seed 0]

Two random graphs with a heavy tail of degrees, of 17,000 and a million nodes; with ``--quick``, the first alone. Prints
a line for each kernel and rival: seconds of both, the best of several calls, and their ratio. Building each package's
graph is not included, nor is compilation. A slow rival is timed on a part of the items, and its time is scaled. Exits
with 1 if any results differ. A package that is not installed is left out.
"""

import argparse
import random
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from typing import Any

import numpy as np

from subgnn import Graph, Ragged
from subgnn.kernels.borders import border_sets
from subgnn.kernels.distances import hop_distances
from subgnn.kernels.dtw import dtw
from subgnn.kernels.induced import core_numbers, induced_components, inside_degrees
from subgnn.kernels.walks import graph_walks

SIZES = ((17_000, 317_000), (1_000_000, 5_000_000))
CALLS, PATIENCE = 50, 1.0  # a call is repeated until either is reached
SETS, SIZE = 2_000, 20
WALKS, LENGTH, BETA = 5_000, 20, 0.8


@dataclass(frozen=True)
class Rival:
    """Another package's way: its call, on ``part`` of the items, and whether our answer fits it."""

    package: str
    name: str
    call: Callable[[], Any]
    agrees: Callable[[Any, Any], Any]
    part: int | None = None


@dataclass
class Case:
    """One kernel on a number of items, and its rivals."""

    kernel: str
    items: int
    ours: Callable[[], Any]
    rivals: list[Rival] = field(default_factory=list)


def draw_graph(nodes: int, edges: int, seed: int) -> Graph:
    """Each end of an edge is node i with probability proportional to (i + 10)^(-2/3); ids are then shuffled."""
    rng = np.random.default_rng(seed)
    low, high = 10 ** (1 / 3), (nodes + 10) ** (1 / 3)
    # The cube inverts the cumulative distribution.
    ends = ((low + (high - low) * rng.random((2, edges + edges // 4))) ** 3 - 10).astype(np.int64).clip(0, nodes - 1)
    pairs = np.unique(np.sort(ends[:, ends[0] != ends[1]], axis=0), axis=1)
    pairs = rng.permutation(nodes)[pairs[:, rng.permutation(pairs.shape[1])[:edges]]]
    return Graph.from_edges(*pairs, num_nodes=nodes)


class Workload:
    """A graph, also as other packages hold it, and sets of nodes."""

    def __init__(self, graph: Graph, seed: int) -> None:
        self.graph, self.seed, self.rng = graph, seed, np.random.default_rng(seed)
        self.large = graph.num_nodes > SIZES[0][0]
        self.sources, self.targets = (self.rng.choice(graph.num_nodes, n, replace=False) for n in (200, 300))
        walks = graph_walks(*graph.csr, walks=SETS, length=2 * SIZE, beta=0.5, key=seed)
        self.components = Ragged.from_rows([self.filled(np.unique(walk)[:SIZE]) for walk in walks])
        moved = (self.filled(row[: SIZE - 8]) if i % 2 else row for i, row in enumerate(self.components))
        self.subgraphs = Ragged.from_rows(list(moved))

    def filled(self, nodes: Any) -> Any:
        """A set of 20 nodes: those given, and random ones."""
        found = set(nodes.tolist())
        while len(found) < SIZE:
            found.add(int(self.rng.integers(self.graph.num_nodes)))
        return np.array(sorted(found))

    def part(self, small: int, large: int) -> int:
        return large if self.large else small

    @cached_property
    def networkx(self) -> Any:
        import networkx

        found = networkx.empty_graph(self.graph.num_nodes)
        found.add_edges_from(zip(*(ends.tolist() for ends in self.graph.edges()[:2]), strict=True))
        return found

    @cached_property
    def scipy(self) -> Any:
        """Its adjacency matrix, with the 32-bit indices that scipy's graph routines work on."""
        from scipy.sparse import csr_array

        index = self.graph.neighbors, self.graph.offsets.astype(np.int32)
        return csr_array((np.ones(len(self.graph.neighbors)), *index), shape=(self.graph.num_nodes,) * 2)

    @cached_property
    def igraph(self) -> Any:
        import igraph

        return igraph.Graph(self.graph.num_nodes, np.stack(self.graph.edges()[:2], axis=1))


def distance_cases(load: Workload) -> Iterator[Case]:
    """200 sources to all nodes, and to 300 of them."""
    import networkx
    from scipy.sparse.csgraph import dijkstra

    graph, sources = load.graph, load.sources
    for what, targets in (("all targets", None), ("300 targets", load.targets)):
        goals = np.arange(graph.num_nodes) if targets is None else targets
        slow, fast = load.part(40, 2), load.part(200, 16)

        def by_networkx(goals: Any = goals, slow: int = slow) -> Any:
            found = (networkx.single_source_shortest_path_length(load.networkx, s) for s in sources[:slow].tolist())
            return np.array([[one.get(t, -1) for t in goals.tolist()] for one in found])

        def by_scipy(goals: Any = goals, slow: int = slow) -> Any:
            return dijkstra(load.scipy, unweighted=True, indices=sources[:slow])[:, goals]

        def by_products(goals: Any = goals, fast: int = fast) -> Any:
            """One sparse product a level, for all sources at once."""
            links, found = load.scipy.astype(np.float32), np.full((graph.num_nodes, fast), np.inf)
            front, depth = np.zeros(found.shape, bool), 0
            front[sources[:fast], np.arange(fast)] = True
            while front.any():
                found[front], depth = depth, depth + 1
                front = (links @ front.astype(np.float32) > 0) & np.isinf(found)
            return found.T[:, goals]

        def by_igraph(targets: Any = targets, slow: int = slow) -> Any:
            return np.array(
                load.igraph.distances(sources[:slow].tolist(), None if targets is None else targets.tolist())
            )

        def same(ours: Any, theirs: Any) -> bool:
            return np.array_equal(ours[: len(theirs)], np.where(np.isinf(theirs), -1, theirs))

        yield Case(
            f"hop_distances, {what}",
            len(sources),
            lambda targets=targets: hop_distances(*graph.csr, sources, targets),
            [
                Rival("networkx", "single_source_shortest_path_length", by_networkx, same, slow),
                Rival("scipy", "dijkstra", by_scipy, same, slow),
                Rival("scipy", "a product a level", by_products, same, fast),
                Rival("igraph", "distances", by_igraph, same, slow),
            ],
        )


def structure_cases(load: Workload) -> Iterator[Case]:
    """Components and borders of 2,000 sets of 20 nodes, and core numbers of all nodes."""
    import networkx
    from scipy.sparse.csgraph import connected_components

    rows, slow = [row.tolist() for row in load.subgraphs], load.part(SETS, 200)

    def same_parts(ours: Any, theirs: Any) -> bool:
        nodes = iter(ours.nodes)
        mine = [{frozenset(next(nodes).tolist()) for _ in range(count)} for count in ours.counts.tolist()]
        return all(a == {frozenset(part) for part in b} for a, b in zip(mine, theirs, strict=False))

    def same_labels(ours: Any, theirs: Any) -> bool:
        pairs = ((np.array(row), np.array(labels)) for row, labels in zip(rows, theirs, strict=False))
        return same_parts(ours, [[row[labels == label].tolist() for label in set(labels)] for row, labels in pairs])

    def by_scipy() -> Any:
        found = (load.scipy[row][:, row] for row in rows[:slow])
        return [connected_components(matrix, directed=False)[1] for matrix in found]

    yield Case(
        "induced_components",
        SETS,
        lambda: induced_components(*load.graph.csr, load.subgraphs),
        [
            Rival(
                "networkx",
                "connected_components",
                lambda: [list(networkx.connected_components(load.networkx.subgraph(row))) for row in rows[:slow]],
                same_parts,
                slow,
            ),
            Rival("scipy", "connected_components of slices", by_scipy, same_labels, slow),
            Rival(
                "igraph",
                "induced_subgraph",
                lambda: [load.igraph.induced_subgraph(row).connected_components().membership for row in rows[:slow]],
                same_labels,
                slow,
            ),
        ],
    )

    sets = [row.tolist() for row in load.components]

    def same_borders(ours: Any, theirs: Any) -> bool:
        return all(row.tolist() == sorted(border) for row, border in zip(ours, theirs, strict=False))

    yield Case(
        "border_sets, 1 hop",
        SETS,
        lambda: border_sets(*load.graph.csr, load.components, hops=1),
        [
            Rival(
                "networkx",
                "node_boundary",
                lambda: [networkx.node_boundary(load.networkx, row) for row in sets[:slow]],
                same_borders,
                slow,
            ),
            Rival(
                "scipy",
                "rows, setdiff1d",
                lambda: [np.setdiff1d(load.scipy[row].indices, row) for row in sets],
                same_borders,
            ),
        ],
    )
    yield Case(
        "core_numbers",
        load.graph.num_nodes,
        lambda: core_numbers(*load.graph.csr),
        [
            Rival(
                "networkx",
                "core_number",
                lambda: networkx.core_number(load.networkx),
                lambda ours, theirs: ours.tolist() == [theirs[v] for v in range(len(ours))],
            ),
            Rival("igraph", "coreness", lambda: load.igraph.coreness(), np.array_equal),
        ],
    )


def sequence_cases(load: Workload) -> Iterator[Case]:
    """Time warping of sorted border degrees, 400 sets with 200; fastdtw is approximate, never below the exact cost."""
    degrees = [np.sort(row).astype(np.float64) for row in inside_degrees(*load.graph.csr, load.components)[1]]
    a, b = (Ragged.from_rows(rows, np.float64) for rows in (degrees[:400], degrees[400:600]))
    pairs = [(i, j) for i in range(0, 400, 20) for j in range(0, 200, 10)]

    def by_fastdtw() -> Any:
        import fastdtw

        return [fastdtw.fastdtw(a[i], b[j], radius=1)[0] for i, j in pairs]

    def by_dtaidistance() -> Any:
        from dtaidistance import dtw as rival

        block, options = ((0, 400), (400, 600)), {"compact": True, "parallel": True, "inner_dist": "euclidean"}
        return np.reshape(rival.distance_matrix_fast(degrees[:600], block=block, **options), (400, 200))

    def never_below(ours: Any, theirs: Any) -> bool:
        return all(cost >= ours[pair] - 1e-9 for pair, cost in zip(pairs, theirs, strict=True))

    rivals = [
        Rival("fastdtw", "radius 1", by_fastdtw, never_below, len(pairs)),
        Rival("dtaidistance", "distance_matrix_fast", by_dtaidistance, np.allclose),
    ]
    yield Case("dtw, absolute cost", len(a) * len(b), lambda: dtw(a, b), rivals)


def walk_cases(load: Workload) -> Iterator[Case]:
    """Triangular walks and a plain walker: they agree if triangles close equally often, within five standard errors."""
    starts = load.rng.choice(np.flatnonzero(np.diff(load.graph.offsets)), 250)

    def walk(start: int, draws: random.Random) -> list[int]:
        near = load.networkx.adj
        found = [start, draws.choice(list(near[start]))]
        while len(found) < LENGTH:
            closing = [z for z in near[found[-1]] if z in near[found[-2]]]
            opening = [z for z in near[found[-1]] if z not in near[found[-2]]]
            wanted, other = (closing, opening) if draws.random() < BETA else (opening, closing)
            found.append(draws.choice(wanted or other))
        return found

    def same_law(ours: Any, theirs: Any) -> bool:
        shares = [
            np.array([np.mean([c in load.networkx.adj[a] for a, c in zip(row, row[2:], strict=False)]) for row in rows])
            for rows in ([row.tolist() for row in ours], theirs)
        ]
        error = np.sqrt(sum(share.var() / len(share) for share in shares))
        return bool(abs(shares[0].mean() - shares[1].mean()) <= 5 * error)

    def by_python() -> list[list[int]]:
        draws = random.Random(load.seed)
        return [walk(start, draws) for start in starts.tolist()]

    yield Case(
        f"graph_walks of {LENGTH}",
        WALKS,
        lambda: graph_walks(*load.graph.csr, walks=WALKS, length=LENGTH, beta=BETA, key=load.seed),
        [Rival("networkx", "Python", by_python, same_law, len(starts))],
    )


def best(call: Callable[[], Any]) -> tuple[Any, float]:
    """The answer, and the seconds of the fastest of several calls."""
    seconds: list[float] = []
    while not seconds or (len(seconds) < CALLS and sum(seconds) < PATIENCE):
        begin = time.perf_counter()
        answer = call()
        seconds.append(time.perf_counter() - begin)
    return answer, min(seconds)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the small graph alone")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    differ = False
    for nodes, edges in SIZES[:1] if given.quick else SIZES:
        load = Workload(draw_graph(nodes, edges, given.seed), given.seed)
        print(f"{nodes:,} nodes, {load.graph.num_edges:,} edges")
        for cases in (distance_cases, structure_cases, sequence_cases, walk_cases):
            for case in cases(load):
                case.ours()  # compiles
                answer, ours = best(case.ours)
                for rival in (one for one in case.rivals if find_spec(one.package)):
                    getattr(load, rival.package, None)  # builds its graph
                    found, seconds = best(rival.call)
                    seconds *= case.items / (rival.part or case.items)
                    agrees = bool(rival.agrees(answer, found))
                    differ |= not agrees
                    timed = f" (timed on {rival.part:,} of {case.items:,})" if rival.part else ""
                    print(
                        f"{case.kernel:28} {ours:9.3g} s   {rival.package} {rival.name:36} {seconds:9.3g} s "
                        f"{seconds / ours:9.3g} times{timed}{'' if agrees else '   THE ANSWERS DIFFER'}",
                        flush=True,
                    )
    return int(differ)


if __name__ == "__main__":
    sys.exit(main())
