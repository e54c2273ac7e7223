"""Values of the section of a run's page that draws a few subgraphs: confident correct and wrong predictions."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.data.graph import Graph
from subgnn.data.layout import Layout, lay_out
from subgnn.reports.answers import subgraph_name
from subgnn.reports.charts import thin
from subgnn.reports.evaluation import Evaluation
from subgnn.reports.render import cut

_EACH = 4
_LABEL = 80
_COLOURS = 8  # c0 to c7 of the style sheet
_HALF, _SCALE = 160, 100  # of the square of a drawing
_MAX_EDGES, _MAX_CUT_EDGES = 800, 300


def example_groups(run: Evaluation) -> list[tuple[str, list[dict[str, Any]]]]:
    """Titles and drawings: the most confident correct predictions, of each class in turn, and the wrong ones.

    With several labels a prediction is correct where all are; its probability is the product over labels. Of real
    values, the nearest and the farthest.
    """
    graph = run.dataset.graph.undirected()
    if run.task == "regression":
        true, predicted = run.in_unit(run.targets), run.in_unit(run.outputs[:, 0])
        error = np.abs(true - predicted)
        order = [int(i) for i in np.argsort(error, kind="stable")]
        texts = [f"{value:.4g}" for value in predicted]
        notes = [f"error {value:.3g}" for value in error]
        groups = {"Nearest": order[:_EACH], "Farthest": order[_EACH:][::-1][:_EACH]}
    else:
        correct, confidence, texts = _predictions(run)
        notes = [f"probability {value:.3f}" for value in confidence]
        order = [int(i) for i in np.argsort(-confidence, kind="stable")]
        # Sorted by how many of the same class came before, so that each class has its turn.
        turn: dict[int, int] = {}
        seen: Counter[str] = Counter()
        for i in order:
            if correct[i]:
                turn[i] = seen[texts[i]]
                seen[texts[i]] += 1
        groups = {
            "Correct": sorted(turn, key=turn.__getitem__)[:_EACH],
            "Wrong": [i for i in order if not correct[i]][:_EACH],
        }
    return [
        (title, [_example(run, graph, i, predicted=texts[i], note=notes[i]) for i in chosen])
        for title, chosen in groups.items()
    ]


def _predictions(run: Evaluation) -> tuple[NDArray[np.bool_], NDArray[Any], list[str]]:
    """Of each subgraph of the split: whether it is predicted correctly, with which probability, and the prediction."""
    scores, truth, predicted = run.probabilities(), run.targets.numpy(), run.predicted()
    if run.task == "multi-label":
        confidence = np.where(predicted == 1, scores, 1 - scores).prod(axis=1)
        return (predicted == truth).all(axis=1), confidence, [_labels(run, row) for row in predicted]
    return predicted == truth, scores.max(axis=1), [run.classes[int(c)] for c in predicted]


def _labels(run: Evaluation, row: NDArray[Any]) -> str:
    return ", ".join(run.classes[c] for c in np.flatnonzero(row)) or "no label"


def _example(run: Evaluation, graph: Graph, index: int, *, predicted: str, note: str) -> dict[str, Any]:
    subgraphs, row = run.dataset.subgraphs, int(run.rows[index])
    true = subgraphs.label_text(row)
    if subgraphs.targets is not None and run.task == "multi-label":
        true = _labels(run, subgraphs.targets[row])
    elif subgraphs.targets is not None and run.task == "regression":
        true = f"{subgraphs.targets[row]:.4g}"
    name = subgraph_name(run, index)
    return {
        "name": name,
        "true": cut(true, _LABEL),
        "predicted": cut(predicted, _LABEL),
        "note": note,
        "drawing": drawing_values(graph, lay_out(graph, subgraphs.nodes[row]), name),
    }


def drawing_values(graph: Graph, layout: Layout, name: str) -> dict[str, Any]:
    """A drawing of a subgraph: circles grouped by style, two paths of edges, and words.

    Edges of a dense subgraph are thinned out, and the more there are, the fainter each is.
    """
    at = layout.positions * (_SCALE, -_SCALE) + _HALF
    inside = layout.count("inside")
    radius = float(np.clip(26 / np.sqrt(max(1, inside)), 3, 7))
    groups: dict[str, list[tuple[float, float, float, str]]] = {"border": []}
    for node, component, (x, y) in zip(layout.nodes.tolist(), layout.components.tolist(), at.tolist(), strict=True):
        title = f"node {node}" if graph.names is None else f"{cut(graph.names[node], 60)} (#{node})"
        if component < 0:
            groups["border"].append((x, y, 2.5, f"{title}, at the border"))
        else:
            where = f", component {component + 1} of {layout.num_components}"
            groups.setdefault(f"node c{component % _COLOURS}", []).append((x, y, radius, title + where))
    edges, cut_edges = (layout.edges[layout.ends_outside == ends] for ends in (0, 1))
    return {
        "description": f"Drawing of {name}: {layout.summary()}",
        "groups": list(groups.items()),
        "edges": _path(at, edges, _MAX_EDGES),
        "cut_edges": _path(at, cut_edges, _MAX_CUT_EDGES),
        "opacity": f"{min(1.0, max(0.2, 70 / max(1, len(edges)))):.2f}",
        "summary": layout.summary(),
        "half": _HALF,
    }


def _path(at: NDArray[np.float64], pairs: NDArray[np.int64], most: int) -> str:
    ends = at.round().astype(int)
    return "".join("M{} {}L{} {}".format(*ends[a], *ends[b]) for a, b in pairs[thin(len(pairs), most)])
