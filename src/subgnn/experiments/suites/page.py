"""The report of a suite as one HTML file and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from subgnn.experiments.suites.charts import bar_chart, change_chart, overlap_chart, rank_chart, score_chart
from subgnn.experiments.suites.results import Group, projection
from subgnn.experiments.suites.tables import (
    SETTING_HEADER,
    as_published_table,
    by_dataset,
    dataset_notes,
    header_facts,
    score_table,
    setting_cells,
    spread_text,
    standings_table,
)
from subgnn.render import render
from subgnn.reports.calibration import Bin, reliability_chart
from subgnn.reports.charts import Chart
from subgnn.reports.vectors import label_groups, vector_chart
from subgnn.task import metric_name, task_of

AS_PUBLISHED_NOTE = (
    "Test micro-F1 ± standard error over seeds. The published numbers of these models were selected in "
    "three ways: first epoch, the first with the highest validation score; best test among ties, the "
    "highest test score among the epochs with the highest validation score; best test, the highest test score of a "
    "grid. The last two choose by the test split, so their scores are too high, and no other table has them. On "
    "validation: the same runs by the rule of all other tables. In SE: the distance from the published number in "
    "standard errors, or the distance itself where all seeds have one score. Adds: what their rule adds to the score."
)
_STUDIES = {
    "ablation": "Channels",
    "sensitivity": "One setting at a time",
    "generalization": "Seen and unseen nodes",
}


def suite_page(found: dict[str, Any], groups: Sequence[Group]) -> str:
    """The page.

    Args:
        found: the content of report.json.
        groups: the runs, for their vectors.
    """
    study = _study(found)
    vectors = _vector_charts(groups)
    contents = [
        ("protocol", "Protocol"),
        ("scores", "Scores"),
        *([("study", _STUDIES[found["study"]])] if study else []),
        *([("as_published", "Selected as published")] if found["as_published"] else []),
        *([("calibration", "Calibration")] if found["calibration"] else []),
        *([("vectors", "Vectors")] if vectors else []),
        ("failures", "Failed runs"),
    ]
    return render(
        "suite.html",
        **_shared(found),
        lead=found["note"],
        contents=contents,
        titles=dict(contents),
        warnings=found["circumstances"]["warnings"],
        summary=_summary(found),
        ranks=rank_chart(found["standings"], {row["model"] for row in found["rows"] if row["baseline"]})
        if len(found["standings"]) > 1
        else None,
        scores=[_scores(found, dataset, rows) for dataset, rows in by_dataset(found["rows"]).items()],
        compared=any(row["against"] for row in found["rows"]),
        study=study,
        calibration=[
            reliability_chart(
                f"{dataset}: predicted and observed",
                [(row["model"], [Bin(**b) for b in row["bins"]], row["error"]) for row in rows],
            )
            for dataset, rows in by_dataset(found["calibration"]).items()
        ],
        vectors=vectors,
    )


def suite_markdown(found: dict[str, Any]) -> str:
    """report.md: the tables of the page, without its figures."""
    return render(
        "suite.md",
        **_shared(found),
        note=found["note"],
        summary=_summary(found),
        scores=[
            (dataset, *score_table(rows, found["compare"]), dataset_notes(found, rows))
            for dataset, rows in by_dataset(found["rows"]).items()
        ],
        setting_header=SETTING_HEADER,
        settings=[(d, [setting_cells(row) for row in rows]) for d, rows in by_dataset(found["settings"]).items()],
        overlaps=[(d, *_overlap_table(rows)) for d, rows in by_dataset(found["generalization"]).items()],
        calibration=[[row["dataset"], row["model"], f"{row['error']:.3f}"] for row in found["calibration"]],
    )


def failure_text(failure: dict[str, Any]) -> str:
    """A failed run on one line."""
    changed = f", {failure['setting']} = {failure['value']}" if "setting" in failure else ""
    return f"{failure['model']}{changed} on {failure['dataset']}, seed {failure['seed']}: {failure['message']}"


def _shared(found: dict[str, Any]) -> dict[str, Any]:
    """Values that the page and the Markdown have in common."""
    return {
        "title": found["title"],
        "facts": header_facts(found),
        "as_published": as_published_table(found["as_published"]) if found["as_published"] else None,
        "as_published_note": AS_PUBLISHED_NOTE,
        "commands": found["circumstances"]["commands"],
        "sources": sorted({row["published"]["source"] for row in found["rows"] if row["published"]}),
        "failures": [
            *map(failure_text, found["failures"]),
            *(f"fewer runs: {words}" for words in found["missing"]),
        ],
    }


def _scores(found: dict[str, Any], dataset: str, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """A dataset's table, without empty columns, its notes, and its chart."""
    metric = task_of(rows[0]["task"]).headline
    word = metric_name(metric)
    header, cells = score_table(rows, found["compare"])
    means = [row["score"]["mean"] or 0.0 for row in rows]
    best = max(means, default=0.0)
    return {
        "dataset": dataset,
        "header": header,
        "rows": cells,
        "best": ([i for i, mean in enumerate(means) if best and mean == best], 2),
        "notes": dataset_notes(found, rows),
        "chart": score_chart(dataset, rows, metric=metric, word=word) if found["study"] == "table" else None,
    }


def _summary(found: dict[str, Any]) -> tuple[list[str], list[list[str]]] | None:
    """Header and rows of a table of models by datasets, as papers print it, with means and ranks over datasets."""
    rows = found["rows"]
    known = {(row["model"], row["dataset"]): spread_text(row["score"]) for row in rows}
    models, datasets = (list(dict.fromkeys(row[name] for row in rows)) for name in ("model", "dataset"))
    if len(datasets) < 2:
        return None
    _, header, cells = standings_table(found["standings"])
    over_all = {model: numbers for model, *numbers in cells}
    nothing = [""] * (len(header) - 1)
    lines = [[m, *(known.get((m, d), "") for d in datasets), *over_all.get(m, nothing)] for m in models]
    return ["model", *datasets, *header[1:]], lines


def _study(found: dict[str, Any]) -> list[dict[str, Any]]:
    """Charts and tables of the suite's question: caption, header and rows each, where there is a table."""
    if found["study"] == "ablation":
        metrics = (("micro_f1", "micro-F1"), ("auroc", "AUROC"))
        return [{"charts": [bar_chart(found["rows"], metric=m, word=w) for m, w in metrics], "table": None}]
    if found["study"] == "sensitivity":
        return [
            {
                "charts": [change_chart(dataset, rows, word="micro-F1")],
                "table": (f"Values tried on {dataset}", SETTING_HEADER, [setting_cells(row) for row in rows], "scores"),
            }
            for dataset, rows in by_dataset(found["settings"]).items()
        ]
    return [
        {
            "charts": [overlap_chart(dataset, rows)],
            "table": (
                "Test subgraphs by overlap, mean over seeds",
                ("overlap", "subgraphs"),
                [
                    [f"{'above ' if b['begin'] else ''}{b['begin']:.0%} to {b['end']:.0%}", f"{b['subgraphs']:.1f}"]
                    for b in rows[0]["bins"]
                ],
                "",
            ),
        }
        for dataset, rows in by_dataset(found["generalization"]).items()
    ]


def _overlap_table(rows: Sequence[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Header and rows: micro-F1 of each model by node overlap."""
    ends = sorted({b["end"] for row in rows for b in row["bins"]})
    cells = []
    for row in rows:
        known = {b["end"]: spread_text(b["micro_f1"]) for b in row["bins"]}
        constant = ["" if row[name] is None else f"{row[name]:.3f}" for name in ("majority", "random")]
        cells.append([row["model"], str(row["n"]), *(known.get(end, "") for end in ends), *constant])
    return ["model", "n", *(f"up to {end:.0%}" for end in ends), "majority", "random"], cells


def _vector_charts(given: Sequence[Group]) -> list[Chart]:
    charts = []
    for group in (group for group in given if not group.setting):
        known = projection(group)
        if known is not None:
            places, targets, shares, seed = known
            caption = f"{group.label} on {group.dataset}, seed {seed}"
            classes = group.runs[0]["classes"]
            groups = label_groups(targets, classes)
            titles = [classes[i] if i >= 0 else "no label" for i in groups[0]] if classes else map(str, targets)
            charts.append(vector_chart(caption, places, shares, groups, titles=list(titles)))
    return charts
