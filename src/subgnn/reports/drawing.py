"""Draw a subgraph and its surroundings: for the server's page, as SVG for a notebook, and as a file.

Page and picture use the same marks: one colour per component, faint neighbours, diamonds for anchors, rings for
contributions of nodes. A picture pushes overlapping names apart; on the page, users move nodes themselves.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from subgnn.channels.channel import NodeAnchors
from subgnn.data.graph import Graph
from subgnn.data.layout import Layout, lay_out
from subgnn.errors import UserError, excerpt, extra_package
from subgnn.inference.answers import Query
from subgnn.inference.explanation import Explanation
from subgnn.inference.predictor import Predictor, names_of
from subgnn.prepare.measure import Prepared
from subgnn.ragged import Ragged
from subgnn.render import cut, render
from subgnn.reports.charts import COLOURS, thin
from subgnn.storage.files import atomic_write, refuse_existing

_MAX_NODES = 500
_NODE_SPACING, _RING_SPACING, _LEAST_RADIUS = 60, 4.4, 80  # pixels, where a node is 24 pixels wide
_LEAST_PUSH = 0.05
_LONGEST = 34
_MARGIN = 24
_DPI = 96
_FILES = (".svg", ".png", ".pdf")
_MAX_PICTURES = 100  # of one command
_LENGTHS = ("x", "y", "x1", "y1", "x2", "y2", "cx", "cy", "r", "stroke-width", "font-size")
_TRANSFORMS = ("translate", "scale")
_HALF, _SCALE, _TITLE = 160, 100, 60  # of the small drawings of a run's page
_MAX_EDGES, _MAX_CUT_EDGES = 800, 300


def _anchor_channels(prepared: Prepared, most: int) -> dict[int, list[str]]:
    """The anchor nodes of a subgraph and their channels: the ``most`` nearest shared anchors, but no patches."""
    found: dict[int, dict[str, None]] = {}
    for shared_row, inputs_row in zip(prepared.frame.shared, prepared.inputs, strict=True):
        for channel, shared, inputs in zip(prepared.frame.channels, shared_row, inputs_row, strict=True):
            if inputs.own is not None:
                nodes = np.unique(inputs.own.nodes[inputs.own.present])
            elif isinstance(shared, NodeAnchors):
                nodes = shared.nodes[np.argsort(-inputs.similarity.max(axis=0), kind="stable")[:most]]
            else:
                continue
            for node in nodes.tolist():
                found.setdefault(node, {})[channel.name] = None
    return {node: list(names) for node, names in found.items()}


def draw(source: Graph | Predictor, subgraph: NDArray[np.int32], *, most: int) -> dict[str, Any]:
    """Lay out one subgraph, of sorted nodes, and ``most`` other nodes: with the anchors of a model that has any.

    Nodes and edges are plain values, with their numbers before any were left out. The ``kind`` of a node is inside,
    border (one hop away) or anchor (farther away, of ``channels``); x and y are in pixels.
    """
    graph, anchors = source if isinstance(source, Graph) else source.graph, {}
    measured_by = None if isinstance(source, Graph) else source.with_channels()
    if measured_by is not None:
        anchors = _anchor_channels(measured_by.measured(Ragged.from_rows([subgraph])).prepared, max(1, most // 10))
    layout = lay_out(graph, subgraph, max_nodes=_MAX_NODES, max_border=most, anchors=anchors)
    inside, border = layout.roles.count("inside"), layout.roles.count("border")
    shown = layout.nodes.tolist()
    at = layout.positions * max(_NODE_SPACING * np.sqrt(inside), _RING_SPACING * border, _LEAST_RADIUS)
    nodes = [
        {
            "id": node,
            "name": name,
            "kind": layout.roles[i],
            "component": int(layout.components[i]) if i < inside else None,
            "links": int(layout.links[i]),
            "degree": int(graph.offsets[node + 1] - graph.offsets[node]),
            "channels": anchors.get(node, []),
            "x": round(float(at[i, 0]), 1),
            "y": round(float(at[i, 1]), 1),
        }
        for i, (node, name) in enumerate(zip(shown, names_of(graph, shown), strict=True))
    ]
    ends = np.sort(layout.nodes[layout.edges], axis=1).tolist()
    edges = [
        {"source": a, "target": b, "inside": outside == 0}
        for (a, b), outside in zip(ends, layout.ends_outside.tolist(), strict=True)
    ]
    numbers = {name: getattr(layout, name) for name in ("num_components", "num_border", "num_inside_edges")}
    left_out = {"inside": layout.size - inside, "border": layout.num_border - border}
    return {"nodes": nodes, "edges": edges, **numbers, "left_out": left_out}


@dataclass(frozen=True, slots=True)
class Picture:
    """SVG, which a notebook shows if it is the last value of a cell."""

    svg: str = field(repr=False)

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: Path | str, *, overwrite: bool = False) -> None:
        """Write it as a file: ``.svg``, or with matplotlib ``.png`` or ``.pdf``."""
        path = Path(path)
        kind = _kind(path)
        figure = None if kind == ".svg" else _figure(self.svg)
        with atomic_write(path, overwrite=overwrite) as temporary:
            if figure is None:
                temporary.write_text(self.svg + "\n", encoding="utf-8")
            else:  # without the time of writing, so that the same picture is the same file
                when = {"CreationDate": None} if kind == ".pdf" else None
                figure.savefig(temporary, format=kind[1:], dpi=2 * _DPI, metadata=when)


def _kind(path: Path) -> str:
    kind = path.suffix.lower()
    if kind not in _FILES:
        what = f"cannot write a picture as {excerpt(kind)}"
        raise UserError(what, where=str(path), hint=f"accepted: {', '.join(_FILES)}")
    return kind


@dataclass(frozen=True, slots=True)
class PictureFiles:
    """Pictures of the subgraphs of a file: ``out``, or ``out-1``, ``out-2``..., with ``most`` other nodes each."""

    out: Path
    overwrite: bool = False
    most: int = 30
    written: list[Path] = field(default_factory=list)

    def __post_init__(self) -> None:
        _kind(self.out)

    def path(self, query: Query, row: int) -> Path:
        return self.out if len(query) == 1 else self.out.with_stem(f"{self.out.stem}-{row + 1}")

    def write(self, source: Predictor | Graph, query: Query, row: int, why: Explanation | None = None) -> None:
        """Draw a subgraph, if it has nodes; before the first, too many subgraphs and files that exist are refused."""
        if row == 0 and len(query) > _MAX_PICTURES:
            what, hint = f"it has {len(query):,} subgraphs", f"accepted: up to {_MAX_PICTURES}, as each is a picture"
            raise UserError(what, where=query.members.where, hint=hint)
        for one in range(len(query)) if row == 0 else ():
            refuse_existing(self.path(query, one), overwrite=self.overwrite)
        if len(nodes := query.matched.nodes[row]):
            self.written.append(self.path(query, row))
            picture(draw(source, nodes, most=self.most), why).save(self.written[-1], overwrite=self.overwrite)

    def notes(self, query: Query) -> list[str]:
        """State how several files are named, and which subgraphs have none."""
        found = []
        if len(query) > 1:
            first, last = self.path(query, 0).name, self.path(query, len(query) - 1).name
            found.append(f"{len(query)} subgraphs have a picture each, in the order of the file: {first} to {last}")
        if missing := len(query) - len(self.written):
            found.append(f"{missing} of {len(query)} subgraphs have no picture, because no node is in the graph")
        return found


def _figure(svg: str) -> Any:
    """A picture as a matplotlib figure: the shapes of templates/picture.svg, one unit per pixel."""
    with extra_package("matplotlib", extra="explain", feature="a picture as .png or .pdf"):
        from matplotlib.figure import Figure
        from matplotlib.patches import Circle, Polygon
        from matplotlib.patheffects import withStroke
    root, point = ElementTree.fromstring(svg), 72 / _DPI
    left, top, width, height = map(float, root.get("viewBox", "").split())
    figure = Figure(figsize=(width / _DPI, height / _DPI))
    axes = figure.add_axes((0, 0, 1, 1), xlim=(left, left + width), ylim=(top + height, top))
    axes.set_axis_off()

    def add(group: ElementTree.Element, x: float = 0, y: float = 0, scale: float = 1) -> None:
        for shape in group:
            size = {name: float(shape.get(name, 0)) * scale for name in _LENGTHS}
            kind, fill, stroke = shape.tag.partition("}")[2], shape.get("fill"), shape.get("stroke", "none")
            line, dashes = size["stroke-width"], [float(n) * scale for n in shape.get("stroke-dasharray", "").split()]
            edge: Any = {"edgecolor": stroke, "linewidth": line * point}
            edge |= {"linestyle": (0, [n / line for n in dashes])} if dashes else {}
            if kind == "g":
                move, zoom = (re.search(rf"{word}\(([^)]*)\)", shape.get("transform", "")) for word in _TRANSFORMS)
                dx, dy = map(float, move[1].split()) if move else (0.0, 0.0)
                add(shape, x + dx * scale, y + dy * scale, scale * float(zoom[1] if zoom else 1))
            elif kind == "rect":
                figure.set_facecolor(fill)
            elif kind == "line":
                axes.plot([size["x1"], size["x2"]], [size["y1"], size["y2"]], color=stroke, linewidth=line * point)
            elif kind == "circle":
                axes.add_patch(Circle((x + size["cx"], y + size["cy"]), size["r"], facecolor=fill, zorder=3, **edge))
            elif kind == "polygon":
                ends = [[float(n) * scale for n in end.split(",")] for end in shape.get("points", "").split()]
                axes.add_patch(Polygon(np.add(ends, (x, y)), facecolor=fill, zorder=3, **edge))
            elif kind == "text":
                text = axes.text(x + size["x"], y + size["y"], shape.text or "", color=fill, parse_math=False, zorder=4)
                text.set(fontsize=size["font-size"] * point, fontweight=shape.get("font-weight", "normal"))
                text.set_horizontalalignment("center" if shape.get("text-anchor") else "left")
                text.set_path_effects([withStroke(linewidth=line * point, foreground=stroke)] if line else [])

    add(root)
    return figure


def picture(drawing: dict[str, Any], why: Explanation | None = None) -> Picture:
    """What :func:`draw` gives as SVG; if explained, with rings as wide as contributions, dashed if against."""
    nodes, rings = drawing["nodes"], {}
    if why is not None:
        pushes = {item.node: why.of_class(item.contributions) for item in why.by_node}
        largest = max(map(abs, pushes.values()), default=0.0)
        strong = {node: push for node, push in pushes.items() if push and abs(push) >= _LEAST_PUSH * largest}
        # The width of each ring, negative for nodes that push away.
        rings = {node: float(np.sign(push)) * (2 + 5 * abs(push) / largest) for node, push in strong.items()}
    # Half the width and height of each node with its name (n, 2).
    sizes = [(0.29 * _font(node) * len(cut(node["name"], _LONGEST)), 2 * _font(node)) for node in nodes]
    boxes = np.array(sizes, np.float64).reshape(-1, 2)
    at = _push_apart(np.array([(node["x"], node["y"]) for node in nodes]).reshape(-1, 2) * (1.25, 0.9), boxes)
    low = (at - boxes).min(axis=0, initial=0) - _MARGIN
    width, height = (at + boxes).max(axis=0, initial=0) + _MARGIN - low
    placed = {
        # A mark stands above the middle of its box, as its name is below it.
        node["id"]: node | {"x": x, "y": y - 0.5 * _font(node), "font": _font(node), "ring": rings.get(node["id"], 0.0),
                            "inside": node["kind"] == "inside"}
        for node, (x, y) in zip(nodes, at.tolist(), strict=True)
    }  # fmt: skip
    ends = [(placed[edge["source"]], placed[edge["target"]], edge["inside"]) for edge in reversed(drawing["edges"])]
    svg = render(
        "picture.svg",
        drawing=drawing,
        nodes=list(reversed(placed.values())),
        # Edges among neighbours would hide the subgraph.
        edges=[(a, b, inside) for a, b, inside in ends if a["inside"] or b["inside"]],
        neighbours=sum(node["kind"] == "border" for node in nodes),
        anchors={bool(node["channels"]) for node in nodes if node["kind"] != "inside"},
        rings=bool(rings),
        towards="" if why is None else why.classes[why.leading],
        box=(*low.round().astype(int).tolist(), round(max(float(width), 520)), round(float(height))),  # 520: of the key
        margin=_MARGIN,
        longest=_LONGEST,
    )
    return Picture(svg.rstrip("\n"))


def _font(node: Mapping[str, Any]) -> int:
    return 14 if node["kind"] == "inside" else 10


def _push_apart(at: NDArray[np.float64], boxes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Push overlapping names apart, each pair along the axis that needs less."""
    room = boxes[:, None] + boxes[None] + 4
    for _ in range(200):
        away = at[:, None] - at[None]
        overlap = room - np.abs(away)
        overlap[(overlap <= 0).any(axis=2)] = 0
        overlap[np.arange(len(at)), np.arange(len(at))] = 0
        if not overlap.any():
            break
        narrow = overlap[..., 0] < overlap[..., 1]
        overlap *= np.stack([narrow, ~narrow], axis=2)
        at = at + (np.where(away < 0, -1, 1) * overlap * 0.3).sum(axis=1)
    return at


def drawing_values(graph: Graph, layout: Layout, name: str) -> dict[str, Any]:
    """A drawing of a subgraph: circles with styles and titles, two paths of edges, thinned out if dense, and words."""
    at = layout.positions * (_SCALE, -_SCALE) + _HALF
    radius = float(np.clip(26 / np.sqrt(max(1, layout.roles.count("inside"))), 3, 7))
    circles = []
    for node, component, (x, y) in zip(layout.nodes.tolist(), layout.components.tolist(), at.tolist(), strict=True):
        title = f"node {node}" if graph.names is None else f"{cut(graph.names[node], _TITLE)} (#{node})"
        if component < 0:
            circles.append((x, y, 2.5, "border", f"{title}, at the border"))
        else:
            title = f"{title}, component {component + 1} of {layout.num_components}"
            circles.append((x, y, radius, f"node c{component % COLOURS}", title))
    edges, cut_edges = (layout.edges[layout.ends_outside == ends] for ends in (0, 1))
    return {
        "description": f"Drawing of {name}: {layout.summary()}",
        "circles": circles,
        "edges": _path(at, edges, _MAX_EDGES),
        "cut_edges": _path(at, cut_edges, _MAX_CUT_EDGES),
        "opacity": f"{min(1.0, max(0.2, 70 / max(1, len(edges)))):.2f}",
        "summary": layout.summary(),
        "half": _HALF,
    }


def _path(at: NDArray[np.float64], pairs: NDArray[np.int64], most: int) -> str:
    ends = at.round().astype(int)
    return "".join("M{} {}L{} {}".format(*ends[a], *ends[b]) for a, b in pairs[thin(len(pairs), most)])
