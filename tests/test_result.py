"""The result of a run: written and read back without a change, and refused in one line if it is damaged."""

import json
import math

import numpy as np
import pytest

from subgnn.errors import DataError
from subgnn.metrics.thresholds import Decision, count_alerts
from subgnn.result import RESULTS, Candidate, LabelAlerts, Member, RunResult, parse_result, read_result
from tests.results import result


def full() -> RunResult:
    """A result in which every kind of field has a value."""
    row = Candidate(name="bag", recipe="bag", score=0.5, low=None, high=None, seconds=1, weight=1, note="")
    chosen = count_alerts(0.25, np.array([0.5, 0.5, 0.0], np.float32), np.array([1, 0, 1]))
    label = LabelAlerts(label="a", threshold=0.25, reached=True, chosen=chosen)
    decision = Decision(aim="f1", chosen_on="validation", labels=(label,))
    return result(
        val={"loss": 1.5, "r2": -0.5},
        intervals={"val": (-0.5, 0.5)},
        edges_until=-3.5,
        threshold=decision.report(test=[count_alerts(1.0, np.zeros(4), np.zeros(4))]),
        members=(Member(selected_epoch=1, epochs=2, val={"loss": 0.5}),),
        leaderboard=(row, row),
        candidates={"frozen": {"loss": 0.5}},
        published={"source": "a paper", "micro_f1": 0.5},
    )


def test_a_result_is_read_as_it_was_written(tmp_path):
    full().save(tmp_path)
    assert read_result(tmp_path) == full()
    result(test={"auroc": math.nan}).save(tmp_path)
    assert math.isnan(read_result(tmp_path).test["auroc"])


def test_fields_of_their_default_value_are_left_out():
    found = result().to_json()
    assert not {"train", "threshold", "members", "leaderboard", "select_by", "interrupted"} & found.keys()
    assert (found["test"], found["unused"], found["published"]) == ({}, [], {})
    assert "judge" not in found["seconds"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": "one"}, "seed is 'one'"),
        ({"val": {"loss": "low"}}, "val.loss is 'low'"),
        ({"seconds": {"train": 1.0}}, "seconds has no 'pretrain' and no 'prepare' and no 'epoch_median'"),
        ({"leaderboard": [3]}, "leaderboard[0] is '3'"),
        ({"leaderboard": [{"name": 3}]}, "leaderboard[0] has no 'recipe'"),
        ({"members": {}}, "members is '{}'"),
        ({"intervals": {"val": [0.5]}}, "intervals.val is '[0.5]'"),
        ({"more": 1}, "unknown setting 'more'"),
    ],
)
def test_a_damaged_result_is_refused(tmp_path, change, message):
    (tmp_path / RESULTS).write_text(json.dumps(full().to_json() | change))
    with pytest.raises(DataError) as caught:
        read_result(tmp_path)
    assert f"run.json: {message}" in str(caught.value)
    assert str(caught.value).endswith("; remove it, and finish the run with subgnn train --resume")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [[], "text", None, 3])
def test_something_else_is_refused(content):
    with pytest.raises(DataError, match=r"^run\.json: the file is "):
        parse_result(content, "run.json", "train again")
