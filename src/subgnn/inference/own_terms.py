"""Explanations in the model's own terms: the statistics it decides by, the members it averages, and a sentence.

A statistic is replaced by its median over the training subgraphs, and a member of a portfolio is left out, so that the
others share its weight. Both contributions are differences of two outputs, as those of nodes are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import scipy

from subgnn.channels.topology import CLUSTERING
from subgnn.data.graph import Graph
from subgnn.data.own_times import at_own_times, join_lists
from subgnn.inference.explanation import (
    Explanation,
    MemberContribution,
    NodeContribution,
    Outputs,
    StatisticContribution,
    differences,
    to_values,
)
from subgnn.inference.predictor import Predictor, names_of
from subgnn.kernels.arrays import csr
from subgnn.kernels.induced import induced_csr
from subgnn.models.interface import Statistics
from subgnn.ragged import Ragged
from subgnn.task import task_of

_TAIL = 0.05  # of training subgraphs below and above the usual values
_SHOWN = 3  # items in a sentence
_LEAST = 0.005  # a change of a probability that is worth a word


def by_statistic(predictor: Predictor, subgraphs: Ragged, whole: Outputs) -> list[tuple[StatisticContribution, ...]]:
    """The statistics of each subgraph, if the model, or a member of it, decides by any; those of the heaviest member.

    Shapes:
        whole: (n, outputs), the outputs of the subgraphs.
    """
    portfolio = predictor.portfolio
    through: Sequence[Callable[[Outputs], Outputs]] = [lambda outputs: outputs] * len(subgraphs)
    found = predictor.fitted.statistics(subgraphs)
    if portfolio is not None:
        for member in sorted(portfolio.parts, key=portfolio.shares.__getitem__, reverse=True):
            found = portfolio.parts[member].statistics(subgraphs)
            if found is not None:
                through = portfolio.outputs_given_member(member, subgraphs)
                break
    if found is None:
        return [()] * len(subgraphs)
    answers, triangles = [], at_own_times(predictor.graph, subgraphs, _triangle_edges, join_lists)
    for row, (edges, combine) in enumerate(zip(triangles, through, strict=True)):
        numbers = differences(predictor, whole[row], combine(found.without[row]))
        items = []
        for column, (name, n) in enumerate(zip(found.names, numbers, strict=True)):
            about: dict[str, Any] = {"name": name, "edges": edges if name == CLUSTERING else ()} | _placed(
                found, row, column
            )
            items.append(StatisticContribution(**about | n))
        answers.append(tuple(items))
    return answers


def _placed(found: Statistics, row: int, column: int) -> dict[str, Any]:
    """A value beside those of the training subgraphs."""
    value, known = float(found.values[row, column]), found.known[:, column]
    near = 1e-9 * max(1.0, abs(value))
    median, low, high = np.quantile(known, [0.5, _TAIL, 1 - _TAIL]).tolist()
    shares = {"share_below": float((known < value - near).mean()), "share_above": float((known > value + near).mean())}
    return {"value": value, "median": median, "low": low, "high": high, **shares}


def _triangle_edges(graph: Graph, subgraphs: Ragged) -> list[tuple[tuple[str, str], ...]]:
    """The edges inside each subgraph that are in triangles, by name."""
    found = []
    for nodes in subgraphs:
        offsets, neighbors = induced_csr(csr(*graph.csr), nodes)
        inside = scipy.sparse.csr_array((np.ones(len(neighbors)), neighbors, offsets), shape=(len(nodes), len(nodes)))
        ends = np.stack((inside @ inside).multiply(inside).nonzero())
        names = names_of(graph, nodes.tolist())
        found.append(tuple((names[a], names[b]) for a, b in sorted(zip(*ends.tolist(), strict=True)) if a < b))
    return found


def by_member(predictor: Predictor, subgraphs: Ragged, whole: Outputs) -> list[tuple[MemberContribution, ...]]:
    """The members of a portfolio, the heaviest first: what each predicts alone, and what it adds to the whole."""
    portfolio = predictor.portfolio
    if portfolio is None:
        return [()] * len(subgraphs)
    found: list[list[MemberContribution]] = [[] for _ in subgraphs]
    for name, (own, without) in portfolio.members_alone_and_left_out(subgraphs).items():
        part, share = predictor.part(name), portfolio.shares[name]
        for row, scores in enumerate(part.scores(own)):
            (numbers,) = differences(predictor, whole[row], without[row][None])
            label = part.label_text(scores)
            about: dict[str, Any] = {"name": name, "method": part.spec.method, "weight": share, "label": label}
            found[row].append(MemberContribution(**about | {"scores": to_values(scores)} | numbers))
    return [tuple(sorted(items, key=lambda item: -item.weight)) for items in found]


def sentence(found: Explanation) -> str:
    """An explanation in one sentence: the prediction, and what speaks most for it and against it."""
    task, leading = task_of(found.task), found.leading
    if task.real:
        text = f"The predicted value is {found.logits[0]:.4g}"
    elif task.several:
        text = f"Predicted: {found.label or 'no label'}; {found.classes[leading]} has the highest probability"
        text += f", {found.probabilities[leading]:.2f}"
    else:
        text = f"Predicted {found.label} with probability {found.probabilities[leading]:.2f}"
    return "; ".join([text, *_reasons(found)]) + "."


def _reasons(found: Explanation) -> Iterator[str]:
    if found.by_member:
        words = (f"{one.name} {one.weight:.0%} ({one.label})" for one in found.by_member[:_SHOWN])
        more = f" and {n} more" if (n := len(found.by_member) - _SHOWN) > 0 else ""
        yield f"by weight, it is the mean of {', '.join(words)}{more}"
    strongest = [
        max((abs(_change(found, item)) for item in items), default=0.0) for items in (found.by_statistic, found.by_node)
    ]
    if found.by_statistic and (not found.by_member or strongest[0] > strongest[1]):
        towards = [item for item in found.by_statistic if _change(found, item) > _least(found)]
        yield from map(_in_words, towards[:_SHOWN] or found.by_statistic[:1])
    else:
        yield from _nodes_in_words(found)


def _nodes_in_words(found: Explanation) -> Iterator[str]:
    """What the prediction would be without the nodes that matter most."""
    changes = [(item.name, _change(found, item)) for item in found.by_node]
    towards = [f"{name} by {change:.2g}" for name, change in changes if change > _least(found)][:_SHOWN]
    away = [f"{name} by {-change:.2g}" for name, change in reversed(changes) if change < -_least(found)][:1]
    noun = "probability" if found.probabilities else "value"
    if towards:
        yield f"the {noun} is lower without {', '.join(towards)}"
    if away:
        yield f"it is higher without {away[0]}"
    if changes and not towards and not away:
        yield "no node matters by itself"


def _least(found: Explanation) -> float:
    return _LEAST if found.probabilities else 0.0


def _change(found: Explanation, item: StatisticContribution | NodeContribution) -> float:
    """The change of the leading class's probability, or of the value."""
    return float((item.probability_changes or item.contributions)[found.leading])


def _in_words(item: StatisticContribution) -> str:
    """A statistic beside those of training subgraphs."""
    text = f"{item.name} is {item.value:.3g}" + (f", with {len(item.edges)} edges in triangles" if item.edges else "")
    if max(item.share_below, item.share_above) == 0:
        return text
    below = item.share_below >= item.share_above
    share, side = (item.share_below, "less") if below else (item.share_above, "more")
    return f"{text} (typically {item.median:.3g}; {share:.0%} of training subgraphs have {side})"
