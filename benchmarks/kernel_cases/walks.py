"""Triangular walks and a plain Python walker.

No package has them, so the other implementation is a plain one on a networkx graph. Walks are random: they agree when
every step of both is an edge, and both close a triangle equally often, within five standard errors of the difference.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernel_cases.measure import Case, Rival
from kernel_cases.workloads import Workload
from subgnn.kernels.walks import graph_walks
from subgnn.ragged import Ragged
from subgnn.rng import stream_key

NUM_WALKS, LENGTH, BETA = 5_000, 20, 0.8
RIVAL_WALKS = 250


def walk_cases(load: Workload) -> Iterator[Case]:
    """Walks from random nodes that have neighbours."""
    degrees = np.diff(load.graph.offsets)
    starts = load.draw("walks", NUM_WALKS, among=np.flatnonzero(degrees))
    key = stream_key(load.seed, "benchmark/walks")

    def by_python() -> list[list[int]]:
        draws = random.Random(load.seed)
        adjacency = load.rivals.networkx().adj
        return [_walk(adjacency, start, draws) for start in starts[:RIVAL_WALKS].tolist()]

    def agrees(ours: Ragged, theirs: list[list[int]]) -> bool:
        return _same_law(load, ours, Ragged.from_rows(theirs))

    yield Case(
        "graph_walks",
        load.name,
        NUM_WALKS,
        f"walks of {LENGTH}",
        lambda: graph_walks(*load.graph.csr, walks=NUM_WALKS, length=LENGTH, beta=BETA, key=key),
        [
            Rival(
                "Python on a networkx graph",
                "networkx",
                by_python,
                agrees,
                RIVAL_WALKS,
                agreement="same law",
                prepare=load.rivals.networkx,
            )
        ],
    )


def _walk(adjacency: Any, start: int, draws: random.Random) -> list[int]:
    walk = [start, draws.choice(list(adjacency[start]))]
    while len(walk) < LENGTH:
        near = adjacency[walk[-2]]
        closing = [z for z in adjacency[walk[-1]] if z in near]
        opening = [z for z in adjacency[walk[-1]] if z not in near]
        wanted, other = (closing, opening) if draws.random() < BETA else (opening, closing)
        walk.append(draws.choice(wanted or other))
    return walk


def _same_law(load: Workload, ours: Ragged, theirs: Ragged) -> bool:
    shares = []
    for walks in (ours, theirs):
        if bool((walks.lengths != LENGTH).any()):
            return False
        table = walks.values.reshape(-1, LENGTH)
        if not bool(_is_edge(load, table[:, :-1], table[:, 1:]).all()):
            return False
        shares.append(_is_edge(load, table[:, :-2], table[:, 2:]).mean(axis=1))
    error = np.sqrt(sum(s.var() / len(s) for s in shares))
    return bool(abs(shares[0].mean() - shares[1].mean()) <= 5 * error)


def _is_edge(load: Workload, tails: NDArray[Any], heads: NDArray[Any]) -> NDArray[np.bool_]:
    """Rows of the graph are sorted, so (tail, head) as one number is found by bisection."""
    n = load.graph.num_nodes
    known = np.repeat(np.arange(n), np.diff(load.graph.offsets)) * n + load.graph.neighbors
    wanted = tails.astype(np.int64) * n + heads
    place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    found: NDArray[np.bool_] = known[place] == wanted
    return found
