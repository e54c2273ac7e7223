"""The report of a suite as one HTML file, and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from subgnn.lab.suites.tables import (
    SETTING_HEADER,
    as_published_table,
    by_dataset,
    dataset_notes,
    header_facts,
    mean_text,
    score_table,
    setting_cells,
    spread_text,
    standings_table,
)
from subgnn.render import cut, render
from subgnn.reports.charts import Chart, Key, Mark, Style, group_style, row_axes
from subgnn.task import metric_name, task_of

AS_PUBLISHED_NOTE = (
    "Test micro-F1 ± standard error over seeds. The published numbers of these models were selected in "
    "three ways: first epoch, the first with the highest validation score; best test among ties, the "
    "highest test score among the epochs with the highest validation score; best test, the highest test score of a "
    "grid. The last two choose by the test split, so their scores are too high, and no other table has them. On "
    "validation: the same runs by the rule of all other tables. In SE: the distance from the published number in "
    "standard errors, or the distance itself where all seeds have one score. Adds: what their rule adds to the score."
)

_STUDIES = {"sensitivity": "One setting at a time", "generalization": "Seen and unseen nodes"}


def suite_texts(found: dict[str, Any]) -> tuple[str, str]:
    """The page and, without its figures, the Markdown, from the content of report.json."""
    rows, studied = found["rows"], found["settings"] or found["generalization"]
    sections = {
        "protocol": "Protocol",
        "scores": "Scores",
        "study": _STUDIES[found["study"]] if studied else "",
        "as_published": "Selected as published" if found["as_published"] else "",
        "failures": "Failed runs",
    }
    tried, seen = (by_dataset(found[name]).items() for name in ("settings", "generalization"))
    values = {
        "title": found["title"],
        "lead": found["note"],
        "contents": [(name, title) for name, title in sections.items() if title],
        "titles": sections,
        "warnings": found["circumstances"]["warnings"],
        "summary": _summary(found),
        "facts": header_facts(found),
        "commands": found["circumstances"]["commands"],
        "sources": sorted({row["published"]["source"] for row in rows if row["published"]}),
        "scores": [_scores(found, dataset, mine) for dataset, mine in by_dataset(rows).items()],
        "compared": any(row["against"] for row in rows),
        "study": [
            *((f"Values tried on {d}", SETTING_HEADER, [setting_cells(row) for row in mine]) for d, mine in tried),
            *((f"Test micro-F1 by overlap on {d}", *_overlap_table(mine)) for d, mine in seen),
        ],
        "as_published": as_published_table(found["as_published"]) if found["as_published"] else None,
        "as_published_note": AS_PUBLISHED_NOTE,
        "failures": [*map(failure_text, found["failures"]), *(f"incomplete: {words}" for words in found["missing"])],
    }
    return render("suite.html", "subgnn.lab", **values), render("suite.md", "subgnn.lab", **values)


def failure_text(failure: dict[str, Any]) -> str:
    """A failed run on one line."""
    changed = f", {failure['setting']} = {failure['value']}" if "setting" in failure else ""
    return f"{failure['model']}{changed} on {failure['dataset']}, seed {failure['seed']}: {failure['message']}"


def _scores(found: dict[str, Any], dataset: str, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """A dataset's table, without empty columns, its notes, and its chart."""
    header, cells = score_table(rows, found["compare"])
    means = [row["score"]["mean"] or 0.0 for row in rows]
    return {
        "dataset": dataset,
        "header": header,
        "rows": cells,
        "best": ([i for i, mean in enumerate(means) if mean and mean == max(means)], 2),
        "notes": dataset_notes(found, rows),
        "chart": score_chart(dataset, rows) if found["study"] in ("table", "ablation") else None,
    }


def _summary(found: dict[str, Any]) -> tuple[list[str], list[list[str]]] | None:
    """Header and rows of a table of models by datasets, as papers print it, with means and ranks over datasets."""
    rows = found["rows"]
    known = {(row["model"], row["dataset"]): spread_text(row["score"], row["n"]) for row in rows}
    models, datasets = (list(dict.fromkeys(row[name] for row in rows)) for name in ("model", "dataset"))
    if len(datasets) < 2:
        return None
    _, header, cells = standings_table(found["standings"])
    over_all = {model: numbers for model, *numbers in cells}
    nothing = [""] * (len(header) - 1)
    lines = [[m, *(known.get((m, d), "") for d in datasets), *over_all.get(m, nothing)] for m in models]
    return ["model", *datasets, *header[1:]], lines


def _overlap_table(rows: Sequence[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Header and rows: micro-F1 of each model by node overlap."""
    ends = sorted({b["end"] for row in rows for b in row["bins"]})
    cells = []
    for row in rows:
        known = {b["end"]: spread_text(b["micro_f1"], row["n"]) for b in row["bins"]}
        constant = [mean_text(row[name]) for name in ("majority", "random")]
        cells.append([row["model"], str(row["n"]), *(known.get(end, "") for end in ends), *constant])
    return ["model", "n", *(f"up to {end:.0%}" for end in ends), "majority", "random"], cells


_NAME_LETTERS = 24
_PUBLISHED = Style("published", "diamond")


def score_chart(dataset: str, rows: Sequence[dict[str, Any]]) -> Chart:
    """A row for each model: its mean, its deviation, and the published number."""
    metric = task_of(rows[0]["task"]).headline
    word = metric_name(metric)
    known = [(row, row["test"].get(metric, {})) for row in rows]
    scored = [(row, score["mean"], score["std"]) for row, score in known if score.get("mean") is not None]
    top = max([mean + std for _, mean, std in scored], default=1.0)
    marks = []
    for i, (row, mean, std) in enumerate(scored):
        low, high = row["interval"] or (mean - std, mean + std)
        title = f"{row['model']}: {mean:.3f}, {low:.3f} to {high:.3f}, {row['n']} runs"
        style = group_style(1 if row["baseline"] else 0)
        marks.append(Mark(x=mean, y=i + 0.5, title=title, size=4, x_range=(low, high), style=style))
        number = (row["published"] or {}).get(metric)
        if number is not None:
            marks.append(Mark(x=number, y=i + 0.5, title=f"published: {number:.3f}", style=_PUBLISHED))
    constant = next((row["majority"] for row, _, _ in scored if row["majority"] is not None), None)
    by_folds = any(row["interval"] for row, _, _ in scored)
    whisker = Key("95 % interval" if by_folds else "± 1 deviation", line="whisker")
    key = [Key("model", style=group_style(0)), Key("baseline", style=group_style(1)), whisker]
    key += [Key("published", style=_PUBLISHED)] if any(m.style is _PUBLISHED for m in marks) else []
    key += (
        [Key("mean value" if metric == "r2" else "most frequent class", line="limit")] if constant is not None else []
    )
    shown = "; ".join(f"{row['model']} {mean:.3f}" for row, mean, _ in scored)
    return Chart(
        f"{dataset}: test {word}",
        f"Test {word} on {dataset}: {shown}",
        row_axes(
            [cut(row["model"], _NAME_LETTERS) for row, _, _ in scored],
            (min([0.0, *(mean - std for _, mean, std in scored)]), top if metric == "r2" else max(1.0, top)),
            f"test {word}",
        ),
        rules=[] if constant is None else [(constant, "limit")],
        marks=marks,
        key=key,
    )
