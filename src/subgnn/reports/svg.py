"""Small charts as inline SVG: axes with ticks and labels, lines, points with ranges, bars.

Colours come from classes of the page's style sheet, so that a chart follows light and dark; lines differ in their
dashes as well. A chart is 400 units wide, about what a telephone shows, so its text stays readable.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from subgnn.reports.markup import Markup, join, short, tag

WIDTH, HEIGHT = 400, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 12, 12, 44
MAX_POINTS = 1000  # of a line or a cloud; more are thinned out evenly
_MAX_HOVER = 250


@dataclass(frozen=True, slots=True)
class Scale:
    """From values to places: low..high to begin..end, straight or in logarithms."""

    low: float
    high: float
    begin: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """The place of a value."""
        low, high, at = (math.log(v) if self.log else v for v in (self.low, self.high, value))
        return self.begin + (self.end - self.begin) * (at - low) / (high - low)

    def ticks(self, most: int = 6) -> list[float]:
        """Round values to mark."""
        if self.log:
            powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            found = [10.0**p for p in powers if self.low <= 10.0**p <= self.high]
            return found[:: -(-len(found) // most)] if len(found) > 1 else [self.low, self.high]
        step = _step((self.high - self.low) / most)
        first = math.ceil(self.low / step - 1e-9)
        return [i * step for i in range(first, math.floor(self.high / step + 1e-9) + 1)]


def _step(least: float) -> float:
    """The smallest of 1, 2, 2.5 and 5 times a power of ten that is not below."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= least * (1 - 1e-9))


def around(values: Iterable[float], *, zero: bool = False) -> tuple[float, float]:
    """A range that holds the values with some room; one that starts at 0 where asked and possible."""
    found = [v for v in values if math.isfinite(v)] or [0.0, 1.0]
    low, high = min(found), max(found)
    room = 0.05 * (high - low) or 0.05 * abs(high) or 1.0
    return (0.0 if zero and low >= 0 else low - room), high + room


@dataclass(frozen=True, slots=True)
class Axes:
    """A chart's two scales."""

    x: Scale
    y: Scale

    @classmethod
    def of(cls, x: tuple[float, float], y: tuple[float, float], *, log: bool = False) -> Axes:
        """Axes for two ranges."""
        return cls(Scale(*x, _LEFT, WIDTH - _RIGHT), Scale(*y, HEIGHT - _BOTTOM, _TOP, log=log))

    def frame(self, x_label: str, y_label: str, *, x_ticks: bool = True) -> Markup:
        """Grid, ticks and labels; without ``x_ticks`` those below are left to the caller."""
        bottom, middle = HEIGHT - _BOTTOM, (_TOP + HEIGHT - _BOTTOM) / 2
        parts = []
        for value in self.y.ticks():
            at = self.y(value)
            parts.append(tag("line", x1=_LEFT, x2=WIDTH - _RIGHT, y1=at, y2=at, class_="grid"))
            parts.append(tag("text", f"{value:.4g}", x=_LEFT - 6, y=at + 4, class_="tick y"))
        for value in self.x.ticks() if x_ticks else ():
            at = self.x(value)
            parts.append(tag("line", x1=at, x2=at, y1=bottom, y2=bottom + 4, class_="axis"))
            parts.append(tag("text", f"{value:.4g}", x=at, y=bottom + 17, class_="tick x"))
        parts.append(tag("line", x1=_LEFT, x2=WIDTH - _RIGHT, y1=bottom, y2=bottom, class_="axis"))
        parts.append(tag("text", x_label, x=(_LEFT + WIDTH - _RIGHT) / 2, y=HEIGHT - 8, class_="label"))
        turned = f"rotate(-90 12 {short(middle)})"
        parts.append(tag("text", y_label, x=12, y=middle, transform=turned, class_="label"))
        return join(parts)

    def line(self, xs: Sequence[float], ys: Sequence[float], class_: str) -> Markup:
        """A line through points; a value that is not finite leaves a gap."""
        pieces: list[list[str]] = [[]]
        for x, y in zip(xs, ys, strict=True):
            if math.isfinite(y):
                pieces[-1].append(f"{self.x(x):.2f},{self.y(y):.2f}")
            elif pieces[-1]:
                pieces.append([])
        return join(tag("polyline", points=" ".join(piece), class_=class_) for piece in pieces if piece)

    def upright(self, x: float, class_: str) -> Markup:
        """A line from bottom to top."""
        return tag("line", x1=self.x(x), x2=self.x(x), y1=_TOP, y2=HEIGHT - _BOTTOM, class_=class_)

    def hover(self, xs: Sequence[float], titles: Sequence[str]) -> Markup:
        """Invisible columns that say the values under the pointer."""
        kept = thin(len(xs), _MAX_HOVER)
        width = (WIDTH - _RIGHT - _LEFT) / max(1, len(kept))
        return join(
            tag("rect", tag("title", titles[i]), x=self.x(xs[i]) - width / 2, y=_TOP, width=max(width, 2),
                height=HEIGHT - _TOP - _BOTTOM, class_="hover")
            for i in kept
        )  # fmt: skip

    def point(self, x: float, y: float, title: str, *, radius: float = 3.5, class_: str = "point") -> Markup:
        """A point that says what it is."""
        return tag("circle", tag("title", title), cx=self.x(x), cy=self.y(y), r=radius, class_=class_)

    def span(self, x: float, low: float, high: float, class_: str) -> Markup:
        """An upright range, as of uncertainty."""
        return tag("line", x1=self.x(x), x2=self.x(x), y1=self.y(low), y2=self.y(high), class_=class_)


def thin(count: int, most: int) -> list[int]:
    """Places of at most so many of ``count`` items, evenly, with the first and the last."""
    if count <= most:
        return list(range(count))
    return [int(i) for i in np.linspace(0, count - 1, most).round()]


def chart(caption: str, description: str, *parts: str, key: str = "") -> Markup:
    """A figure: caption, drawing, key; the description is read aloud in place of the drawing."""
    drawing = tag("svg", *parts, viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img", aria_label=description, class_="chart")
    return tag("figure", tag("figcaption", caption), drawing, key)


def key(*entries: tuple[str, str]) -> Markup:
    """What the lines of a chart mean: (class of the line, words) each."""
    drawn = (
        tag("span", tag("svg", tag("line", x1=1, x2=25, y1=6, y2=6, class_=kind), viewBox="0 0 26 12", width=26,
                        height=12, aria_hidden="true"), words)
        for kind, words in entries
    )  # fmt: skip
    return tag("p", *drawn, class_="key")


def bar(value: float, low: float, high: float) -> Markup:
    """A bar from 0 to a value, on a scale from low (at most 0) to high (at least 0) that a column of bars shares."""
    if not high > low:
        low, high = 0.0, 1.0
    place = Scale(low, high, 1, 119)
    begin, end = sorted((place(0), place(min(max(value, low), high))))
    kind = "bar" if value >= 0 else "bar minus"
    return tag(
        "svg",
        tag("rect", x=begin, y=2, width=max(end - begin, 0.5), height=10, class_=kind),
        tag("line", x1=place(0), x2=place(0), y1=0, y2=14, class_="axis"),
        viewBox="0 0 120 14",
        preserveAspectRatio="none",
        aria_hidden="true",
        class_="bar",
    )
