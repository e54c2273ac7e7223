"""Train, load and use a run in Python."""

import pickle
import sys
import tempfile
from dataclasses import fields, replace
from inspect import signature
from types import ModuleType
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import rich.console
from typer.main import get_command

import subgnn
from subgnn import Dataset, DataWarning, NodeNames, Ragged, SubgraphSet
from subgnn.api import progress
from subgnn.api import run as run_module
from subgnn.api.inputs import as_recipe
from subgnn.cli.app import app
from subgnn.errors import DataError, UserError
from subgnn.inference.explanation import Explanation
from subgnn.training.options import TrainOptions
from tests.training.examples import dataset

PLAIN = dataset()
DATA = replace(PLAIN, graph=replace(PLAIN.graph, names=NodeNames.of(f"n{i}" for i in range(24))))
SETS = {"one": ["n0", "n1", "n2"], "two": ["n9", "n10"]}
CLASSES = ["clique0", "clique1", "clique2"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return subgnn.train(DATA, tmp_path_factory.mktemp("api") / "run", recipe="bag", device="cpu")


@pytest.fixture(scope="module")
def portfolio():
    return subgnn.train(DATA, settings={"auto.only": ["bag", "profiles"]}, device="cpu")


def same(one, other):
    pd.testing.assert_frame_equal(one[CLASSES], other[CLASSES], check_exact=True)


def test_python_and_the_command_line_have_the_same_options_of_training():
    shown = signature(subgnn.train).parameters
    typed = {parameter.name for parameter in get_command(app).commands["train"].params}
    for field in fields(TrainOptions):
        assert field.name in typed
        assert shown[field.name].default == field.default
        assert f"        {field.name}: " in subgnn.train.__doc__
    with pytest.raises(UserError, match=r"unknown option 'sead'; accepted: .*; did you mean 'seed'\?"):
        subgnn.train(DATA, sead=3)


def test_predictions_are_a_data_frame(run):
    found = run.predict(SETS)
    assert list(found) == ["name", "label", "probability", *CLASSES, "novelty", "nodes", "known", "new", "members"]
    assert list(found["name"]) == ["one", "two"]
    assert list(found["members"]) == ["n0-n1-n2", "n9-n10"]
    assert list(found["label"]) == ["clique0", "clique1"]
    np.testing.assert_allclose(found[CLASSES].sum(axis=1), 1, atol=1e-5)
    assert list(run.predict(SETS, top=1, members=False)) == [
        *("name", "label", "probability", "class_1", "probability_1", "novelty", "nodes", "known", "new")
    ]


def test_subgraphs_of_every_kind_are_predicted_alike(run, tmp_path):
    expected = run.predict(SETS)
    rows = [run.graph.row_of(node) for nodes in SETS.values() for node in nodes]
    long = pd.DataFrame({"subgraph": ["one"] * 3 + ["two"] * 2, "node": [n for nodes in SETS.values() for n in nodes]})
    wide = pd.DataFrame({"subgraph": list(SETS), "node": list(SETS.values()), "group": ["x", "y"]})
    long.to_csv(tmp_path / "long.csv", index=False)
    lists, as_rows = list(SETS.values()), [rows[:3], rows[3:]]
    subgraphs, path = SubgraphSet.from_lists(as_rows, num_nodes=24), tmp_path / "long.csv"
    objects = np.array([np.array(nodes) for nodes in lists], object)
    kinds = (lists, list(map(set, lists)), objects, pd.Series(lists), Ragged.from_rows(as_rows), subgraphs)
    for given in (*kinds, list(subgraphs), long, wide, pa.table(long), path, str(path)):
        same(run.predict(given), expected)
    assert list(run.predict(wide)["group"]) == ["x", "y"]
    named = SubgraphSet.from_lists([rows[:3]], num_nodes=24, names=["mine"])
    assert run.predict(named)["name"].tolist() == ["mine"]


def test_pandas_objects_name_their_subgraphs(run):
    lists = pd.Series(list(SETS.values()), index=list(SETS))
    wide = pd.DataFrame({"nodes": list(SETS.values())}, index=list(SETS))
    for given in (lists, wide, lists.to_dict()):
        found = run.predict(given)
        assert found["name"].tolist() == ["one", "two"]
        same(found, run.predict(SETS))
    assert run.embed(lists).index.tolist() == ["one", "two"]
    assert run.predict(lists.reset_index(drop=True)[1:])["name"].tolist() == ["1"]
    for given in (lists, wide):
        assert run.predict(given.reset_index(drop=True))["name"].tolist() == ["0", "1"]
    own = wide.assign(subgraph=["mine", "yours"])
    assert run.predict(own)["name"].tolist() == ["mine", "yours"]


def test_unknown_nodes(run):
    with pytest.raises(DataError, match="subgraphs: node 'n99' is not in the graph"):
        run.predict([["n0", "n99"]])
    with pytest.warns(DataWarning, match="node 'n99' is not in the graph"):
        found = run.predict([["n0", "n99"], ["n99"]], unknown="drop")
    same(found[:1], run.predict([["n0"]]))
    assert found["dropped"].tolist() == ["n99", "n99"]
    assert found["label"].isna().tolist() == [False, True]
    with pytest.raises(
        DataError, match=r"row 1: a single node \('n0'\) is not a subgraph; .*write one subgraph as \[\[...\]\]"
    ):
        run.predict(["n0", "n1"])
    with pytest.raises(DataError, match="node 24 is not in the graph"):
        run.predict(Ragged.from_rows([[24]]))


def test_vectors_and_explanations(run):
    vectors = run.embed(SETS)
    assert vectors.index.tolist() == ["one", "two"]
    np.testing.assert_array_equal(vectors, run.predictor.embeddings(run.predictor.rows([[0, 1, 2], [9, 10]])))
    why = run.explain(SETS)
    assert [type(one) for one in why] == [Explanation, Explanation]
    assert why[0].names == ("n0", "n1", "n2")


def test_evaluate(run):
    assert run.evaluate() == pytest.approx(run.result.test)
    # Labelled subgraphs may have some of the classes only.
    first = SubgraphSet.from_lists([[0, 1, 2], [8, 9]], num_nodes=24, labels=["clique0", "clique1"])
    assert run.evaluate(first)["accuracy"] == 1
    with pytest.raises(DataError, match="different labels from the run: 'x'"):
        run.evaluate(SubgraphSet.from_lists([[0], [1]], num_nodes=24, labels=["x", "clique1"]))
    with pytest.raises(DataError, match="they are regression"):
        run.evaluate(SubgraphSet.from_lists([[0], [1]], num_nodes=24, labels=[0.5, 1.5]))


@pytest.mark.parametrize("task", ["multi-label", "regression"])
def test_other_tasks(task):
    made = subgnn.train(dataset(task), recipe="bag", device="cpu")
    assert made.evaluate() == pytest.approx(made.result.test)
    found = made.predict([[0, 1, 2]])
    assert list(found)[:-5] == ["name", "label", *(["probability", *made.classes] if made.classes else ["value"])]
    if task == "multi-label":
        some = SubgraphSet.from_lists([[8, 9], [16, 17]], num_nodes=24, labels=[["late"], ["late"]])
        assert 0 <= made.evaluate(some)["micro_f1"] <= 1


def test_loaded_and_exported_runs_predict_alike(run, tmp_path):
    expected = run.predict(SETS)
    loaded = subgnn.load(run.path)
    same(loaded.predict(SETS), expected)
    same(subgnn.load(str(run.path), DATA).predict(SETS), expected)
    assert loaded.evaluate("val") == run.evaluate("val")
    exported = subgnn.load(run.export(tmp_path / "run.safetensors"))
    pd.testing.assert_frame_equal(exported.predict(SETS, coverage=0.5), run.predict(SETS, coverage=0.5))
    with pytest.raises(DataError, match="holds no subgraphs to score; give the dataset"):
        exported.evaluate()
    with pytest.raises(UserError, match="an exported run has no page"):
        _ = exported.report
    assert subgnn.load(exported.path, DATA).evaluate() == run.evaluate()
    same(pickle.loads(pickle.dumps(run)).predict(SETS), expected)


def test_a_run_without_a_folder_is_removed_with_it():
    made = subgnn.train(PLAIN, recipe="bag", device="cpu")
    folder = made.path
    assert not (folder / "report.html").exists()
    assert made.report == folder / "report.html"
    assert made.report.is_file()
    assert not (folder / "dataset.subgnn").exists()
    del made
    assert not folder.parent.exists()


def test_a_training_that_fails_leaves_no_folder(monkeypatch, tmp_path):
    monkeypatch.setattr(run_module, "mkdtemp", lambda prefix: tempfile.mkdtemp(prefix, dir=tmp_path))
    with pytest.raises(DataError, match="the subgraphs have no labels"):
        subgnn.train(replace(PLAIN, subgraphs=replace(PLAIN.subgraphs, targets=None)), recipe="bag", device="cpu")
    assert not list(tmp_path.iterdir())


def test_leaderboard(portfolio, run):
    board = portfolio.leaderboard
    assert {"bag", "profiles"} <= set(board["name"])
    assert {"score", "low", "high", "seconds", "weight"} <= set(board)
    assert "chosen" in portfolio._repr_html_()
    with pytest.raises(UserError, match="leaderboard: this run trained a single recipe"):
        _ = run.leaderboard


def texts(html):
    """The texts of a fragment whose tags are all closed."""
    return {text for node in ElementTree.fromstring(f"<div>{html}</div>").iter() for text in node.itertext()}


def test_what_a_notebook_shows(run):
    assert repr(run) == f"Run(bag on cliques, test micro-F1 {run.result.test['micro_f1']:.3f}, path={str(run.path)!r})"
    assert {"bag on cliques", "multi-class", str(run.path)} <= texts(run._repr_html_())
    assert repr(DATA).startswith("Dataset('cliques', Graph(24 nodes, 87 edges, named), SubgraphSet(30 subgraphs,")
    nasty = Dataset("<b>", DATA.graph, DATA.subgraphs, {"note": "<script>"})
    assert {"<b>", "<script>", "24 nodes, 87 edges, named"} <= texts(nasty._repr_html_())
    assert run.draw(["n0", "n1"])._repr_svg_().startswith("<svg")
    assert "pushes" in run.draw(DATA.subgraphs[0], explain=True)._repr_svg_()


def test_recipes_and_settings(tmp_path):
    settings = {"model.head": [8, 4], "training.class_weights": True, "embeddings.source": "random"}
    found = as_recipe("subgnn", settings)
    assert (found.model.head, found.training.class_weights, found.embeddings.source) == ((8, 4), True, "random")
    assert as_recipe(found) is found
    assert as_recipe("auto", {"auto.only": ["bag"]}).auto.only == ("bag",)
    (tmp_path / "mine.toml").write_text('method = "bag"\n')
    assert as_recipe(tmp_path / "mine.toml").method == "bag"
    with pytest.raises(UserError, match="settings: settings cannot be combined with a Recipe"):
        as_recipe(found, settings)


def test_a_path_in_place_of_a_dataset(tmp_path):
    subgnn.write_folder(DATA, tmp_path / "data")
    made = subgnn.train(tmp_path / "data", tmp_path / "run", recipe="bag", device="cpu", report=False)
    assert made.result.source == str((tmp_path / "data").resolve())
    assert subgnn.load(tmp_path / "run").evaluate() == made.evaluate()


def test_read_tables():
    edges = pd.DataFrame({"a": ["x", "y", "z"], "b": ["y", "z", "w"], "cost": [1.0, 2.0, 0.5]})
    rows = ["p x k1 train", "p y k1 train", "q z k2 val", "r w k2 test", "r ? k2 test"]
    members = pd.DataFrame(map(str.split, rows), columns=["pathway", "who", "kind", "part"])
    columns = {"subgraph_column": "pathway", "node_column": "who", "label_column": "kind", "split_column": "part"}
    with pytest.warns(DataWarning, match=r"'\?' is not in the graph"):
        found = subgnn.read_tables(edges, members, **columns, source="a", target="b", weight="cost", unknown="drop")
    assert repr(found.graph) == "Graph(4 nodes, 3 edges, weighted, named)"
    assert list(found.subgraphs.names) == ["p", "q", "r"]
    assert found.subgraphs.classes == ("k1", "k2")
    assert [len(found.subgraphs.indices(split)) for split in ("train", "val", "test")] == [1, 1, 1]
    with pytest.raises(DataError, match=r"which column holds the nodes.*node_column='who'"):
        subgnn.read_tables(DATA.graph, members[["pathway", "who"]])
    nodes = pd.DataFrame({"node": list("wxyz"), "size": [1.0, 2.0, 3.0, 4.0]})
    with pytest.warns(DataWarning):
        described = subgnn.read_tables(edges, members[:4], nodes=nodes, **columns | {"split_column": None})
    assert described.graph.features.shape == (4, 1)


def test_a_table_with_views_of_text():
    """As polars gives it."""
    view = pa.string_view()
    labels = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0]), pa.array(["k", "l"], view))
    columns = {
        "subgraph": pa.array(["s", "t", "u"], view),
        "node": pa.array([["n0"], ["n1", "n2"], ["n3"]], pa.large_list(view)),
        "label": labels,
        "split": pa.array(["train", "val", "test"], view),
    }
    found = subgnn.read_tables(DATA.graph, pa.table(columns))
    assert [nodes.tolist() for nodes in found.subgraphs.nodes] == [[0], [1, 2], [3]]
    assert found.subgraphs.targets.tolist() == [0, 1, 0]
    assert list(found.subgraphs.names) == ["s", "t", "u"]


def test_progress_in_a_notebook(monkeypatch, capsys):
    """As rich draws it: an output of ipywidgets that is shown once and filled again and again."""
    shown, printed = [], []

    class Output:
        def clear_output(self, wait):
            assert wait

        def __enter__(self):
            printed.append(True)

        def __exit__(self, *_):
            return None

    modules = {"IPython": ModuleType("IPython"), "IPython.display": ModuleType("IPython.display")}
    modules["IPython.display"].display = lambda *given, **_: shown.extend(given)
    modules["ipywidgets"] = ModuleType("ipywidgets")
    modules["ipywidgets"].Output = Output
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(progress, "find_spec", lambda _: True)
    monkeypatch.setattr(rich.console, "_is_jupyter", lambda: True)
    subgnn.train(PLAIN, recipe="structure", settings={"training.epochs": 2}, device="cpu", report=False)
    assert any(isinstance(one, Output) for one in shown)
    assert printed
    shown.clear()
    subgnn.train(PLAIN, recipe="bag", device="cpu", report=False, progress=False)
    assert not shown
    monkeypatch.setattr(progress, "find_spec", lambda _: None)
    subgnn.train(PLAIN, recipe="bag", device="cpu", report=False)
    assert not shown
    assert not capsys.readouterr().out
