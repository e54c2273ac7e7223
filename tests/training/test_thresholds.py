"""Runs with thresholds: chosen on validation or out of fold, and used wherever labels are predicted."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import subgnn
from subgnn.data.dataset import Dataset
from subgnn.data.formats.folder import write_folder
from subgnn.data.graph import Graph
from subgnn.data.subgraphs import SubgraphSet
from subgnn.errors import DataError, DataWarning, UserError
from subgnn.inference.predictor import Predictor
from subgnn.lab.tuning.tune import tune
from subgnn.metrics.thresholds import count_alerts
from subgnn.models.checkpoint import load_checkpoint, pack, unpack
from subgnn.models.recipes import find_recipe
from subgnn.ragged import Ragged
from subgnn.reports.run_page import run_report
from subgnn.serve.limits import Limits
from subgnn.serve.runs import open_runs
from subgnn.task import task_of
from subgnn.training.run_dir import CHECKPOINT
from tests.cli.command import call

NODES, RARE = 60, 8
pytestmark = pytest.mark.filterwarnings("ignore:test has . 'fraud' subgraphs;")


def rings(task: str = "binary", n: int = 150, seed: int = 0) -> Dataset:
    """Subgraphs of a cycle; one in eight is positive, and then mostly of the first nodes."""
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < 0.125
    sets = [
        np.where(rng.random(4) < (0.6 if p else 0.08), rng.integers(0, RARE, 4), rng.integers(RARE, NODES, 4)).tolist()
        for p in positive
    ]
    labels = ["fraud" if p else "other" for p in positive]
    if task == "multi-label":
        labels = [
            [label, *(["odd"] if set(nodes) & {9, 11, 13, 15} else [])]
            for label, nodes in zip(labels, sets, strict=True)
        ]
    splits = np.array(["train", "train", "train", "val", "test"])[np.arange(n) % 5]
    graph = Graph.from_edges(np.arange(NODES), (np.arange(NODES) + 1) % NODES, num_nodes=NODES)
    subgraphs = SubgraphSet.from_lists(sets, num_nodes=NODES, labels=labels, splits=splits.tolist())
    return Dataset("rings", graph, subgraphs)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """The dataset in files, and a run on it."""
    folder = tmp_path_factory.mktemp("thresholds")
    write_folder(rings(), folder / "data")
    subgnn.train(folder / "data", folder / "run", recipe="bag", threshold="recall=0.8", device="cpu")
    return folder


def scores_of(run: subgnn.Run, data: Dataset, split: str) -> tuple[np.ndarray, np.ndarray]:
    rows = data.subgraphs.indices(split)
    return run.predictor.probabilities(data.subgraphs.nodes.take(rows)), np.asarray(data.subgraphs.targets)[rows]


def test_the_threshold_is_that_of_a_search_on_validation(folder):
    run, data = subgnn.load(folder / "run"), rings()
    scores, truth = scores_of(run, data, "val")
    (label,) = run.result.threshold.labels
    assert (label.label, run.result.threshold.chosen_on) == ("fraud", "validation")
    found = count_alerts(label.threshold, scores[:, 0], truth == 0)
    possible = [count_alerts(float(t), scores[:, 0], truth == 0) for t in [-1, *scores[:, 0]]]
    assert found.recall >= 0.8
    assert found.precision == max(one.precision for one in possible if one.alerts and one.recall >= 0.8)
    assert label.chosen.alerts == found.alerts


def test_predictions_and_scores_use_it(folder):
    run, data = subgnn.load(folder / "run"), rings()
    scores, truth = scores_of(run, data, "test")
    (label,) = run.result.threshold.labels
    expected = np.where(scores[:, 0] > label.threshold, "fraud", "other").tolist()
    rows = data.subgraphs.indices("test")
    sets = [data.subgraphs.nodes[row].tolist() for row in rows]
    assert run.predict(sets)["label"].tolist() == expected
    assert expected != np.array(["fraud", "other"])[scores.argmax(axis=1)].tolist()
    assert run.evaluate()["accuracy"] == pytest.approx(np.mean(np.array(expected) == np.array(run.classes)[truth]))
    assert run.evaluate() == pytest.approx(run.result.test)
    hits = sum(e == "fraud" and t == 0 for e, t in zip(expected, truth, strict=True))
    assert (label.test.hits, label.test.alerts) == (hits, expected.count("fraud"))
    (why,) = run.explain(sets[:1])
    assert why.classes[why.leading] == why.label == expected[0]


def test_exports_pages_and_served_runs_have_it(folder, tmp_path):
    run = subgnn.load(folder / "run")
    exported = subgnn.load(run.export(tmp_path / "run.safetensors"))
    assert exported.predictor.spec.decision == run.predictor.spec.decision
    assert exported.predict([[0, 1, 2]]).equals(run.predict([[0, 1, 2]]))
    page = run_report(folder / "run", rings())
    threshold = run.result.threshold.labels[0].threshold
    assert "Thresholds for recall=0.8, chosen on 30 validation subgraphs" in page
    (served,) = open_runs([f"small={folder / 'run'}"], limits=Limits()).values()
    card = served.card()["threshold"]
    assert (card["aim"], card["chosen_on"], card["thresholds"]) == (
        "recall=0.8",
        "validation",
        {"fraud": pytest.approx(threshold)},
    )


def test_the_command_line(folder, tmp_path):
    done = call("train", folder / "data", "--recipe", "bag", "--threshold", "precision=0.99", "--out", tmp_path / "run")
    assert "thresholds for precision=0.99, chosen on 30 validation subgraphs" in done.out
    scored = call("evaluate", tmp_path / "run", "--split", "val", "--json").json
    (label,) = scored["threshold"]["labels"]
    assert label["val"] == label["chosen"]
    wrong = call("train", folder / "data", "--threshold", "precision=90", "--out", tmp_path / "no")
    assert wrong.code == 2
    assert wrong.error.startswith("--threshold: the threshold is 'precision=90'; accepted: precision=P")
    assert not (tmp_path / "no").exists()


def test_an_aim_that_no_threshold_reaches_is_not_applied(tmp_path):
    """All subgraphs of validation have the same nodes, so that no probability divides them."""
    data = rings()
    known, same = data.subgraphs, set(data.subgraphs.indices("val").tolist())
    sets = [[10, 11, 12, 13] if row in same else nodes.tolist() for row, nodes in enumerate(known.nodes)]
    data = replace(data, subgraphs=replace(known, nodes=Ragged.from_rows(sets)))
    write_folder(data, tmp_path / "data")
    call_of = ("train", tmp_path / "data", "--recipe", "topology", "--out", tmp_path / "run")
    done = call(*call_of, "--threshold", "precision=0.9")
    assert done.code == 2
    share = (np.asarray(known.targets)[known.indices("val")] == 0).mean()
    reached = f"the highest precision is {share:.3f}, with a recall of 1.000"
    line = f"fraud: no threshold reaches precision=0.9 on validation ({reached}); 0.5 is kept"
    assert done.error.startswith(f"--threshold: {line}; ")
    assert "is finished and predicts with 0.5; ask for less" in done.error
    # As a setting it is no demand: a warning.
    with pytest.warns(DataWarning, match="0.5 is kept"):
        kept = subgnn.train(data, recipe="topology", settings={"training.threshold": "precision=0.9"}, device="cpu")
    assert kept.result.threshold.labels[0].threshold == 0.5
    assert subgnn.load(tmp_path / "run").result.threshold == kept.result.threshold


def test_every_label_has_a_threshold_of_its_own():
    data = rings("multi-label")
    run = subgnn.train(data, recipe="bag", threshold="f1", device="cpu")
    found = run.result.threshold
    assert (found.chosen_on, found.labels[0].chosen.subgraphs) == ("validation", 30)
    assert [one.label for one in found.labels] == list(run.classes)
    scores, _ = scores_of(run, data, "test")
    predicted = task_of("multi-label").decide(scores, run.predictor.thresholds)
    assert found.labels[0].test.alerts == (predicted[:, 0] > 0).sum()
    labels = run.predict([data.subgraphs.nodes[row].tolist() for row in data.subgraphs.indices("test")])["label"]
    assert labels.tolist() == ["-".join(np.array(run.classes)[row > 0]) for row in predicted]


@pytest.mark.quick(1)
@pytest.mark.parametrize("select_by", ["auto", "auprc"])
def test_a_portfolio_chooses_on_its_out_of_fold_predictions(select_by, tmp_path):
    settings = {"auto.only": ["bag"], "auto.repeats": 2, "auto.folds": 3, "training.select_by": select_by}
    run = subgnn.train(rings(), tmp_path / "run", threshold="recall=0.9", settings=settings, device="cpu")
    found = run.result.threshold
    (label,) = found.labels
    assert (found.chosen_on, label.chosen.subgraphs, label.reached) == ("out-of-fold", 120, True)
    assert label.chosen.recall >= 0.9
    assert run.result.metric == ("micro_f1" if select_by == "auto" else "auprc")
    assert run.evaluate() == pytest.approx(run.result.test, rel=1e-5)
    assert run.result.val["auprc"] == pytest.approx(run.result.leaderboard[0].score, abs=1e-2) or select_by == "auto"
    page = run.report.read_text(encoding="utf-8")
    assert "Thresholds for recall=0.9, chosen on 120 out-of-fold predictions" in page


def test_other_tasks_and_settings_are_refused(tmp_path):
    data = rings()
    three = replace(data, subgraphs=replace(data.subgraphs, task="multi-class"))
    with pytest.raises(UserError, match="the task is multi-class; thresholds need two classes"):
        subgnn.train(three, tmp_path / "run", recipe="bag", threshold="f1")
    with pytest.raises(UserError, match=r"the threshold is '0.9'; accepted: precision=P"):
        subgnn.train(data, tmp_path / "run", recipe="bag", threshold=0.9)
    with pytest.raises(UserError, match="select_by is 'auprk'"):
        subgnn.train(data, tmp_path / "run", recipe="bag", settings={"training.select_by": "auprk"})
    with pytest.raises(UserError, match="has the class 'fruad'"):
        subgnn.train(data, tmp_path / "other", recipe="bag", settings={"training.class_weights": "fruad=3"})
    with pytest.raises(UserError, match="has the class 'fruad'"):
        subgnn.train(data, tmp_path / "auto", settings={"training.class_weights": "fruad=3"})


def test_a_checkpoint_whose_thresholds_do_not_fit_is_refused(folder):
    checkpoint = load_checkpoint(folder / "run" / CHECKPOINT)
    arrays, content = pack(checkpoint)
    words = {"where": "x", "noun": "the checkpoint", "again": "train again"}
    assert unpack(arrays, content, **words).spec.decision == checkpoint.spec.decision
    content["decision"]["labels"][0]["threshold"] = 7.0
    with pytest.raises(DataError, match="thresholds do not fit"):
        unpack(arrays, content, **words)
    # Without a decision, as before there were any, the likelier class is predicted.
    del content["decision"]
    plain = Predictor(unpack(arrays, content, **words), rings().graph)
    assert plain.thresholds == 0.5
    scores = plain.probabilities([[0, 1, 2], [40, 41, 42]])
    assert plain.predict([[0, 1, 2], [40, 41, 42]]) == np.array(["fraud", "other"])[scores.argmax(axis=1)].tolist()


def test_class_weights_and_the_metric_of_selection_in_runs():
    data, recalls = rings(), {}
    for weights in ("false", "balanced", "fraud=30"):
        recipe = find_recipe("bag", [f"training.class_weights={weights}", "bag.inverse_penalty=1"])
        run = subgnn.train(data, recipe=recipe, device="cpu")
        predicted = run.predict([data.subgraphs.nodes[row].tolist() for row in data.subgraphs.indices("test")])
        recalls[weights] = (predicted["label"] == "fraud").sum()
    assert recalls["false"] < recalls["balanced"] <= recalls["fraud=30"]
    settings = {"training.epochs": 2, "embeddings.dim": 8, "training.select_by": "recall@5"}
    run = subgnn.train(data, recipe="avg", settings=settings | {"baseline.tune_embeddings": False}, device="cpu")
    assert 0 <= run.result.val["recall@5"] <= 1
    assert run.evaluate()["recall@5"] == run.result.test["recall@5"]


def test_a_search_maximises_the_metric_of_selection(tmp_path):
    recipe = find_recipe("bag", ["training.select_by=recall@5", "bag.inverse_penalty=1", "bag.normalize=none"])
    assert tune(rings(), recipe, tmp_path / "out", trials=1, folds=2, device="cpu")["metric"] == "recall@5"
