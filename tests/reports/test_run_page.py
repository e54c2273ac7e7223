"""Pages of runs of every task: whole, closed in themselves, and true to the run."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from importlib.resources import files

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.metrics import (
    average_precision_score,
    confusion_matrix,
    precision_recall_fscore_support,
    roc_auc_score,
)

from subgnn import Dataset, SubgraphSet
from subgnn.api.train_recipe import train
from subgnn.data.graph import Graph
from subgnn.data.strings import NodeNames
from subgnn.errors import DataError, DataWarning
from subgnn.inference.predictor import Predictor
from subgnn.reports import run_report, write_report
from subgnn.reports.evaluation import evaluate_run
from subgnn.reports.figures import principal_axes
from subgnn.reports.scores import class_charts
from subgnn.result import RESULTS, read_result
from subgnn.training.run_dir import CHECKPOINT, METRICS
from tests.training.examples import CHANNELS, dataset, recipe

from .reading import Element, read

TASKS = ["multi-class", "binary", "multi-label", "regression"]
SECTIONS = ["run", "curves", "predictions", "map", "table", "parts", "subgraphs", "calibration", "reproduce"]
SCRIPT = (files("subgnn.reports") / "templates" / "page.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Task to run folder, dataset and page; each trained once, when first asked for."""
    kept = {}

    def make(task):
        if task not in kept:
            folder = tmp_path_factory.mktemp("pages") / "run"
            data = dataset(task)
            # More to score than to learn from, so that there are mistakes.
            splits = np.repeat([0, 1, 2], [10, 5, 15]).astype(np.int8)
            data = replace(data, subgraphs=replace(data.subgraphs, splits=splits))
            train(data, recipe(4, topology=True), folder)
            kept[task] = folder, data, (folder / "report.html").read_text(encoding="utf-8")
        return kept[task]

    return make


def cells(table: Element) -> list[list[str]]:
    return [[cell.text for cell in row.children] for row in table.one("tbody").children]


@pytest.mark.parametrize("task", TASKS)
def test_every_section_is_there_in_order_and_every_tag_is_closed(made, task):
    page = read(made(task)[2])
    assert [s.attributes["id"] for s in page.all("section")] == SECTIONS
    assert [a.attributes["href"] for a in page.one("nav").all("a")] == [f"#{s}" for s in SECTIONS]
    ids = [e.attributes["id"] for e in page.all() if "id" in e.attributes]
    assert len(ids) == len(set(ids))
    assert all(table.one("caption").text for table in page.all("table"))
    for svg in page.all("svg"):
        assert svg.attributes.get("aria-hidden") or (svg.attributes["role"] == "img" and svg.attributes["aria-label"])


@pytest.mark.parametrize("task", TASKS)
def test_a_page_needs_nothing_else_and_is_small(made, task):
    text = made(task)[2]
    page = read(text)
    assert not re.search(r"https?:|//|@import|url\(", text.replace(SCRIPT, ""))
    assert not re.search(r"https?:|fetch|XMLHttp|import|innerHTML|eval", SCRIPT)
    assert page.one("script").text == SCRIPT
    (policy,) = page.all("meta", **{"http-equiv": "Content-Security-Policy"})
    digest = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
    assert "default-src 'none'" in policy.attributes["content"]
    assert f"script-src 'sha256-{digest}';" in policy.attributes["content"]
    for element in page.all():
        assert element.name not in ("link", "img", "iframe", "object")
        assert not {"src", "srcset", "onclick", "onload"} & set(element.attributes)
        assert element.attributes.get("href", "#").startswith("#")
    assert len(text) < 400_000


def test_the_headline_has_an_interval_and_the_run_a_date(made):
    run, _, text = made("multi-class")
    results = json.loads((run / RESULTS).read_text())
    low, high = results["intervals"]["test"]
    assert low <= results["test"]["micro_f1"] <= high
    tile = read(text).one(class_="tiles").all("div")[0].text
    assert f"95 % interval {low:.3f} to {high:.3f}, on 15 subgraphs" in tile
    facts = {pair.one("dt").text: pair.one("dd").text for pair in read(text).one("dl", class_="facts").all("div")}
    assert facts["Date"] == results["date"][:16].replace("T", " ") + " UTC"


@pytest.mark.parametrize("task", TASKS)
def test_the_table_has_every_prediction(made, task):
    run, data, text = made(task)
    rows = data.subgraphs.indices("test")
    table = read(text).one("table", id="predictions-table")
    shown = cells(table)
    predictor = Predictor(run / CHECKPOINT, data.graph)
    scores = predictor.probabilities(data.subgraphs.nodes.take(rows))
    assert [row[0] for row in shown] == [f"subgraph {row}" for row in rows]
    assert [row[1] for row in shown] == [str(len(data.subgraphs.nodes[row])) for row in rows]
    separator = {"multi-label": ", "}.get(task, "")
    if task == "regression":
        assert [row[2:4] for row in shown] == [
            [f"{data.subgraphs.targets[row]:.4g}", f"{value:.4g}"] for row, [value] in zip(rows, scores, strict=True)
        ]
        return
    true = [data.subgraphs.label_text(row).replace("-", separator) for row in rows]
    said = [predictor.label_text(score).replace("-", separator) or "no label" for score in scores]
    assert [row[2] for row in shown] == true
    assert [row[3] for row in shown] == said
    assert [row[5] for row in shown] == ["yes" if a == b else "no" for a, b in zip(true, said, strict=True)]
    wrong = [row.attributes.get("class") == "wrong" for row in table.one("tbody").children]
    assert wrong == [a != b for a, b in zip(true, said, strict=True)]
    rings = read(text).one("section", id="map").one("svg", role="img").all()
    assert sum("wrong" in mark.attributes.get("class", "") for mark in rings) == sum(wrong)


def test_the_map_is_that_of_the_principal_axes(made):
    run, data, text = made("multi-class")
    rows = data.subgraphs.indices("test")
    vectors = Predictor(run / CHECKPOINT, data.graph).embeddings(data.subgraphs.nodes.take(rows))
    places, shares = principal_axes(vectors)
    expected = PCA(2).fit(vectors.astype(np.float64))
    np.testing.assert_allclose(shares, expected.explained_variance_ratio_, atol=1e-6)
    np.testing.assert_allclose(np.abs(places), np.abs(expected.transform(vectors.astype(np.float64))), atol=1e-4)
    titles = [mark.text for mark in read(text).one("section", id="map").one("svg", role="img").all("title")]
    assert sorted(title.partition(":")[0] for title in titles) == sorted(f"subgraph {row}" for row in rows)
    assert principal_axes(np.ones((5, 3))) is principal_axes(np.ones((5, 1))) is principal_axes(vectors[:2]) is None


def test_curves_of_a_class_end_where_sklearn_says(made):
    run, data, _ = made("binary")
    found = evaluate_run(run, data)
    roc, precision_recall = class_charts(found)
    chosen = int(np.argsort(-np.bincount(found.targets.numpy()), kind="stable")[-1])
    true, scores = found.targets.numpy() == chosen, found.probabilities()[:, chosen]
    line = roc.lines[1]
    assert np.trapezoid(line.ys, line.xs) == pytest.approx(roc_auc_score(true, scores))
    xs, ys = np.array(precision_recall.lines[0].xs), np.array(precision_recall.lines[0].ys)
    assert (np.diff(xs) * ys[1:]).sum() == pytest.approx(average_precision_score(true, scores))
    assert f"{found.classes[chosen]}, {roc_auc_score(true, scores):.3f}" == roc.key[0].words


def test_a_page_of_an_ensemble_scores_the_mean_over_draws(tmp_path):
    small = recipe(2, channels=CHANNELS[1:4])
    small = replace(small, prepare=replace(small.prepare, draws=3, ensemble=True))
    train(dataset(), small, tmp_path / "run", cache=False)
    found, predictor = (
        evaluate_run(tmp_path / "run", dataset()),
        Predictor(tmp_path / "run" / CHECKPOINT, dataset().graph),
    )
    nodes = dataset().subgraphs.nodes.take(found.rows)
    np.testing.assert_allclose(found.outputs, predictor.outputs(nodes), atol=1e-6)
    assert not np.allclose(found.outputs, found.network.head(found.vectors).detach())
    assert {name: found.result.test[name] for name in found.metrics()} == pytest.approx(found.metrics())


@pytest.mark.parametrize("task", TASKS)
def test_a_page_made_later_equals_the_one_written_by_train(made, task):
    run, data, text = made(task)
    again = run_report(run, data)
    assert [s.one("h2").text for s in read(again).all("section")] == [
        s.one("h2").text for s in read(text).all("section")
    ]
    ours, theirs = (re.findall(r"<td>([^<]*)", page) for page in (again, text))
    assert ours == theirs


def test_training_reads_nothing_back_to_write_its_page(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("read again")

    for name in ("inference.predictor.load_checkpoint", "reports.evaluation.read_result", "reports.evaluation.METRICS"):
        monkeypatch.setattr(f"subgnn.{name}", refuse)
    monkeypatch.setattr("subgnn.inference.predictor.Predictor.outputs", refuse)
    train(dataset(), recipe(2), tmp_path / "run")
    assert (tmp_path / "run" / "report.html").is_file()


def test_the_confusion_matrix_equals_that_of_sklearn(made):
    for task in ("multi-class", "binary"):
        run, data, text = made(task)
        rows = data.subgraphs.indices("test")
        outputs = Predictor(run / CHECKPOINT, data.graph).outputs(data.subgraphs.nodes.take(rows))
        expected = confusion_matrix(
            data.subgraphs.targets[rows], outputs.argmax(1), labels=range(data.subgraphs.num_classes)
        )
        table = read(text).one("table", class_="matrix")
        shown = [[int(td.pieces[0]) for td in row.all("td")][:-1] for row in table.one("tbody").children]
        np.testing.assert_array_equal(shown, expected)
        first = table.one("tbody").children[0].all("small")[0].text
        assert first == f"{expected[0, 0] / expected[0].sum():.0%}"


def test_scores_of_labels_equal_those_of_sklearn(made):
    run, data, text = made("multi-label")
    rows = data.subgraphs.indices("test")
    said = Predictor(run / CHECKPOINT, data.graph).outputs(data.subgraphs.nodes.take(rows)) > 0
    expected = precision_recall_fscore_support(data.subgraphs.targets[rows], said, zero_division=np.nan)
    shown = {row[0]: row[1:] for row in cells(read(text).one("section", id="predictions").one("table"))}
    for i, name in enumerate(data.subgraphs.classes):
        scores = ["-" if np.isnan(column[i]) else f"{column[i]:.3f}" for column in expected[:3]]
        assert shown[name][:4] == [str(expected[3][i]), *scores]


def test_the_cloud_has_every_true_and_predicted_value(made):
    run, data, text = made("regression")
    rows = data.subgraphs.indices("test")
    said = Predictor(run / CHECKPOINT, data.graph).probabilities(data.subgraphs.nodes.take(rows))[:, 0]
    titles = [c.text for c in read(text).one("section", id="predictions").all("circle")]
    expected = zip(rows, data.subgraphs.targets[rows], said, strict=True)
    assert titles == [f"subgraph {row}: true {a:.4g}, predicted {b:.4g}" for row, a, b in expected]


def test_scores_and_the_majority_stand_side_by_side(made):
    run, data, text = made("multi-class")
    results = json.loads((run / RESULTS).read_text())
    shown = {row[0]: row[1:] for row in cells(read(text).one("table", class_="scores"))}
    targets = data.subgraphs.targets
    top = np.bincount(targets[data.subgraphs.indices("train")]).argmax()
    majority = (targets[data.subgraphs.indices("test")] == top).mean()
    assert shown["micro-F1"] == [
        f"{results['val']['micro_f1']:.3f}",
        f"{results['test']['micro_f1']:.3f}",
        f"{majority:.3f}",
    ]
    assert shown["AUROC"][-1] == "0.500"


def test_the_published_number_stands_beside_ours_with_the_gap(tmp_path):
    known = replace(recipe(1), published={"micro_f1": 0.25, "std": 0.01, "source": "Someone <2020> & co"})
    results = train(dataset(), known, tmp_path / "run")
    page = read((tmp_path / "run" / "report.html").read_text())
    assert cells(page.one("table", class_="scores"))[0][-1] == "0.250 ± 0.010"
    assert "Someone <2020> & co" in page.one("section", id="run").text
    assert f"ours {results.test['micro_f1'] - 0.25:+.3f}" in page.one(class_="tiles").text


NASTY = "<script>alert(\"x\")</script> & 'co' </title>"


@pytest.mark.parametrize("task", ["multi-class", "multi-label", "regression"])
def test_names_from_data_stay_text(tmp_path, task):
    data = dataset(task)
    tails, heads, _ = data.graph.edges()
    names = NodeNames.of([f"{NASTY}{i}" for i in range(data.graph.num_nodes)])
    graph = Graph.from_edges(tails, heads, names=names)
    classes = tuple(f"{NASTY}{c}" for c in data.subgraphs.classes)
    named = SubgraphSet.from_lists(
        list(data.subgraphs.nodes), num_nodes=graph.num_nodes, names=[f"{NASTY}\x00"] * len(data.subgraphs)
    )
    subgraphs = replace(data.subgraphs, classes=classes, names=named.names)
    train(Dataset(f"{NASTY}\ud800", graph, subgraphs), replace(recipe(1), name=NASTY), tmp_path / "run")
    assert read_result(tmp_path / "run").dataset == f"{NASTY}\ud800"
    text = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert text.count("<script") == 1
    page = read(text)
    assert page.one("script").text == SCRIPT
    assert page.one("h1").text == f"{NASTY} on {NASTY}\ufffd, seed 0"
    drawn = page.one("section", id="subgraphs")
    assert any(t.text.startswith(NASTY) for t in drawn.all("title"))
    assert all(NASTY in figure.one("strong").text for figure in drawn.all("figure"))


def test_drawings_show_right_and_wrong_answers(made):
    run, data, text = made("multi-class")
    subgraphs = data.subgraphs
    predictor = Predictor(run / CHECKPOINT, data.graph)
    section = read(text).one("section", id="subgraphs")
    assert [h.text for h in section.all("h3")] == ["Correct", "Wrong"]
    figures = section.all("figure")
    assert figures
    for figure in figures:
        words = figure.one("figcaption").text
        row = int(re.search(r"subgraph (\d+)", words)[1])
        scores = predictor.probabilities(subgraphs.nodes.take([row]))[0]
        assert row in subgraphs.indices("test")
        assert f"true: {subgraphs.label_text(row)}" in words
        assert f"predicted: {subgraphs.classes[scores.argmax()]}" in words
        assert f"probability {scores.max():.3f}" in words
        inside = [c for c in figure.all("circle") if c.attributes["class"].startswith("node")]
        assert sorted(int(c.text.split()[1].rstrip(",")) for c in inside) == subgraphs.nodes[row].tolist()


def test_without_a_test_split_the_page_speaks_of_validation(tmp_path):
    data = dataset()
    kept = np.concatenate([data.subgraphs.indices("train"), data.subgraphs.indices("val")])
    train(replace(data, subgraphs=data.subgraphs.take(kept)), recipe(1), tmp_path / "run")
    page = read((tmp_path / "run" / "report.html").read_text())
    assert "no test split" in page.one("section", id="run").text
    assert "on the validation split" in page.one("section", id="predictions").text


def test_a_page_that_cannot_be_written_does_not_lose_the_run(tmp_path, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("no ink")

    monkeypatch.setattr("subgnn.reports.run_report", fail)
    with pytest.warns(DataWarning, match=r"the run is done, but its page .*RuntimeError: no ink.*subgnn report"):
        results = train(dataset(), recipe(1), tmp_path / "run")
    assert read_result(tmp_path / "run") == results
    assert not (tmp_path / "run" / "report.html").exists()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (RESULTS, None, "no finished run; subgnn train writes one; --resume finishes it"),
        (RESULTS, '{"run": ', "run.json: this is not valid JSON, or it is damaged"),
        (RESULTS, "{}", "run.json: the file has no 'run' and no 'dataset'"),
        (METRICS, '{"epoch": 0, "train_loss": 1, "val_loss": 1, "candidate": "x"}', "no epochs of the selected model"),
        (METRICS, None, "metrics.jsonl: the epochs cannot be read"),
        (METRICS, "", "metrics.jsonl: no epochs are recorded"),
        (METRICS, '{"epoch": 0, "train_loss": 1, "val_loss": 1}\n{"epoch"\n', "metrics.jsonl:2: this is not a record"),
        (CHECKPOINT, "x", "checkpoint.safetensors: this is not a subgnn checkpoint"),
    ],
)
def test_an_interrupted_or_damaged_run_is_said(tmp_path, name, content, message):
    data = dataset()
    train(data, recipe(1), tmp_path / "run", report=False)
    (tmp_path / "run" / name).unlink() if content is None else (tmp_path / "run" / name).write_text(content)
    with pytest.raises(DataError) as caught:
        run_report(tmp_path / "run", data)
    assert message in str(caught.value)


def test_another_dataset_is_refused(made):
    run, data, _ = made("multi-class")
    with pytest.raises(DataError, match="not those the run was trained with: 30 labels differ"):
        run_report(run, replace(dataset("binary")))
    with pytest.raises(DataError, match="not the graph that the run was trained on"):
        run_report(run, replace(data, graph=replace(data.graph, known_hash="0" * 64)))


def test_a_run_that_names_no_dataset_asks_for_one(made):
    with pytest.raises(DataError, match="say where it is with data"):
        write_report(made("binary")[0])
