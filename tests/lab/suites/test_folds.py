"""The protocol folds: every subgraph is predicted once, and models are compared subgraph by subgraph."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from subgnn import SubgraphSet
from subgnn.errors import DataError
from subgnn.lab.suites.comparison import compare_predictions, read_predictions
from subgnn.lab.suites.spec import FOLDS, with_split
from tests.lab.suites.examples import MODELS, folder, run, tiny
from tests.training.examples import dataset

PARTS = ("train", "val", "test")


def parts(data, seed):
    subgraphs = with_split(data, "folds", seed).subgraphs
    return {name: set(subgraphs.indices(name).tolist()) for name in PARTS}


def test_ten_seeds_test_every_subgraph_once():
    data = dataset()
    drawn = [parts(data, seed) for seed in range(2 * FOLDS)]
    for draw in (drawn[:FOLDS], drawn[FOLDS:]):
        assert sorted(i for one in draw for i in one["test"]) == list(range(len(data.subgraphs)))
        for one, following in zip(draw, [*draw[1:], draw[0]], strict=True):
            assert one["val"] == following["test"]
            assert sum(map(len, one.values())) == len(data.subgraphs)
    assert drawn[0]["test"] != drawn[FOLDS]["test"]


def test_groups_and_equal_nodes_share_a_fold():
    nodes = [[i % 12] for i in range(30)]
    groups = [f"g{min(i, 25)}" for i in range(30)]
    labels = ["a" if i % 3 else "b" for i in range(30)]
    data = dataset()
    subgraphs = SubgraphSet.from_lists(nodes, num_nodes=data.graph.num_nodes, labels=labels, groups=groups)
    with pytest.raises(DataError, match="30 subgraphs are too few for 10 folds; subgraphs of one group or with equal"):
        with_split(replace(data, subgraphs=subgraphs), "folds", 0)
    apart = SubgraphSet.from_lists(
        [[i, (i + 1) % 24] for i in range(24)] + [[0, 1]],
        num_nodes=24,
        labels=labels[:25],
        groups=[f"g{i // 2}" for i in range(25)],
    )
    for split in ("folds", "random"):
        splits = np.asarray(with_split(replace(data, subgraphs=apart), split, 3).subgraphs.splits)
        assert (splits[0:24:2] == splits[1:24:2]).all()
        assert splits[0] == splits[24]


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    parent = tmp_path_factory.mktemp("folds")
    suite = tiny(protocol={"split": "folds", "seeds": FOLDS}, models=[MODELS[1], MODELS[0]], compare=["bag"])
    data = folder(parent)
    return suite, data, parent / "out", run(suite, data, parent / "out", seeds=FOLDS)


def test_the_score_is_that_of_all_predictions(ran):
    _, _, out, found = ran
    correct = {}
    for path in (out / "runs").iterdir():
        label = json.loads((path / "outcome.json").read_text())["models"][0]
        right = correct.setdefault(label, {})
        with np.load(path / "answers.npz") as kept:
            for i, scores, target in zip(kept["rows"], kept["probabilities"], kept["targets"], strict=True):
                assert int(i) not in right
                right[int(i)] = int(scores.argmax() == target)
    for row in found["rows"]:
        right = correct[row["model"]]
        assert (row["protocol"], row["n"], row["tested"], len(right)) == ("folds", 10, 30, 30)
        share = np.mean(list(right.values()))
        assert row["micro_f1"]["mean"] == pytest.approx(share, abs=1e-4)
        near = (30 * share + 2) / 34
        assert row["error"] == pytest.approx(1.96 * np.sqrt(near * (1 - near) / 34), abs=1e-3)
    (entry,) = found["pairs"]
    ours, bag = (np.array([correct[name][i] for i in range(30)]) for name in ("SubGNN", "bag"))
    won, lost = (int((sign * (ours - bag) > 0).sum()) for sign in (1, -1))
    assert (entry["model"], entry["against"], entry["n"]) == ("SubGNN", "bag", 30)
    assert entry["lead"] == pytest.approx((won - lost) / 30)
    exact = min(1.0, 2 * binom.cdf(min(won, lost), won + lost, 0.5)) if won + lost else 1.0
    assert entry["p"] == pytest.approx(exact)  # McNemar's test


def predictions(tmp_path, name, correct, units=None, split="stored"):
    """Runs by seed with a stored split; which predictions are correct is given."""
    runs = []
    for seed, answers in enumerate(correct):
        path = tmp_path / name / str(seed)
        path.mkdir(parents=True)
        targets = np.zeros(len(answers), np.int64)
        probabilities = np.array([[0.9, 0.1] if right else [0.2, 0.8] for right in answers])
        kept = {"rows": np.arange(len(answers)), "probabilities": probabilities, "targets": targets}
        np.savez(path / "answers.npz", **kept, **({} if units is None else {"units": np.array(units)}))
        runs.append({"seed": seed, "split": split, "task": "multi-class", "folder": path})
    return read_predictions(runs)


def test_a_stored_split_is_compared_over_subgraphs(tmp_path):
    ours = predictions(tmp_path, "ours", [[1, 1, 1, 0], [1, 1, 0, 0]])
    theirs = predictions(tmp_path, "theirs", [[1, 0, 0, 0], [1, 0, 0, 0]])
    assert ours.terms.gain.tolist() == [1, 1, 0.5, 0]
    found, turned = compare_predictions(ours, theirs), compare_predictions(theirs, ours)
    assert (found["n"], found["lead"]) == (4, pytest.approx(0.375))
    assert found["p"] == pytest.approx(0.5, abs=0.02)  # of four swaps one is as large, on each side
    assert (turned["lead"], turned["p"]) == (pytest.approx(-0.375), found["p"])
    assert predictions(tmp_path, "drawn", [[1, 0]], split="random") is None


def test_subgraphs_of_one_group_are_swapped_together(tmp_path):
    pair = [("ours", [1] * 8), ("theirs", [0] * 8)]
    alone = compare_predictions(*(predictions(tmp_path / "a", n, [c]) for n, c in pair))
    units = [7, 7, 7, 7, 2, 2, 2, 2]
    together = compare_predictions(*(predictions(tmp_path / "b", n, [c], units) for n, c in pair))
    assert (alone["n"], together["n"], alone["lead"], together["lead"]) == (8, 8, 1.0, 1.0)
    assert alone["p"] == pytest.approx(2 / 2**8)
    assert together["p"] == pytest.approx(2 / 2**2, abs=0.02)


def test_thresholds_count_and_damaged_answers_do_not(tmp_path):
    path = tmp_path / "answers.npz"
    kept = {
        "rows": np.arange(2),
        "probabilities": np.array([[0.4, 0.4], [0.2, 0.9]]),
        "targets": np.array([[1, 0], [0, 1]]),
    }
    np.savez(path, **kept, thresholds=np.array([0.3, 0.5]))
    runs = [{"seed": 0, "split": "stored", "task": "multi-label", "folder": tmp_path}]
    assert read_predictions(runs).terms.score == 1.0
    content = path.read_bytes()
    for damaged in (content[: len(content) // 2], content[:40] + bytes(40) + content[80:], b"", b"text"):
        path.write_bytes(damaged)
        assert read_predictions(runs) is None
