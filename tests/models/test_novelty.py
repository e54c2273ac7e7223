"""Novelty beside a slow computation, and what it says of usual and unusual subgraphs."""

import numpy as np

from subgnn import Graph, Ragged
from subgnn.models import novelty
from subgnn.models.novelty import Comparison, Novelty


def blocks(seed: int, count: int = 12, size: int = 30) -> Graph:
    """Dense blocks with a few edges between them."""
    rng = np.random.default_rng(seed)
    pairs = rng.integers(0, size, (2, 150 * count)) + size * rng.integers(0, count, 150 * count)
    across = rng.integers(0, count * size, (2, 60))
    tails, heads = np.unique(np.sort(np.concatenate([pairs, across], axis=1), axis=0), axis=1)
    tails, heads = tails[tails < heads], heads[tails < heads]
    return Graph.from_edges(tails, heads, num_nodes=count * size + 1)  # the last node is isolated


def within_blocks(rng, number: int) -> Ragged:
    sets = (rng.choice(30, rng.integers(5, 10), replace=False) + 30 * rng.integers(12) for _ in range(number))
    return Ragged.from_rows([np.sort(one) for one in sets])


def slow_distances(graph: Graph, subgraphs: Ragged, references: Ragged, *, to_others: bool = False):
    def row(nodes):
        found = np.zeros(graph.num_nodes)
        for node in nodes:
            near = graph.neighbors[graph.offsets[node] : graph.offsets[node + 1]]
            found[node] += 1
            found[near] += 1 / max(1, len(near))
        return found / np.linalg.norm(found)

    known = np.array([row(nodes) for nodes in references])
    known, mean = known - known.mean(axis=0), known.mean(axis=0)
    found = []
    for i, nodes in enumerate(subgraphs):
        v = row(nodes) - mean
        others = np.delete(known, i, axis=0) if to_others else known
        found.append(1 - max(v @ other / np.linalg.norm(v) / np.linalg.norm(other) for other in others))
    return np.array(found)


def test_distances_are_those_of_dense_rows():
    graph, rng = blocks(0), np.random.default_rng(0)
    known, new = within_blocks(rng, 40), Ragged.from_rows([[3, 4, 5], [0, 100, 200], [360], [360, 1]])
    comparison = Comparison(graph, known)
    np.testing.assert_allclose(comparison.distances(new), slow_distances(graph, new, known), atol=1e-9)
    own = comparison.distances(known, to_others=True)
    np.testing.assert_allclose(own, slow_distances(graph, known, known, to_others=True), atol=1e-9)
    one_by_one = [comparison.distances(new.take([i]))[0] for i in range(len(new))]
    np.testing.assert_array_equal(one_by_one, comparison.distances(new))


def test_usual_subgraphs_are_spread_evenly_and_random_ones_are_unusual(monkeypatch):
    monkeypatch.setattr(novelty, "_REFERENCES", 300)  # drawn from more
    graph, rng = blocks(1), np.random.default_rng(1)
    known = Novelty.of(graph, within_blocks(rng, 400), seed=0)
    assert len(known.references) == 300
    compare = Comparison(graph, known.references)
    usual = compare.novelty(within_blocks(rng, 400), known.distances)
    np.testing.assert_allclose(np.quantile(usual, [0.25, 0.5, 0.75]), [0.25, 0.5, 0.75], atol=0.12)
    random = Ragged.from_rows([np.sort(rng.choice(360, 8, replace=False)) for _ in range(100)])
    assert np.median(compare.novelty(random, known.distances)) > 0.95
    assert compare.novelty(known.references, known.distances).max() == 0  # they are there themselves


def test_few_and_equal_references():
    graph = blocks(2)
    for rows in ([[0, 1]], [[0, 1], [0, 1]], [[360], [0, 1, 2]]):
        known = Novelty.of(graph, Ragged.from_rows(rows), seed=0)
        assert not list(known.problems(graph.num_nodes))
        found = Comparison(graph, known.references).novelty(Ragged.from_rows([[0, 1], [90]]), known.distances)
        assert ((found >= 0) & (found <= 1)).all()


def test_large_rows_leave_out_references(monkeypatch):
    monkeypatch.setattr(novelty, "_ENTRIES", 200)
    known = Novelty.of(blocks(3), within_blocks(np.random.default_rng(3), 50), seed=0)
    assert 1 <= len(known.references) < 10
