"""Trees as arrays answer as the estimators of scikit-learn do; what a file may not hold is refused."""

from dataclasses import fields, replace

import numpy as np
import pytest
from sklearn import ensemble

from subgnn.channels.channel import named_arrays
from subgnn.models.baselines import topology
from subgnn.models.baselines.topology import Trees, grow_trees, tree_outputs

RNG = np.random.default_rng(0)
TABLE = RNG.normal(size=(120, 5)).round(2)
NEW = RNG.normal(size=(50, 5))
SCORES = TABLE @ RNG.normal(size=(5, 4)) + RNG.normal(size=(120, 4))
TARGETS = {
    "multi-class": SCORES.argmax(axis=1),
    "binary": (SCORES[:, 0] > 0).astype(np.int64),
    "multi-label": (SCORES[:, :3] > 0.5).astype(np.uint8),
    "regression": SCORES[:, 0],
}
OUTPUTS = {"multi-class": 4, "binary": 2, "multi-label": 3, "regression": 1}


def by_scikit_learn(task: str, kind: str, column):
    """Probabilities or values of new rows."""
    options = {"n_estimators": 100, "max_features": None} if kind == "RandomForest" else topology._BOOSTING
    name = kind + ("Regressor" if task == "regression" else "Classifier")
    grown = getattr(ensemble, name)(random_state=7, **options).fit(TABLE, column)
    return grown.predict(NEW)[:, None] if task == "regression" else grown.predict_proba(NEW)


@pytest.mark.quick(3)
@pytest.mark.parametrize("task", TARGETS)
@pytest.mark.parametrize("kind", ["HistGradientBoosting", "RandomForest"])
def test_arrays_answer_as_scikit_learn_does(task, kind, monkeypatch):
    monkeypatch.setattr(topology, "_STEPS_AT_ONCE", 3000)
    boosting = kind != "RandomForest"
    grown = grow_trees(TABLE, TARGETS[task], task, outputs=OUTPUTS[task], boosting=boosting, seed=7)
    found = tree_outputs(grown, NEW, task, boosting=boosting).astype(float)
    if task == "multi-label":
        found = 1 / (1 + np.exp(-found))
        expected = np.stack([by_scikit_learn(task, kind, column)[:, 1] for column in TARGETS[task].T], axis=1)
    else:
        expected = by_scikit_learn(task, kind, TARGETS[task])
        found = found if task == "regression" else np.exp(found)
    np.testing.assert_allclose(found, expected.clip(1e-6 if task != "regression" else None), atol=2e-6)
    assert not list(grown.problems(5, OUTPUTS[task]))
    again = Trees.from_weights(named_arrays(grown, "trees"))
    assert all(np.array_equal(getattr(again, each.name), getattr(grown, each.name)) for each in fields(Trees))


@pytest.mark.parametrize("boosting", [True, False])
def test_what_training_lacks_gets_next_to_nothing(boosting):
    table = np.arange(20.0)[:, None]

    def answers(targets, task, outputs):
        grown = grow_trees(table, targets, task, outputs=outputs, boosting=boosting, seed=0)
        return tree_outputs(grown, table, task, boosting=boosting)

    found = answers(np.arange(20) // 10 * 2, "multi-class", 3)
    assert set(found.argmax(axis=1)) == {0, 2}
    assert (found[:, 1] < -10).all()
    assert (answers(np.full(20, 1), "multi-class", 3).argmax(axis=1) == 1).all()
    labels = np.stack([np.arange(20) >= 10, np.zeros(20), np.ones(20)], axis=1).astype(np.uint8)
    np.testing.assert_array_equal(answers(labels, "multi-label", 3) > 0, labels.astype(bool))
    assert (answers(np.full(20, 0.5), "regression", 1) == 0.5).all()


def grown() -> Trees:
    return grow_trees(TABLE, TARGETS["binary"], "binary", outputs=2, boosting=True, seed=0)


def put(array, place, value):
    changed = array.copy()
    changed[place] = value
    return changed


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: {"child": put(t.child, (0, 0), 0)}, "not there"),
        (lambda t: {"child": put(t.child, (0, 1), len(t.feature))}, "not there"),
        (lambda t: {"feature": put(t.feature, 0, 5)}, "not there"),
        (lambda t: {"feature": put(t.feature, 0, -2)}, "not there"),
        (lambda t: {"root": put(t.root, 0, -1)}, "not there"),
        (lambda t: {"column": put(t.column, 0, 2)}, "not there"),
        (lambda t: {"start": t.start[:1]}, "the wrong shape"),
        (lambda t: {"value": t.value[:, 0]}, "the wrong shape"),
        (lambda t: {"threshold": t.threshold.astype(np.float32)}, "wrong shape or type"),
        (lambda t: {"child": t.child[:, :1]}, "the wrong shape"),
    ],
)
def test_damaged_trees_are_refused(change, message):
    whole = grown()
    assert not list(whole.problems(5, 2))
    assert message in next(replace(whole, **change(whole)).problems(5, 2))
