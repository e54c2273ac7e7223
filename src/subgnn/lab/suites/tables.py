"""Cells of a suite's tables, for the page, report.md and the terminal."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from subgnn.lab.suites.spec import SPLIT_WORDS
from subgnn.task import metric_name, task_of

FOLDS_WORDS = (
    "ten folds of all subgraphs, groups and equal node sets together; every choice is made inside the other nine, and "
    "every subgraph is predicted once by models that never saw it"
)
FOLDS_SPREAD = (
    "score of all predictions together ± population standard deviation over folds; 95 % interval of 1.96 standard "
    "errors over subgraphs"
)
SETTING_HEADER = ("setting", "value", "n", "validation", "change", "paper")


def score_table(rows: Sequence[dict[str, Any]], compare: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """Header and cells of a dataset's table, without empty columns; R^2 replaces micro-F1 for real values.

    Args:
        compare: the models that all others are compared with, besides the best baseline.
    """
    columns: dict[str, list[str]] = {
        "model": [row["model"] for row in rows],
        "n": [str(row["n"]) for row in rows],
        metric_name(task_of(rows[0]["task"]).headline): [spread_text(row["score"], row["n"]) for row in rows],
        "95 % interval": [interval_text(row["interval"]) for row in rows],
        "macro-F1": [spread_text(row["test"].get("macro_f1"), row["n"]) for row in rows],
        "AUROC": [spread_text(row["auroc"], row["n"]) for row in rows],
        "AUPRC": [spread_text(row["test"].get("auprc"), row["n"]) for row in rows],
        "published": [_published(row["published"] or {}) for row in rows],
        "gap": [signed(row["gap"]) for row in rows],
    }
    first, further = _comparisons(rows, [(row["against"] or {}).get("model") for row in rows])
    columns["over best baseline"] = [f"{_lead(one)} ({one['model']})" if one else "" for one in first]
    columns["p"] = [p_text(one.get("p")) for one in first]
    columns["p, subgraphs"] = [p_text(one.get("p")) for one in further]
    for model in compare:
        first, further = _comparisons(rows, [model] * len(rows))
        columns[f"over {model}"] = list(map(_lead, first))
        columns[f"p over {model}"] = [p_text(one.get("p")) for one in first]
        columns[f"p over {model}, subgraphs"] = [p_text(one.get("p")) for one in further]
    columns["calibration error"] = [mean_text(row["calibration_error"]) for row in rows]
    columns["s per run"] = [f"{row['seconds']['mean']:.1f}" for row in rows]
    columns["MB"] = [f"{row['peak_memory_mb']:,.0f}" for row in rows]
    columns["GPU MB"] = [f"{row['peak_gpu_memory_mb']:,.0f}" if row["peak_gpu_memory_mb"] else "" for row in rows]
    return _without_empty(columns)


def _without_empty(columns: dict[str, list[str]]) -> tuple[list[str], list[list[str]]]:
    """Header and rows of the columns that have a cell."""
    kept = {name: cells for name, cells in columns.items() if any(cells)}
    return list(kept), [list(line) for line in zip(*kept.values(), strict=True)]


def _comparisons(rows: Sequence[dict[str, Any]], rivals: Sequence[str | None]) -> list[list[dict[str, Any]]]:
    """The comparison of each row with its rival by the protocol's pairing, and that over subgraphs beside it."""
    found: list[list[dict[str, Any]]] = [[], []]
    for row, rival in zip(rows, rivals, strict=True):
        mine = [one for one in row["comparisons"] if rival is not None and one["model"] == rival]
        for i, entries in enumerate(found):
            entries.append(mine[i] if i < len(mine) else {})
    return found


def _published(known: dict[str, Any]) -> str:
    return spread_text({"mean": known.get("micro_f1"), "std": known.get("micro_f1_std")})


def _lead(entry: dict[str, Any]) -> str:
    """A lead, with its interval where there is one."""
    interval = entry.get("interval")
    return signed(entry.get("lead")) + (f" [{signed(interval[0])}, {signed(interval[1])}]" if interval else "")


def standings_table(standings: Sequence[dict[str, Any]]) -> tuple[str, list[str], list[list[str]]]:
    """Title, header and cells: mean and rank over datasets of the models that have run on all of them."""
    title = f"Over {standings[0]['datasets']} datasets" if standings else ""
    cells = [
        [one["model"], f"{one['mean']:.3f}", f"{one['rank']:.1f}", signed(one["lowest_lead"])] for one in standings
    ]
    return title, ["model", "mean", "mean rank", "lowest lead"], cells


def as_published_table(rows: Sequence[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Header and cells: published scores, ours by the rule that they were selected by, and ours by our rule."""
    header = ["dataset", "model", "rule", "n", "published", "by their rule", "in SE", "on validation", "in SE", "adds"]
    cells = []
    for row in rows:
        line = [row["dataset"], row["model"], row["rule"], str(row["n"])]
        line.append(mean_text((row["published"] or {}).get("micro_f1")))
        for score in (row["by_their_rule"], row["on_validation"]):
            # The distance from the published number in standard errors; the plain distance where these are 0.
            distance = signed(score["gap"]) if score["errors"] is None else f"{score['errors']:+.1f} SE"
            line += [f"{score['mean']:.3f} ± {score['error']:.3f}", distance]
        cells.append([*line, signed(row["difference"])])
    return header, cells


def short_title(rows: Sequence[dict[str, Any]]) -> str:
    """The title of a dataset's table on a terminal."""
    rivals = sorted({row["against"]["model"] for row in rows if row["against"]})
    return f"{rows[0]['dataset']}: {rows[0]['protocol']}" + (f"; lead over {', '.join(rivals)}" if rivals else "")


def short_table(rows: Sequence[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Header and cells for a terminal of 80 columns; columns without a number are left out."""
    against = [row["against"] or {} for row in rows]
    columns = {
        "model": [row["model"] for row in rows],
        "n": [str(row["n"]) for row in rows],
        task_of(rows[0]["task"]).headline_word: [spread_text(row["score"], row["n"]).replace(" ", "") for row in rows],
        "95 %": [interval_text(row["interval"]) for row in rows],
        "AUROC": [mean_text(row["auroc"]["mean"]) for row in rows],
        "published": [mean_text((row["published"] or {}).get("micro_f1")) for row in rows],
        "gap": [signed(row["gap"]) for row in rows],
        "lead": [signed(one.get("lead")) for one in against],
        "p": [p_text(one.get("p")) for one in against],
    }
    return _without_empty(columns)


def setting_cells(row: dict[str, Any]) -> list[str]:
    """The cells of a varied setting's value under :data:`SETTING_HEADER`."""
    change = row["change"]
    moved = "the base" if row["same_as_base"] else signed(change["mean"])
    if change["mean"] is not None and not row["same_as_base"] and row["n"] != 1:
        moved += f" ± {change['std']:.3f}"
    name = f"{row['setting']} ({row['model']})"
    return [
        name,
        row["value"],
        str(row["n"]),
        spread_text(row["val"], row["n"]),
        moved,
        "matters" if row["matters"] else "",
    ]


def change_table(rows: Sequence[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Header and cells for a terminal: the lowest and highest change of the validation score by each setting."""
    cells = []
    for name in dict.fromkeys(row["setting"] for row in rows):
        mine = [row for row in rows if row["setting"] == name]
        changes = [row["change"]["mean"] for row in mine if row["change"]["mean"] is not None]
        ends = [signed(min(changes)), signed(max(changes))] if changes else ["", ""]
        cells.append([name, str(len(mine)), *ends, "matters" if mine[0]["matters"] else ""])
    return ["setting", "values", "lowest", "highest", "paper"], cells


def spread_text(found: dict[str, Any] | None, n: int | None = None) -> str:
    """Mean ± deviation over ``n`` runs; the mean alone of one run, and empty without a number.

    Example:
        >>> spread_text({"mean": 0.5, "std": 0.1}, 3), spread_text({"mean": 0.5, "std": 0.0}, 1)
        ('0.500 ± 0.100', '0.500')
    """
    if found is None or found["mean"] is None:
        return ""
    return mean_text(found["mean"]) + (f" ± {found['std']:.3f}" if found["std"] is not None and n != 1 else "")


def mean_text(value: float | None) -> str:
    """A number with three decimals; empty without one."""
    return "" if value is None else f"{value:.3f}"


def interval_text(ends: Sequence[float] | None) -> str:
    """The ends of an interval; empty without one."""
    return "" if ends is None else f"{ends[0]:.3f} to {ends[1]:.3f}"


def signed(value: float | None) -> str:
    """A difference with its sign; empty without a number."""
    return "" if value is None else f"{round(value, 3) + 0.0:+.3f}"


def p_text(value: float | None) -> str:
    """A p-value; small ones as <0.001."""
    if value is None:
        return ""
    return f"{value:.3f}" if value >= 0.001 else "<0.001"


def header_facts(found: dict[str, Any]) -> list[tuple[str, str]]:
    """Protocol, code version and machine of the runs, as pairs of name and text."""
    protocol, made = found["protocol"], found["circumstances"]
    seeds = protocol["seeds"]
    runs = f"{len(seeds)} seeds, {seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else "1 seed"
    folds = protocol["split"] == SPLIT_WORDS["folds"]
    facts = [
        ("Split", FOLDS_WORDS if folds else protocol["split"]),
        ("Seeds", f"{runs}; {found['runs']} runs" if seeds else "no finished run"),
        ("Selection", protocol["selection"]),
        ("Spread", FOLDS_SPREAD if folds else "mean ± population standard deviation over seeds"),
        ("Significance", protocol["test"]),
        # The first digits of each, and the words after them.
        ("Commit", "; ".join(re.sub(r"^(\S{12})\S*", r"\1", one) for one in made["commits"]) or "not known"),
        ("Source, SHA-256", "; ".join(made["source_hashes"])),
        ("Versions", "; ".join(made["versions"])),
        ("Machine", "; ".join(made["hardware"])),
        ("Device", ", ".join(made["devices"])),
    ]
    if found["as_published"]:
        facts.append(("Scored on test", "every epoch of later models, for the table Selected as published alone"))
    if found["left_out"]:
        facts.append(("Not run", f"{', '.join(found['left_out'])}: no data given, or not selected"))
    return facts


def dataset_notes(found: dict[str, Any], rows: Sequence[dict[str, Any]]) -> list[str]:
    """Sentences below a dataset's table: its split, numbers published by others, and chosen settings."""
    dataset, split = rows[0]["dataset"], rows[0]["protocol"]
    notes = [] if split == found["protocol"]["split"] else [f"Split: {split}."]
    published = [
        f"{one['label']} {one['micro_f1'][dataset]:.3f} ({one['source']})"
        for one in found["references"]
        if dataset in one["micro_f1"]
    ]
    notes += [f"Published by others, micro-F1: {'; '.join(published)}."] if published else []
    for row in rows:
        counts = sorted(row["chosen"].items(), key=lambda pair: (-pair[1], pair[0]))
        if len(row["portfolio"]) > 1:
            rules = ", ".join(f"{name} ({n})" for name, n in row["rules"].items())
            weights = ", ".join(f"{one['name']} {one['weight']:.2f}" for one in row["portfolio"] if one["weight"])
            notes.append(f"{row['model']} chose: {rules}; mean weights: {weights}.")
        if any("=" in name for name in row["chosen"]):
            notes.append(f"{row['model']}, chosen on validation: {'; '.join(f'{name} ({n})' for name, n in counts)}.")
    return notes


def by_dataset(rows: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Rows of each dataset, in their order."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(row["dataset"], []).append(row)
    return found
