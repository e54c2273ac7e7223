"""Marks that tell groups apart by shape as well as by colour, their keys, and the style they need."""

from __future__ import annotations

from collections.abc import Iterable

from subgnn.reports.markup import Markup, tag

MARKS_STYLE = (
    "\n".join(f"svg .s{i} {{ stroke: var(--c{i}); stroke-width: 1.8; stroke-linejoin: round; }}" for i in range(8))
    + """
svg .s1 { stroke-dasharray: 6 3; } svg .s2 { stroke-dasharray: 2 3; } svg .s3 { stroke-dasharray: 8 3 2 3; }
svg .s5 { stroke-dasharray: 4 2; } svg .s6 { stroke-dasharray: 1 3; } svg .s7 { stroke-dasharray: 10 4; }
svg .whisker { stroke: var(--text); stroke-width: 1.2; }
svg .published { fill: var(--panel); stroke: var(--text); stroke-width: 1.4; }
svg .name { fill: var(--text); paint-order: stroke; stroke: var(--panel); stroke-width: 4px; }
svg .zero { stroke: var(--faint); stroke-width: 1.2; }
svg .limit { stroke: var(--orange); stroke-dasharray: 4 3; }
svg .edge-mark { stroke: var(--panel); stroke-width: .8; }
main, header, footer { max-width: 74rem; }
.scores { font-size: .88rem; }
.scores th, .scores td { padding: .3rem .45rem; }
.scores td { white-space: nowrap; }
.scores td.best { font-weight: 650; }
table.scores th:first-child { min-width: 6.5rem; }
table.scores tbody th { position: sticky; left: 0; background: var(--panel); }
@media (max-width: 30rem) { .scores tbody th { white-space: normal; } }
"""
)
_CORNERS: dict[int, list[tuple[float, float]]] = {
    2: [(0, -1.1), (1, 0.8), (-1, 0.8)],
    3: [(0, -1.2), (1.2, 0), (0, 1.2), (-1.2, 0)],
    4: [(0, 1.1), (1, -0.8), (-1, -0.8)],
    5: [(-1, -0.4), (-0.4, -0.4), (-0.4, -1), (0.4, -1), (0.4, -0.4), (1, -0.4), (1, 0.4), (0.4, 0.4), (0.4, 1),
        (-0.4, 1), (-0.4, 0.4), (-1, 0.4)],
}  # fmt: skip
_SHAPES = 6


def mark(x: float, y: float, group: int, title: str, *, size: float = 4.0) -> Markup:
    """A mark of a group: a circle, a square, triangles, a diamond or a cross, in the group's colour."""
    r, words = size, tag("title", title)
    kind = f"c{group % 8} edge-mark"
    shape = group % _SHAPES
    if shape == 0:
        return tag("circle", words, cx=x, cy=y, r=r, class_=kind)
    if shape == 1:
        return tag("rect", words, x=x - 0.85 * r, y=y - 0.85 * r, width=1.7 * r, height=1.7 * r, class_=kind)
    corners = _CORNERS[shape]
    return tag("polygon", words, points=_points((x + r * a, y + r * b) for a, b in corners), class_=kind)


def diamond(x: float, y: float, title: str, *, size: float = 4.5) -> Markup:
    """A hollow diamond: a published number."""
    corners = [(x, y - size), (x + size, y), (x, y + size), (x - size, y)]
    return tag("polygon", tag("title", title), points=_points(corners), class_="published")


def mark_key(entries: Iterable[tuple[Markup, str]]) -> Markup:
    """What marks mean: drawings of 26 by 12 units, and words."""
    drawn = (
        tag("span", tag("svg", drawing, viewBox="0 0 26 12", width=26, height=12, aria_hidden="true"), words)
        for drawing, words in entries
    )
    return tag("p", *drawn, class_="key")


def swatch(group: int) -> Markup:
    """A bar's colour, for a key."""
    return tag("rect", x=6, y=1, width=14, height=10, class_=f"c{group % 8}")


def stroke(kind: str) -> Markup:
    """A line's colour and dashes, for a key."""
    return tag("line", x1=1, x2=25, y1=6, y2=6, class_=kind)


def _points(corners: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
