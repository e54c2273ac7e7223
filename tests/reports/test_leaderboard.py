"""The leaderboard of a portfolio: its chart, its table, and what was dropped."""

from dataclasses import replace

import pytest

from subgnn.api.train_recipe import train
from subgnn.models.recipes import find_recipe
from subgnn.reports.evaluation import evaluate_run
from subgnn.reports.sections import leaderboard_values
from subgnn.result import Candidate
from tests.results import result
from tests.training.examples import dataset

from .reading import read


def entry(name, score=None, half=0.02, weight=0.0, note="", test=None):
    low, high = (None, None) if score is None else (score - half, score + half)
    about = {"seconds": 2.0, "weight": weight, "note": note, "test": test}
    return Candidate(name=name, recipe=name, score=score, low=low, high=high, **about)


RESULT = result(
    rules={"best": 0.74, "ensemble": 0.75},
    test={"micro_f1": 0.74},
    metric="micro_f1",
    signal="The labels depend on <b>.",
    chosen="ensemble",
    leaderboard=(
        entry("diffusion", 0.74, weight=0.6, test=0.73),
        entry("bag", 0.70, weight=0.4, test=0.69),
        entry("avg", 0.65),
        entry("constant", 0.2, test=0.2),
        entry("shape-plus", note="would take 4 min"),
    ),
)


def values(**changes):
    return leaderboard_values(replace(RESULT, **changes), word="micro-F1")


def test_the_table_has_the_final_answer_first_and_then_every_scored_candidate():
    found = values()
    assert found["header"][-3:] == ["test", "seconds", "note"]
    assert found["rows"][0] == ["final answer", "0.750", "", "", "0.740", "10.0", ""]
    assert found["rows"][1] == ["diffusion", "0.740", "0.720 to 0.760", "0.60", "0.730", "2.0", ""]
    assert [row[0] for row in found["rows"][2:]] == ["bag", "avg", "constant"]
    assert found["rows"][3][3:5] == ["", ""]
    assert found["dropped"] == [("shape-plus", "would take 4 min")]
    assert found["chosen"].startswith("an ensemble")


FAST = ("auto.only=['bag', 'profiles']", "auto.folds=2", "auto.repeats=2", "auto.time=600", "bag.inverse_penalty=1")


@pytest.mark.quick(1)
@pytest.mark.parametrize("task", ["multi-class", "multi-label", "regression"])
def test_the_page_of_a_portfolio(tmp_path, task):
    data, run = dataset(task), tmp_path / "run"
    results = train(data, find_recipe("auto", FAST), run, device="cpu")
    page = read((run / "report.html").read_text(encoding="utf-8"))
    sections = [section.attributes["id"] for section in page.all("section")]
    assert sections == ["run", "leaderboard", "predictions", "table", "subgraphs", "calibration", "reproduce"]
    (board,) = [section for section in page.all("section") if section.attributes["id"] == "leaderboard"]
    assert results.signal in board.text
    names = [row.children[0].text for row in board.one("tbody").children]
    assert names[0] == "final answer"
    assert {"bag", "profiles", "constant"} == set(names[1:])
    assert board.all("svg")[0].attributes["aria-label"].startswith("Dot-and-bar chart")
    found = evaluate_run(run, data)
    if task == "regression":
        assert found.out_of_fold is None
        return
    probabilities, targets = found.out_of_fold
    assert len(probabilities) == len(targets) == 2 * 25
    assert "out of fold and" in page.one("section", id="calibration").text
    if task == "multi-class":
        score = (probabilities.argmax(axis=1) == targets).mean()
        assert score == pytest.approx(results.val["micro_f1"])
