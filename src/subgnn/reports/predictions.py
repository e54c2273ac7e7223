"""Sections of a run's page about predictions: agreement, examples, calibration."""

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import confusion_matrix

from subgnn.data.graph import Graph
from subgnn.data.layout import Layout, lay_out
from subgnn.metrics.calibration import calibration
from subgnn.render import cut
from subgnn.reports.charts import (
    COLOURS,
    MAX_POINTS,
    Chart,
    Key,
    Line,
    Mark,
    Style,
    group_style,
    number_axes,
    padded_range,
    thin,
)
from subgnn.reports.evaluation import FOLDS, Evaluation

_MAX_MATRIX, _MAX_ROWS, _MAX_EXAMPLES = 12, 1000, 4
_NAME, _LABEL = 60, 80
_HALF, _SCALE = 160, 100  # of the square of a drawing
_MAX_EDGES, _MAX_CUT_EDGES = 800, 300


def confusion_values(run: Evaluation) -> dict[str, Any]:
    """The confusion matrix, one row per true class; beyond twelve classes, the rarest share a row.

    ``shown`` is then the number of classes with a row of their own, else 0.
    """
    counts = confusion_matrix(run.targets.numpy(), run.predicted(), labels=range(len(run.classes)))
    names, shown = [cut(name, 40) for name in run.classes], 0
    if len(names) > _MAX_MATRIX:
        order, shown = np.argsort(-counts.sum(axis=1), kind="stable"), _MAX_MATRIX - 1
        groups = [*np.split(order[:shown], shown), order[shown:]]
        counts = np.array([[counts[np.ix_(a, b)].sum() for b in groups] for a in groups])
        names = [*(names[k] for k in order[:shown]), f"{len(order) - shown} others"]
    return {"names": names, "counts": counts.tolist(), "shown": shown}


def prediction_values(run: Evaluation) -> dict[str, Any]:
    """The table of predictions: header, rows in the order of the split, and whether each is wrong.

    Real values are not right or wrong: they have an error.
    """
    kept = range(min(len(run.rows), _MAX_ROWS))
    sizes = np.diff(run.dataset.subgraphs.nodes.offsets)[run.rows]
    names, true = [_subgraph_name(run, i) for i in kept], [_true_label(run, i) for i in kept]
    if run.task.real:
        predicted, truth = run.in_unit(run.outputs[:, 0]), run.in_unit(run.targets)
        last = [[f"{predicted[i]:.4g}", f"{predicted[i] - truth[i]:+.3g}"] for i in kept]
        header, wrong = ["predicted", "error"], [False] * len(kept)
    else:
        correct, confidence, texts = _predictions(run)
        last = [[cut(texts[i], _LABEL), f"{confidence[i]:.3f}", "yes" if correct[i] else "no"] for i in kept]
        header, wrong = ["predicted", "probability", "correct"], (~correct[: len(kept)]).tolist()
    rows = [[names[i], f"{sizes[i]}", true[i], *last[i]] for i in kept]
    return {
        "header": ["subgraph", "nodes", "true", *header],
        "rows": list(zip(rows, wrong, strict=True)),
        "total": len(run.rows),
        "wrong": sum(wrong),
    }


def scatter_chart(run: Evaluation) -> Chart:
    """Predicted against true values."""
    true, predicted = run.in_unit(run.targets).tolist(), run.in_unit(run.outputs[:, 0]).tolist()
    both, marks = padded_range([*true, *predicted]), []
    for i in thin(len(true), MAX_POINTS):
        title = f"{_subgraph_name(run, i)}: true {true[i]:.4g}, predicted {predicted[i]:.4g}"
        marks.append(Mark(x=true[i], y=predicted[i], style=Style("cloud"), title=title))
    return Chart(
        "Predicted against true",
        f"Scatter plot of {len(true)} subgraphs, predicted against true values, with the diagonal.",
        number_axes(both, both, "true value", "predicted value"),
        lines=[Line(both, both, "even")],
        marks=marks,
        key=[Key("predicted = true", line="even")],
    )


def _subgraph_name(run: Evaluation, index: int) -> str:
    row, names = int(run.rows[index]), run.dataset.subgraphs.names
    return f"subgraph {row}" if names is None else cut(names[row], _NAME)


def _true_label(run: Evaluation, index: int) -> str:
    if run.task.real:
        return f"{run.in_unit(run.targets[index : index + 1])[0]:.4g}"
    return cut(_labels(run, run.targets[index].numpy()), _LABEL)


def calibration_values(run: Evaluation) -> list[dict[str, Any]]:
    """Reliability diagrams with their bins and the expected calibration error; none for real values.

    A portfolio has one of its out-of-fold predictions before the one of the split that was scored.
    """
    if run.task.real:
        return []
    share = "share with the label" if run.task.several else "share correct"
    sources: list[tuple[str, NDArray[Any], NDArray[Any]]] = []
    if run.out_of_fold is not None:
        sources.append(("out of fold", *run.out_of_fold))
    if run.split != FOLDS:
        sources.append((f"on the {run.scored_on}", run.probabilities(), run.targets.numpy()))
    found = []
    for where, probabilities, targets in sources:
        predicted, correct = run.task.confidences(probabilities, targets)
        bins, error = calibration(predicted, correct)
        name, style, line = run.recipe.name, group_style(0), "first"
        marks = []
        for b in bins:
            title = f"{name}: {b.count} predictions, predicted {b.said:.3f}, observed {b.right:.3f}"
            marks.append(Mark(x=b.said, y=b.right, title=title, style=style, size=4, y_range=(b.low, b.high)))
        chart = Chart(
            f"Predicted and observed {where}",
            f"Reliability diagram: {name} error {error:.3f}.",
            number_axes((0, 1), (0, 1), "predicted probability", share),
            lines=[Line([0, 1], [0, 1], "even"), Line([b.said for b in bins], [b.right for b in bins], line)],
            marks=marks,
            key=[
                Key("perfect calibration", line="even"),
                Key(f"{name}, error {error:.3f}", line=line, style=style),
                Key("95 % interval", line="whisker"),
            ],
        )
        rows = [[f"{b.begin:.1f} to {b.end:.1f}", f"{b.count:,}", f"{b.said:.3f}", f"{b.right:.3f}"] for b in bins]
        numbers = {"count": f"{len(predicted):,}", "error": f"{error:.3f}"}
        found.append({"where": where, "chart": chart, "rows": rows} | numbers)
    return found


def example_groups(run: Evaluation) -> list[tuple[str, list[dict[str, Any]]]]:
    """Titles and drawings of the most confident correct predictions, of each class in turn, and of wrong ones.

    With several labels, a prediction is correct if all are; its probability is the product over labels. For real
    values, the predictions with the smallest and the largest errors.
    """
    if run.task.real:
        predicted = run.in_unit(run.outputs[:, 0])
        error = np.abs(run.in_unit(run.targets) - predicted)
        order = [int(i) for i in np.argsort(error, kind="stable")]
        texts, notes = [f"{value:.4g}" for value in predicted], [f"error {value:.3g}" for value in error]
        groups = {"Nearest": order[:_MAX_EXAMPLES], "Farthest": order[_MAX_EXAMPLES:][::-1]}
    else:
        correct, confidence, texts = _predictions(run)
        notes = [f"probability {value:.3f}" for value in confidence]
        order = [int(i) for i in np.argsort(-confidence, kind="stable")]
        # Sorting by the number of earlier ones of the same class gives each class its turn.
        turn: dict[int, int] = {}
        seen: Counter[str] = Counter()
        for i in order:
            if correct[i]:
                turn[i] = seen[texts[i]]
                seen[texts[i]] += 1
        groups = {"Correct": sorted(turn, key=turn.__getitem__), "Wrong": [i for i in order if not correct[i]]}
    graph, subgraphs = run.dataset.graph.undirected(), run.dataset.subgraphs.nodes
    found: list[tuple[str, list[dict[str, Any]]]] = []
    for title, chosen in groups.items():
        found.append((title, []))
        for i in chosen[:_MAX_EXAMPLES]:
            name = _subgraph_name(run, i)
            drawing = drawing_values(graph, lay_out(graph, subgraphs[int(run.rows[i])]), name)
            about = {"name": name, "true": _true_label(run, i), "predicted": cut(texts[i], _LABEL), "note": notes[i]}
            found[-1][1].append(about | {"drawing": drawing})
    return found


def _predictions(run: Evaluation) -> tuple[NDArray[np.bool_], NDArray[Any], list[str]]:
    """Whether the prediction for each subgraph of the split is correct, its probability, and the prediction."""
    scores, truth, predicted = run.probabilities(), run.targets.numpy(), run.predicted()
    texts = [_labels(run, one) for one in predicted]
    if run.task.several:
        confidence = np.where(predicted == 1, scores, 1 - scores).prod(axis=1)
        return (predicted == truth).all(axis=1), confidence, texts
    return predicted == truth, scores.max(axis=1), texts


def _labels(run: Evaluation, target: NDArray[Any]) -> str:
    return ", ".join(run.task.names(target, run.classes)) or "no label"


def drawing_values(graph: Graph, layout: Layout, name: str) -> dict[str, Any]:
    """A drawing of a subgraph: circles with styles and titles, two paths of edges, and words.

    Edges of a dense subgraph are thinned out and fainter.
    """
    at = layout.positions * (_SCALE, -_SCALE) + _HALF
    radius = float(np.clip(26 / np.sqrt(max(1, layout.roles.count("inside"))), 3, 7))
    circles = []
    for node, component, (x, y) in zip(layout.nodes.tolist(), layout.components.tolist(), at.tolist(), strict=True):
        title = f"node {node}" if graph.names is None else f"{cut(graph.names[node], _NAME)} (#{node})"
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
