"""The report of ``benchmark run quick``: its table, its verdict in words, and quick.md, which has both."""

from __future__ import annotations

from typing import Any

from subgnn.experiments.label_signal import LEVEL, MARGIN, NETWORK
from subgnn.reports.render import render

HEADER = ("recipe", "validation", "test", "lead", "95 %", "clear", "seconds")
_SHOWN_PARTS = 3


def quick_table(found: dict[str, Any]) -> list[tuple[str, ...]]:
    """A row for the constant prediction and for each recipe, the failed ones last."""
    metric = "r2" if found["task"] == "regression" else "micro_f1"
    rows = []
    for row in found["rows"]:
        lead = found["over_constant"].get(row["recipe"])
        ahead = ("", "", "")
        if lead is not None:
            ahead = (_signed(lead["lead"]), f"{_signed(lead['low'])}..{_signed(lead['high'])}", _yes(lead["clear"]))
        seconds = f"{row['seconds']:.1f}" if lead is not None else ""
        rows.append((row["recipe"], _score(row["val"], metric), _score(row["test"], metric), *ahead, seconds))
    return rows + [(name, "failed", "", "", "", "", "") for name in found["failures"]]


def quick_words(found: dict[str, Any]) -> list[str]:
    """Findings below the table, a line each."""
    findings = [f"{name} failed: {message}" for name, message in found["failures"].items()]
    findings += found["verdict"]["words"]
    network = found["over_constant"].get(NETWORK)
    if network is not None and network["clear"]:
        parts = sorted((p for p in found["parts"] if (p["score"] or 0) > 0), key=lambda p: -p["score"])
        if parts:
            shown = ", ".join(f"{p['part']} {p['score']:.3f}" for p in parts[:_SHOWN_PARTS])
            findings.append(f"SubGNN relies most on (fall of the validation score without the part): {shown}.")
    return findings


def quick_title(found: dict[str, Any]) -> str:
    """The title of the table."""
    metric = "R2" if found["task"] == "regression" else "micro-F1"
    sizes = ", ".join(f"{split} {count:,}" for split, count in found["splits"].items())
    return f"{found['dataset']}: {metric}; split {found['split']} ({sizes})"


def quick_page(found: dict[str, Any]) -> str:
    """quick.md."""
    runs = "1 seed" if found["seeds"] == 1 else f"{found['seeds']} seeds"
    return render(
        "quick.md",
        dataset=found["dataset"],
        findings=quick_words(found),
        title=quick_title(found),
        settings=f"{found['epochs']} epochs, {runs}" + "".join(f", {s}" for s in found["set"]),
        header=HEADER,
        rows=quick_table(found),
        margin=str(MARGIN),
        level=str(LEVEL),
    )


def _score(scores: dict[str, Any], metric: str) -> str:
    if metric not in scores:
        return ""
    return "undefined" if scores[metric]["mean"] is None else f"{scores[metric]['mean']:.3f}"


def _signed(value: float | None) -> str:
    return "undefined" if value is None else f"{value:+.3f}"


def _yes(clear: bool) -> str:
    return "yes" if clear else "no"
