"""Charts as plain values in units of the data (scales, lines, marks, keys), which ``templates/charts.html`` draws."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import groupby

import numpy as np

WIDTH, HEIGHT = 400, 260
MAX_POINTS = 1000  # the most points of a line or a scatter plot; more are thinned out evenly
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 12, 12, 44
_LETTER = 7.4  # width of a character of a tick
_SHAPES = ("circle", "square", "triangle", "diamond", "down", "cross")
COLOURS = 8  # colours of groups: c0 to c7 in the style sheet
Range = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Scale:
    """A map from values in low..high to positions in begin..end, linear or logarithmic."""

    low: float
    high: float
    begin: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        low, high, at = (math.log(v) if self.log else v for v in (self.low, self.high, value))
        return self.begin + (self.end - self.begin) * (at - low) / (high - low)

    def ticks(self, most: int = 6) -> list[tuple[float, str]]:
        if self.log:
            powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            found = [10.0**p for p in powers if self.low <= 10.0**p <= self.high]
            if len(found) < 3:
                steps = [m * 10.0**p for p in range(powers.start - 1, powers.stop) for m in (1, 2, 5)]
                found = [value for value in steps if self.low <= value <= self.high]
            found = found[:: -(-len(found) // most)] if len(found) > 1 else [self.low, self.high]
        else:
            least = (self.high - self.low) / most
            power = 10.0 ** math.floor(math.log10(least))
            step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= least * (1 - 1e-9))
            first = math.ceil(self.low / step - 1e-9)
            found = [i * step for i in range(first, math.floor(self.high / step + 1e-9) + 1)]
        return [(value, f"{value:.4g}") for value in found]


@dataclass(frozen=True, slots=True)
class Line:
    """A line through points; a value that is not finite leaves a gap. ``kind`` is a class of the style sheet."""

    xs: Sequence[float]
    ys: Sequence[float]
    kind: str


@dataclass(frozen=True, slots=True)
class Style:
    """Class and shape of a mark: circle, square, triangle, diamond, down (a triangle) or cross."""

    kind: str
    shape: str = "circle"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A point with a tooltip, ranges of uncertainty along the axes, and words beside it."""

    x: float
    y: float
    title: str
    style: Style = Style("point")
    size: float = 3.5
    x_range: Range | None = None
    y_range: Range | None = None
    label: str = ""


@dataclass(frozen=True, slots=True)
class Key:
    """An entry of a chart's legend: words beside a line, a mark, or both."""

    words: str
    line: str = ""
    style: Style | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Axes:
    """Scales, ticks (value and text) and labels, as :func:`number_axes` and :func:`row_axes` choose them."""

    x: Scale
    y: Scale
    x_label: str
    y_label: str
    x_ticks: Sequence[tuple[float, str]]
    y_ticks: Sequence[tuple[float, str]]
    by_row: bool = False  # the y axis has names of rows instead of numbers
    names_above: bool = False  # each above its row

    @property
    def top(self) -> float:
        return min(self.y.begin, self.y.end)

    @property
    def bottom(self) -> float:
        return max(self.y.begin, self.y.end)


def number_axes(x: Range, y: Range, x_label: str, y_label: str, *, log: bool = False, log_x: bool = False) -> Axes:
    """Axes over two ranges of numbers; ``log`` makes the y axis logarithmic, ``log_x`` the x axis."""
    up = Scale(*y, HEIGHT - _BOTTOM, _TOP, log=log)
    y_ticks = up.ticks()
    along = Scale(*x, max(_LEFT, 24 + _LETTER * max(len(text) for _, text in y_ticks)), WIDTH - _RIGHT, log=log_x)
    return Axes(x=along, y=up, x_label=x_label, y_label=y_label, x_ticks=along.ticks(), y_ticks=y_ticks)


def row_axes(names: Sequence[str], x: Range, x_label: str, *, names_above: bool = False) -> Axes:
    """Axes with a row for each name; row i lies between y = i and y = i + 1."""
    rows, step = max(1, len(names)), 40 if names_above else 22
    beside = 16 if names_above else 12 + _LETTER * max((len(name) for name in names), default=0)
    along = Scale(*x, beside, WIDTH - _RIGHT)
    return Axes(
        x=along,
        y=Scale(0, rows, 8, 8 + step * rows),
        x_label=x_label,
        y_label="",
        x_ticks=along.ticks(4 if beside > WIDTH / 3 else 6),
        y_ticks=[(i + 0.5, name) for i, name in enumerate(names)],
        by_row=True,
        names_above=names_above,
    )


@dataclass(frozen=True, slots=True)
class Chart:
    """A figure; screen readers read its description."""

    caption: str
    description: str
    axes: Axes
    _: KW_ONLY
    rules: Sequence[tuple[float, str]] = ()  # vertical lines as (x, kind)
    lines: Sequence[Line] = ()
    marks: Sequence[Mark] = ()
    columns: Sequence[tuple[float, str]] = ()  # tooltips over the whole height as (x, title)
    key: Sequence[Key] = ()

    @property
    def size(self) -> tuple[float, float]:
        return WIDTH, self.axes.bottom + _BOTTOM

    def polylines(self, line: Line) -> list[str]:
        """The points of each unbroken piece of a line, in SVG's notation."""
        x, y = self.axes.x, self.axes.y
        pieces = groupby(zip(line.xs, line.ys, strict=True), lambda point: math.isfinite(point[1]))
        return [" ".join(f"{x(a):.2f},{y(b):.2f}" for a, b in piece) for finite, piece in pieces if finite]


def group_style(group: int) -> Style:
    """Shape and colour of the marks of a group; six shapes and eight colours."""
    return Style(f"c{group % COLOURS} edge-mark", _SHAPES[group % len(_SHAPES)])


def padded_range(values: Iterable[float], *, zero: bool = False) -> Range:
    """A range around the values with some padding; with ``zero``, it starts at 0 unless a value is negative."""
    found = [v for v in values if math.isfinite(v)] or [0.0, 1.0]
    low, high = min(found), max(found)
    room = 0.05 * (high - low) or 0.05 * abs(high) or 1.0
    return (0.0 if zero and low >= 0 else low - room), high + room


def thin(count: int, most: int = MAX_POINTS) -> list[int]:
    """Indices of at most ``most`` of ``count`` items, evenly spaced, including the first and the last."""
    return [int(i) for i in np.linspace(0, count - 1, min(count, most)).round()]
