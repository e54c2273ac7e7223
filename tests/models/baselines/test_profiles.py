"""Profiles of classes, against the formula written out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse, special

from subgnn.models.baselines.profiles import log_ratios, profile_weights
from subgnn.models.examples import Examples, outputs_of
from subgnn.models.registry import MODELS
from tests.channels.test_diffusion import dense_ratios, dense_walk
from tests.models.examples import recipe, training_data
from tests.training.examples import dataset


def solved(data, *settings):
    found = MODELS["profiles"].set_up(training_data(data.graph, data.subgraphs), recipe("profiles", *settings))
    (candidate,) = found.candidates
    examples = Examples.of(
        data.subgraphs, list(found.sources), candidate.checkpoint.spec.standards, candidate.recipe.training
    )
    candidate.network.solve(examples)
    return outputs_of(candidate.network, examples.inputs, np.arange(len(data.subgraphs)), 7).numpy(), examples


def test_log_ratios_by_hand():
    rows = np.array([[1.0, 0, 0], [0, 1, 0]], np.float32)
    found = log_ratios(rows, np.array([[1.0, 0], [0, 1]]))
    # q is 1/2 at both nodes; a class has .8 + .1 at its own and .1 at the other; nobody is at the third.
    expected = [[np.log(1.8), np.log(0.2)], [np.log(0.2), np.log(1.8)], [0, 0]]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    np.testing.assert_allclose(log_ratios(sparse.csr_array(rows), np.array([[1.0, 0], [0, 1]])), expected, rtol=1e-6)


def test_a_class_without_subgraphs_has_the_common_profile():
    rows = np.array([[1.0, 0], [0, 1]], np.float32)
    weights = profile_weights(rows, np.array([0, 2]), "multi-class", 3)
    assert not weights[:, 1].any()
    outputs = special.softmax(rows @ weights, axis=1)
    assert outputs.argmax(axis=1).tolist() == [0, 2]


@pytest.mark.parametrize("way", ["exact", "push"])
def test_scores_are_those_of_the_formula(way):
    data = dataset()
    outputs, examples = solved(data, f"diffusion.algorithm={way}", "diffusion.push_edges=1000000000")
    walk = dense_ratios(data.graph, data.subgraphs.nodes, 0.3) * dense_walk(data.graph)[1]
    known, y = examples.train, examples.targets.numpy()
    q = walk[known].mean(axis=0)
    scores = np.stack(
        [
            sum(
                p * np.log((0.8 * own + 0.2 * common) / common)
                for p, own, common in zip(walk.T, own_of, q, strict=True)
            )
            for own_of in (walk[known][y[known] == c].mean(axis=0) for c in range(outputs.shape[1]))
        ],
        axis=1,
    )
    share = np.bincount(y[known], minlength=outputs.shape[1]) / len(known)
    # Logits are a scale and a trust in the shares away.
    design = np.stack([scores.reshape(-1), np.tile(np.log(share), len(scores))], axis=1)
    (scale, trust), *_ = np.linalg.lstsq(design, outputs.reshape(-1), rcond=None)
    np.testing.assert_allclose(scale * scores + trust * np.log(share), outputs, atol=2e-3)
    assert scale > 0
    assert (outputs.argmax(axis=1) == y)[known].mean() > 0.9


def test_values_that_follow_the_nodes_are_found():
    data = dataset()
    y = np.asarray(data.subgraphs.targets, float)
    data = replace(data, subgraphs=replace(data.subgraphs, task="regression", targets=y, classes=()))
    outputs, examples = solved(data)
    assert np.corrcoef(outputs[:, 0], examples.targets.numpy())[0, 1] > 0.5
