"""The studies: ablation, sensitivity and generalisation, and the numbers behind their figures."""

from __future__ import annotations

import json

import numpy as np
import pytest

from subgnn.lab.suites.job import node_overlap
from subgnn.lab.suites.results import Group, overlap_bins, reliability
from subgnn.ragged import Ragged
from tests.lab.suites.examples import MODELS, folder, run, tiny

SETTINGS = [
    {"name": "rate", "key": "training.lr", "values": ["0.005", "0.5"], "model": "SubGNN", "matters": True},
    {"name": "anchors", "key": "channels.structure/border", "values": ["1"], "model": "SubGNN"},
]


def scores(out):
    found = {}
    for path in out.glob("runs/*/outcome.json"):
        one = json.loads(path.read_text())
        for entry in one["entries"]:
            found[entry["setting"], entry["value"], one["seed"]] = one["val"]["micro_f1"]
    return found


def test_sensitivity(tmp_path):
    suite = tiny(study="sensitivity", models=[MODELS[0]], settings=SETTINGS)
    found = run(suite, folder(tmp_path), tmp_path / "out")
    assert [(row["setting"], row["value"], row["matters"], row["n"]) for row in found["settings"]] == [
        ("rate", "0.005", True, 2),
        ("rate", "0.5", True, 2),
        ("anchors", "1", False, 2),
    ]
    # 0.005 is the recipe's own rate: its runs are those of the unchanged model.
    assert found["runs"] == 6
    assert [row["same_as_base"] for row in found["settings"]] == [True, False, False]
    seen = scores(tmp_path / "out")
    for row in found["settings"]:
        changes = [seen[row["setting"], row["value"], s] - seen["", "", s] for s in (0, 1)]
        assert row["change"] == {"mean": pytest.approx(np.mean(changes)), "std": pytest.approx(np.std(changes))}
    assert [row["model"] for row in found["rows"]] == ["SubGNN"]
    assert "Values tried on cliques" in (tmp_path / "out" / "report.html").read_text()
    assert "| anchors (SubGNN) | 1 | 2 |" in (tmp_path / "out" / "report.md").read_text()


def test_generalization(tmp_path):
    data = folder(tmp_path)
    suite = tiny(study="generalization", models=MODELS[:2], protocol={"split": "stored"})
    found = run(suite, data, tmp_path / "g", seeds=1)
    page = (tmp_path / "g" / "report.html").read_text()
    assert "Test micro-F1 by overlap on cliques" in page
    ours = found["generalization"][0]
    assert ours["random"] == pytest.approx(1 / 3)
    assert sum(b["subgraphs"] for b in ours["bins"]) == 5
    total = sum(b["subgraphs"] * b["micro_f1"]["mean"] for b in ours["bins"]) / 5
    assert total == pytest.approx(found["rows"][0]["micro_f1"]["mean"])
    assert found["rows"][0]["protocol"] == "stored split"


@pytest.mark.parametrize("task", ["multi-label", "regression"])
def test_other_tasks(task, tmp_path):
    suite = tiny(study="generalization", models=MODELS[:2], protocol={"split": "stored"})
    found = run(suite, folder(tmp_path, task), tmp_path / "out", seeds=1)
    row = found["rows"][0]
    if task == "regression":
        assert row["micro_f1"]["mean"] is row["gap"] is None
        assert row["test"]["r2"]["mean"] is not None
        assert row["calibration_error"] is None
    else:
        assert row["gap"] == pytest.approx(row["micro_f1"]["mean"] - 0.75)
        assert 0 < found["generalization"][0]["random"] < 1
    page = (tmp_path / "out" / "report.html").read_text()
    assert ("R²" in page) == (task == "regression")


def test_overlap_beside_sets():
    rng = np.random.default_rng(0)
    ours = [np.sort(rng.choice(40, rng.integers(1, 9), replace=False)) for _ in range(12)]
    theirs = [np.sort(rng.choice(40, rng.integers(1, 15), replace=False)) for _ in range(7)]
    found = node_overlap(Ragged.from_rows(ours), Ragged.from_rows(theirs), 40)
    slow = [max(len(set(a) & set(b)) / len(a) for b in theirs) for a in ours]
    assert found == pytest.approx(slow)
    assert node_overlap(Ragged.from_rows(ours), Ragged.from_rows([]), 40).tolist() == [0.0] * 12


def group(tmp_path, *kept, task="multi-class", classes=("a", "b")):
    runs = []
    for seed, arrays in enumerate(kept):
        path = tmp_path / str(seed)
        path.mkdir()
        np.savez(path / "answers.npz", **arrays)
        runs.append({"seed": seed, "task": task, "classes": list(classes), "folder": path})
    return Group("data", "model", "", "", "0", tuple(runs))


def test_bins_by_hand(tmp_path):
    sure = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    first = {"probabilities": sure, "targets": np.array([0, 1, 1, 1]), "overlap": np.float32([0, 0.2, 0.4, 1])}
    second = {**first, "targets": np.array([1, 1, 0, 1])}
    bins = overlap_bins(group(tmp_path, first, second))
    assert [(b["begin"], b["end"], b["subgraphs"]) for b in bins] == [(0.0, 0.2, 2), (0.2, 0.4, 1), (0.8, 1.0, 1)]
    assert [b["micro_f1"]["mean"] for b in bins] == [0.75, 0.5, 1.0]
    assert [b["micro_f1"]["std"] for b in bins] == [0.25, 0.5, 0.0]


def test_damaged_answers_are_none(tmp_path):
    whole = group(tmp_path, {"probabilities": np.eye(2), "targets": np.arange(2), "overlap": np.zeros(2, np.float32)})
    path = tmp_path / "0" / "answers.npz"
    content = path.read_bytes()
    assert reliability(whole) is not None
    for damaged in (content[: len(content) // 2], content[:40] + bytes(40) + content[80:], b"", b"text"):
        path.write_bytes(damaged)
        assert reliability(whole) is None
