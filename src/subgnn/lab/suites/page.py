"""The report of a suite as one HTML file with charts, and as Markdown."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from subgnn.lab.suites.results import Group
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
from subgnn.reports.charts import (
    Box,
    Chart,
    Key,
    Line,
    Mark,
    Style,
    group_line,
    group_style,
    number_axes,
    padded_range,
    row_axes,
)
from subgnn.reports.figures import Bin, label_groups, principal_axes, reliability_chart, vector_chart
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
    "table": "",
    "ablation": "Channels",
    "sensitivity": "One setting at a time",
    "generalization": "Seen and unseen nodes",
}


def suite_page(found: dict[str, Any], groups: Sequence[Group]) -> str:
    """The page, from the content of report.json and the runs, for their vectors."""
    rows, ranked = found["rows"], len(found["standings"]) > 1
    study, vectors = _study(found), _vector_charts(groups)
    sections = {
        "protocol": "Protocol",
        "scores": "Scores",
        "study": _STUDIES[found["study"]] if study else "",
        "as_published": "Selected as published" if found["as_published"] else "",
        "calibration": "Calibration" if found["calibration"] else "",
        "vectors": "Vectors" if vectors else "",
        "failures": "Failed runs",
    }
    return render(
        "suite.html",
        "subgnn.lab",
        **_shared(found),
        lead=found["note"],
        contents=[(name, title) for name, title in sections.items() if title],
        titles=sections,
        warnings=found["circumstances"]["warnings"],
        ranks=rank_chart(found["standings"], {row["model"] for row in rows if row["baseline"]}) if ranked else None,
        scores=[_scores(found, dataset, mine) for dataset, mine in by_dataset(rows).items()],
        compared=any(row["against"] for row in rows),
        study=study,
        calibration=[
            reliability_chart(
                f"{dataset}: predicted and observed",
                [(row["model"], [Bin(**b) for b in row["bins"]], row["error"]) for row in mine],
            )
            for dataset, mine in by_dataset(found["calibration"]).items()
        ],
        vectors=vectors,
    )


def suite_markdown(found: dict[str, Any]) -> str:
    """report.md: the tables of the page, without its figures."""
    return render(
        "suite.md",
        "subgnn.lab",
        **_shared(found),
        note=found["note"],
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
        "summary": _summary(found),
        "facts": header_facts(found),
        "as_published": as_published_table(found["as_published"]) if found["as_published"] else None,
        "as_published_note": AS_PUBLISHED_NOTE,
        "commands": found["circumstances"]["commands"],
        "sources": sorted({row["published"]["source"] for row in found["rows"] if row["published"]}),
        "failures": [
            *map(failure_text, found["failures"]),
            *(f"incomplete: {words}" for words in found["missing"]),
        ],
    }


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
        "chart": score_chart(dataset, rows) if found["study"] == "table" else None,
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


def _study(found: dict[str, Any]) -> list[dict[str, Any]]:
    """Charts and tables of the suite's question: caption, header and rows each, where there is a table."""
    if found["study"] == "ablation":
        metrics = (("micro_f1", "micro-F1"), ("auroc", "AUROC"))
        return [{"charts": [bar_chart(found["rows"], metric=m, word=w) for m, w in metrics], "table": None}]
    if found["study"] == "sensitivity":
        return [
            {
                "charts": [change_chart(dataset, rows)],
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
        known = {b["end"]: spread_text(b["micro_f1"], row["n"]) for b in row["bins"]}
        constant = [mean_text(row[name]) for name in ("majority", "random")]
        cells.append([row["model"], str(row["n"]), *(known.get(end, "") for end in ends), *constant])
    return ["model", "n", *(f"up to {end:.0%}" for end in ends), "majority", "random"], cells


def _vector_charts(groups: Sequence[Group]) -> list[Chart]:
    """For each model, z_S of the test subgraphs of a run that saved them, on their first two principal axes."""
    charts = []
    for group in (group for group in groups if not group.setting):
        saved = ((run, found) for run, found in group.predictions() if "vectors" in found)
        known = next(((run, found, a) for run, found in saved if (a := principal_axes(found["vectors"]))), None)
        if known is not None:
            run, found, axes = known
            classes, targets = run["classes"], found["targets"]
            groups_of_labels = label_groups(targets, classes)
            titles = (
                [classes[i] if i >= 0 else "no label" for i in groups_of_labels[0]] if classes else map(str, targets)
            )
            caption = f"{group.label} on {group.dataset}, seed {run['seed']}"
            charts.append(vector_chart(caption, *axes, groups_of_labels, titles=list(titles)))
    return charts


_NAME_LETTERS = 24
_MATTERS = 0.05
_PUBLISHED = Style("published", "diamond")
_DEVIATION = Key("± 1 deviation", line="whisker")


def _scored(rows: Sequence[dict[str, Any]], metric: str) -> list[tuple[dict[str, Any], float, float]]:
    """Rows with a test score, their mean and their deviation."""
    known = [(row, row["test"].get(metric, {})) for row in rows]
    return [(row, score["mean"], score["std"]) for row, score in known if score.get("mean") is not None]


def _published_marks(row: dict[str, Any], metric: str, *, x: float | None = None, y: float | None = None) -> list[Mark]:
    """A diamond at the published number, along the axis that is not given."""
    number = (row["published"] or {}).get(metric)
    if number is None:
        return []
    x, y = number if x is None else x, number if y is None else y
    return [Mark(x=x, y=y, title=f"published: {number:.3f}", style=_PUBLISHED)]


def score_chart(dataset: str, rows: Sequence[dict[str, Any]]) -> Chart:
    """A row for each model: its mean, its deviation, and the published number."""
    metric = task_of(rows[0]["task"]).headline
    word = metric_name(metric)
    scored = _scored(rows, metric)
    top = max([mean + std for _, mean, std in scored], default=1.0)
    marks = []
    for i, (row, mean, std) in enumerate(scored):
        low, high = row["interval"] or (mean - std, mean + std)
        title = f"{row['model']}: {mean:.3f}, {low:.3f} to {high:.3f}, {row['n']} runs"
        style = group_style(1 if row["baseline"] else 0)
        marks.append(Mark(x=mean, y=i + 0.5, title=title, size=4, x_range=(low, high), style=style))
        marks += _published_marks(row, metric, y=i + 0.5)
    constant = next((row["majority"] for row, _, _ in scored if row["majority"] is not None), None)
    by_folds = any(row["interval"] for row, _, _ in scored)
    whisker = Key("95 % interval", line="whisker") if by_folds else _DEVIATION
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


def rank_chart(standings: Sequence[dict[str, Any]], baselines: Collection[str]) -> Chart:
    """A row for each model, from the lowest mean rank over datasets to the highest."""
    ordered = sorted(standings, key=lambda one: one["rank"])
    marks = [
        Mark(
            x=one["rank"],
            y=i + 0.5,
            title=f"{one['model']}: mean rank {one['rank']:.2f}, mean score {one['mean']:.3f}",
            size=4,
            style=group_style(1 if one["model"] in baselines else 0),
        )
        for i, one in enumerate(ordered)
    ]
    datasets, shown = ordered[0]["datasets"], "; ".join(f"{one['model']} {one['rank']:.1f}" for one in ordered)
    return Chart(
        f"Mean rank over {datasets} datasets",
        f"Mean rank over {datasets} datasets: {shown}",
        row_axes(
            [cut(one["model"], _NAME_LETTERS) for one in ordered], (1.0, float(len(ordered))), "mean rank; 1 is best"
        ),
        marks=marks,
        key=[Key("model", style=group_style(0)), Key("baseline", style=group_style(1))],
    )


def bar_chart(rows: Sequence[dict[str, Any]], *, metric: str, word: str) -> Chart:
    """A group of bars for each dataset, a bar for each model; deviations, and published numbers as diamonds."""
    scored = _scored(rows, metric)
    datasets = list(dict.fromkeys(row["dataset"] for row, _, _ in scored))
    models = list(dict.fromkeys(row["model"] for row, _, _ in scored))
    width, boxes, marks = 0.8 / max(1, len(models)), [], []
    for row, mean, std in scored:
        group = models.index(row["model"])
        left = datasets.index(row["dataset"]) + 0.1 + group * width
        title = f"{row['model']} on {row['dataset']}: {spread_text({'mean': mean, 'std': std}, row['n'])}"
        boxes.append(Box((left, left + 0.95 * width), (0, mean), title, f"c{group % 8}"))
        span = (max(0.0, mean - std), mean + std)
        marks.append(Mark(x=left + width / 2, y=mean, title=title, style=Style("hover"), size=1, y_range=span))
        marks += _published_marks(row, metric, x=left + width / 2)
    key = [Key(model, style=Style(f"c{i % 8}", "box")) for i, model in enumerate(models)]
    key.append(_DEVIATION)
    key += [Key("published", style=_PUBLISHED)] if any(row["published"] for row, _, _ in scored) else []
    return Chart(
        f"Test {word} by model",
        f"Grouped bars of test {word}: {', '.join(models)} on {', '.join(datasets)}.",
        number_axes(
            (0, max(1, len(datasets))),
            (0, max([1.0, *(mean + std for _, mean, std in scored)])),
            "dataset",
            f"test {word}",
            x_ticks=[(i + 0.5, cut(name, 16)) for i, name in enumerate(datasets)],
        ),
        boxes=boxes,
        marks=marks,
        key=key,
    )


def change_chart(dataset: str, rows: Sequence[dict[str, Any]]) -> Chart:
    """For each setting, the change of validation micro-F1 at each of its values."""
    settings = list(dict.fromkeys(row["setting"] for row in rows))
    known = [row for row in rows if row["change"]["mean"] is not None]
    lines, marks, largest = [], [], []
    for i, setting in enumerate(settings):
        mine = [row for row in known if row["setting"] == setting]
        means = [row["change"]["mean"] for row in mine]
        largest.append(f"{setting} {max(map(abs, means), default=0.0):.3f}")
        y = i + 0.7  # the name is above
        lines += [Line([min(means), max(means)], [y, y], "range")] if means else []
        for row in mine:
            mean, std = row["change"]["mean"], row["change"]["std"]
            title = (
                f"{setting} = {row['value']}: {mean:+.3f}{f' ± {std:.3f}' if row['n'] > 1 else ''}, seeds: {row['n']}"
            )
            marks.append(Mark(x=mean, y=y, title=title, size=4, style=group_style(0 if row["matters"] else 1)))
    matters = {row["setting"] for row in rows if row["matters"]}
    return Chart(
        f"{dataset}: one setting at a time",
        f"Largest change of validation micro-F1 on {dataset} by setting: {'; '.join(largest)}",
        row_axes(
            [f"{'★ ' if setting in matters else ''}{setting}" for setting in settings],
            padded_range([*(row["change"]["mean"] for row in known), -1.4 * _MATTERS, 1.4 * _MATTERS]),
            "change of validation micro-F1",
            names_above=True,
        ),
        rules=[(0.0, "zero"), (-_MATTERS, "limit"), (_MATTERS, "limit")],
        lines=lines,
        marks=marks,
        key=[
            Key("★ matters according to the paper", style=group_style(0)),
            Key("does not", style=group_style(1)),
            Key(f"± {_MATTERS}", line="limit"),
        ],
    )


def overlap_chart(dataset: str, rows: Sequence[dict[str, Any]]) -> Chart:
    """Micro-F1 against node overlap, a line for each model, with a constant and a random prediction."""
    lines, marks, key = [], [], []
    for value, kind, word in ((rows[0]["majority"], "even", "majority"), (rows[0]["random"], "limit", "random")):
        if value is not None:
            lines.append(Line([0, 1], [value, value], kind))
            key.append(Key(f"{word}, {value:.3f}", line=kind))
    for group, row in enumerate(rows):
        bins = [b for b in row["bins"] if b["micro_f1"]["mean"] is not None]
        # Beside each other, so that the ranges of several models can be told apart.
        shift = 0.012 * (group - (len(rows) - 1) / 2)
        xs = [(b["begin"] + b["end"]) / 2 + shift for b in bins]
        lines.append(Line(xs, [b["micro_f1"]["mean"] for b in bins], group_line(group)))
        for x, b in zip(xs, bins, strict=True):
            mean, std = b["micro_f1"]["mean"], b["micro_f1"]["std"]
            share = f"overlap {'above' if b['begin'] else 'from'} {b['begin']:.0%} to {b['end']:.0%}"
            score = spread_text(b["micro_f1"], row["n"])
            title = f"{row['model']}, {share}: {score}, {b['subgraphs']:.1f} subgraphs per seed"
            span = (max(0.0, mean - std), min(1.0, mean + std))
            marks.append(Mark(x=x, y=mean, title=title, size=4, y_range=span, style=group_style(group)))
        key.append(Key(row["model"], line=group_line(group), style=group_style(group)))
    return Chart(
        f"{dataset}: seen and unseen nodes",
        f"Test micro-F1 on {dataset} against node overlap, {len(rows)} models.",
        number_axes((0, 1), (0, 1), "largest node overlap with a training subgraph", "test micro-F1"),
        lines=lines,
        marks=marks,
        key=key,
    )
