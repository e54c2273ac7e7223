"""The number of threads changes no bit of any result."""

from collections.abc import Callable, Iterator
from typing import Any

import networkx as nx
import numba
import numpy as np
import pytest

from subgnn.kernels.borders import border_sets, heaviest_borders, sample_borders
from subgnn.kernels.distances import hop_distances, near_hops, pair_distances
from subgnn.kernels.draws import (
    induced_block,
    node_set_keys,
    normal_rows,
    sample_members,
    sample_neighbors,
    sample_non_edges,
    walk_nodes,
)
from subgnn.kernels.dtw import dtw
from subgnn.kernels.induced import induced_components, induced_graph, inside_degrees, shapes
from subgnn.kernels.products import Tiles, inner_products
from subgnn.kernels.walks import border_walks, graph_walks, inside_walks, walk_from_members
from tests.kernels.graphs import SmallGraph, ragged

N = 500
KEY = 77


def _case() -> tuple[tuple[np.ndarray, np.ndarray], list[list[int]]]:
    rng = np.random.default_rng(0)
    random = nx.gnp_random_graph(N, 8 / N, seed=1)
    random.remove_edges_from([(u, v) for u, v in random.edges if u % 50 == 0])
    sets = [sorted(rng.choice(N, size, replace=False).tolist()) for size in rng.integers(1, 60, 150)]
    return SmallGraph(N, tuple(random.edges)).csr, [*sets, list(range(N))]


CSR, SETS = _case()
ROWS = ragged(SETS)
SOURCES = np.random.default_rng(1).integers(0, N, 300)
KEYS = node_set_keys(KEY, ROWS)

CALLS: dict[str, Callable[[], Any]] = {
    "hop_distances": lambda: hop_distances(*CSR, SOURCES),
    "pair_distances": lambda: pair_distances(*CSR, SOURCES, ragged([SETS[i % 151] for i in range(300)])),
    "near_hops": lambda: near_hops(*CSR, ROWS, ROWS.take(np.arange(len(ROWS)) // 2), cutoff=4, cap=30),
    "induced_components": lambda: induced_components(*CSR, ROWS),
    "border_sets": lambda: border_sets(*CSR, ROWS, hops=2),
    "sample_borders": lambda: sample_borders(*CSR, ROWS, hops=2, draws=40, key=KEY),
    "sample_borders, own keys": lambda: sample_borders(*CSR, ROWS, hops=1, draws=40, key=KEYS),
    "heaviest_borders": lambda: heaviest_borders(*CSR, ROWS, most=40, powers=(1, 0.25)),
    "normal_rows": lambda: normal_rows(KEY, SOURCES, 7),
    "sample_neighbors": lambda: sample_neighbors(*CSR, np.arange(N), fraction=0.3, key=KEY),
    "walk_nodes": lambda: walk_nodes(*CSR, roots=200, length=3, key=KEY),
    "induced_block": lambda: induced_block(*CSR, SETS[0]),
    "sample_non_edges": lambda: sample_non_edges(*CSR, np.arange(N), pairs=2000, key=KEY),
    "sample_members": lambda: sample_members(ROWS, draws=40, key=KEY),
    "induced_graph": lambda: induced_graph(*CSR, ROWS),
    "inside_degrees": lambda: inside_degrees(*CSR, ROWS),
    "shapes": lambda: shapes(*CSR, ROWS),
    "inner_products": lambda: inner_products(
        *map(Tiles.of, np.random.default_rng(2).random((2, 90, 3000), np.float32))
    ),
    "dtw": lambda: dtw(ROWS.take(range(40)), ROWS, cost="ratio"),
    "walk_from_members": lambda: walk_from_members(*CSR, ROWS, walks=2, length=5, keys=KEYS),
    "graph_walks": lambda: graph_walks(*CSR, walks=2000, length=10, beta=0.65, key=KEY),
    "inside_walks": lambda: inside_walks(*CSR, ROWS, walks=20, length=10, beta=0.65, key=KEY),
    "inside_walks, own keys": lambda: inside_walks(*CSR, ROWS, walks=20, length=10, beta=0.65, key=KEYS),
    "border_walks": lambda: border_walks(*CSR, ROWS, hops=2, walks=20, length=10, beta=0.65, key=KEY),
    "border_walks, own keys": lambda: border_walks(*CSR, ROWS, hops=1, walks=20, length=10, beta=0.65, key=KEYS),
}


def arrays(result: Any) -> list[np.ndarray]:
    """All arrays of a result, in order."""
    if isinstance(result, np.ndarray):
        return [result]
    parts = result if isinstance(result, tuple) else [getattr(result, name) for name in result.__slots__]
    return [array for part in parts for array in arrays(part)]


@pytest.fixture
def all_threads() -> Iterator[list[int]]:
    """The numbers of threads to try; the one in use is put back."""
    before = numba.get_num_threads()
    yield list(range(1, min(4, numba.config.NUMBA_NUM_THREADS) + 1))
    numba.set_num_threads(before)


@pytest.mark.parametrize("name", CALLS)
def test_results_do_not_depend_on_the_number_of_threads(name, all_threads):
    results = []
    for count in [*all_threads, 1]:
        numba.set_num_threads(count)
        results.append([(a.dtype, a.shape, a.tobytes()) for a in arrays(CALLS[name]())])
    assert all(result == results[0] for result in results)
