"""The report of a suite as text: report.md."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from subgnn.experiments.suite.cells import (
    HEADER,
    SETTING_HEADER,
    by_dataset,
    dataset_notes,
    header_facts,
    score_cells,
    setting_cells,
    spread_text,
)


def suite_markdown(found: dict[str, Any]) -> str:
    """The page's tables, without its figures."""
    lines = [f"# {found['title']}", "", found["note"], ""]
    lines += [f"- {name}: {words}" for name, words in header_facts(found)]
    lines += ["", "```", *found["circumstances"]["commands"], "```"]
    for dataset, rows in by_dataset(found["rows"]).items():
        lines += ["", f"## {dataset}", "", *_table(HEADER, map(score_cells, rows))]
        lines += [line for note in dataset_notes(found, rows) for line in ("", note)]
    sources = sorted({row["published"]["source"] for row in found["rows"] if row["published"]})
    if sources:
        lines += ["", f"Published: {'; '.join(sources)}."]
    for dataset, rows in by_dataset(found["settings"]).items():
        lines += ["", f"## {dataset}: one setting at a time", "", *_table(SETTING_HEADER, map(setting_cells, rows))]
    for dataset, rows in by_dataset(found["generalization"]).items():
        lines += ["", f"## {dataset}: seen and unseen nodes", "", *_overlaps(rows)]
    if found["calibration"]:
        cells = ([row["dataset"], row["model"], f"{row['error']:.3f}"] for row in found["calibration"])
        lines += ["", "## Calibration", "", *_table(("dataset", "model", "expected calibration error"), cells)]
    lines += ["", "## Failed runs", ""]
    lines += [f"- {failure_words(failure)}" for failure in found["failures"]] or ["None."]
    lines += [f"- fewer seeds: {words}" for words in found["missing"]]
    return "\n".join(lines) + "\n"


def failure_words(failure: dict[str, Any]) -> str:
    """A failed run on one line."""
    changed = f", {failure['setting']} = {failure['value']}" if "setting" in failure else ""
    return f"{failure['model']}{changed} on {failure['dataset']}, seed {failure['seed']}: {failure['message']}"


def _overlaps(rows: Sequence[dict[str, Any]]) -> list[str]:
    ends = sorted({b["end"] for row in rows for b in row["bins"]})
    header = ("model", "n", *(f"up to {end:.0%}" for end in ends), "majority", "random")
    cells = []
    for row in rows:
        known = {b["end"]: spread_text(b["micro_f1"]) for b in row["bins"]}
        lines = ["" if row[name] is None else f"{row[name]:.3f}" for name in ("majority", "random")]
        cells.append([row["model"], str(row["n"]), *(known.get(end, "") for end in ends), *lines])
    return _table(header, cells)


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [header, ["---"] * len(header), *rows]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]
