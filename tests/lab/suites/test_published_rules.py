"""Rules of selection of published results: what they pick, and that nothing else depends on them."""

from __future__ import annotations

import json

import pytest

from subgnn.config.settings import TrainingSettings
from subgnn.lab.suites.job import RULES, select_as_published
from subgnn.storage.files import read_json
from tests.lab.suites.examples import MODELS, SMALL, folder, run, tiny
from tests.lab.suites.test_run import outcomes

EPOCHS = [(0.9, 0.1), (0.5, 0.9), (0.7, 0.4), (0.8, 0.2), (0.8, 0.6), (0.8, 0.3), (0.6, 0.7)]  # val, test
WIDE = ("first epoch", "best test among ties", "best test")


def write(folder, records):
    (folder / "metrics.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))


@pytest.mark.parametrize(
    ("rule", "first", "epoch"), [(WIDE[0], 2, 3), (WIDE[1], 2, 4), (WIDE[2], 2, 6), (WIDE[2], 0, 1)]
)
def test_the_epoch_that_a_rule_selects(rule, first, epoch, tmp_path):
    write(tmp_path, [{"epoch": i, "val_micro_f1": a, "test_micro_f1": b} for i, (a, b) in enumerate(EPOCHS)])
    found = select_as_published(rule, tmp_path, TrainingSettings(select_from=first))
    assert (found["rule"], found["epoch"]) == (rule, epoch)
    assert (found["val"], found["test"]) == tuple({"micro_f1": score} for score in EPOCHS[epoch])
    assert set(RULES) == set(WIDE)


def test_the_best_of_a_grid_is_that_of_all_candidates(tmp_path):
    grid = [("a", 0.6, 0.5), ("b", 0.5, 0.8), ("c", 0.4, 0.8)]
    write(tmp_path, [{"epoch": 0, "val_micro_f1": a, "test_micro_f1": b, "candidate": name} for name, a, b in grid])
    found = select_as_published("best test", tmp_path, TrainingSettings(select_from=50))
    assert (found["candidate"], found["test"]) == ("b", {"micro_f1": 0.8})
    write(tmp_path, [{"epoch": 0, "val_r2": 0.5, "test_r2": 0.5}])
    assert select_as_published("best test", tmp_path, TrainingSettings()) is None


def test_both_readings_come_from_one_run(tmp_path):
    data, out = folder(tmp_path), tmp_path / "out"
    avg = {**MODELS[2], "rule": "best test among ties", "published": {"source": "Them", "micro_f1": {"cliques": 0.5}}}
    suite, overrides = tiny(models=[MODELS[1], avg]), (*SMALL, "training.epochs=6")
    plain = run(suite, data, out, overrides=overrides)
    assert plain["as_published"] == []
    assert not any("test_micro_f1" in path.read_text() for path in out.glob("runs/*/metrics.jsonl"))

    # Runs whose epochs have no test scores are made again; the numbers of all other tables stay as they are.
    both = run(suite, data, out, overrides=overrides, as_published=True)
    assert [row["score"] for row in both["rows"]] == [row["score"] for row in plain["rows"]]
    assert [row["model"] for row in both["rows"]] == ["bag", "avg"]
    (row,) = both["as_published"]
    assert (row["model"], row["rule"], row["n"]) == ("avg, selected as published", "best test among ties", 2)
    picked = [one for one in outcomes(out) if "as_published" in one]
    assert {one["recipe"] for one in picked} == {"avg"}
    for one in picked:
        told = read_json(next(out.glob(f"runs/*{one['key'][:12]}")) / "run.json", "")
        assert told["epochs_scored_on_test"] is True
        assert one["as_published"]["val"]["micro_f1"] == one["val"]["micro_f1"]
        assert one["as_published"]["test"]["micro_f1"] >= one["test"]["micro_f1"]
    mean = sum(one["as_published"]["test"]["micro_f1"] for one in picked) / 2
    assert row["by_their_rule"]["mean"] == pytest.approx(mean)
    assert row["by_their_rule"]["gap"] == pytest.approx(mean - 0.5)
    assert row["on_validation"]["mean"] == both["rows"][1]["score"]["mean"]
    for name in ("report.md", "report.html"):
        assert "avg, selected as published" in (out / name).read_text()
    # Neither command has anything left to do.
    before = {path: path.stat().st_mtime_ns for path in out.glob("runs/*/run.json")}
    run(suite, data, out, overrides=overrides)
    run(suite, data, out, overrides=overrides, as_published=True)
    assert {path: path.stat().st_mtime_ns for path in out.glob("runs/*/run.json")} == before
