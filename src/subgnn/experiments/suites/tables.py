"""Cells of a suite's tables, for the page, report.md and the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

HEADER = ("model", "n", "micro-F1", "AUROC", "published", "gap", "over best baseline", "p", "s a run", "MB")
SETTING_HEADER = ("setting", "value", "n", "validation", "change", "paper")


def score_cells(row: dict[str, Any]) -> list[str]:
    """A row's cells under :data:`HEADER`; R^2 replaces micro-F1 for real values."""
    headline = "r2" if row["task"] == "regression" else "micro_f1"
    against, published = row["against"], row["published"] or {}
    return [
        row["model"],
        str(row["n"]),
        spread_text(row["test"].get(headline)),
        spread_text(row["auroc"]),
        spread_text({"mean": published.get("micro_f1"), "std": published.get("micro_f1_std")}),
        signed(row["gap"]),
        f"{signed(against['lead'])} ({against['model']})" if against else "",
        p_text(against["p"]) if against else "",
        f"{row['seconds']['mean']:.1f}",
        f"{row['peak_memory_mb']:,.0f}",
    ]


def short_title(rows: Sequence[dict[str, Any]]) -> str:
    """The title of a dataset's table on a terminal."""
    rivals = sorted({row["against"]["model"] for row in rows if row["against"]})
    return f"{rows[0]['dataset']}: {rows[0]['protocol']}" + (f"; lead over {', '.join(rivals)}" if rivals else "")


def short_table(rows: Sequence[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Header and cells for a terminal of 80 columns; columns without a number are left out."""
    headline = "r2" if rows[0]["task"] == "regression" else "micro_f1"
    header = ["model", "n", "R2" if headline == "r2" else "micro-F1", "AUROC", "published", "gap", "lead", "p"]
    cells = []
    for row in rows:
        published, against = row["published"] or {}, row["against"] or {}
        means = ({"mean": value, "std": None} for value in (row["auroc"]["mean"], published.get("micro_f1")))
        score = spread_text(row["test"].get(headline)).replace(" ", "")
        numbers = [*map(spread_text, means), *map(signed, (row["gap"], against.get("lead")))]
        cells.append([row["model"], str(row["n"]), score, *numbers, p_text(against.get("p"))])
    kept = [i for i in range(len(header)) if any(line[i] for line in cells)]
    return [header[i] for i in kept], [[line[i] for i in kept] for line in cells]


def setting_cells(row: dict[str, Any]) -> list[str]:
    """The cells of a varied setting's value under :data:`SETTING_HEADER`."""
    change = row["change"]
    moved = "the base" if row["same_as_base"] else signed(change["mean"])
    if change["mean"] is not None and not row["same_as_base"]:
        moved += f" ± {change['std']:.3f}"
    name = f"{row['setting']} ({row['model']})"
    return [name, row["value"], str(row["n"]), spread_text(row["val"]), moved, "matters" if row["matters"] else ""]


def change_table(rows: Sequence[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Header and cells for a terminal: the lowest and highest change of the validation score by each setting."""
    cells = []
    for name in dict.fromkeys(row["setting"] for row in rows):
        mine = [row for row in rows if row["setting"] == name]
        changes = [row["change"]["mean"] for row in mine if row["change"]["mean"] is not None]
        ends = [signed(min(changes)), signed(max(changes))] if changes else ["", ""]
        cells.append([name, str(len(mine)), *ends, "matters" if mine[0]["matters"] else ""])
    return ["setting", "values", "lowest", "highest", "paper"], cells


def spread_text(found: dict[str, Any] | None) -> str:
    """Mean ± deviation; empty without a number."""
    if found is None or found["mean"] is None:
        return ""
    return f"{found['mean']:.3f}" + (f" ± {found['std']:.3f}" if found["std"] is not None else "")


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
    facts = [
        ("Split", protocol["split"]),
        ("Seeds", f"{runs}; {found['runs']} runs" if seeds else "no finished run"),
        ("Selection", protocol["selection"]),
        ("Spread", "mean ± population standard deviation over seeds"),
        ("Significance", protocol["test"]),
        ("Commit", "; ".join(map(_short_commit, made["commits"])) or "not known"),
        ("Source, SHA-256", "; ".join(made["source_hashes"])),
        ("Versions", "; ".join(made["versions"])),
        ("Machine", "; ".join(made["hardware"])),
        ("Device", ", ".join(made["devices"])),
    ]
    if found["left_out"]:
        facts.append(("Not run", f"{', '.join(found['left_out'])}: no data given, or not selected"))
    return facts


def _short_commit(commit: str) -> str:
    """The first digits of a commit, and the words after them."""
    digits, *words = commit.split(" ")
    return " ".join([digits[:12], *words])


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
        if any("=" in name for name in row["chosen"]):
            notes.append(f"{row['model']}, chosen on validation: {'; '.join(f'{name} ({n})' for name, n in counts)}.")
    return notes


def by_dataset(rows: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Rows of each dataset, in their order."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(row["dataset"], []).append(row)
    return found
