"""Profiles of classes, against the formula written out."""

import numpy as np
import pytest
from scipy import sparse, special

from subgnn.models.baselines.profiles import Groups, fit_profiles
from subgnn.models.examples import Examples, outputs_of
from subgnn.models.registry import MODELS
from tests.channels.test_diffusion import dense_ratios, dense_walk
from tests.models.examples import recipe, training_data
from tests.training.examples import dataset


def solved(data, *settings):
    found = MODELS["profiles"].set_up(training_data(data.graph, data.subgraphs), recipe("profiles", *settings))
    (candidate,) = found.candidates
    examples = Examples.of(data.subgraphs, found.source, candidate.checkpoint.spec.standards, candidate.recipe.training)
    candidate.network.solve(examples)
    return outputs_of(candidate.network, examples.inputs, np.arange(len(data.subgraphs)), 7).numpy(), examples


def written_out(rows, targets, task, outputs):
    """log((.8 q_c + .2 q) / q) (N, outputs), 0 where no walk ends; for labels and values, less that of the others."""
    high = np.eye(outputs)[targets] if task == "multi-class" else targets
    if task == "regression":
        high = (targets > targets.mean())[:, None]
    q = rows.mean(axis=0)
    found = np.zeros((rows.shape[1], outputs))
    for sign, chosen in ((1, high), (-1, 1 - high))[: 1 if task == "multi-class" else 2]:
        for c in range(outputs):
            own = rows[chosen[:, c] > 0].mean(axis=0) if chosen[:, c].any() else q
            found[q > 0, c] += sign * np.log((0.8 * own + 0.2 * q)[q > 0] / q[q > 0])
    return found


@pytest.mark.parametrize("task", ["multi-class", "multi-label", "regression"])
@pytest.mark.parametrize("form", [np.array, sparse.csr_array])
def test_scores_are_those_of_fits_without_the_fold(task, form, monkeypatch):
    rng = np.random.default_rng(0)
    rows = np.maximum(rng.normal(size=(23, 9)), 0).astype(np.float32)
    rows[:, 3], train, fold = 0, np.arange(1, 21), rng.permutation(20) % 5
    targets = {"multi-class": rng.integers(0, 3, 20), "multi-label": rng.integers(0, 2, (20, 3))}
    y, outputs = targets.get(task, rng.normal(size=20)), 1 if task == "regression" else 3
    monkeypatch.setattr("subgnn.models.baselines.profiles._NUMBERS_AT_A_TIME", 80)
    scores, columns, weights = fit_profiles(form(rows), train, Groups.of(fold, y, task, outputs), outputs)
    known = rows[train].astype(float)
    np.testing.assert_array_equal(columns, np.flatnonzero(known.sum(axis=0) > 0))
    np.testing.assert_allclose(weights, written_out(known, y, task, outputs)[columns], atol=1e-9)
    for i in range(5):
        expected = known[fold == i] @ written_out(known[fold != i], y[fold != i], task, outputs)
        np.testing.assert_allclose(scores[fold == i], expected, atol=1e-9)


def test_a_class_without_subgraphs_has_the_common_profile():
    rows = np.array([[1.0, 0], [0, 1]], np.float32)
    _, _, weights = fit_profiles(rows, np.arange(2), Groups.of(np.arange(2), np.array([0, 2]), "multi-class", 3), 3)
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
