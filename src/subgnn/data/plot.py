"""Plots of a dataset: properties of its subgraphs by class, and drawings of a few subgraphs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from subgnn.data.dataset import Dataset
from subgnn.data.graph import Graph
from subgnn.data.layout import MAX_BORDER, Layout, lay_out
from subgnn.data.subgraphs import SubgraphSet
from subgnn.errors import DataError, MissingExtra
from subgnn.kernels import induced_components, induced_core_numbers, shapes
from subgnn.rng import stream
from subgnn.storage.files import atomic_write

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# After Okabe and Ito (2008), told apart by people who see few colours; the yellow is darker, the last three are added.
_COLOURS = (
    "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#B8A800", "#7A5195", "#8C564B", "#4D4D4D",
)  # fmt: skip
_FAINT, _LIGHT, _DARK = "#C9C9C9", "#DDDDDD", "#333333"
_PANELS, _PER_CLASS, _MAX_CLASSES = 12, 3, 10
_MAX_POINTS = 400
_LABEL_WIDTH = 22


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """Subgraphs that are drawn together: those of a class, or all of them."""

    name: str
    rows: NDArray[np.int64]


def plot_dataset(dataset: Dataset, folder: Path, *, seed: int = 0) -> list[Path]:
    """Write ``properties.png`` and ``subgraphs.png`` into a folder; the same dataset and seed give the same plots.

    A multi-label subgraph is shown under the first of its labels.

    Args:
        seed: selects the subgraphs and points that are shown where there are too many.

    Raises:
        MissingExtra: without matplotlib.
        DataError: there is no subgraph to draw, or the folder cannot be written.
    """
    figure = _figure_maker()
    if not len(dataset.subgraphs):
        raise DataError("there are no subgraphs to draw", where=dataset.name)
    drawn = {
        "properties.png": _draw_properties(dataset, figure, seed),
        "subgraphs.png": _draw_subgraphs(dataset, figure, seed),
    }
    paths = []
    for name, picture in drawn.items():
        with atomic_write(folder / name, overwrite=True) as temporary:
            picture.savefig(temporary, format="png", dpi=120)
        paths.append(folder / name)
    return paths


def _figure_maker() -> Callable[[float, float], Figure]:
    """Makes figures of a width and height that draw themselves: the program's backend and settings are left alone."""
    try:
        from matplotlib.figure import Figure
        from matplotlib.layout_engine import ConstrainedLayoutEngine
    except ImportError:
        raise MissingExtra("matplotlib", extra="plot", feature="plots") from None
    return lambda *size: Figure(figsize=size, layout=ConstrainedLayoutEngine(h_pad=0.12, w_pad=0.08))


def _parts(subgraphs: SubgraphSet) -> list[_Part]:
    """Classes, the most frequent ten where there are more; one part where there are no classes."""
    if subgraphs.targets is None or not subgraphs.classes:
        return [_Part("", np.arange(len(subgraphs)))]
    targets = subgraphs.targets
    if targets.ndim == 2:
        targets = np.where(targets.any(axis=1), targets.argmax(axis=1), len(subgraphs.classes))
    parts = [_Part(name, np.flatnonzero(targets == i)) for i, name in enumerate((*subgraphs.classes, "no label"))]
    parts = [part for part in parts if len(part.rows)]
    kept = sorted(range(len(parts)), key=lambda i: -len(parts[i].rows))[:_MAX_CLASSES]
    return [parts[i] for i in sorted(kept)]


def _shorten(text: str, width: int = _LABEL_WIDTH) -> str:
    cut = text if len(text) <= width else text[: width - 1] + "…"
    return cut.replace("$", r"\$")  # which would begin a formula


def _properties(graph: Graph, subgraphs: SubgraphSet) -> dict[str, tuple[str, NDArray[np.float64]]]:
    """Title to axis label and value of every subgraph."""
    shape = shapes(*graph.csr, subgraphs.nodes)
    cores = induced_core_numbers(*graph.csr, subgraphs.nodes)
    mean_core = np.bincount(cores.row_ids, cores.values, len(subgraphs)) / cores.lengths
    components = induced_components(*graph.csr, subgraphs.nodes).counts
    return {
        "Size": ("nodes", shape.nodes.astype(np.float64)),
        "Density": ("edges inside / pairs inside", shape.density),
        "Cut ratio": ("edges out / pairs across", shape.cut_ratio),
        "Components": ("connected components", components.astype(np.float64)),
        "Coreness": ("mean core number inside", mean_core),
    }


def _draw_properties(dataset: Dataset, figure_maker: Callable[[float, float], Figure], seed: int) -> Figure:
    subgraphs, parts = dataset.subgraphs, _parts(dataset.subgraphs)
    figure = figure_maker(13, 7.2)
    axes = figure.subplots(2, 3).ravel()
    for axis, (title, (unit, values)) in zip(
        axes, _properties(dataset.graph.undirected(), subgraphs).items(), strict=False
    ):
        if subgraphs.task == "regression":
            _draw_scatter(axis, values, np.asarray(subgraphs.targets), unit)
        elif len(parts) == 1 and not parts[0].name:
            _draw_histogram(axis, values, unit)
        else:
            _draw_boxes(axis, parts, values, unit, seed)
        axis.set_title(title, loc="left", fontweight="bold")
        axis.spines[["top", "right"]].set_visible(False)
    _draw_key(figure, axes[-1], dataset, parts)
    figure.suptitle(f"Properties of the subgraphs of {_shorten(dataset.name, 60)}", fontsize=15)
    return figure


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


def _draw_boxes(axis: Axes, parts: Sequence[_Part], values: NDArray[np.float64], unit: str, seed: int) -> None:
    rng = stream(seed, "plot/points")
    for i, part in enumerate(parts):
        found, colour = values[part.rows], _COLOURS[i % len(_COLOURS)]
        shown = found if len(found) <= _MAX_POINTS else rng.choice(found, _MAX_POINTS, replace=False)
        axis.scatter(i + rng.uniform(-0.22, 0.22, len(shown)), shown, s=7, color=colour, alpha=0.35, linewidths=0)
        axis.boxplot(
            found,
            positions=[i],
            widths=0.6,
            showfliers=False,
            patch_artist=True,
            boxprops={"facecolor": (*_rgb(colour), 0.18), "edgecolor": colour},
            medianprops={"color": _DARK, "linewidth": 2},
            whiskerprops={"color": colour},
            capprops={"color": colour},
        )
    long = max(len(part.name) for part in parts) * len(parts) > 40
    axis.set_xticks(
        range(len(parts)),
        [_shorten(part.name) for part in parts],
        rotation=35 if long else 0,
        ha="right" if long else "center",
        rotation_mode="anchor",
    )
    axis.set_xlim(-0.6, len(parts) - 0.4)
    _scale(axis, "y", values, unit)


def _rgb(colour: str) -> tuple[float, float, float]:
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return red, green, blue


def _draw_histogram(axis: Axes, values: NDArray[np.float64], unit: str) -> None:
    axis.hist(values, bins=min(30, max(5, len(values) // 10)), color=_COLOURS[0], alpha=0.7)
    axis.set_xlabel(unit)
    axis.set_ylabel("subgraphs")


def _draw_scatter(axis: Axes, values: NDArray[np.float64], targets: NDArray[np.float64], unit: str) -> None:
    axis.scatter(values, targets, s=12, color=_COLOURS[0], alpha=0.5, linewidths=0)
    axis.set_ylabel("target")
    _scale(axis, "x", values, unit)


def _draw_key(figure: Figure, axis: Axes, dataset: Dataset, parts: Sequence[_Part]) -> None:
    """In words, in the last panel: what the marks mean and how many subgraphs each class has."""
    from matplotlib.transforms import ScaledTranslation

    graph, subgraphs = dataset.graph, dataset.subgraphs
    axis.set_axis_off()
    lines = [f"{graph.num_nodes:,} nodes, {graph.num_edges:,} edges", f"{len(subgraphs):,} subgraphs, {subgraphs.task}"]
    if parts[0].name:
        lines += ["box: middle half, line: median", "whiskers: to the last point within 1.5 boxes", "point: a subgraph"]
    elif subgraphs.task == "regression":
        lines.append("point: a subgraph")
    if subgraphs.task == "multi-label":
        lines.append("each subgraph under its first label")
    if parts[0].name and len(parts) < subgraphs.num_classes:
        lines.append(f"the {len(parts)} largest of {subgraphs.num_classes} classes")
    axis.text(0, 1, "\n".join(lines), va="top", fontsize=9.5, linespacing=1.5, transform=axis.transAxes)
    if parts[0].name:
        marks = [axis.scatter([], [], s=40, color=_COLOURS[i % len(_COLOURS)]) for i in range(len(parts))]
        below = ScaledTranslation(0, -0.205 * len(lines), figure.dpi_scale_trans)
        axis.legend(
            marks,
            [f"{_shorten(part.name)}: {len(part.rows):,}" for part in parts],
            title="subgraphs of a class",
            loc="upper left",
            bbox_to_anchor=(-0.02, 1),
            bbox_transform=axis.transAxes + below,
            fontsize=9,
            labelspacing=0.15,
            frameon=False,
            alignment="left",
        ).set_in_layout(False)


def _draw_subgraphs(dataset: Dataset, figure_maker: Callable[[float, float], Figure], seed: int) -> Figure:
    chosen = _choose(dataset.subgraphs, seed)
    columns = min(len(chosen), 3 if len(chosen) <= 9 else 4)
    rows = -(-len(chosen) // columns)
    figure = figure_maker(3.6 * max(columns, 2), 4.1 * rows + 1.4)
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    graph = dataset.graph.undirected()
    for axis in axes:
        axis.set_axis_off()
    for axis, row in zip(axes, chosen, strict=False):
        layout = lay_out(graph, dataset.subgraphs.nodes[row])
        _draw_subgraph(axis, layout)
        axis.set_title(_title(dataset.subgraphs, row, layout), fontsize=9.5)
    which = "from low to high targets" if dataset.subgraphs.task == "regression" else "a few of middling size"
    figure.suptitle(f"Subgraphs of {_shorten(dataset.name, 40)}, {which}", fontsize=14)
    _draw_legend(figure)
    return figure


def _choose(subgraphs: SubgraphSet, seed: int) -> list[int]:
    """A few subgraphs of every class, of about the median size of their class; of real targets, from low to high."""
    rng = stream(seed, "plot/choice")
    sizes = subgraphs.nodes.lengths
    if subgraphs.task == "regression":
        order = np.argsort(np.asarray(subgraphs.targets), kind="stable")
        places = np.linspace(0, len(order) - 1, min(9, len(order))).round().astype(np.int64)
        return [int(i) for i in order[places]]
    parts = _parts(subgraphs)
    each = 2 * _PER_CLASS if len(parts) == 1 else max(1, min(_PER_CLASS, _PANELS // len(parts)))
    chosen = []
    for part in parts:
        rows = rng.permutation(part.rows)
        near = np.abs(sizes[rows] - np.median(sizes[rows]))
        chosen += [int(i) for i in rows[np.argsort(near, kind="stable")][:each]]
    return chosen


def _title(subgraphs: SubgraphSet, row: int, layout: Layout) -> str:
    name = f"subgraph {row}" if subgraphs.names is None else _shorten(subgraphs.names[row], 18)
    label = subgraphs.label_text(row)
    what = {"regression": "target ", "unlabelled": ""}.get(subgraphs.task, "label ")
    head = f"{what}{_shorten(label, 36)}\n" if label else ""
    nodes = _counted(layout.size, "node", layout.count("inside"))
    border = _counted(layout.num_border, "border node", layout.count("border"))
    return f"{head}{name}: {nodes}, {_counted(layout.num_components, 'component')}\n{border}"


def _counted(count: int, what: str, drawn: int | None = None) -> str:
    shown = "" if drawn in (None, count) else f" ({drawn} drawn)"
    return f"{count:,} {what}{'' if count == 1 else 's'}{shown}"


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
