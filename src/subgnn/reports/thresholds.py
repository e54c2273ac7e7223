"""Thresholds of a run in words and tables, from what run.json says of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_CHOSEN_ON = {"validation": "validation subgraphs", "out-of-fold": "out-of-fold predictions"}
_OTHERS = {"train": "training", "val": "validation", "test": "test"}


def threshold_table(report: Mapping[str, Any]) -> tuple[str, tuple[str, ...], list[tuple[str, ...]]]:
    """Title, header and rows: what each threshold gave on the data it was chosen on, and gives on other splits."""
    labels = report["labels"]
    count = labels[0]["chosen"]["subgraphs"]
    chosen_on = _CHOSEN_ON.get(report["chosen_on"], report["chosen_on"])
    title = f"thresholds for {report['aim']}, chosen on {count:,} {chosen_on}"
    splits = [name for name in _OTHERS if name in labels[0]]
    header = ["label", "threshold", "precision", "recall", "alerts"]
    for split in splits:
        header += [f"{_OTHERS[split]} precision", "recall", "alerts"]
    rows = []
    for one in labels:
        cells = [one["label"], f"{one['threshold']:.4g}"]
        for name in ("chosen", *splits):
            found = one[name]
            low, high = found["precision_interval"] or (None, None)
            ends = f" ({low:.2f} to {high:.2f})" if low is not None else ""
            cells += [_number(found["precision"]) + ends, _number(found["recall"])]
            cells.append(f"{found['alerts']:,.4g}, {found['hits']:,.4g} of {found['positives']:,.4g} found")
        rows.append(tuple(cells))
    return title, tuple(header), rows


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
