"""The report of a suite: report.json, report.md and report.html, made from the folders of its runs alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from subgnn.errors import DataError
from subgnn.lab.suites.comparisons import standings
from subgnn.lab.suites.page import suite_markdown, suite_page
from subgnn.lab.suites.results import (
    Group,
    calibration_groups,
    group_runs,
    overlap_bins,
    random_score,
    read_runs,
    reliability,
    spread,
)
from subgnn.lab.suites.rows import as_published_rows, setting_rows, table_rows
from subgnn.lab.suites.spec import Suite, parse_suite
from subgnn.storage.files import atomic_write
from subgnn.storage.parsing import read_json, write_json

JSON, MARKDOWN, PAGE = "report.json", "report.md", "report.html"
SELECTION = (
    "the epoch with the highest validation micro-F1 (real values: the lowest validation loss), then the lowest "
    "validation loss, then the earliest; validation also decides the choices that a recipe leaves open. A portfolio "
    "chooses by out-of-fold predictions. The test split is scored once"
)
TEST = (
    "paired sign-flip test over seeds, two-sided, exact up to 15 seeds; with a stored split also a paired "
    "randomisation test over subgraphs; no correction for several comparisons"
)
FOLDS_TEST = (
    "paired randomisation test over subgraphs, two-sided: swaps of two models' predictions (McNemar's exact test for "
    "one class a subgraph), those of one group together; no correction for several comparisons"
)


def write_suite_report(out: Path) -> dict[str, Any]:
    """Write the three files into a suite's folder, and return the content of report.json.

    Raises:
        DataError: if there is no suite, or no run.
    """
    if not (out / "suite.json").is_file():
        hint = "subgnn benchmark run SUITE --out DIR writes one"
        raise DataError("no suite was run here", where=str(out), hint=hint)
    content = read_json(out / "suite.json", "run the suite again")
    suite = parse_suite(content, str(out / "suite.json"))
    outcomes, failed = read_runs(out / "runs")
    if not outcomes and not failed:
        raise DataError("there are no finished runs", where=str(out / "runs"), hint="run the suite again")
    groups = group_runs(suite, outcomes)
    found = collect(suite, groups, outcomes, failed)
    write_json(found, out / JSON)
    for name, text in ((MARKDOWN, suite_markdown(found)), (PAGE, suite_page(found, groups))):
        with atomic_write(out / name, overwrite=True) as temporary:
            temporary.write_text(text, encoding="utf-8", errors="backslashreplace")
    return found


def collect(
    suite: Suite, groups: Sequence[Group], outcomes: Sequence[dict[str, Any]], failed: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """The content of report.json; undefined numbers are None."""
    rows = table_rows(suite, groups)
    return {
        "suite": suite.name,
        "title": suite.title,
        "study": suite.study,
        "note": " ".join(suite.note.split()),
        "protocol": {
            "split": suite.protocol.words,
            "selection": SELECTION,
            "seeds": sorted({run["seed"] for run in outcomes}),
            "test": FOLDS_TEST if suite.protocol.split == "folds" else TEST,
        },
        "circumstances": _circumstances(outcomes),
        "runs": len(outcomes),
        "compare": list(suite.compare),
        "rows": rows,
        "standings": standings(rows),
        "as_published": as_published_rows(suite, groups),
        "references": [asdict(reference) for reference in suite.references],
        "settings": setting_rows(suite, groups) if suite.study == "sensitivity" else [],
        "generalization": _generalization(groups) if suite.study == "generalization" else [],
        "calibration": _calibration(groups, rows),
        "failures": [_failure(run, entry) for run in failed for entry in run["entries"]],
        "missing": _missing(rows),
        "left_out": [d.name for d in suite.datasets if d.name not in {run["dataset"] for run in [*outcomes, *failed]}],
    }


def _circumstances(outcomes: Sequence[dict[str, Any]]) -> dict[str, list[str]]:
    def distinct(values: Iterable[str]) -> list[str]:
        return sorted({value for value in values if value})

    return {
        "commits": distinct(run["commit"] for run in outcomes),
        "source_hashes": distinct(run["source_hash"] for run in outcomes),
        "versions": distinct(", ".join(f"{k} {v}" for k, v in run["versions"].items()) for run in outcomes),
        "hardware": distinct(run["hardware"] for run in outcomes),
        "devices": distinct(run["device"] for run in outcomes),
        "commands": distinct(run["command"] for run in outcomes),
        "warnings": distinct(f"{run['dataset']}: {words}" for run in outcomes for words in run["warnings"]),
    }


def _generalization(groups: Sequence[Group]) -> list[dict[str, Any]]:
    return [
        {
            "dataset": group.dataset,
            "model": group.label,
            "n": len(group.runs),
            "majority": spread(run["majority"] for run in group.runs if run["majority"] is not None)["mean"],
            "random": random_score(group),
            "bins": overlap_bins(group),
        }
        for group in groups
        if not group.setting
    ]


def _calibration(groups: Sequence[Group], rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    found = []
    for dataset in dict.fromkeys(row["dataset"] for row in rows):
        for group in calibration_groups(groups, rows, dataset):
            known = reliability(group)
            if known is not None:
                bins = [asdict(some) for some in known[0]]
                found.append(
                    {"dataset": dataset, "model": group.label, "n": len(group.runs), "error": known[1], "bins": bins}
                )
    return found


def _failure(run: dict[str, Any], entry: dict[str, str]) -> dict[str, Any]:
    changed = {"setting": entry["setting"], "value": entry["value"]} if entry["setting"] else {}
    about = {"dataset": run["dataset"], "model": entry["model"], **changed, "seed": run["seed"]}
    return {**about, "message": run["message"], "run": run["folder"].name}


def _missing(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Descriptions of the rows with fewer runs than others."""
    most = max((row["n"] for row in rows), default=0)
    return [f"{row['model']} on {row['dataset']}: {row['n']} of {most} runs" for row in rows if row["n"] < most]
