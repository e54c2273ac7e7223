"""Ratios of exact diffusion and local push: time, nodes that are met, and the part of the largest lifts that is missed.

Run from the repository:

    python benchmarks/diffusion.py                     a random graph of 20,000 nodes, and one of two million
    python benchmarks/diffusion.py --nodes 5000000     another size of the large one

Both ways are measured in one run, on the same subgraphs, with one thread: only the ratios mean something elsewhere. The
large graph is not computed exactly; its bytes are those of one block of exact diffusion.
"""

from __future__ import annotations

import argparse
import resource
import time

import numba
import numpy as np

from subgnn import Graph, Ragged
from subgnn.channels.diffusion import Walks, diffuse, diffuse_nearby, push_bound
from subgnn.kernels.diffusion import COLUMNS

_LARGEST = 100


def random_graph(num_nodes: int, num_edges: int, seed: int) -> Graph:
    """Edges whose ends are drawn with skewed probabilities, so that there are hubs."""
    rng = np.random.default_rng(seed)
    ends = (num_nodes * rng.random((2, num_edges)) ** 2).astype(np.int32)
    ends = ends[:, ends[0] != ends[1]]
    low, high = ends.min(axis=0), ends.max(axis=0)
    _, first = np.unique(low.astype(np.int64) * num_nodes + high, return_index=True)
    return Graph.from_edges(low[first], high[first], num_nodes=num_nodes)


def neighborhoods(graph: Graph, count: int, seed: int) -> Ragged:
    """Subgraphs of about 20 nodes: a node and some of those near it."""
    rng = np.random.default_rng(seed)
    rows = []
    for start in rng.choice(np.flatnonzero(np.diff(graph.offsets)), count):
        found = {int(start)}
        for node in [int(start), *graph.neighbors_of(int(start))[:5].tolist()]:
            found.update(graph.neighbors_of(node)[:4].tolist())
        rows.append(sorted(found))
    return Ragged.from_rows(rows)


def compare(graph: Graph, sets: Ragged, damping: float, edges: int) -> None:
    """Print a line: exact against push."""
    walks = Walks.of(graph)
    diffuse(walks, sets.take([0]), damping)  # compiles
    begin = time.process_time()
    exact = diffuse(walks, sets, damping)
    exact_seconds = time.process_time() - begin
    nodes, ratios, push_seconds = push(walks, sets, damping, edges)
    missed, gap = 0.0, 0.0
    for i, row in enumerate(nodes):
        estimate = np.zeros(graph.num_nodes)
        estimate[row] = ratios[nodes.offsets[i] : nodes.offsets[i + 1]]
        top = np.argsort(-exact[i])[:_LARGEST]
        missed += (estimate[top] == 0).mean() / len(nodes)
        gap = max(gap, float((exact[i] - estimate).max()))
    bound = push_bound(walks, damping, edges)
    print(
        f"{damping:>7} {edges:>9,} {1e3 * exact_seconds / len(sets):>10.2f} {1e3 * push_seconds / len(sets):>9.2f} "
        f"{exact_seconds / push_seconds:>7.1f} {nodes.lengths.mean() / graph.num_nodes:>7.1%} {missed:>7.1%} "
        f"{gap:>9.3g} {bound:>9.3g}"
    )


def push(walks: Walks, sets: Ragged, damping: float, edges: int) -> tuple[Ragged, np.ndarray, float]:
    """Local push with all nodes kept, and its seconds."""
    most = min(walks.graph.num_nodes, edges)
    diffuse_nearby(walks, sets.take([0]), damping, edges=100, most=100)  # compiles
    begin = time.process_time()
    nodes, ratios = diffuse_nearby(walks, sets, damping, edges=edges, most=most)
    return nodes, ratios, time.process_time() - begin


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=2_000_000)
    given = parser.parse_args()
    numba.set_num_threads(1)
    small = random_graph(20_000, 300_000, 0)
    print(f"{small.num_nodes:,} nodes, {small.num_edges:,} edges; p / pi too small by at most the bound")
    print("damping     edges   exact ms   push ms   ratio     met  missed       gap     bound")
    for damping in (0.3, 0.6):
        for edges in (10_000, 100_000, 1_000_000, 10_000_000):
            compare(small, neighborhoods(small, 32, 1), damping, edges)
    large = random_graph(given.nodes, 5 * given.nodes, 0)
    walks = Walks.of(large)
    block = 3 * 4 * COLUMNS * large.num_nodes
    print(
        f"{large.num_nodes:,} nodes, {large.num_edges:,} edges; an exact block of {COLUMNS} takes {block / 1e9:.2f} GB"
    )
    for edges in (100_000, 1_000_000):
        nodes, _, seconds = push(walks, neighborhoods(large, 64, 1), 0.6, edges)
        print(
            f"push, at most {edges:>9,} edges: {1e3 * seconds / 64:>8.2f} ms a subgraph, {nodes.lengths.mean():>9,.0f} "
            f"nodes met, bound {push_bound(walks, 0.6, edges):.3g}"
        )
    print(f"peak memory of the process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")


if __name__ == "__main__":
    main()
