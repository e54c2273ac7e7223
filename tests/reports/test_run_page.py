"""Pages of runs of every task: whole, closed in themselves, and true to the run."""

import base64
import hashlib
import re
from dataclasses import replace
from importlib.resources import files

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix

from subgnn import Dataset, SubgraphSet
from subgnn.api.train_recipe import train
from subgnn.data.graph import Graph
from subgnn.data.layout import lay_out
from subgnn.data.strings import NodeNames
from subgnn.errors import DataError, DataWarning
from subgnn.inference.predictor import Predictor
from subgnn.models.recipes import find_recipe
from subgnn.reports.drawing import drawing_values
from subgnn.reports.run_page import run_report, write_report
from subgnn.result import RESULTS, read_result
from subgnn.task import metric_name
from subgnn.training.run_dir import CHECKPOINT, METRICS
from tests.training.examples import dataset, recipe

from .reading import Element, drawn, read

TASKS = ["multi-class", "binary", "multi-label", "regression"]
SECTIONS = ["run", "curves", "predictions", "table", "subgraphs", "calibration", "reproduce"]
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


@pytest.mark.filterwarnings("ignore:test has")
@pytest.mark.parametrize("select_by", ["auprc", "macro_f1"])
def test_a_page_and_its_table_lead_with_the_metric_of_selection(tmp_path, select_by):
    chosen = find_recipe("bag", (f"training.select_by={select_by}",))
    result = train(dataset("binary"), chosen, tmp_path / "run", device="cpu")
    overview = read((tmp_path / "run" / "report.html").read_text(encoding="utf-8")).one("section", id="run")
    word = metric_name(select_by)
    assert f"test {word}{result.test[select_by]:.3f}" in overview.text
    assert ("ranking at random" in overview.text) == (select_by == "auprc")
    assert cells(overview.one("table"))[0][0] == word
    assert next(iter(result.test)) == select_by


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


@pytest.mark.parametrize("task", TASKS)
def test_a_page_made_later_equals_the_one_written_by_train(made, task):
    run, data, text = made(task)
    again = run_report(run, data)
    assert [s.one("h2").text for s in read(again).all("section")] == [
        s.one("h2").text for s in read(text).all("section")
    ]
    ours, theirs = (re.findall(r"<td>([^<]*)", page) for page in (again, text))
    assert ours == theirs


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
    examples = page.one("section", id="subgraphs")
    assert any(t.text.startswith(NASTY) for t in examples.all("title"))
    assert all(NASTY in figure.one("strong").text for figure in examples.all("figure"))


def test_a_page_that_cannot_be_written_does_not_lose_the_run(tmp_path, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("no ink")

    monkeypatch.setattr("subgnn.api.train_recipe.run_report", fail)
    with pytest.warns(DataWarning, match=r"the run is done, but its page .*RuntimeError: no ink.*subgnn report"):
        results = train(dataset(), recipe(1), tmp_path / "run")
    assert read_result(tmp_path / "run") == results
    assert not (tmp_path / "run" / "report.html").exists()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (RESULTS, None, "no finished run; subgnn train writes one, and continues an interrupted one"),
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


def test_a_large_dense_subgraph_is_thinned_out_and_says_so():
    tails, heads = np.triu_indices(400, 1)
    graph = Graph.from_edges(tails, heads)
    values = drawing_values(graph, lay_out(graph, np.arange(300)), "large")
    made = drawn("subgraph.html", "drawing", values)
    assert len(made) < 40_000
    assert "300 nodes, 1 component, 100 border nodes; 200 of the nodes are drawn; 60 of the border" in made
    assert len(read(made).all("circle")) == 260
