"""A run is of one graph with its names, and of one set of subgraphs with their labels and splits."""

from dataclasses import replace

import numpy as np
import pytest

import subgnn
from subgnn import DataError, NodeNames, Ragged
from subgnn.data.formats.bundle import write_bundle
from subgnn.data.formats.folder import write_folder
from subgnn.data.splits import split_subgraphs
from subgnn.data.strings import Strings
from subgnn.data.subgraphs import changes, subgraph_keys
from subgnn.errors import DataWarning
from tests.cli.command import call
from tests.training.examples import dataset

NAMES = [f"n{i}" for i in range(24)]
PERMUTED = [NAMES[(7 * i + 3) % 24] for i in range(24)]
PLAIN = dataset()
AUTO = {"auto.only": ["bag", "topology"], "auto.folds": 2, "auto.repeats": 1}


def called(names):
    return replace(PLAIN, graph=replace(PLAIN.graph, names=None if names is None else NodeNames.of(names)))


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("identity")
    run = subgnn.train(called(NAMES), folder / "run", recipe="bag", device="cpu")
    run.export(folder / "bare.export", with_graph=False)
    run.export(folder / "whole.export")
    return folder


@pytest.mark.parametrize("of", ["run", "bare.export", "whole.export"])
@pytest.mark.parametrize("names", [PERMUTED, None])
def test_a_graph_with_other_names_is_refused(trained, of, names):
    with pytest.raises(DataError, match="graph: the names of the nodes differ from those the run was trained with"):
        subgnn.load(trained / of, called(names))
    subgnn.load(trained / of, called(NAMES))


def test_names_where_the_run_has_none(tmp_path):
    subgnn.train(PLAIN, tmp_path / "run", recipe="bag", device="cpu")
    with pytest.raises(DataError, match=r"names of the nodes differ .*\(the run has none\)"):
        subgnn.load(tmp_path / "run", called(NAMES))


@pytest.mark.parametrize("suffix", ["", ".subgnn"])
def test_names_that_change_in_the_dataset_of_a_run_stop_its_predictions(tmp_path, suffix):
    path = tmp_path / f"data{suffix}"
    write = write_bundle if suffix else write_folder
    write(called(NAMES), path)
    assert call("train", path, "--recipe", "bag", "--out", tmp_path / "run").code == 0
    assert call("export", tmp_path / "run", "--out", tmp_path / "it").code == 0
    (tmp_path / "new.tsv").write_text("n0-n1-n2\n")
    words = ("--data", path, "--subgraphs", tmp_path / "new.tsv", "--out", tmp_path / "out.tsv")
    assert call("predict", tmp_path / "it", *words).code == 0
    write(called(PERMUTED), path, overwrite=True)
    for run in ("run", "it"):
        found = call("predict", tmp_path / run, *words, "--force")
        assert (found.code, "the names of the nodes differ" in found.error) == (2, True)


def test_names_are_hashed_by_what_finds_a_node(monkeypatch, tmp_path):
    one = NodeNames({"symbol": Strings.of(["ab", "c"]), "id": Strings.of(["1", "2"])})
    assert NodeNames(one.columns, shown="id").content_hash == one.content_hash
    retitled = NodeNames(dict(zip(("x", "y"), one.columns.values(), strict=True)))
    assert retitled.content_hash == one.content_hash
    for other in (["a", "bc"], ["ab", "c", ""], ["c", "ab"]):
        assert NodeNames.of(other).content_hash != NodeNames.of(["ab", "c"]).content_hash
    assert NodeNames(one.columns, primary="id").content_hash != one.content_hash
    # Of a bundle, the hash is in the header.
    write_bundle(called(NAMES), tmp_path / "it.subgnn")
    found, expected = subgnn.read_dataset(tmp_path / "it.subgnn").graph, NodeNames.of(NAMES).content_hash
    monkeypatch.setattr(NodeNames, "compute_hash", lambda _: "computed")
    assert found.names_hash == expected


def test_evaluate_refuses_other_splits_labels_and_nodes(trained):
    data = called(NAMES)
    given, rng = data.subgraphs, np.random.default_rng(0)
    split = split_subgraphs(replace(given, splits=None), method="random", seed=3)
    moved = int((split.splits != given.splits).sum())
    others = Ragged.from_rows([*list(given.nodes)[:29], [0, 9]])
    labels = replace(given, targets=np.where(np.arange(30) < 2, (given.targets + 1) % 3, given.targets))
    expected = {
        f"{moved} splits differ": split,
        "2 labels differ": labels,
        "1 node set is gone, 1 node set is new": replace(given, nodes=others),
        "3 node sets are gone": given.take(np.arange(27)),
    }
    for words, subgraphs in expected.items():
        for path in (trained / "run", trained / "bare.export"):
            with pytest.warns(DataWarning, match=f"{words}; the model is as it was; train again"):
                run = subgnn.load(path, replace(data, subgraphs=subgraphs))
            with pytest.raises(DataError, match=f"not those the run was trained with: {words};"):
                run.evaluate("test")
    # The order of subgraphs and of classes does not matter, nor do further subgraphs that are given as such.
    order = rng.permutation(30)
    turned = replace(given, classes=given.classes[::-1], targets=(2 - given.targets).astype(np.int32)).take(order)
    expected = subgnn.load(trained / "run").evaluate("test")
    assert subgnn.load(trained / "run", replace(data, subgraphs=turned)).evaluate("test") == pytest.approx(expected)
    with pytest.warns(DataWarning, match="splits differ"):
        run = subgnn.load(trained / "run", replace(data, subgraphs=split))
    assert run.evaluate(labels)["accuracy"] > 0


@pytest.mark.parametrize("task", ["multi-class", "binary", "multi-label", "regression"])
def test_keys_see_every_kind_of_label(task):
    given = dataset(task).subgraphs
    assert changes(subgraph_keys(given), subgraph_keys(given)) == []
    other = given.targets.copy()
    other[4] = 1 - other[4] if task in ("binary", "multi-label") else other[4] - 1
    assert changes(subgraph_keys(given), subgraph_keys(replace(given, targets=other))) == ["1 label differs"]
    assert changes(subgraph_keys(given), subgraph_keys(replace(given, splits=None))) == ["30 splits differ"]


def test_a_new_split_of_the_same_folder(tmp_path):
    write_folder(PLAIN, tmp_path / "data")
    assert call("train", tmp_path / "data", "--recipe", "bag", "--out", tmp_path / "run").code == 0
    split = split_subgraphs(replace(PLAIN.subgraphs, splits=None), method="random", seed=3)
    write_folder(replace(PLAIN, subgraphs=split), tmp_path / "data", overwrite=True)
    found = call("evaluate", tmp_path / "run")
    assert (found.code, found.out) == (2, "")
    assert "splits differ; give the dataset as it was, or train again" in found.error
    assert "splits differ" in call("report", tmp_path / "run").error
    (tmp_path / "new.tsv").write_text("0-1\n")
    for verb, suffix in {"predict": "tsv", "embed": "npy", "explain": "json", "search": "tsv", "draw": "svg"}.items():
        out = tmp_path / f"{verb}.{suffix}"
        found = call(verb, tmp_path / "run", "--subgraphs", tmp_path / "new.tsv", "--out", out)
        assert (found.code, "splits differ; the model is as it was" in found.error) == (0, True)
    again = call("train", tmp_path / "data", "--recipe", "bag", "--out", tmp_path / "run", "--resume")
    assert (again.code, "splits differ; continue with those" in again.error) == (2, True)


def test_val_of_a_run_that_was_fitted_to_it_is_scored_out_of_fold(tmp_path):
    write_folder(PLAIN, tmp_path / "data")
    run = subgnn.train(tmp_path / "data", tmp_path / "run", settings=AUTO, device="cpu")
    assert run.result.fitted_to == ("train", "val")
    with pytest.warns(DataWarning, match="the run was fitted to val; its out-of-fold scores are given instead"):
        assert run.evaluate("val") == run.result.val
    found = call("evaluate", tmp_path / "run", "--split", "val", "--json")
    assert "fitted to val" in found.error
    assert found.json["val"] == pytest.approx(run.result.val)
    shown = call("evaluate", tmp_path / "run").out
    assert "out of fold" in shown
    assert " val " not in shown
    apart = subgnn.train(PLAIN, settings=AUTO | {"auto.fit_on": "train"}, device="cpu")
    assert apart.result.fitted_to == ("train",)
    assert 0 <= apart.evaluate("val")["micro_f1"] <= 1
