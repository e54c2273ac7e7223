"""One fit: values in, values out, as a process elsewhere could run it."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

from subgnn.api.train_recipe import train
from subgnn.inference.predictor import Predictor
from subgnn.models.checkpoint import load_checkpoint
from subgnn.models.recipes import find_recipe
from subgnn.training.fit import HELD_OUT, FitHooks, Stopped, fit
from subgnn.training.run_dir import CHECKPOINT

from .examples import dataset, recipe

RECIPES = {
    "network": recipe(2),
    "candidates": find_recipe("bag"),
    "ensemble": replace(recipe(1), training=replace(recipe(1).training, members=2)),
}


@pytest.mark.parametrize("name", RECIPES)
def test_it_is_what_train_saves_and_leaves_no_file(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = fit(RECIPES[name], dataset(), seed=3, device="cpu", cache=False)
    assert list(tmp_path.iterdir()) == []
    result = train(dataset(), RECIPES[name], tmp_path / "run", seed=3, device="cpu", cache=False, report=False)
    saved = load_checkpoint(tmp_path / "run" / CHECKPOINT)
    assert all((saved.weights[key] == value).all() for key, value in found.checkpoint.weights.items())
    assert (result.selected_epoch, result.val) == (found.progress.best_epoch, found.progress.best_metrics)


@pytest.mark.parametrize("name", RECIPES)
def test_what_goes_in_and_comes_out_can_be_sent_to_another_process(name):
    options = {"seed": 1, "device": "cpu", "cache": False}
    chosen, data, options = pickle.loads(pickle.dumps((RECIPES[name], dataset(), options)))
    found = pickle.loads(pickle.dumps(fit(chosen, data, **options)))
    rows = data.subgraphs.nodes.take(data.subgraphs.indices("test"))
    expected = Predictor(found.checkpoint, data.graph, tables={}).outputs(rows)
    np.testing.assert_allclose(found.outputs["test"], expected, atol=1e-5)


def test_other_splits_and_only_the_outputs_that_were_asked_for():
    data = dataset()
    splits = np.roll(np.asarray(data.subgraphs.splits), 1)
    found = fit(RECIPES["candidates"], data, splits, device="cpu", cache=False, outputs=("test",))
    assert found.outputs.keys() == {"test"}
    assert len(found.predictions) == (splits == HELD_OUT).sum()
    np.testing.assert_allclose(found.predictions.sum(axis=1), 1)


def test_hooks_see_every_epoch_and_may_stop_it():
    records = []

    def after_epoch(record, state):
        records.append(record)
        if len(records) == 2:
            assert state()["progress"]["epoch"] == 2
            raise Stopped

    with pytest.raises(Stopped):
        fit(recipe(5), dataset(), device="cpu", cache=False, hooks=FitHooks(after_epoch=after_epoch))
    assert [record["epoch"] for record in records] == [0, 1]
