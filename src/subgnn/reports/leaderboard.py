"""The leaderboard on the page of a portfolio's run: every candidate with its out-of-fold score, and what was chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from subgnn.errors import DataError
from subgnn.render import cut
from subgnn.reports.charts import Chart, Key, Mark, Style, group_style, padded_range, row_axes
from subgnn.task import metric_text
from subgnn.training.run_dir import RESULTS

CHOICES = {
    "ensemble": "an ensemble of candidates, weighted by greedy selection",
    "best": "the candidate of the highest score",
    "simplest": "the simplest candidate within one standard error of the highest score",
}
_NAME, _WINDOW = 24, 0.15
_TEXTS, _NUMBERS = ("name", "recipe", "note"), ("score", "low", "high", "seconds", "weight", "test")
_MEMBER, _OTHER, _TEST = group_style(0), Style("published"), Style("c5 edge-mark", "diamond")


def leaderboard_values(results: Mapping[str, Any], *, metric: str, word: str) -> dict[str, Any]:
    """Values of the section: sentences, the chart, the rows of the table, and the candidates without a score.

    Args:
        results: of run.json; of its ``rules``, the one that was chosen has the out-of-fold score of the final answer,
            with weights selected on other folds than those it is scored on.
        word: the name of the metric.
    """
    entries = candidates(results)
    scored = [entry for entry in entries if entry["score"] is not None]
    tested = any(entry["test"] is not None for entry in scored)
    seconds = sum(entry["seconds"] or 0 for entry in entries)
    answer = {
        "name": "final answer",
        "score": results.get("rules", {}).get(results.get("chosen")),
        "test": results["test"].get(metric),
    }
    answer |= {"low": None, "high": None, "weight": 1, "seconds": seconds, "note": ""}
    top = max((entry["score"] for entry in scored), default=0.0)
    window = max([_WINDOW, *(2 * (entry["high"] - entry["low"]) for entry in scored[:1] if entry["low"] is not None)])
    drawn = [entry for entry in scored if entry["score"] >= top - window]
    return {
        "signal": results.get("signal", ""),
        "chosen": CHOICES.get(results.get("chosen", ""), "unknown"),
        "chart": _chart([answer, *drawn], word),
        "far": [entry["name"] for entry in scored if entry not in drawn],
        "header": [
            *("candidate", "out of fold", "95 % interval", "weight"),
            *(["test"] if tested else []),
            *("seconds", "note"),
        ],
        "caption": f"Candidates by out-of-fold {word}",
        "rows": [_row(entry, tested=tested) for entry in ({**answer, "weight": 0}, *scored)],
        "tested": tested,
        "dropped": [(entry["name"], entry["note"]) for entry in entries if entry["score"] is None],
    }


def candidates(results: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The entries of a leaderboard, all keys present; a number that is missing is None.

    Raises:
        DataError: where run.json is damaged.
    """
    rows = []
    for entry in results["leaderboard"]:
        row = {key: entry.get(key) for key in (*_TEXTS, *_NUMBERS)} if isinstance(entry, dict) else {}
        texts = [row.get(key) for key in _TEXTS]
        numbers = [row.get(key) for key in _NUMBERS]
        if not row or not all(isinstance(t, str) for t in texts) or any(isinstance(n, (str, list)) for n in numbers):
            raise DataError("'leaderboard' has a wrong type", where=RESULTS, hint="the run is damaged; train again")
        rows.append(row)
    return rows


def _score(value: float | None) -> str:
    return "" if value is None else metric_text("micro_f1", value)


def _row(row: Mapping[str, Any], *, tested: bool) -> list[str]:
    interval = "" if row["low"] is None else f"{_score(row['low'])} to {_score(row['high'])}"
    weight = f"{row['weight']:.2f}" if row["weight"] else ""
    return [
        row["name"],
        _score(row["score"]),
        interval,
        weight,
        *([_score(row["test"])] if tested else []),
        f"{row['seconds'] or 0:.1f}",
        row["note"],
    ]


def _chart(rows: Sequence[Mapping[str, Any]], word: str) -> Chart:
    """A row for each candidate: its out-of-fold score with the interval, and below it the test score."""
    marks = []
    for i, row in enumerate(rows):
        title = f"{row['name']}: {_score(row['score'])}"
        span = None
        if row["low"] is not None and row["high"] is not None:
            span = (row["low"], row["high"])
            title += f", 95 % interval {_score(row['low'])} to {_score(row['high'])}"
        style = _MEMBER if row["weight"] else _OTHER
        if row["score"] is not None:
            marks.append(Mark(x=row["score"], y=i + 0.4, title=title, style=style, size=4, x_range=span))
        if row["test"] is not None:
            title = f"{row['name']}: test {_score(row['test'])}"
            marks.append(Mark(x=row["test"], y=i + 0.72, title=title, style=_TEST, size=3))
    key = [Key("in the final answer", style=_MEMBER), Key("not in it", style=_OTHER)]
    key.append(Key("95 % interval", line="whisker"))
    key += [Key("test", style=_TEST)] if any(mark.style is _TEST for mark in marks) else []
    shown = "; ".join(f"{row['name']} {_score(row['score'])}" for row in rows)
    return Chart(
        f"Out-of-fold {word}",
        f"Dot-and-bar chart of out-of-fold {word}: {shown}",
        row_axes(
            [cut(row["name"], _NAME) for row in rows],
            padded_range(end for mark in marks for end in (mark.x, *(mark.x_range or ()))),
            word,
        ),
        marks=marks,
        key=key,
    )
