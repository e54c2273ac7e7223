"""Data whose scores mislead: ``train`` says so on stderr, in run.json and on the page, as ``data check`` does."""

from dataclasses import replace

import pytest

import subgnn
from subgnn import DataWarning, SubgraphSet
from subgnn.data.describe import check
from subgnn.data.formats.folder import write_folder
from subgnn.data.splits import split_warnings
from subgnn.data.strings import Strings
from tests.cli.command import call
from tests.training.examples import dataset

PLAIN = dataset()
AUTO = ("--set", 'auto.only=["bag", "topology"]', "--set", "auto.folds=2", "--set", "auto.repeats=1")
EQUAL = "2 subgraphs have the same nodes as one in another split (first: subgraph 28 of test and 0 of train); "
GROUPS = "2 groups have subgraphs in several splits (first: 'g2' in train and val); a model can learn the groups"


def changed(**fields):
    """The example with other labels, equal nodes or groups."""
    rows, labels = [row.tolist() for row in PLAIN.subgraphs.nodes], [PLAIN.subgraphs.label_text(i) for i in range(30)]
    splits = ["train"] * 20 + ["val"] * 5 + ["test"] * 5
    if fields.pop("equal", False):
        rows[28], rows[29] = rows[0], rows[1]
    for row, label in fields.pop("labels", {}).items():
        labels[row] = label
    made = SubgraphSet.from_lists(rows, num_nodes=24, labels=labels, splits=splits, **fields)
    return replace(PLAIN, subgraphs=made)


@pytest.mark.parametrize("options", [("--recipe", "bag"), AUTO], ids=["recipe", "auto"])
def test_train_tells_what_check_tells(tmp_path, options):
    write_folder(changed(equal=True, labels={27: "new"}), tmp_path / "data")
    splits = "test" if options is AUTO else "val or test"
    unseen = f"1 subgraph in {splits} has a label that no training subgraph has: 'new' (1); it cannot be learned"
    called = call("train", tmp_path / "data", *options, "--out", tmp_path / "run", "--json")
    assert called.code == 0
    single = "1 class has one subgraph ('new'); it cannot be both learned and tested"
    said = [f"{EQUAL}a model can memorise their labels", unseen, single]
    assert called.err.splitlines() == [f"warning: {line}" for line in said]
    found = called.json["warnings"]
    assert found == [line.removeprefix("warning: ") for line in called.err.splitlines()]
    page = (tmp_path / "run" / "report.html").read_text()
    assert page.count('<p class="warn">') == 3
    assert "2 subgraphs have the same nodes as one in another split" in page
    told = [problem.what for problem in check(tmp_path / "data")[0].warnings]
    assert [line.partition("; ")[0] for line in found[:1]] == told[-3:-2]
    assert "1 subgraph in val or test has a label that no training subgraph has: 'new' (1)" in told


def test_groups_in_several_splits():
    groups = ["g0", "g1"] * 2 + ["a"] * 16 + ["g1"] + ["b"] * 4 + ["g0", "g1"] + ["c"] * 3
    with pytest.warns(DataWarning, match=r"2 groups have subgraphs in several splits \(first: 'g1' in train and val\)"):
        run = subgnn.train(changed(groups=groups), recipe="bag", device="cpu")
    assert len(run.result.warnings) == 1
    first = replace(PLAIN.subgraphs, groups=Strings.of(["g1"] * 19 + ["g2"] * 2 + ["g1"] * 9))
    assert ["; ".join(pair) for pair in split_warnings(first)] == [f"{GROUPS} instead"]


def test_a_dataset_without_such_problems_has_no_warnings(tmp_path):
    assert split_warnings(PLAIN.subgraphs) == split_warnings(replace(PLAIN.subgraphs, splits=None)) == []
    write_folder(PLAIN, tmp_path / "data")
    called = call("train", tmp_path / "data", "--recipe", "bag", "--out", tmp_path / "run", "--json")
    assert (called.err, "warnings" in called.json) == ("", False)


def test_classes_that_only_val_has_are_learned_by_a_portfolio():
    given = changed(labels={21: "new"}).subgraphs
    assert "no training subgraph has" in split_warnings(given)[0][0]
    assert split_warnings(given, ("train", "val")) == []


@pytest.mark.parametrize("task", ["multi-class", "multi-label", "regression"])
@pytest.mark.parametrize("without", ["splits", "test"])
def test_without_a_test_split_the_page_shows_what_was_predicted_out_of_fold(tmp_path, task, without):
    data = dataset(task)
    splits = None if without == "splits" else data.subgraphs.splits % 2
    data = replace(data, subgraphs=replace(data.subgraphs, splits=splits))
    settings = {"auto.only": ["bag", "topology"], "auto.folds": 2, "auto.repeats": 2}
    run = subgnn.train(data, tmp_path / "run", settings=settings, device="cpu")
    page = run.report.read_text()
    assert "this page is about out-of-fold predictions, each by models that had not seen the subgraph" in page
    assert "on the held-out folds" in page
    assert "validation split" not in page
    assert ("30, without splits" in page) == (without == "splits")
    assert run.result.test == {}
    assert call("report", tmp_path / "run").code == 0


def test_few_subgraphs_of_a_rare_class_in_test():
    labels = ["fraud" if i in (0, 1, 2, 27) else "other" for i in range(30)]
    given = changed(labels=dict(enumerate(labels)))
    settings = {"training.select_by": "auprc"}
    with pytest.warns(DataWarning, match=r"^test has 1 'fraud' subgraph; its scores say little$"):
        run = subgnn.train(given, recipe="bag", settings=settings, device="cpu")
    assert run.result.warnings[-1].startswith("test has 1 'fraud' subgraph;")
    assert not subgnn.train(
        given, recipe="bag", settings={"training.select_by": "accuracy"}, device="cpu"
    ).result.warnings
