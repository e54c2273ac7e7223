"""Scores of a baseline to correct: by hand, cross-fitted against fits by hand, and what they keep of the baseline."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import special
from sklearn.linear_model import LogisticRegression, Ridge

from subgnn import Graph, SubgraphSet
from subgnn.config.settings import ModelSettings, Recipe
from subgnn.data.splits import draw_folds
from subgnn.data.strings import Strings
from subgnn.errors import DataError, UserError
from subgnn.inference.predictor import Predictor
from subgnn.models import correction
from subgnn.models.baselines.bag import BagSettings
from subgnn.models.baselines.topology import TopologySettings
from subgnn.models.correction import scores_of
from subgnn.models.recipes import check_recipe
from subgnn.models.registry import MODELS
from tests.models.examples import training_data
from tests.training.examples import dataset


def correcting(method: str, **options: object) -> Recipe:
    settled = {"classifier": "boosting", "normalize": "none", "inverse_penalty": 2.0} | options
    return with_choices(Recipe(model=ModelSettings(baseline=method)), **settled)


def with_choices(recipe: Recipe, classifier: str, **bag: object) -> Recipe:
    return recipe.with_method_settings(BagSettings(**bag)).with_method_settings(TopologySettings(classifier=classifier))


def folds_of(subgraphs, seed):
    return draw_folds(subgraphs, seed, "baselines/folds", folds=5)


def fit_baseline(graph, subgraphs, recipe, *, seed):
    return correction.fit_baseline(MODELS[recipe.model.baseline], training_data(graph, subgraphs, seed), recipe)


@pytest.mark.parametrize("whole", [True, False])
def test_folds_keep_groups_whole_where_the_split_does(whole, monkeypatch):
    data = dataset()
    # The groups of training are five of four; validation has one of its own, or shares one.
    groups = [f"g{i // 4}" for i in range(20)] + ["val" if whole else "g0"] * 5 + ["g1"] * 5
    subgraphs = replace(data.subgraphs, groups=Strings.of(groups))
    noted = []
    monkeypatch.setattr(
        correction, "draw_folds", lambda *given, **options: noted.append(draw_folds(*given, **options)) or noted[0]
    )
    fit_baseline(data.graph, subgraphs, correcting("bag"), seed=0)
    assert (noted[0].reshape(5, 4) == noted[0][::4, None]).all() == whole


@pytest.mark.parametrize("groups", [None, ["all"] * 2])
def test_cross_fitting_needs_two_subgraphs(groups):
    nodes = [[1, 2], [2, 1]] if groups is None else [[1], [2]]
    given = SubgraphSet.from_lists(nodes, num_nodes=24, labels=["a", "b"], splits=["train"] * 2, groups=groups)
    of = "different nodes" if groups is None else "different nodes and groups"
    with pytest.raises(DataError, match=f"two training subgraphs of {of}, but there is only one; without"):
        correction._cross_fitted(MODELS["bag"], training_data(dataset().graph, given, 0), None, Recipe())


def bag(subgraphs) -> np.ndarray:
    table = np.zeros((len(subgraphs), 24))
    for row, nodes in zip(table, subgraphs.nodes, strict=True):
        row[nodes] = 1
    return table


def by_hand(task, table, targets, fitted, asked):
    """Answers of a linear model with C = 2."""
    if task == "regression":
        return Ridge(alpha=0.5).fit(table[fitted], targets[fitted]).predict(table[asked])[:, None]
    columns = targets.T if task == "multi-label" else [targets]
    models = [LogisticRegression(C=2.0, max_iter=1000).fit(table[fitted], column[fitted]) for column in columns]
    if task == "multi-label":
        return np.stack([model.decision_function(table[asked]) for model in models], axis=1)
    return models[0].predict_log_proba(table[asked])


@pytest.mark.parametrize("task", ["multi-class", "binary", "multi-label", "regression"])
def test_scores_are_those_of_a_fit_without_the_fold(task):
    data = dataset(task)
    table, targets = bag(data.subgraphs), np.array(data.subgraphs.targets)
    checkpoint, found = fit_baseline(data.graph, data.subgraphs, correcting("bag"), seed=7)
    rows = data.subgraphs.indices("train")
    if task == "regression":
        # In the targets' own unit, which is not that of any fold.
        found = found * targets[rows].std() + targets[rows].mean()
    folds = folds_of(data.subgraphs.take(rows), 7)
    parts = [(rows[folds != fold], rows[folds == fold]) for fold in range(5)]
    for fitted, asked in [*parts, (rows, np.arange(20, 30))]:
        expected = by_hand(task, table, targets, fitted, asked)
        np.testing.assert_allclose(found[asked], scores_of(expected, task), atol=5e-3)
    # Asked later, every subgraph has the score of the fit to all.
    later = scores_of(Predictor(checkpoint, data.graph).outputs(data.subgraphs.nodes), task)
    if task == "regression":
        later = later * targets[rows].std() + targets[rows].mean()
    whole = by_hand(task, table, targets, rows, np.arange(30))
    np.testing.assert_allclose(later, scores_of(whole, task), atol=5e-3)
    assert np.abs(later - found)[rows].max() > 0.05


def test_a_fold_has_no_part_in_its_own_scores():
    data = dataset("multi-label")
    subgraphs, rows = data.subgraphs, data.subgraphs.indices("train")
    folds = folds_of(subgraphs.take(rows), 0)
    targets = np.array(subgraphs.targets)
    mine = rows[folds == 1]
    targets[mine] = 1 - targets[mine]
    _, before = fit_baseline(data.graph, subgraphs, correcting("bag-1hop"), seed=0)
    _, after = fit_baseline(data.graph, replace(subgraphs, targets=targets), correcting("bag-1hop"), seed=0)
    np.testing.assert_array_equal(before[mine], after[mine])
    others = np.setdiff1d(np.arange(30), mine)
    assert (np.abs(before - after)[others].max(axis=1) > 1e-3).all()


@pytest.mark.slow
def test_a_class_that_the_other_folds_lack_has_a_score():
    labels = ["a"] * 10 + ["b"] * 9 + ["c"]
    subgraphs = SubgraphSet.from_lists(
        [*([i, i + 1] for i in range(20)), [3, 4]],
        num_nodes=100,
        labels=[*labels, "a"],
        splits=["train"] * 20 + ["val"],
    )
    graph = Graph.from_edges(range(99), range(1, 100))
    for method in ("bag", "topology"):
        _, found = fit_baseline(graph, subgraphs, correcting(method), seed=0)
        assert np.isfinite(found).all()
        # Nothing else has class c, so that it is as unlikely as can be for its only subgraph.
        assert np.exp(found[19, 2]) == pytest.approx(0.02 / 3, rel=1e-3)


def test_what_is_not_solved_in_one_go_is_refused():
    with pytest.raises(UserError, match=r"topology.classifier is 'head', but model.baseline is 'topology'.*boosting"):
        check_recipe(correcting("topology", classifier="head"), dataset().graph)


def test_scores_by_hand():
    found = scores_of(np.array([[50.0, -50.0], [0.0, 0.0]]), "binary")
    np.testing.assert_allclose(np.exp(found), [[0.99, 0.01], [0.5, 0.5]], rtol=1e-5)
    found = scores_of(np.array([[90.0, 0.0, 0.0, 0.0]]), "multi-class")
    np.testing.assert_allclose(np.exp(found), [[0.985, 0.005, 0.005, 0.005]], rtol=1e-5)
    found = scores_of(np.array([[50.0, 0.0, -50.0]]), "multi-label")
    np.testing.assert_allclose(special.expit(found), [[0.99, 0.5, 0.01]], rtol=1e-5)
    values = np.array([[3.5], [-1e6]], np.float32)
    np.testing.assert_array_equal(scores_of(values, "regression"), values)
