"""Explanations as plain, named values, which turn into JSON, rows of a table, and a sentence.

A contribution is a number for each class: the logit with the item minus the logit without it. Above 0, the item raises
the logit of the class. For real-valued labels it is a difference of predicted values, in their unit.
``probability_changes`` is the same for probabilities; real values have none.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from subgnn.inference.predictor import Predictor
from subgnn.task import TaskName, task_of

Values = tuple[float, ...]
Outputs = NDArray[np.float32]
Compare = Callable[[Outputs, Outputs], list[dict[str, Values]]]
"""Contributions from the output of a subgraph (outputs,) and those without each item (items, outputs)."""
Row = tuple[str, str, str, Sequence[float | None]]
"""A row of a table: how an item was left out, its kind, its name, and its contributions."""
_DIGITS = 6
_SHOWN_NAMES = 8  # in a row of a table
_SHOWN = 3  # items in a sentence
_LEAST = 0.005  # a change of a probability that is worth a word


def differences(predictor: Predictor, whole: Outputs, without: Outputs) -> list[dict[str, Values]]:
    """Compute ``contributions`` and ``probability_changes`` of items left out or masked; a :data:`Compare`."""
    target = predictor.spec.standards.get("target")
    logits = (whole - without) * (1.0 if target is None else float(target.deviation[0]))
    found = [{"contributions": tuple(row)} for row in logits.tolist()]
    if not task_of(predictor.spec.task).real:
        changes = predictor.scores(whole[None]) - predictor.scores(without)
        for item, change in zip(found, changes.tolist(), strict=True):
            item["probability_changes"] = tuple(change)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Contribution:
    """What an item of a subgraph, or a part of the model, adds to a prediction."""

    contributions: Values
    probability_changes: Values = ()


@dataclass(frozen=True, slots=True)
class NodeContribution(Contribution):
    """A node of the subgraph, and the component it is in."""

    node: int
    name: str
    component: int


@dataclass(frozen=True, slots=True)
class ComponentContribution(Contribution):
    """A connected component of the subgraph: its number and its nodes."""

    component: int
    nodes: tuple[int, ...]
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ChannelContribution(Contribution):
    """A part of the subgraph's vector."""

    name: str  # such as position, position/internal, z0, topology, size, baseline (scores that a network corrects)
    level: str  # ``channel`` (both sides), ``subchannel`` (one), or ``part`` for everything else


@dataclass(frozen=True, slots=True)
class AnchorContribution(Contribution):
    """An anchor of a layer and subchannel: a node, also if drawn several times, or a patch; means over networks."""

    channel: str
    layer: int
    slot: int  # its first position among the anchors of the subchannel
    nodes: tuple[int, ...]
    names: tuple[str, ...]
    similarity: float  # the greatest to any component


@dataclass(frozen=True, slots=True)
class StatisticContribution(Contribution):
    """A statistic that the model decides by, beside those of the training subgraphs."""

    name: str
    value: float
    median: float
    low: float  # nine tenths of the training subgraphs are from here
    high: float  # to here
    share_below: float  # of training subgraphs
    share_above: float
    edges: tuple[tuple[str, str], ...]  # that make it, where they are known

    def in_words(self) -> str:
        triangles = f", with {len(self.edges)} edges in triangles" if self.edges else ""
        text = f"{self.name} is {self.value:.3g}{triangles}"
        if max(self.share_below, self.share_above) == 0:
            return text
        below = self.share_below >= self.share_above
        share, side = (self.share_below, "less") if below else (self.share_above, "more")
        return f"{text} (typically {self.median:.3g}; {share:.0%} of training subgraphs have {side})"


@dataclass(frozen=True, slots=True)
class MemberContribution(Contribution):
    """A member of a portfolio: its weight, and the label and probabilities, or the value, that it predicts alone."""

    name: str
    method: str
    weight: float
    label: str
    scores: Values


@dataclass(frozen=True, slots=True)
class Explanation:
    """A prediction and the contributions to it: from leaving out nodes, components and members, and from masking."""

    nodes: tuple[int, ...]
    names: tuple[str, ...]
    method: str
    task: TaskName
    label: str  # as ``predict`` writes it
    classes: tuple[str, ...]  # the order of contributions; ``value`` alone for real-valued labels
    logits: Values  # one per class; for real-valued labels the value, in its own unit
    probabilities: Values  # one per class; none for real-valued labels
    by_node: tuple[NodeContribution, ...] = ()  # empty if it cannot be left out, and ``notes`` say why
    by_component: tuple[ComponentContribution, ...] = ()
    by_statistic: tuple[StatisticContribution, ...] = ()  # with the median instead
    by_member: tuple[MemberContribution, ...] = ()  # the heaviest first
    by_channel: tuple[ChannelContribution, ...] = ()  # with ``reference`` instead of a part of the subgraph's vector
    by_anchor: tuple[AnchorContribution, ...] = ()  # those that matter most come first
    reference: str = ""  # ``training mean``, ``zero``, or empty for a model without channels
    member: str = ""  # of a portfolio, whose channels and anchors were masked; contributions are to the portfolio
    notes: tuple[str, ...] = ()  # what is missing, and why

    def of_class(self, contributions: Sequence[float], name: str | None = None) -> float:
        """The contribution to one class, by default the predicted one, or to the value."""
        return float(contributions[self.leading if name is None else self.classes.index(name)])

    @property
    def leading(self) -> int:
        """The index of the predicted class or, for multi-label tasks, of the highest logit."""
        if task_of(self.task).one_class:
            return self.classes.index(self.label)
        return max(range(len(self.logits)), key=self.logits.__getitem__)

    @property
    def sentence(self) -> str:
        """The explanation for a person: the prediction, and what speaks most for it and against it."""
        task, leading = task_of(self.task), self.leading
        if task.real:
            text = f"The predicted value is {self.logits[0]:.4g}"
        elif task.several:
            text = f"Predicted: {self.label or 'no label'}; {self.classes[leading]} has the highest probability"
            text += f", {self.probabilities[leading]:.2f}"
        else:
            text = f"Predicted {self.label} with probability {self.probabilities[leading]:.2f}"
        return "; ".join([text, *self._reasons()]) + "."

    def _reasons(self) -> Iterator[str]:
        if len(self.by_member) > 1:
            words = (f"{one.name} {one.weight:.0%} ({one.label})" for one in self.by_member[:_SHOWN])
            more = f" and {n} more" if (n := len(self.by_member) - _SHOWN) > 0 else ""
            yield f"by weight, it is the mean of {', '.join(words)}{more}"
        least = _LEAST if self.probabilities else 0.0
        of_statistics = [(item, self._change(item)) for item in self.by_statistic]
        of_nodes = [(item.name, self._change(item)) for item in self.by_node]
        strongest = [max((abs(change) for _, change in changes), default=0.0) for changes in (of_statistics, of_nodes)]
        if self.by_statistic and (not self.by_member or strongest[0] > strongest[1]):
            raising = [item for item, change in of_statistics if change > least]
            yield from (item.in_words() for item in raising[:_SHOWN] or self.by_statistic[:1])
            return
        towards = [f"{name} by {change:.2g}" for name, change in of_nodes if change > least][:_SHOWN]
        away = [f"{name} by {-change:.2g}" for name, change in reversed(of_nodes) if change < -least][:1]
        if towards:
            yield f"the {'probability' if self.probabilities else 'value'} is lower without {', '.join(towards)}"
        if away:
            yield f"it is higher without {away[0]}"
        if of_nodes and not towards and not away:
            what = f"the probability by more than {_LEAST:g}" if self.probabilities else "the value"
            yield f"no single node changes {what}"

    def _change(self, item: Contribution) -> float:
        return (item.probability_changes or item.contributions)[self.leading]

    def rows(self) -> Iterator[Row]:
        yield "prediction", "sentence", self.sentence, [None] * len(self.classes)
        yield "prediction", "logits", "", self.logits
        ways: dict[str, Sequence[Contribution]] = {
            "training median instead": self.by_statistic,
            "leaving out": (*self.by_member, *self.by_node, *self.by_component),
            f"{self.reference} instead": self.by_channel,
            "silencing": self.by_anchor,
        }
        for way, items in ways.items():
            yield from ((way, *_named(item), item.contributions) for item in items)

    def to_json(self) -> dict[str, Any]:

        def plain(name: str, value: Any) -> Any:
            if name in ("logits", "probabilities", "contributions", "probability_changes", "scores"):
                return {title: round(one, _DIGITS) for title, one in zip(self.classes, value, strict=False)}
            if isinstance(value, Contribution):
                values = {name: getattr(value, name) for name in (*value.__slots__, *Contribution.__slots__)}
                return {name: plain(name, one) for name, one in values.items() if name != "probability_changes" or one}
            return [plain(name, one) for one in value] if isinstance(value, tuple) else value

        return {name: plain(name, getattr(self, name)) for name in self.__slots__} | {"sentence": self.sentence}


def _named(item: Contribution) -> tuple[str, str]:
    if isinstance(item, NodeContribution):
        return "node", item.name
    if isinstance(item, ChannelContribution):
        return item.level, item.name
    if isinstance(item, StatisticContribution):
        return "statistic", f"{item.name}: {item.value:.4g}, typically {item.median:.4g}"
    if isinstance(item, MemberContribution):
        return "member", f"{item.name}: weight {item.weight:.2f}, predicts {item.label}"
    of_nodes = cast(ComponentContribution | AnchorContribution, item)
    names = "-".join(of_nodes.names[:_SHOWN_NAMES])
    names += f"-...({len(of_nodes.names)})" if len(of_nodes.names) > _SHOWN_NAMES else ""
    if isinstance(of_nodes, ComponentContribution):
        return "component", names
    return "anchor", f"{of_nodes.channel}:{of_nodes.layer}:{names}"
