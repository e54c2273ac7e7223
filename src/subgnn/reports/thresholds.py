"""Thresholds of a run in words and tables."""

from __future__ import annotations

from subgnn.result import ThresholdReport

_CHOSEN_ON = {"validation": "validation subgraphs", "out-of-fold": "out-of-fold predictions"}


def threshold_table(report: ThresholdReport) -> tuple[str, tuple[str, ...], list[tuple[str, ...]]]:
    """Title, header and rows: what each threshold gave on the data it was chosen on, and gives on other splits."""
    count = report.labels[0].chosen.subgraphs
    title = f"thresholds for {report.aim}, chosen on {count:,} {_CHOSEN_ON.get(report.chosen_on, report.chosen_on)}"
    header = ("label", "threshold", "on", "precision (95 %)", "recall", "alerts", "found")
    own = "val" if report.chosen_on == "validation" else "folds"
    rows: list[tuple[str, ...]] = []
    for one in report.labels:
        known = {"train": one.train, "val": one.val, "test": one.test} | {own: one.chosen}
        for name in (own, *(name for name in known if name != own)):
            if (found := known[name]) is None:
                continue
            ends = found.precision_interval
            rows.append(
                (
                    one.label,
                    f"{one.threshold:.4g}",
                    name,
                    _number(found.precision) + ("" if ends is None else f" ({ends[0]:.2f}-{ends[1]:.2f})"),
                    _number(found.recall),
                    f"{found.alerts:,.4g}",
                    f"{found.hits:,.4g} of {found.positives:,.4g}",
                )
            )
    return title, header, rows


def threshold_notes(report: ThresholdReport) -> list[str]:
    """A line for each threshold that does not reach its aim, with what is used then."""
    kind = report.aim.partition("=")[0]
    notes = []
    for one in report.labels:
        if one.reached:
            continue
        if not one.chosen.positives:
            notes.append(f"{one.label}: no positive subgraph to choose a threshold on; {one.threshold:g} is used")
        else:
            found = _number(one.chosen.precision if kind == "precision" else one.chosen.recall)
            best = f"the best is {found}, at the threshold {one.threshold:.4g}, which is used"
            notes.append(f"{one.label}: {report.aim} cannot be reached; {best}")
    return notes


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
