"""Figures on the pages of runs and suites: reliability diagrams, and maps of the vectors of subgraphs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from subgnn.metrics.calibration import Bin
from subgnn.render import cut
from subgnn.reports.charts import (
    MAX_POINTS,
    Chart,
    Key,
    Line,
    Mark,
    Style,
    group_line,
    group_style,
    number_axes,
    padded_range,
    thin,
)

_WRONG = " wrong"
_LEVELS = 5


def reliability_chart(
    caption: str, curves: Sequence[tuple[str, Sequence[Bin], float]], *, share: str = "share correct"
) -> Chart:
    """Predicted probabilities against observed shares, from the name, bins and error of each model."""
    lines, key, marks = [Line([0, 1], [0, 1], "even")], [Key("perfect calibration", line="even")], []
    for group, (name, bins, error) in enumerate(curves):
        lines.append(Line([b.said for b in bins], [b.right for b in bins], group_line(group)))
        key.append(Key(f"{name}, error {error:.3f}", line=group_line(group), style=group_style(group)))
        for b in bins:
            title = f"{name}: {b.count} predictions, predicted {b.said:.3f}, observed {b.right:.3f}"
            interval = (b.low, b.high) if len(curves) == 1 else None
            marks.append(Mark(x=b.said, y=b.right, title=title, style=group_style(group), size=4, y_range=interval))
    errors = ", ".join(f"{name} error {error:.3f}" for name, _, error in curves)
    return Chart(
        caption,
        f"Reliability diagram: {errors}.",
        number_axes((0, 1), (0, 1), "predicted probability", share),
        lines=lines,
        marks=marks,
        key=[*key, *([Key("95 % interval", line="whisker")] if len(curves) == 1 else [])],
    )


def principal_axes(vectors: NDArray[np.floating]) -> tuple[NDArray[np.float64], tuple[float, float]] | None:
    """Vectors on their first two principal axes (n, 2), and the shares of the variance; None without two axes."""
    if vectors.ndim != 2 or len(vectors) < 3:
        return None
    given = vectors.astype(np.float64)
    left, sizes, _ = np.linalg.svd(given - given.mean(axis=0), full_matrices=False)
    if len(sizes) < 2 or not np.isfinite(sizes).all() or sizes[0] <= 0:
        return None
    # The sign of an axis is arbitrary; it is fixed by the largest entry.
    signs = np.sign(left[np.abs(left[:, :2]).argmax(axis=0), [0, 1]])
    share = sizes[:2] ** 2 / (sizes**2).sum()
    return left[:, :2] * sizes[:2] * signs, (float(share[0]), float(share[1]))


def label_groups(targets: NDArray[np.generic], classes: Sequence[str]) -> tuple[NDArray[np.int64], list[Key]]:
    """The group that gives each subgraph its colour and shape (n,), and the key of groups that occur.

    A group is a class, or the first of several labels; for real values a quintile, darker for higher ones.

    Shapes:
        targets: (n,) classes or values, or (n, classes) of 0 and 1.
    """
    if not classes:
        values = np.asarray(targets, np.float64)
        cuts = np.quantile(values, np.linspace(0, 1, _LEVELS + 1))
        level = np.clip(np.searchsorted(cuts[1:-1], values, side="right"), 0, _LEVELS - 1)
        words = [f"{cuts[i]:.3g} to {cuts[i + 1]:.3g}" for i in range(_LEVELS)]
        return level.astype(np.int64), [Key(words[i], style=Style(f"q{i}")) for i in np.unique(level)]
    first = np.asarray(targets, np.int64)
    if first.ndim == 2:
        first = np.where(first.any(axis=1), first.argmax(axis=1), -1)
    named = {-1: Key("no label", style=Style("border"))}
    named |= {i: Key(cut(name, 30), style=group_style(i)) for i, name in enumerate(classes)}
    return first, [named[i] for i in np.unique(first).tolist()]


def vector_chart(
    caption: str,
    places: NDArray[np.float64],
    shares: tuple[float, float],
    groups: tuple[NDArray[np.int64], list[Key]],
    *,
    titles: Sequence[str],
    wrong: NDArray[np.bool_] | None = None,
) -> Chart:
    """Subgraphs on two principal axes.

    Args:
        groups: from :func:`label_groups`.
        titles: tooltips of the subgraphs.
        wrong: the subgraphs that get a ring.
    """
    group, key = groups
    styles = dict(zip(np.unique(group).tolist(), (entry.style or Style("point") for entry in key), strict=True))
    marks = []
    for row in thin(len(places), MAX_POINTS):
        style, (x, y) = styles[int(group[row])], places[row].tolist()
        if wrong is not None and wrong[row]:
            style = Style(style.kind + _WRONG, style.shape)
        marks.append(Mark(x=x, y=y, title=titles[row], size=2.6, style=style))
    # Rings are drawn last, so that nothing hides them.
    marks.sort(key=lambda mark: mark.style.kind.endswith(_WRONG))
    ringed = [Key("wrong", style=Style("ring" + _WRONG))] if wrong is not None and wrong.any() else []
    x_label, y_label = (f"principal axis {i + 1}, {share:.0%} of variance" for i, share in enumerate(shares))
    return Chart(
        caption,
        f"Scatter plot of {len(places)} subgraphs on two principal axes, by label.",
        number_axes(padded_range(places[:, 0].tolist()), padded_range(places[:, 1].tolist()), x_label, y_label),
        marks=marks,
        key=[*key, *ringed],
    )
