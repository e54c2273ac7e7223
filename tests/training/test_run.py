"""Runs: they learn, repeat, go on after an interruption, and answer for new subgraphs."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from subgnn import Graph
from subgnn.api.train_recipe import train
from subgnn.config.recipes import recipe_names
from subgnn.data.formats.folder import write_folder
from subgnn.errors import DataError, UserError
from subgnn.inference.open import evaluate_split
from subgnn.inference.predictor import Predictor
from subgnn.models.examples import outputs_of
from subgnn.models.recipes import find_recipe
from subgnn.reports.evaluation import evaluate_run
from subgnn.training import run as run_module
from subgnn.training.fit import set_up
from subgnn.training.run_dir import CHECKPOINT, METRICS, RECIPE
from tests.models.examples import training_data

from .examples import assert_equal_runs, dataset, recipe, train_until, weights


@pytest.mark.slow
def test_it_overfits_twenty_subgraphs(tmp_path):
    train(dataset(), recipe(60, dropout=0.0), tmp_path / "run", source="")
    lines = [json.loads(line) for line in (tmp_path / "run" / METRICS).read_text().splitlines()]
    assert lines[-1]["train_loss"] < 0.05 < lines[0]["train_loss"]


@pytest.mark.quick(1)
@pytest.mark.parametrize("task", ["multi-class", "binary", "multi-label", "regression"])
def test_every_task_trains_and_is_scored(tmp_path, task):
    results = train(dataset(task), recipe(3, topology=True), tmp_path / "run")
    expected = {"mae", "rmse", "r2"} if task == "regression" else {"micro_f1", "macro_f1", "accuracy", "auroc"}
    expected |= {"auprc"} if task in ("binary", "multi-label") else set()
    assert set(results.test) == expected
    assert results.task == task


def test_errors_are_in_the_labels_units(tmp_path):
    """Labels times 1,000 give errors times 1,000, in every place that tells them; R^2 stays."""
    data = dataset("regression")
    large = replace(data, subgraphs=replace(data.subgraphs, targets=data.subgraphs.targets * 1000))
    found = {}
    for name, some in (("small", data), ("large", large)):
        write_folder(some, tmp_path / f"{name}_data")
        source = str(tmp_path / f"{name}_data")
        results = train(some, recipe(3), tmp_path / name, source=source)
        lines = [json.loads(line) for line in (tmp_path / name / METRICS).read_text().splitlines()]
        again, page = evaluate_split(tmp_path / name, "test").test, evaluate_run(tmp_path / name, some)
        told = [results.val, results.test, again, page.constant()]
        told += [{key.removeprefix("val_"): value for key, value in line.items()} for line in lines]
        found[name] = told
    for small, big in zip(found["small"], found["large"], strict=True):
        for metric, factor in (("mae", 1000), ("rmse", 1000), ("r2", 1)):
            assert big[metric] == pytest.approx(small[metric] * factor, rel=1e-4)
    mean = data.subgraphs.targets[data.subgraphs.indices("train")].mean()
    truth = data.subgraphs.targets[data.subgraphs.indices("test")]
    assert found["small"][3]["mae"] == pytest.approx(np.abs(truth - mean).mean(), rel=1e-5)


def test_the_same_seed_gives_the_same_weights_and_another_gives_others(tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        train(dataset(), recipe(3), tmp_path / name, seed=seed)
    assert_equal_runs(tmp_path / "a", tmp_path / "b")
    one, other = (weights(tmp_path / name)["head.layers.0.weight"] for name in ("a", "c"))
    assert not torch.equal(one, other)


@pytest.mark.quick(1)
@pytest.mark.parametrize("stop", [0, 2, 4])
def test_a_run_that_goes_on_equals_one_that_was_not_interrupted(tmp_path, monkeypatch, stop):
    monkeypatch.setattr(run_module, "SECONDS_BETWEEN_SAVES", 0.0)
    train(dataset(), recipe(6), tmp_path / "whole", seed=3)
    train_until(stop, dataset(), recipe(6), tmp_path / "cut", seed=3)
    with pytest.raises(DataError, match="exists already"):
        train(dataset(), recipe(6), tmp_path / "cut", seed=3)
    with pytest.raises(DataError, match="different settings"):
        train(dataset(), recipe(7), tmp_path / "cut", seed=3, resume=True)
    train(dataset(), recipe(6), tmp_path / "cut", seed=3, resume=True)
    assert_equal_runs(tmp_path / "whole", tmp_path / "cut")


def test_a_run_of_another_note_goes_on_and_one_of_another_split_does_not(tmp_path):
    found = train(dataset(), recipe(2), tmp_path / "run")
    settings = json.loads((tmp_path / "run" / RECIPE).read_text())
    (tmp_path / "run" / RECIPE).write_text(json.dumps(settings | {"note": "It was another one."}))
    assert train(dataset(), recipe(2), tmp_path / "run", resume=True).val == found.val
    for change in ({"split": "published"}, {"seed": 1}):
        with pytest.raises(DataError, match="different settings"):
            train(dataset(), recipe(2), tmp_path / "run", resume=True, **change)


def test_another_graph_is_refused(tmp_path):
    data = dataset()
    train(data, recipe(1), tmp_path / "run")
    other = replace(data.graph, known_hash="0" * 64)
    with pytest.raises(DataError, match="not the graph that the run was trained on"):
        Predictor(tmp_path / "run" / CHECKPOINT, other)


def test_a_loss_that_is_no_number_is_said(tmp_path):
    wild = recipe(30, norm="none")
    wild = replace(wild, training=replace(wild.training, lr=1e30, clip=0.0))
    with pytest.raises(UserError, match=r"the loss became .* lower training.lr"):
        train(dataset(), wild, tmp_path / "run")


@pytest.mark.parametrize("name", recipe_names())
def test_recipes_parse_and_carry_the_published_number(name):
    found = find_recipe(name, ["training.epochs=5"])
    assert found.training.epochs == 5
    assert bool(found.channels) == (found.method == "subgnn")
    if name.startswith("alsentzer2020_"):
        assert 0 < found.published["micro_f1"] < 1


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in recipe_names() if name != "auto"])
def test_recipes_build_a_network_that_answers(name):
    data, found = dataset(), find_recipe(name)
    if name == "diffusion-directed":
        data = replace(data, graph=Graph.from_edges(*data.graph.edges()[:2], num_nodes=24, directed=True))
    vectors = None if found.embeddings.source == "random" else np.ones((24, found.embeddings.dim), np.float32)
    given = replace(training_data(data.graph.undirected(), data.subgraphs), vectors=vectors)
    candidates, examples = set_up(given, found)
    model = candidates[0].network
    assert outputs_of(model, examples.inputs, np.arange(4), 2).shape == (4, 3)
