"""Thresholds of a run in words and tables, from what run.json says of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_CHOSEN_ON = {"validation": "validation subgraphs", "out-of-fold": "out-of-fold predictions"}


def threshold_table(report: Mapping[str, Any]) -> tuple[str, tuple[str, ...], list[tuple[str, ...]]]:
    """Title, header and rows: what each threshold gave on the data it was chosen on, and gives on other splits."""
    labels = report["labels"]
    chosen_on = str(report["chosen_on"])
    count = labels[0]["chosen"]["subgraphs"]
    title = f"thresholds for {report['aim']}, chosen on {count:,} {_CHOSEN_ON.get(chosen_on, chosen_on)}"
    header = ("label", "threshold", "on", "precision (95 %)", "recall", "alerts", "found")
    own = "val" if chosen_on == "validation" else "folds"
    data = {"chosen": own} | {name: name for name in ("train", "val", "test") if name in labels[0] and name != own}
    rows: list[tuple[str, ...]] = []
    for one in labels:
        for name, word in data.items():
            found = one[name]
            ends = found["precision_interval"]
            rows.append(
                (
                    one["label"],
                    f"{one['threshold']:.4g}",
                    word,
                    _number(found["precision"]) + ("" if ends is None else f" ({ends[0]:.2f}-{ends[1]:.2f})"),
                    _number(found["recall"]),
                    f"{found['alerts']:,.4g}",
                    f"{found['hits']:,.4g} of {found['positives']:,.4g}",
                )
            )
    return title, header, rows


def threshold_notes(report: Mapping[str, Any]) -> list[str]:
    """A line for each threshold that does not reach its aim, with what is used then."""
    kind = report["aim"].partition("=")[0]
    notes = []
    for one in report["labels"]:
        if one["reached"]:
            continue
        if not one["chosen"]["positives"]:
            notes.append(f"{one['label']}: no positive subgraph to choose a threshold on; {one['threshold']:g} is used")
        else:
            best = f"the best is {_number(one['chosen'][kind])}, at the threshold {one['threshold']:.4g}, which is used"
            notes.append(f"{one['label']}: {report['aim']} cannot be reached; {best}")
    return notes


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
