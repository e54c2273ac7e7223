"""The part of a page that draws a few subgraphs: those the network was surest of, right and wrong."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from subgnn.reports.findings import Findings
from subgnn.reports.markup import Markup, cut, join, paragraph, section, tag
from subgnn.reports.subgraph_drawing import draw_subgraph
from subgnn.rng import stream

_EACH = 4
_LABEL = 80


@dataclass(frozen=True, slots=True)
class Choice:
    """A subgraph to draw: its place in the split, and how it was answered."""

    place: int
    said: str
    certainty: str


def choose(found: Findings) -> tuple[list[Choice], list[Choice]]:
    """The surest right answers, of each class in turn, and the surest wrong ones; of real values, nearest and farthest.

    With several labels an answer is right where all are; its probability is the product over labels.
    """
    if found.task == "regression":
        true, said = found.in_unit(found.targets), found.in_unit(found.outputs[:, 0])
        order = np.argsort(np.abs(true - said), kind="stable")
        near, far = order[:_EACH], order[_EACH:][::-1][:_EACH]
        return (
            [Choice(int(i), f"{said[i]:.4g}", f"off by {abs(true[i] - said[i]):.3g}") for i in near],
            [Choice(int(i), f"{said[i]:.4g}", f"off by {abs(true[i] - said[i]):.3g}") for i in far],
        )
    scores, truth, predicted = found.probabilities(), found.targets.numpy(), found.predicted()
    if found.task == "multi-label":
        right = (predicted == truth).all(axis=1)
        sure = np.where(predicted == 1, scores, 1 - scores).prod(axis=1)
        said_texts = [_labels(found, np.flatnonzero(row)) for row in predicted]
    else:
        right, sure = predicted == truth, scores.max(axis=1)
        said_texts = [found.classes[int(c)] for c in predicted]
    surest = [int(i) for i in np.argsort(-sure, kind="stable")]
    turn: dict[int, int] = {}
    seen: Counter[str] = Counter()
    for i in surest:
        if right[i]:
            turn[i] = seen[said_texts[i]]
            seen[said_texts[i]] += 1

    def made(places: list[int]) -> list[Choice]:
        return [Choice(i, said_texts[i], f"probability {sure[i]:.3f}") for i in places[:_EACH]]

    return made(sorted(turn, key=turn.__getitem__)), made([i for i in surest if not right[i]])


def _labels(found: Findings, places: NDArray[np.int64]) -> str:
    return ", ".join(found.classes[c] for c in places) or "no label"


def _true(found: Findings, row: int) -> str:
    subgraphs = found.dataset.subgraphs
    if found.task == "multi-label" and subgraphs.targets is not None:
        return _labels(found, np.flatnonzero(subgraphs.targets[row]))
    if found.task == "regression" and subgraphs.targets is not None:
        return f"{subgraphs.targets[row]:.4g}"
    return subgraphs.label_text(row)


def pictures(found: Findings) -> Markup:
    """Drawings of a few subgraphs of the split that was scored."""
    graph, (right, wrong) = found.dataset.graph.undirected(), choose(found)

    def draw(choice: Choice) -> Markup:
        row = int(found.rows[choice.place])
        names = found.dataset.subgraphs.names
        name = f"subgraph {row}" if names is None else cut(names[row], 60)
        nodes = np.asarray(found.dataset.subgraphs.nodes[row], np.int64)
        drawing = draw_subgraph(graph, nodes, stream(0, f"report/{row}"), name=name)
        caption = tag(
            "figcaption",
            tag("strong", name), tag("br"),
            f"true: {cut(_true(found, row), _LABEL)}", tag("br"),
            f"predicted: {cut(choice.said, _LABEL)}", tag("br"),
            choice.certainty,
        )  # fmt: skip
        return tag("figure", caption, drawing)

    real = found.task == "regression"
    groups = []
    for title, choices in (("Nearest" if real else "Right", right), ("Farthest" if real else "Wrong", wrong)):
        shown = tag("div", *map(draw, choices), class_="subgraphs") if choices else paragraph("None.")
        groups.append(join([tag("h3", title), shown]))
    words = (
        "The subgraphs that were predicted best and worst. "
        if real
        else "The surest right answers, of each class in turn, and the surest wrong ones. "
    )
    words += (
        "Coloured: nodes of the subgraph, a colour for each component. Small and grey: nodes at its border, one hop "
    )
    words += "away. The pointer over a node shows its name."
    if found.task == "multi-label":
        words += " An answer is right where all its labels are; its probability is the product over labels."
    return section("subgraphs", "Some subgraphs", paragraph(words), *groups)
