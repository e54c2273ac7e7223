"""Networks that correct a baseline: they begin as it, are never selected below it, and answer as they were scored."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from subgnn import Ragged
from subgnn.api.train_recipe import train
from subgnn.config.settings import Recipe
from subgnn.data.formats.folder import write_folder
from subgnn.inference.open import evaluate_split
from subgnn.inference.predictor import Predictor
from subgnn.models.baselines.bag import BagSettings
from subgnn.models.baselines.topology import TopologySettings
from subgnn.models.correction import scores_of
from subgnn.models.examples import outputs_of
from subgnn.reports.evaluation import evaluate_run
from subgnn.training import run as run_module
from subgnn.training.fit import set_up
from subgnn.training.run_dir import CHECKPOINT, METRICS
from tests.models.examples import training_data

from .examples import CHANNELS, assert_equal_runs, dataset, recipe, train_until

pytestmark = pytest.mark.slow

BASELINE = {"topology": TopologySettings(classifier="boosting"), "bag": BagSettings(normalize="rows")}
TASKS = ["multi-class", "multi-label", "regression"]


def correcting(method: str, epochs: int = 4, **model: object) -> Recipe:
    return replace(recipe(epochs, channels=CHANNELS[1:4], baseline=method, **model), methods=BASELINE)


def baseline_alone(method: str) -> Recipe:
    return Recipe(name="alone", method=method, methods=BASELINE)


def lines(run) -> list[dict]:
    return [json.loads(line) for line in (run / METRICS).read_text().splitlines()]


def without_loss(scores: dict) -> dict:
    return {name: value for name, value in scores.items() if name != "loss"}


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("method", ["bag", "bag-1hop", "topology"])
def test_epoch_0_is_the_baseline_itself(tmp_path, method, task):
    data = dataset(task)
    alone = train(data, baseline_alone(method), tmp_path / "alone", report=False)
    found = train(data, correcting(method, 1), tmp_path / "run", report=False)
    assert (found.selected_epoch, found.epochs) == (0, 1)
    for split in ("val", "test"):
        ours, theirs = (without_loss(getattr(one, split)) for one in (found, alone))
        assert ours == pytest.approx(theirs, abs=1e-5, nan_ok=True)
    assert (found.baseline.method, found.baseline.candidate) == (method, alone.candidate)
    a, b = (Predictor(tmp_path / name / CHECKPOINT, data.graph) for name in ("run", "alone"))
    # New subgraphs too, one of them of a node that training has not met.
    asked = Ragged.from_rows([[0, 1, 2], [23], *data.subgraphs.nodes])
    ours, theirs = a.probabilities(asked), b.probabilities(asked)
    corrected = Predictor(a.checkpoint.parts["baseline"], data.graph)
    np.testing.assert_allclose(a.outputs(asked), scores_of(corrected.outputs(asked), task), rtol=1e-5)
    if task == "regression":
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)
    else:
        shared_out = 0.01 if task == "multi-label" else 0.02 / 3
        np.testing.assert_allclose(ours, 0.98 * theirs + shared_out, atol=1e-5)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A dataset, a run of four epochs that corrects bag-1hop, and its results."""
    folder, data = tmp_path_factory.mktemp("corrected"), dataset()
    write_folder(data, folder / "data")
    settings = correcting("bag-1hop")
    results = train(data, settings, folder / "run", seed=5, source=str(folder / "data"))
    return data, folder / "run", results


def test_the_first_line_judges_the_start_and_the_others_steps(trained):
    data, run, results = trained
    candidates, examples = set_up(training_data(data.graph, data.subgraphs, 5), correcting("bag-1hop"))
    scores = examples.inputs.whole.beside.scores
    rows = torch.from_numpy(examples.train)
    expected = torch.nn.functional.cross_entropy(scores[rows], examples.targets[rows].long())
    records = lines(run)
    assert [record["epoch"] for record in records] == [0, 1, 2, 3]
    assert records[0]["train_loss"] == pytest.approx(float(expected), abs=1e-6)
    assert records[1]["val_loss"] != records[0]["val_loss"]
    assert results.val["micro_f1"] == max(record["val_micro_f1"] for record in records)
    # The network begins as the cross-fitted baseline on the training split.
    torch.testing.assert_close(outputs_of(candidates[0].network, examples.inputs, examples.train, 8), scores[rows])


def test_what_steps_spoil_is_not_selected(tmp_path):
    data = dataset()
    settings = correcting("bag-1hop", 3)
    wild = replace(settings, training=replace(settings.training, lr=50.0, clip=0.0))
    found = train(data, wild, tmp_path / "run", report=False)
    assert found.selected_epoch == 0
    assert lines(tmp_path / "run")[1]["val_loss"] > found.val["loss"]


def test_a_trained_network_answers_as_it_was_scored(trained):
    data, run, results = trained
    assert evaluate_split(run, "test").test == pytest.approx(results.test, abs=1e-6, nan_ok=True)
    predictor = Predictor(run / CHECKPOINT, data.graph)
    whole = predictor.outputs(data.subgraphs.nodes)
    for rows in ([3], [7, 2, 2], [29, 0]):
        np.testing.assert_allclose(predictor.outputs(data.subgraphs.nodes.take(rows)), whole[rows], atol=1e-5)


def test_the_baseline_is_a_part_of_its_own_on_the_page(trained):
    data, run, results = trained
    found = evaluate_run(run, data)
    parts = found.network.parts()
    assert list(parts)[-1] == "baseline"
    assert [part.stop - part.start for part in parts["baseline"]] == [3]
    assert (found.predicted() == found.targets.numpy()).mean() == pytest.approx(results.test["micro_f1"])
    page = (run / "report.html").read_text()
    assert "bag-1hop (normalize=rows" in page
    assert "Epoch 0 is the baseline" in page


@pytest.mark.parametrize(("method", "stop"), [("bag", 0), ("topology", 2)])
def test_a_run_that_goes_on_equals_one_that_was_not_interrupted(tmp_path, monkeypatch, method, stop):
    monkeypatch.setattr(run_module, "SECONDS_BETWEEN_SAVES", 0.0)
    data, settings = dataset(), correcting(method)
    train(data, settings, tmp_path / "whole", seed=3, report=False)
    train_until(stop, data, settings, tmp_path / "cut", seed=3, report=False)
    train(data, settings, tmp_path / "cut", seed=3, resume=True, report=False)
    assert_equal_runs(tmp_path / "whole", tmp_path / "cut")


def test_scores_are_picked_with_their_subgraphs():
    data = dataset()
    _, examples = set_up(training_data(data.graph, data.subgraphs), correcting("bag"))
    inputs, rows = examples.inputs, np.array([7, 2, 2])
    expected = inputs.whole.beside.scores[[7, 2, 2]]
    assert torch.equal(inputs.batch(rows).beside.scores, expected)
    filled = inputs.pick(inputs.positions(rows, inputs.padded_shape(rows)))
    assert torch.equal(filled.beside.scores, expected)
    assert filled.spare == 1


def test_without_a_baseline_nothing_is_added():
    data = training_data(dataset().graph, dataset().subgraphs)
    candidates, examples = set_up(data, recipe(channels=CHANNELS[1:4]))
    assert not candidates[0].checkpoint.parts
    assert examples.inputs.whole.beside.scores is None
    # All else starts from the same numbers.
    others, _ = set_up(data, correcting("bag"))
    plain, corrects = (c[0].network.state_dict() for c in (candidates, others))
    assert plain.keys() == corrects.keys()
    same = {name for name in plain if torch.equal(plain[name], corrects[name])}
    assert plain.keys() - same == {"head.layers.6.weight", "head.layers.6.bias"}
