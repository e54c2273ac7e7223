"""The leaderboard on the page of a portfolio's run: every candidate with its out-of-fold score, and what was chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from subgnn.render import cut
from subgnn.reports.charts import Chart, Key, Mark, Style, group_style, padded_range, row_axes
from subgnn.result import Candidate, RunResult
from subgnn.task import metric_text

CHOICES = {
    "ensemble": "an ensemble of candidates, weighted by greedy selection",
    "best": "the candidate of the highest score",
    "simplest": "the simplest candidate within one standard error of the highest score",
}
_NAME, _WINDOW = 24, 0.15
_MEMBER, _OTHER, _TEST = group_style(0), Style("published"), Style("c5 edge-mark", "diamond")


def leaderboard_values(result: RunResult, *, word: str) -> dict[str, Any]:
    """Values of the section: sentences, the chart, the rows of the table, and the candidates without a score.

    Of the result's ``rules``, the one that was chosen has the out-of-fold score of the final answer, with weights
    selected on other folds than those it is scored on.

    Args:
        word: the name of the metric.
    """
    rows = result.leaderboard
    scored = [row for row in rows if row.score is not None]
    tested = any(row.test is not None for row in scored)
    answer = Candidate(
        name="final answer",
        recipe="",
        score=result.rules.get(result.chosen),
        low=None,
        high=None,
        seconds=sum(row.seconds for row in rows),
        estimate=0.0,
        weight=1.0,
        note="",
        test=result.test.get(result.metric),
    )
    top = max((row.score for row in scored if row.score is not None), default=0.0)
    widths = [2 * (row.high - row.low) for row in scored[:1] if row.low is not None and row.high is not None]
    lowest = top - max([_WINDOW, *widths])
    drawn = [row for row in scored if row.score is not None and row.score >= lowest]
    return {
        "signal": result.signal,
        "chosen": CHOICES.get(result.chosen, "unknown"),
        "chart": _chart([answer, *drawn], word),
        "far": [row.name for row in scored if row not in drawn],
        "header": [
            *("candidate", "out of fold", "95 % interval", "weight"),
            *(["test"] if tested else []),
            *("seconds", "note"),
        ],
        "caption": f"Candidates by out-of-fold {word}",
        "rows": [_cells(row, tested=tested) for row in (replace(answer, weight=0.0), *scored)],
        "tested": tested,
        "dropped": [(row.name, row.note) for row in rows if row.score is None],
    }


def _score(value: float | None) -> str:
    return "" if value is None else metric_text("micro_f1", value)


def _cells(row: Candidate, *, tested: bool) -> list[str]:
    interval = "" if row.low is None else f"{_score(row.low)} to {_score(row.high)}"
    weight = f"{row.weight:.2f}" if row.weight else ""
    more = [_score(row.test)] if tested else []
    return [row.name, _score(row.score), interval, weight, *more, f"{row.seconds:.1f}", row.note]


def _chart(rows: Sequence[Candidate], word: str) -> Chart:
    """A row for each candidate: its out-of-fold score with the interval, and below it the test score."""
    marks = []
    for i, row in enumerate(rows):
        title = f"{row.name}: {_score(row.score)}"
        span = None
        if row.low is not None and row.high is not None:
            span = (row.low, row.high)
            title += f", 95 % interval {_score(row.low)} to {_score(row.high)}"
        style = _MEMBER if row.weight else _OTHER
        if row.score is not None:
            marks.append(Mark(x=row.score, y=i + 0.4, title=title, style=style, size=4, x_range=span))
        if row.test is not None:
            title = f"{row.name}: test {_score(row.test)}"
            marks.append(Mark(x=row.test, y=i + 0.72, title=title, style=_TEST, size=3))
    key = [Key("in the final answer", style=_MEMBER), Key("not in it", style=_OTHER)]
    key.append(Key("95 % interval", line="whisker"))
    key += [Key("test", style=_TEST)] if any(mark.style is _TEST for mark in marks) else []
    shown = "; ".join(f"{row.name} {_score(row.score)}" for row in rows)
    return Chart(
        f"Out-of-fold {word}",
        f"Dot-and-bar chart of out-of-fold {word}: {shown}",
        row_axes(
            [cut(row.name, _NAME) for row in rows],
            padded_range(end for mark in marks for end in (mark.x, *(mark.x_range or ()))),
            word,
        ),
        marks=marks,
        key=key,
    )
