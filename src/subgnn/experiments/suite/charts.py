"""The figures of a suite's report, as inline SVG."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from subgnn.experiments.suite.answers import first_label
from subgnn.reports.agreement import Bin
from subgnn.reports.marks import diamond, mark, mark_key, stroke, swatch
from subgnn.reports.markup import Markup, cut, join, tag
from subgnn.reports.svg import MAX_POINTS, WIDTH, Axes, Scale, around, chart, thin

_ROW, _TOP = 22, 8
_NAME_LETTERS, _LETTER = 26, 6.9
_MATTERS = 0.05


def tall_chart(caption: str, description: str, height: float, *parts: str, key: str = "") -> Markup:
    """A figure of any height."""
    drawing = tag(
        "svg", *parts, viewBox=f"0 0 {WIDTH} {height:.0f}", role="img", aria_label=description, class_="chart"
    )
    return tag("figure", tag("figcaption", caption), drawing, key)


def _across(place: Scale, height: float, label: str) -> Markup:
    """An axis below rows, with lines up through them."""
    parts = []
    for value in place.ticks():
        at = place(value)
        parts.append(tag("line", x1=at, x2=at, y1=_TOP, y2=height - 40, class_="grid"))
        parts.append(tag("text", f"{value:.4g}", x=at, y=height - 24, class_="tick x"))
    parts.append(tag("line", x1=place.begin, x2=place.end, y1=height - 40, y2=height - 40, class_="axis"))
    parts.append(tag("text", label, x=(place.begin + place.end) / 2, y=height - 6, class_="label"))
    return join(parts)


def score_chart(dataset: str, rows: Sequence[dict[str, Any]], *, metric: str = "micro_f1", word: str) -> Markup:
    """Each model's mean on a line of its own, its deviation, and the published number."""
    shown = [row for row in rows if row["test"].get(metric, {}).get("mean") is not None]
    height = _TOP + _ROW * len(shown) + 44
    published = [row["published"][metric] for row in shown if row["published"] and metric in row["published"]]
    means = [(row["test"][metric]["mean"], row["test"][metric]["std"]) for row in shown]
    low = min([0.0, *(mean - std for mean, std in means)])
    high = max([1.0, *(mean + std for mean, std in means)]) if metric != "r2" else max(m + s for m, s in means)
    names = [cut(row["model"], _NAME_LETTERS) for row in shown]
    beside = 12 + _LETTER * max((len(name) for name in names), default=0)
    place = Scale(low, high, beside, WIDTH - 12)
    parts = [_across(place, height, f"test {word}")]
    for i, (row, (mean, std)) in enumerate(zip(shown, means, strict=True)):
        y, group = _TOP + _ROW * (i + 0.5), 1 if row["baseline"] else 0
        parts.append(tag("text", names[i], x=beside - 6, y=y + 4, class_="tick y name"))
        title = f"{row['model']}: {mean:.3f} ± {std:.3f}, {row['n']} seeds"
        parts.append(tag("line", x1=place(mean - std), x2=place(mean + std), y1=y, y2=y, class_="whisker"))
        parts.append(mark(place(mean), y, group, title))
        if row["published"] and metric in row["published"]:
            number = row["published"][metric]
            parts.append(diamond(place(number), y, f"published: {number:.3f}"))
    majority = next((row["majority"] for row in shown if row["majority"] is not None), None)
    entries = [(mark(13, 6, 0, ""), "SubGNN"), (mark(13, 6, 1, ""), "baseline"), (stroke("whisker"), "± 1 deviation")]
    if published:
        entries.append((diamond(13, 6, ""), "published"))
    if majority is not None and metric != "auroc":
        at = place(majority)
        parts.insert(1, tag("line", x1=at, x2=at, y1=_TOP, y2=height - 40, class_="limit"))
        entries.append((stroke("limit"), "constant answer"))
    description = f"Test {word} on {dataset}: " + "; ".join(
        f"{r['model']} {m:.3f}" for r, (m, _) in zip(shown, means, strict=True)
    )
    return tall_chart(f"{dataset}: test {word}", description, height, *parts, key=mark_key(entries))


def bar_chart(rows: Sequence[dict[str, Any]], *, metric: str, word: str) -> Markup:
    """A group of bars a dataset, a bar a model; deviations, and published numbers as diamonds."""
    shown = [row for row in rows if row["test"].get(metric, {}).get("mean") is not None]
    datasets = list(dict.fromkeys(row["dataset"] for row in shown))
    models = list(dict.fromkeys(row["model"] for row in shown))
    tops = [row["test"][metric]["mean"] + row["test"][metric]["std"] for row in shown]
    axes = Axes.of((0, max(1, len(datasets))), (0, max([1.0, *tops])))
    parts = [axes.frame("dataset", f"test {word}", x_ticks=False)]
    width = 0.8 / max(1, len(models))
    for i, dataset in enumerate(datasets):
        parts.append(tag("text", cut(dataset, 16), x=axes.x(i + 0.5), y=axes.y(0) + 17, class_="tick x name"))
        for row in (row for row in shown if row["dataset"] == dataset):
            j, found = models.index(row["model"]), row["test"][metric]
            left, middle = axes.x(i + 0.1 + j * width), axes.x(i + 0.1 + (j + 0.5) * width)
            top, title = axes.y(found["mean"]), f"{row['model']} on {dataset}: {found['mean']:.3f} ± {found['std']:.3f}"
            wide = axes.x(width) - axes.x(0) - 1
            parts.append(
                tag("rect", tag("title", title), x=left, y=top, width=wide, height=axes.y(0) - top, class_=f"c{j % 8}")
            )
            low, high = axes.y(max(0.0, found["mean"] - found["std"])), axes.y(found["mean"] + found["std"])
            parts.append(tag("line", x1=middle, x2=middle, y1=low, y2=high, class_="whisker"))
            if row["published"] and metric in row["published"]:
                number = row["published"][metric]
                parts.append(diamond(middle, axes.y(number), f"published: {number:.3f}", size=4))
    entries = [(swatch(j), model) for j, model in enumerate(models)]
    entries += [(stroke("whisker"), "± 1 deviation")]
    entries += [(diamond(13, 6, "", size=4), "published")] if any(row["published"] for row in shown) else []
    description = f"Grouped bars of test {word}: {', '.join(models)} on {', '.join(datasets)}."
    return chart(f"Test {word} by model", description, *parts, key=mark_key(entries))


def change_chart(dataset: str, rows: Sequence[dict[str, Any]], *, word: str) -> Markup:
    """For each setting, the change of the validation score at each of its values."""
    settings = list(dict.fromkeys(row["setting"] for row in rows))
    changes = [row["change"]["mean"] for row in rows if row["change"]["mean"] is not None]
    low, high = around([*changes, -1.4 * _MATTERS, 1.4 * _MATTERS])
    # Names are long here, so each stands above its line.
    step, begin = 40, 16
    height = _TOP + step * len(settings) + 44
    place = Scale(low, high, begin, WIDTH - 16)
    parts = [_across(place, height, f"change of validation {word}")]
    for value, kind in ((0.0, "zero"), (-_MATTERS, "limit"), (_MATTERS, "limit")):
        parts.append(tag("line", x1=place(value), x2=place(value), y1=_TOP, y2=height - 40, class_=kind))
    for i, setting in enumerate(settings):
        y, mine = _TOP + step * i + 28, [row for row in rows if row["setting"] == setting]
        name = f"{'★ ' if mine[0]['matters'] else ''}{setting}"
        parts.append(tag("text", name, x=begin, y=y - 13, class_="name"))
        known = [row for row in mine if row["change"]["mean"] is not None]
        if not known:
            continue
        ends = [row["change"]["mean"] for row in known]
        parts.append(tag("line", x1=place(min(ends)), x2=place(max(ends)), y1=y, y2=y, class_="range"))
        for row in known:
            mean, std = row["change"]["mean"], row["change"]["std"]
            title = f"{setting} = {row['value']}: {mean:+.3f} ± {std:.3f}, {row['n']} seeds"
            parts.append(mark(place(mean), y, 0 if row["matters"] else 1, title))
    entries = [
        (mark(13, 6, 0, ""), "★ matters, says the paper"),
        (mark(13, 6, 1, ""), "does not"),
        (stroke("limit"), f"± {_MATTERS}"),
    ]
    reach = {
        s: max((abs(r["change"]["mean"] or 0.0) for r in rows if r["setting"] == s), default=0.0) for s in settings
    }
    words = "; ".join(f"{setting} {size:.3f}" for setting, size in reach.items())
    description = f"Largest change of validation {word} on {dataset} by setting: {words}"
    return tall_chart(f"{dataset}: one setting at a time", description, height, *parts, key=mark_key(entries))


def overlap_chart(
    dataset: str, lines: Sequence[tuple[str, list[dict[str, Any]]]], *, majority: float | None, chance: float | None
) -> Markup:
    """Micro-F1 against overlap, a line a model, with the two answers that look at nothing."""
    axes = Axes.of((0, 1), (0, 1))
    parts = [axes.frame("largest node overlap with a training subgraph", "test micro-F1")]
    entries = []
    for value, kind, word in ((majority, "even", "majority"), (chance, "limit", "random")):
        if value is not None:
            parts.append(axes.line([0, 1], [value, value], kind))
            entries.append((stroke(kind), f"{word}, {value:.3f}"))
    for group, (name, bins) in enumerate(lines):
        known = [b for b in bins if b["micro_f1"]["mean"] is not None]
        # Beside each other, so that the ranges of several models can be told apart.
        shift = 0.012 * (group - (len(lines) - 1) / 2)
        xs = [(b["begin"] + b["end"]) / 2 + shift for b in known]
        parts.append(axes.line(xs, [b["micro_f1"]["mean"] for b in known], f"s{group % 8}"))
        for x, b in zip(xs, known, strict=True):
            mean, std = b["micro_f1"]["mean"], b["micro_f1"]["std"]
            parts.append(axes.span(x, max(0.0, mean - std), min(1.0, mean + std), "whisker"))
            title = f"{name}, {_share_words(b)}: {mean:.3f} ± {std:.3f}, {b['subgraphs']:.1f} subgraphs a seed"
            parts.append(mark(axes.x(x), axes.y(mean), group, title))
        entries.append((join([stroke(f"s{group % 8}"), mark(13, 6, group, "")]), name))
    description = f"Test micro-F1 on {dataset} against node overlap, {len(lines)} models."
    return chart(f"{dataset}: seen and unseen nodes", description, *parts, key=mark_key(entries))


def _share_words(found: dict[str, Any]) -> str:
    return f"overlap {'from' if found['begin'] == 0 else 'above'} {found['begin']:.0%} to {found['end']:.0%}"


def reliability_chart(dataset: str, lines: Sequence[tuple[str, list[Bin], float]]) -> Markup:
    """Probability said against the share that was right, a line a model."""
    axes = Axes.of((0, 1), (0, 1))
    parts = [axes.frame("probability said", "share right"), axes.line([0, 1], [0, 1], "even")]
    entries = [(stroke("even"), "as it should be")]
    for group, (name, bins, error) in enumerate(lines):
        parts.append(axes.line([b.said for b in bins], [b.right for b in bins], f"s{group % 8}"))
        for b in bins:
            title = f"{name}: {b.count} answers, said {b.said:.3f}, seen {b.right:.3f}"
            parts.append(mark(axes.x(b.said), axes.y(b.right), group, title))
        entries.append((join([stroke(f"s{group % 8}"), mark(13, 6, group, "")]), f"{name}, error {error:.3f}"))
    description = f"Reliability curves on {dataset}: " + ", ".join(f"{name} error {e:.3f}" for name, _, e in lines)
    return chart(f"{dataset}: said and seen", description, *parts, key=mark_key(entries))


def vector_chart(
    caption: str, places: NDArray[Any], targets: NDArray[Any], shares: tuple[float, float], classes: Sequence[str]
) -> Markup:
    """Vectors on two axes; colour and shape are the label, or nothing where labels are real values."""
    axes = Axes.of(around(places[:, 0].tolist()), around(places[:, 1].tolist()))
    words = [f"principal axis {i + 1}, {share:.0%} of variance" for i, share in enumerate(shares)]
    parts, seen = [axes.frame(*words)], set()
    for row in thin(len(places), MAX_POINTS):
        label = first_label(targets, row) if classes else 0
        name = classes[label] if classes and label >= 0 else f"{targets[row]}"
        seen.add(label)
        parts.append(mark(axes.x(places[row, 0]), axes.y(places[row, 1]), max(label, 0), name, size=3.2))
    entries = [(mark(13, 6, i, ""), cut(name, 30)) for i, name in enumerate(classes) if i in seen]
    description = f"Scatter plot of {len(places)} test subgraphs on two principal axes, by label."
    return chart(caption, description, *parts, key=mark_key(entries) if entries else "")
