"""Plots of a dataset: properties of its subgraphs by class, and drawings of a few subgraphs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from subgnn.data.dataset import Dataset
from subgnn.data.layout import MAX_BORDER, Layout, lay_out
from subgnn.data.subgraphs import SubgraphSet
from subgnn.errors import DataError, extra_package
from subgnn.kernels.induced import induced_components, induced_core_numbers, shapes
from subgnn.rng import stream
from subgnn.storage.files import atomic_write
from subgnn.task import task_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# After Okabe and Ito (2008), distinct also with a colour vision deficiency; the yellow is darker, three are added.
_COLOURS = (
    "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#B8A800", "#7A5195", "#8C564B", "#4D4D4D",
)  # fmt: skip
_FAINT, _LIGHT, _DARK = "#C9C9C9", "#DDDDDD", "#333333"
_MEDIAN = {"color": _DARK, "linewidth": 2}
_PANELS, _PER_CLASS, _MAX_CLASSES, _MAX_POINTS = 12, 3, 10, 400


def plot_dataset(dataset: Dataset, folder: Path, *, seed: int = 0) -> list[Path]:
    """Write ``properties.png`` and ``subgraphs.png`` into a folder; the same dataset and seed give the same plots.

    A multi-label subgraph is shown under its first label. The seed selects what is shown where there is too much.
    """
    with extra_package("matplotlib", extra="plot", feature="plots"):
        from matplotlib.figure import Figure
        from matplotlib.layout_engine import ConstrainedLayoutEngine
    if not len(dataset.subgraphs):
        raise DataError("there are no subgraphs to draw", where=dataset.name)
    paths = []
    for name, draw in (("properties.png", _draw_properties), ("subgraphs.png", _draw_subgraphs)):
        # A figure that draws itself: the program's backend and settings are left alone.
        figure = Figure(layout=ConstrainedLayoutEngine(h_pad=0.12, w_pad=0.08))
        draw(figure, dataset, seed)
        with atomic_write(folder / name, overwrite=True) as temporary:
            figure.savefig(temporary, format="png", dpi=120)
        paths.append(folder / name)
    return paths


def _rows_by_class(subgraphs: SubgraphSet) -> dict[str, NDArray[np.int64]]:
    """Subgraphs of each class, the ten most frequent where there are more; all under "" where there are no classes."""
    if subgraphs.targets is None or not subgraphs.classes:
        return {"": np.arange(len(subgraphs))}
    targets = subgraphs.targets
    if targets.ndim == 2:
        targets = np.where(targets.any(axis=1), targets.argmax(axis=1), len(subgraphs.classes))
    counts = np.bincount(targets.astype(np.int64), minlength=len(subgraphs.classes) + 1)
    kept = [int(i) for i in np.sort(np.argsort(-counts, kind="stable")[:_MAX_CLASSES]) if counts[i]]
    names = (*subgraphs.classes, "no label")
    return {names[i]: np.flatnonzero(targets == i) for i in kept}


def _shorten(text: str, width: int = 22) -> str:
    cut = text if len(text) <= width else text[: width - 1] + "…"
    return cut.replace("$", r"\$")  # which would begin a formula


def _draw_properties(figure: Figure, dataset: Dataset, seed: int) -> None:
    subgraphs, groups = dataset.subgraphs, _rows_by_class(dataset.subgraphs)
    figure.set_size_inches(13, 7.2)
    *axes, last = figure.subplots(2, 3).ravel()
    rows = *dataset.graph.undirected().csr, subgraphs.nodes
    shape, cores, components = shapes(*rows), induced_core_numbers(*rows), induced_components(*rows).counts
    mean_core = np.bincount(cores.row_ids, cores.values, len(subgraphs)) / cores.lengths
    properties = {
        "Size": ("nodes", shape.nodes.astype(np.float64)),
        "Density": ("edges inside / pairs inside", shape.density),
        "Cut ratio": ("edges out / pairs across", shape.cut_ratio),
        "Components": ("connected components", components.astype(np.float64)),
        "Coreness": ("mean core number inside", mean_core),
    }
    for axis, (title, (unit, values)) in zip(axes, properties.items(), strict=True):
        if task_of(subgraphs.task).real:
            axis.scatter(values, np.asarray(subgraphs.targets), s=12, color=_COLOURS[0], alpha=0.5, linewidths=0)
            axis.set_ylabel("target")
            _scale(axis, "x", values, unit)
        elif "" in groups:
            axis.hist(values, bins=min(30, max(5, len(values) // 10)), color=_COLOURS[0], alpha=0.7)
            axis.set(xlabel=unit, ylabel="subgraphs")
        else:
            _draw_boxes(axis, groups, values, seed)
            _scale(axis, "y", values, unit)
        axis.set_title(title, loc="left", fontweight="bold")
        axis.spines[["top", "right"]].set_visible(False)
    _draw_key(last, dataset, groups)
    figure.suptitle(f"Properties of the subgraphs of {_shorten(dataset.name, 60)}", fontsize=15)


def _scale(axis: Axes, which: Literal["x", "y"], values: NDArray[np.float64], unit: str) -> None:
    """Label an axis, and start it at 0, or make it logarithmic where values differ thirtyfold."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, StrMethodFormatter

    line = axis.yaxis if which == "y" else axis.xaxis
    if values.min() > 0 and values.max() > 30 * values.min():
        axis.set(**{f"{which}scale": "log", f"{which}label": f"{unit}, log scale"})
        line.set_major_locator(LogLocator(subs=(1, 2, 5)))
        line.set_major_formatter(StrMethodFormatter("{x:g}"))
        line.set_minor_formatter(NullFormatter())
        return
    top = float(values.max()) or 1.0
    usual = 1.5 * float(np.quantile(values, 0.99))
    if 0 < 2 * usual < top:
        what = f"{np.count_nonzero(values > usual)} beyond, up to {top:.3g}"
        axis.text(0.98, 0.98, what, transform=axis.transAxes, va="top", ha="right", fontsize=9, style="italic")
        top = usual
    axis.set(**{f"{which}lim": (-0.04 * top, 1.06 * top), f"{which}label": unit})
    whole = bool((values == values.round()).all() and top >= 2)
    line.set_major_locator(MaxNLocator(6, integer=whole, steps=[1, 2, 2.5, 5, 10]))


def _draw_boxes(axis: Axes, groups: dict[str, NDArray[np.int64]], values: NDArray[np.float64], seed: int) -> None:
    rng = stream(seed, "plot/points")
    for i, (rows, colour) in enumerate(zip(groups.values(), _COLOURS, strict=False)):
        found = values[rows]
        shown = found if len(found) <= _MAX_POINTS else rng.choice(found, _MAX_POINTS, replace=False)
        axis.scatter(i + rng.uniform(-0.22, 0.22, len(shown)), shown, s=7, color=colour, alpha=0.35, linewidths=0)
        box, line = {"facecolor": (colour, 0.18), "edgecolor": colour}, {"color": colour}
        style: dict[str, Any] = {"boxprops": box, "whiskerprops": line, "capprops": line, "medianprops": _MEDIAN}
        axis.boxplot(found, positions=[i], widths=0.6, showfliers=False, patch_artist=True, **style)
    turn, align = (35, "right") if max(map(len, groups)) * len(groups) > 40 else (0, "center")
    titles = [_shorten(name) for name in groups]
    axis.set_xticks(range(len(groups)), titles, rotation=turn, ha=align, rotation_mode="anchor")
    axis.set_xlim(-0.6, len(groups) - 0.4)


def _draw_key(axis: Axes, dataset: Dataset, groups: dict[str, NDArray[np.int64]]) -> None:
    """In the last panel: what the marks mean, and how many subgraphs each class has."""
    graph, subgraphs, classes = dataset.graph, dataset.subgraphs, "" not in groups
    axis.set_axis_off()
    lines = [f"{graph.num_nodes:,} nodes, {graph.num_edges:,} edges", f"{len(subgraphs):,} subgraphs, {subgraphs.task}"]
    if classes:
        lines += ["box: middle half, line: median", "whiskers: to the last point within 1.5 boxes"]
    if classes or task_of(subgraphs.task).real:
        lines.append("point: a subgraph")
    if task_of(subgraphs.task).several:
        lines.append("each subgraph under its first label")
    if classes and len(groups) < subgraphs.num_classes:
        lines.append(f"the {len(groups)} largest of {subgraphs.num_classes} classes")
    marks, counts = [], []
    if classes:
        lines += ["", "subgraphs of a class"]
        marks = [axis.scatter([], [], s=40, color=colour) for _, colour in zip(groups, _COLOURS, strict=False)]
        counts = [f"{_shorten(name)}: {len(rows):,}" for name, rows in groups.items()]
    style: dict[str, Any] = {
        "fontsize": 9,
        "title_fontsize": 9.5,
        "labelspacing": 0.15,
        "frameon": False,
        "alignment": "left",
    }
    axis.legend(marks, counts, title="\n".join(lines), loc="upper left", **style).set_in_layout(False)


def _draw_subgraphs(figure: Figure, dataset: Dataset, seed: int) -> None:
    subgraphs, chosen = dataset.subgraphs, _choose(dataset.subgraphs, seed)
    columns = min(len(chosen), 3 if len(chosen) <= 9 else 4)
    rows = -(-len(chosen) // columns)
    figure.set_size_inches(3.6 * max(columns, 2), 4.1 * rows + 1.4)
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    graph = dataset.graph.undirected()
    for axis in axes:
        axis.set_axis_off()
    for axis, row in zip(axes, chosen, strict=False):
        layout, label = lay_out(graph, subgraphs.nodes[row]), _shorten(subgraphs.label_text(row), 36)
        _draw_subgraph(axis, layout)
        kind = {"regression": "target ", "unlabelled": ""}.get(subgraphs.task, "label ")
        name = f"subgraph {row}" if subgraphs.names is None else _shorten(subgraphs.names[row], 18)
        lines = [f"{kind}{label}"] * bool(label) + [name, *layout.summary().split("; ")]
        axis.set_title("\n".join(lines), fontsize=9.5)
    which = "from low to high targets" if task_of(dataset.subgraphs.task).real else "a few of middling size"
    figure.suptitle(f"Subgraphs of {_shorten(dataset.name, 40)}, {which}", fontsize=14)
    _draw_legend(figure)


def _choose(subgraphs: SubgraphSet, seed: int) -> list[int]:
    """A few subgraphs of every class, of about the median size of their class; of real targets, from low to high."""
    rng = stream(seed, "plot/choice")
    sizes = subgraphs.nodes.lengths
    if task_of(subgraphs.task).real:
        order = np.argsort(np.asarray(subgraphs.targets), kind="stable")
        places = np.linspace(0, len(order) - 1, min(9, len(order))).round().astype(np.int64)
        return [int(i) for i in order[places]]
    groups = list(_rows_by_class(subgraphs).values())
    each = 2 * _PER_CLASS if len(groups) == 1 else max(1, min(_PER_CLASS, _PANELS // len(groups)))
    chosen = []
    for group in groups:
        rows = rng.permutation(group)
        near = np.abs(sizes[rows] - np.median(sizes[rows]))
        chosen += [int(i) for i in rows[np.argsort(near, kind="stable")][:each]]
    return chosen


def _draw_subgraph(axis: Axes, layout: Layout) -> None:
    from matplotlib.collections import LineCollection

    n, at = layout.count("inside"), layout.positions
    for ends, colour, widest, below in ((1, _LIGHT, 0.6, 1), (0, _DARK, 1.2, 2)):
        edges = layout.edges[layout.ends_outside == ends]
        width = float(np.clip(80 / max(len(edges), 1), 0.3, widest))
        axis.add_collection(LineCollection(list(at[edges]), colors=colour, linewidths=width, zorder=below))
    axis.scatter(at[n:, 0], at[n:, 1], s=16, color=_FAINT, linewidths=0, zorder=3)
    colours = [_COLOURS[c % len(_COLOURS)] for c in layout.components[:n]]
    size = float(np.clip(2200 / n, 14, 90))
    axis.scatter(at[:n, 0], at[:n, 1], s=size, c=colours, edgecolors="white", linewidths=0.7, zorder=4)
    axis.set_xlim(-1.6, 1.6)
    axis.set_ylim(-1.6, 1.6)
    axis.set_aspect("equal")


def _draw_legend(figure: Figure) -> None:
    from matplotlib.lines import Line2D

    def dot(colour: str, size: float) -> Line2D:
        return Line2D([], [], marker="o", linestyle="", color=colour, markersize=size)

    entries = {
        "node of the subgraph, coloured by component": dot(_COLOURS[0], 8),
        f"border node, one hop away ({MAX_BORDER} at most are drawn)": dot(_FAINT, 6),
        "edge inside": Line2D([], [], color=_DARK, linewidth=1.2),
        "edge to the border": Line2D([], [], color=_FAINT, linewidth=1.2),
    }
    figure.legend(list(entries.values()), list(entries), loc="outside lower center", ncols=2, frameon=False)
