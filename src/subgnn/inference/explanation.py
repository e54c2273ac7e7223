"""Explanations as plain, named values, which turn into JSON.

A contribution is a number for each class: the logit with the item minus the logit without it. Above 0, the item raises
the logit of the class. For real-valued labels it is a difference of predicted values, in their unit.
``probability_changes`` is the same for probabilities; real values have none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.inference.predictor import Predictor
from subgnn.task import TaskName, task_of

Values = tuple[float, ...]
Outputs = NDArray[np.float32]
Compare = Callable[[Outputs, Outputs], list[dict[str, Values]]]
"""Contributions from the output of a subgraph (outputs,) and those without each item (items, outputs)."""
_DIGITS = 6


def to_values(numbers: NDArray[np.floating[Any]]) -> Values:
    """An array as plain numbers."""
    return tuple(float(number) for number in numbers)


def target_scale(predictor: Predictor) -> float:
    """Factor from outputs to the unit of the labels: the standard deviation of real-valued targets, else 1."""
    target = predictor.spec.standards.get("target")
    return 1.0 if target is None else float(target.deviation[0])


def differences(predictor: Predictor, whole: Outputs, without: Outputs) -> list[dict[str, Values]]:
    """Compute ``contributions`` and ``probability_changes`` of items left out or masked; a :data:`Compare`."""
    logits = (whole - without) * target_scale(predictor)
    if task_of(predictor.spec.task).real:
        return [{"contributions": to_values(row)} for row in logits]
    changes = predictor.scores(whole[None]) - predictor.scores(without)
    return [
        {"contributions": to_values(row), "probability_changes": to_values(change)}
        for row, change in zip(logits, changes, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class NodeContribution:
    """A node of the subgraph, and the component it is in."""

    node: int
    name: str
    component: int
    contributions: Values
    probability_changes: Values = ()


@dataclass(frozen=True, slots=True)
class ComponentContribution:
    """A connected component of the subgraph: its number and its nodes."""

    component: int
    nodes: tuple[int, ...]
    names: tuple[str, ...]
    contributions: Values
    probability_changes: Values = ()


@dataclass(frozen=True, slots=True)
class ChannelContribution:
    """A part of the subgraph's vector.

    ``level`` is ``channel`` (position: both sides), ``subchannel`` (position/internal), or ``part`` for everything
    else: z0, topology, size, baseline (the scores that a network corrects), or ``channels`` for a network that adds its
    channels up.
    """

    name: str
    level: str
    contributions: Values
    probability_changes: Values = ()


@dataclass(frozen=True, slots=True)
class AnchorContribution:
    """An anchor of a layer and subchannel: a node, or the nodes of a patch.

    A node that was drawn several times is one anchor. ``draw`` is the number of its draw of anchors, ``similarity`` the
    greatest similarity to any component, and ``slot`` its first position among the subchannel's anchors. Several
    networks share their anchors: contributions, and learned similarities, are means over networks.
    """

    channel: str
    layer: int
    slot: int
    nodes: tuple[int, ...]
    names: tuple[str, ...]
    similarity: float
    contributions: Values
    probability_changes: Values = ()


@dataclass(frozen=True, slots=True)
class StatisticContribution:
    """A statistic that the model decides by, beside those of the training subgraphs.

    Nine tenths of them are from ``low`` to ``high``; ``share_below`` and ``share_above`` have a lower and a higher
    value. ``edges`` are those that make it, where they are known.
    """

    name: str
    value: float
    median: float
    low: float
    high: float
    share_below: float
    share_above: float
    edges: tuple[tuple[str, str], ...]
    contributions: Values
    probability_changes: Values = ()


@dataclass(frozen=True, slots=True)
class MemberContribution:
    """A member of a portfolio: its weight, and the label and probabilities, or the value, that it predicts alone."""

    name: str
    method: str
    weight: float
    label: str
    scores: Values
    contributions: Values
    probability_changes: Values = ()


@dataclass(frozen=True, slots=True)
class Explanation:
    """A prediction and the contributions to it.

    Args:
        nodes, names: the nodes of the subgraph.
        label: as ``predict`` writes it.
        classes: the order of contributions; ``value`` alone for real-valued labels.
        logits: one per class; for real-valued labels the value, in its own unit.
        probabilities: one per class; none for real-valued labels.
        sentence: the explanation for a person.
        by_node, by_component: from leaving them out. Empty if that is impossible; ``notes`` say why.
        by_statistic: from replacing a statistic by its median, for a model that decides by statistics.
        by_member: from leaving out a member of a portfolio; the heaviest first.
        by_channel: from replacing a part of the subgraph's vector by ``reference``.
        by_anchor: from masking an anchor; those that matter most come first.
        reference: ``training mean``, ``zero``, or empty for a model without channels.
        member: the member of a portfolio whose channels and anchors were masked; contributions are to the portfolio.
        notes: what is missing, and why.
    """

    nodes: tuple[int, ...]
    names: tuple[str, ...]
    method: str
    task: TaskName
    label: str
    classes: tuple[str, ...]
    logits: Values
    probabilities: Values
    sentence: str = ""
    by_node: tuple[NodeContribution, ...] = ()
    by_component: tuple[ComponentContribution, ...] = ()
    by_statistic: tuple[StatisticContribution, ...] = ()
    by_member: tuple[MemberContribution, ...] = ()
    by_channel: tuple[ChannelContribution, ...] = ()
    by_anchor: tuple[AnchorContribution, ...] = ()
    reference: str = ""
    member: str = ""
    notes: tuple[str, ...] = ()

    def of_class(self, contributions: Sequence[float], name: str | None = None) -> float:
        """The contribution to one class, by default the predicted one, or to the value."""
        return float(contributions[self.leading if name is None else self.classes.index(name)])

    @property
    def leading(self) -> int:
        """The index of the predicted class or, for multi-label tasks, of the highest logit."""
        if task_of(self.task).one_class:
            return self.classes.index(self.label)
        return max(range(len(self.logits)), key=self.logits.__getitem__)

    def to_json(self) -> dict[str, Any]:
        """Plain values; contributions by class name."""
        return {
            "nodes": list(self.nodes),
            "names": list(self.names),
            "method": self.method,
            "task": self.task,
            "label": self.label,
            "sentence": self.sentence,
            "classes": list(self.classes),
            "logits": self._by_class(self.logits),
            "probabilities": self._by_class(self.probabilities),
            **{name: self._items(getattr(self, name)) for name in self.__slots__ if name.startswith("by_")},
            "reference": self.reference,
            "member": self.member,
            "notes": list(self.notes),
        }

    def _by_class(self, values: Values) -> dict[str, float]:
        return {name: round(value, _DIGITS) for name, value in zip(self.classes, values, strict=False)}

    def _items(self, items: Sequence[Any]) -> list[dict[str, Any]]:
        found = []
        for item in items:
            plain: dict[str, Any] = {}
            for name in item.__slots__:
                value = getattr(item, name)
                if name not in ("contributions", "probability_changes", "scores"):
                    plain[name] = list(value) if isinstance(value, tuple) else value
                elif value:
                    plain[name] = self._by_class(value)
            found.append(plain)
        return found
