"""Enrichment of the nodes of classes, against Fisher's exact test counted by hand and by scipy."""

from fractions import Fraction
from math import comb, log

import numpy as np
import pytest
from scipy import sparse, stats

from subgnn.models.baselines.enrichment import enrichment_scores, log_tail, set_levels
from subgnn.models.examples import Examples, outputs_of
from subgnn.models.registry import MODELS
from tests.models.examples import recipe, training_data
from tests.training.examples import dataset


def exact_log_tail(hits, drawn, marked, total):
    """By the definition, with whole numbers of any size."""
    ways = sum(comb(marked, x) * comb(total - marked, drawn - x) for x in range(hits, min(drawn, marked) + 1))
    tail = Fraction(ways, comb(total, drawn))
    return log(tail.numerator) - log(tail.denominator)


def test_ten_nodes_by_hand():
    # Two subgraphs of class 0 have the nodes 0 to 3, one of class 1 has 4 and 5; nobody has 6 to 9.
    rows = sparse.csr_array(np.array([[1, 1, 1, 0, 0, 0], [0, 1, 1, 1, 0, 0], [0, 0, 0, 0, 1, 1]], np.float32))
    levels = set_levels(rows, np.array([[1.0, 0], [1, 0], [0, 1]]))
    assert levels.tolist() == [[1, 0], [2, 0], [2, 0], [1, 0], [0, 1], [0, 1]]
    new = sparse.csr_array(np.array([[1, 1, 0, 0, 1, 0]], np.float32))
    scores = enrichment_scores(new, [levels], 10)
    # 3 nodes drawn from 10: two or more of 4 in (6 * 6 + 4) / 120 ways, one or more of 2 in 1 - 56 / 120.
    expected = [[40 / 120, 64 / 120], [64 / 120, 1], [1, 1], [1, 1]]
    np.testing.assert_allclose(10.0 ** -scores[:, 0], expected, rtol=1e-12)
    table = [[2, 1], [2, 5]]  # hits and others, drawn and not
    assert stats.fisher_exact(table, alternative="greater").pvalue == pytest.approx(40 / 120)
    np.testing.assert_allclose(enrichment_scores(new, [levels, levels], 10), 0, atol=0)


@pytest.mark.parametrize("total", [30, 1000, 10**6])
def test_tails_are_exact(total):
    rng = np.random.default_rng(total)
    marked, drawn = rng.integers(0, total + 1, 60), rng.integers(0, min(total, 400) + 1, 60)
    near = rng.hypergeometric(marked, total - marked, drawn)
    for hits in (near, np.minimum(drawn, marked), np.maximum(0, drawn + marked - total)):
        found = log_tail(hits.astype(float), drawn.astype(float), marked.astype(float), total)
        oracle = [exact_log_tail(*map(int, cell), total) for cell in zip(hits, drawn, marked, strict=True)]
        np.testing.assert_allclose(found, oracle, rtol=1e-6, atol=1e-9)


def test_a_tail_too_small_for_a_float_keeps_its_logarithm():
    found = log_tail(np.array([200.0]), np.array([200.0]), np.array([500.0]), 10**8)
    assert found[0] == pytest.approx(exact_log_tail(200, 200, 500, 10**8), rel=1e-7)
    assert found[0] < -2000


def solved(data):
    found = MODELS["enrichment"].set_up(training_data(data.graph, data.subgraphs), recipe("enrichment"))
    (candidate,) = found.candidates
    standards, training = candidate.checkpoint.spec.standards, candidate.recipe.training
    examples = Examples.of(data.subgraphs, found.source, standards, training)
    candidate.network.solve(examples)
    outputs = outputs_of(candidate.network, examples.inputs, np.arange(len(data.subgraphs)), 7).numpy()
    return candidate.network, outputs, examples


def test_logits_are_the_tests_of_scipy():
    data = dataset()
    network, outputs, examples = solved(data)
    train, y = examples.train, examples.targets.numpy()
    sets = [set(map(int, row)) for row in data.subgraphs.nodes]
    known = set().union(*(sets[i] for i in train))
    share = np.bincount(y[train], minlength=outputs.shape[1]) / len(train)
    expected = np.zeros(outputs.shape)
    for c in range(outputs.shape[1]):
        for m, weight in zip((1, 2, 4, 8), network.scale[:, c].tolist(), strict=True):
            nodes = {v for v in known if sum(v in sets[i] for i in train if y[i] == c) >= m}
            for i, row in enumerate(sets):
                tail = stats.hypergeom.logsf(len(row & nodes) - 1, data.graph.num_nodes, len(nodes), len(row & known))
                expected[i, c] -= weight * tail / np.log(10)
    # The bias is a share of the log of the frequency.
    trust = network.bias / np.log(share)
    np.testing.assert_allclose(trust, trust[0], rtol=1e-5)
    np.testing.assert_allclose(outputs, expected + network.bias, rtol=1e-4, atol=1e-4)
    assert (outputs.argmax(axis=1) == y)[train].mean() > 0.9
