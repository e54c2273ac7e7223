"""Several networks for one run: each as it would be alone, and the mean of them as the answer."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from subgnn import DataError, Ragged, UserError, read_dataset
from subgnn.api.train_recipe import train
from subgnn.inference.explain import Explainer
from subgnn.inference.open import export_run, open_run
from subgnn.inference.predictor import Predictor
from subgnn.models.recipes import check_recipe, find_recipe
from subgnn.models.spec import member_seed
from subgnn.models.subgnn import build
from subgnn.reports.evaluation import evaluate_run
from subgnn.reports.run_page import run_report
from subgnn.task import task_of
from subgnn.training import fit, loop
from subgnn.training import run as run_module
from subgnn.training.run_dir import CHECKPOINT, METRICS
from tests.inference.explained import named_run
from tests.inference.test_export import rewritten, same
from tests.training.examples import CHANNELS, dataset, recipe, train_until

ROWS = Ragged.from_rows([[0, 1, 2, 10, 11, 20], [3, 9]])


def several(members: int = 3, epochs: int = 3, **model: object):
    small = recipe(epochs, **model)
    return replace(small, training=replace(small.training, members=members))


@pytest.fixture(scope="module")
def done(tmp_path_factory) -> Path:
    return named_run(tmp_path_factory.mktemp("several"), several(topology=True))


@pytest.fixture(scope="module")
def predictor(done) -> Predictor:
    return Predictor(done / CHECKPOINT, read_dataset(done.parent / "data").graph)


def alone(predictor: Predictor, member: int) -> Predictor:
    """A predictor of one of the networks, with the anchors of the run."""
    whole = predictor.checkpoint
    one = replace(whole.spec, members=1)
    weights = whole.member(member).weights
    return Predictor(replace(whole, spec=one, weights=weights), predictor.graph)


def test_the_answer_is_the_mean_of_all_outputs(predictor):
    each = [alone(predictor, i).outputs(ROWS) for i in range(3)]
    assert not np.allclose(each[0], each[1])
    assert not np.allclose(each[1], each[2])
    np.testing.assert_allclose(predictor.outputs(ROWS), np.mean(each, axis=0), atol=1e-6)
    np.testing.assert_array_equal(predictor.embeddings(ROWS), alone(predictor, 0).embeddings(ROWS))


def test_the_first_is_the_network_of_a_run_of_one(predictor, tmp_path):
    single = several(1, topology=True)
    train(dataset(), single, tmp_path / "one", device="cpu", cache=False, report=False)
    one = Predictor(tmp_path / "one" / CHECKPOINT, dataset().graph)
    np.testing.assert_array_equal(one.outputs(ROWS), alone(predictor, 0).outputs(ROWS))


def test_scores_are_those_of_the_mean(done, predictor):
    results = json.loads((done / "run.json").read_text())
    data = dataset().subgraphs
    for split in ("val", "test"):
        rows = data.indices(split)
        outputs = torch.from_numpy(predictor.outputs(data.nodes.take(rows)))
        expected = task_of("multi-class").metrics(outputs, torch.from_numpy(np.array(data.targets))[rows])
        assert {name: results[split][name] for name in expected} == pytest.approx(expected)
    assert len(results["members"]) == 3
    assert results["selected_epoch"] == results["members"][0]["selected_epoch"]


@pytest.mark.quick(1)
@pytest.mark.parametrize(("candidate", "epoch"), [("member 0", 2), ("member 1", 1), ("member 2", 2)])
def test_an_interrupted_run_goes_on_with_the_same_networks(tmp_path, monkeypatch, done, predictor, candidate, epoch):
    monkeypatch.setattr(run_module, "SECONDS_BETWEEN_SAVES", 0.0)
    small = several(topology=True)
    options = {"device": "cpu", "cache": False, "report": False}
    train_until(epoch, dataset(), small, tmp_path / "a", candidate=candidate, **options)
    train(dataset(), small, tmp_path / "a", resume=True, **options)
    one = Predictor(tmp_path / "a" / CHECKPOINT, dataset().graph)
    np.testing.assert_array_equal(one.outputs(ROWS), predictor.outputs(ROWS))
    assert (tmp_path / "a" / METRICS).read_text() == (done / METRICS).read_text()


def test_a_corrected_baseline_is_in_each(tmp_path):
    train(dataset(), several(2, baseline="bag"), tmp_path / "run", device="cpu", cache=False, report=False)
    found = Predictor(tmp_path / "run" / CHECKPOINT, dataset().graph)
    each = [alone(found, i).outputs(ROWS) for i in range(2)]
    np.testing.assert_allclose(found.outputs(ROWS), np.mean(each, axis=0), atol=1e-6)


def test_an_export_answers_alike_and_holds_as_many_networks_as_its_recipe_says(done, tmp_path):
    export_run(done, tmp_path / "whole.safetensors", with_graph=True)
    same(done, tmp_path / "whole.safetensors")

    def forget(arrays, _):
        for name in [name for name in arrays if "member2" in name]:
            del arrays[name]

    def fewer(arrays, content):
        content["checkpoint"]["recipe"]["training"]["members"] = 2
        arrays["reference"] = arrays["reference"][:2]

    for change, held, wanted in ((forget, 2, 3), (fewer, 3, 2)):
        with pytest.raises(DataError, match=f"it holds {held} networks, but its recipe says {wanted}"):
            open_run(rewritten(tmp_path / "whole.safetensors", tmp_path / f"{held}.safetensors", change))


def test_several_networks_are_refused_where_there_can_be_one(monkeypatch, tmp_path):
    with pytest.raises(UserError, match=r"training\.members is 2"):
        check_recipe(find_recipe("bag", ["training.members=2"]), dataset().graph)
    monkeypatch.setattr(build, "is_large", lambda *_: True)
    with pytest.raises(UserError, match=r"training\.members is 2"):
        train(dataset(), several(2), tmp_path / "run", device="cpu", cache=False, report=False)


@pytest.mark.quick(2)
@pytest.mark.parametrize("method", ["outputs", "embeddings"])
def test_streamed_tables_answer_alike(predictor, monkeypatch, method):
    expected = getattr(predictor, method)(ROWS)
    monkeypatch.setattr(build, "LARGE", 0)
    found = Predictor(predictor.checkpoint, predictor.graph)
    np.testing.assert_allclose(getattr(found, method)(ROWS), expected, atol=1e-6)


def test_losses_of_the_mean_are_weighted_as_those_of_each(tmp_path):
    small = several(2, 1)
    small = replace(small, training=replace(small.training, class_weights=True))
    data = dataset()
    kept = np.setdiff1d(np.arange(len(data.subgraphs)), [0, 3, 6])  # so that classes are unequal
    data = replace(data, subgraphs=data.subgraphs.take(kept))
    results = train(data, small, tmp_path / "run", device="cpu", cache=False, report=False)
    found = Predictor(tmp_path / "run" / CHECKPOINT, data.graph)
    targets = torch.from_numpy(np.array(data.subgraphs.targets)).long()
    counts = torch.bincount(targets[data.subgraphs.indices("train")])
    rows = data.subgraphs.indices("val")

    def loss(asked):
        outputs = torch.from_numpy(asked.outputs(data.subgraphs.nodes.take(rows)))
        return float(torch.nn.functional.cross_entropy(outputs, targets[rows], counts.sum() / (3 * counts)))

    assert [one.val["loss"] for one in results.members] == pytest.approx([loss(alone(found, i)) for i in (0, 1)])
    assert results.val["loss"] == pytest.approx(loss(found))


def test_an_explanation_is_the_mean_of_those_of_each(predictor):
    background = dataset().subgraphs.nodes
    rows = [[0, 1, 2, 10, 11, 20]]
    whole = Explainer(predictor, background=background).explain(rows)[0]
    each = [Explainer(alone(predictor, i), background=background).explain(rows)[0] for i in range(3)]
    for kind in ("by_node", "by_component", "by_channel"):
        found, *others = (
            [item.contributions for item in sorted(getattr(one, kind), key=lambda item: getattr(item, "node", 0))]
            for one in (whole, *each)
        )
        mean = np.mean(others, axis=0)
        np.testing.assert_allclose(found, mean, atol=1e-5)

    def anchors(explanation):
        return {(a.channel, a.layer, a.nodes): np.array(a.contributions) for a in explanation.by_anchor}

    found = anchors(whole)
    assert found
    assert all(found.keys() == anchors(one).keys() for one in each)
    for key, value in found.items():
        np.testing.assert_allclose(value, np.mean([anchors(one)[key] for one in each], axis=0), atol=1e-5)


def test_the_page_of_the_run(done, predictor):
    page = run_report(done, read_dataset(done.parent / "data"))
    results = json.loads((done / "run.json").read_text())
    assert "3; their outputs are averaged" in page
    assert "The first of 3 networks." in page
    assert ", ".join(str(one["selected_epoch"]) for one in results["members"]) + ", of each network" in page
    found = evaluate_run(done, read_dataset(done.parent / "data"))
    np.testing.assert_allclose(found.outputs, predictor.outputs(dataset().subgraphs.nodes.take(found.rows)), atol=1e-6)
    assert [record["epoch"] for record in found.records] == [0, 1, 2]


def test_batches_differ_between_networks(monkeypatch, tmp_path):
    seeds = []
    run_epochs = loop.run_epochs
    monkeypatch.setattr(fit, "run_epochs", lambda *a, **k: seeds.append(a[1].seed) or run_epochs(*a, **k))
    train(dataset(), several(2, 1, channels=CHANNELS[2:4]), tmp_path / "run", device="cpu", cache=False, report=False)
    assert seeds == [0, member_seed(0, 1)]
