"""Draw the picture of README: one gene set in its graph, the prediction for it, and what it depends on.

    python docs/tools/picture.py

Trains SubGNN on examples/genes, takes the first test set of three components that it predicts correctly, and
writes docs/figures/subgraph.svg.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path
from sklearn.manifold import MDS

import subgnn
from subgnn.inference.explanation import Explanation
from subgnn.reports.drawing import AWAY, COLOURS, EDGE, FAINT, TOWARDS

ROOT = Path(__file__).parents[2]
OUT = ROOT / "docs" / "figures" / "subgraph.svg"
WIDTH, HEIGHT, SPLIT = 820, 400, 500
PARTS = {"z0": "its nodes", "topology": "its statistics"}


def spread(graph: subgnn.Graph) -> NDArray[np.float64]:
    """Positions of all nodes in the left part of the picture, with distances near those in hops."""
    offsets, neighbors = graph.csr
    hops = shortest_path(csr_array((np.ones(len(neighbors)), neighbors, offsets)), unweighted=True)
    hops[np.isinf(hops)] = hops[np.isfinite(hops)].max() + 1
    at = MDS(metric="precomputed", n_init=8, max_iter=2000, random_state=0, init="random").fit_transform(hops)
    low, high = at.min(axis=0), at.max(axis=0)
    return (at - low) / (high - low) * (SPLIT - 90, HEIGHT - 90) + (40, 50)


def bars(title: str, values: list[tuple[str, float, str]], top: int, *, scale: float, form: str) -> list[str]:
    """A title, and under it a bar for each name, value and colour."""
    left, middle = SPLIT + 20, SPLIT + 130
    drawn = [f'<text x="{left}" y="{top}" font-weight="bold">{title}</text>']
    for place, (name, value, colour) in enumerate(values):
        y, length = top + 12 + 24 * place, max(abs(value) * scale, 1)
        drawn += [
            f'<text x="{left}" y="{y + 13}">{name}</text>',
            f'<rect x="{middle}" y="{y + 2}" width="{length:.0f}" height="14" fill="{colour}"/>',
            f'<text x="{middle + length + 6:.0f}" y="{y + 13}">{value:{form}}</text>',
        ]
    return drawn


def surroundings(graph: subgnn.Graph, found: Explanation) -> list[str]:
    """The whole graph, with the nodes and edges of the subgraph in the colours of their components."""
    at, inside = spread(graph), {one.node: one for one in found.by_node}
    drawn = []
    for node, other in zip(*(ends.tolist() for ends in graph.edges()[:2]), strict=True):
        within = node in inside and other in inside
        style = f'stroke="{COLOURS[inside[node].component]}" stroke-width="4"' if within else f'stroke="{EDGE}"'
        (x1, y1), (x2, y2) = at[[node, other]].round().astype(int).tolist()
        drawn.append(f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" {style}/>')
    for node, (x, y) in enumerate(at.round().astype(int).tolist()):
        fill, radius = (COLOURS[inside[node].component], 11) if node in inside else (FAINT, 5)
        drawn.append(f'<circle cx="{x}" cy="{y}" r="{radius}" fill="{fill}"/>')
    halo = 'text-anchor="middle" font-weight="bold" stroke="#fcfdfe" stroke-width="4" paint-order="stroke"'
    for node, one in inside.items():
        drawn.append(f'<text x="{at[node, 0]:.0f}" y="{at[node, 1] - 16:.0f}" {halo}>{one.name}</text>')
    return drawn


def draw(graph: subgnn.Graph, found: Explanation) -> str:
    """The picture as SVG."""
    title = f"{len(found.nodes)} genes in {len(found.by_component)} components"
    chances = sorted(zip(found.classes, found.probabilities, strict=True), key=lambda one: -one[1])
    kinds: dict[str, float] = {}
    for item in found.by_channel:
        kind = item.name.partition("/")[0]
        kinds[kind] = kinds.get(kind, 0.0) + found.of_class(item.contributions)
    largest = max(map(abs, kinds.values()))
    predicted = [(name, chance, COLOURS[0] if name == found.label else FAINT) for name, chance in chances]
    channels = [(PARTS.get(kind, kind), value, TOWARDS if value > 0 else AWAY) for kind, value in kinds.items()]
    view = f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="13"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {view} role="img" aria-label="{title}: {found.label}">',
            f'<rect width="{WIDTH}" height="{HEIGHT}" rx="8" fill="#fcfdfe"/>',
            '<g fill="#1b2430">',
            f'<text x="{SPLIT + 20}" y="40" font-size="16" font-weight="bold">{title}</text>',
            *surroundings(graph, found),
            *bars(f"prediction: {found.label}", predicted, 80, scale=110, form=".0%"),
            *bars(f"contributions to {found.label}", channels, 225, scale=100 / largest, form="+.2f"),
            "</g>",
            "</svg>\n",
        ]
    )


def main() -> None:
    """Train, explain and draw."""
    genes = ROOT / "examples" / "genes"
    data = subgnn.read_tables(genes / "edges.csv", genes / "members.csv")
    run = subgnn.train(data, recipe="subgnn", seed=0)
    test = data.subgraphs.take(data.subgraphs.indices("test"))
    found = next(
        one
        for row, one in enumerate(run.explain(test))
        if len(one.by_component) == 3 and one.label == test.label_text(row)
    )
    OUT.write_text(draw(data.graph, found), encoding="utf-8")
    print(f"{OUT.relative_to(ROOT)}: {', '.join(found.names)}: {found.label}")


if __name__ == "__main__":
    main()
