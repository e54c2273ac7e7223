"""What carried a prediction: plain values, with names, that turn into JSON.

A contribution is a number for each class: the logit with the thing minus the logit without it. Above 0, the thing
speaks for the class. Of real-valued labels it is the predicted value's, in its own unit. ``probability_changes`` is the
same of probabilities; there is none for real values, nor for attributions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from subgnn.data.graph import Graph
from subgnn.data.subgraphs import Task

Values = tuple[float, ...]
VALUE = "value"
_DIGITS = 6


def names_of(graph: Graph, nodes: Sequence[int]) -> tuple[str, ...]:
    """Nodes as a file of subgraphs has them: by name, by id where there are no names."""
    return tuple(str(node) if graph.names is None else graph.names.written(node) for node in nodes)


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
    """A connected component of the subgraph; its place and its nodes."""

    component: int
    nodes: tuple[int, ...]
    names: tuple[str, ...]
    contributions: Values
    probability_changes: Values = ()


@dataclass(frozen=True, slots=True)
class ChannelContribution:
    """A part of the subgraph's vector.

    ``level`` is ``channel`` (position: both sides), ``subchannel`` (position/internal), or ``part`` for what is no
    channel: z0, topology, size, baseline (the scores that a network corrects), or ``channels`` where a network adds
    them up.
    """

    name: str
    level: str
    contributions: Values
    probability_changes: Values = ()


@dataclass(frozen=True, slots=True)
class AnchorContribution:
    """An anchor that a layer of a subchannel hears: a node, or the nodes of a patch.

    A node that was drawn several times is one anchor. ``draw`` is the draw of anchors it is of, ``similarity`` the
    greatest to any component, and ``slot`` the first of its places among the subchannel's anchors. Several networks
    hear the same anchors: contributions, and similarities where they are learned, are the means of theirs.
    """

    channel: str
    layer: int
    draw: int
    slot: int
    nodes: tuple[int, ...]
    names: tuple[str, ...]
    similarity: float
    contributions: Values
    probability_changes: Values = ()


@dataclass(frozen=True, slots=True)
class Attributions:
    """Integrated gradients of similarities, component vectors and statistics.

    ``baseline`` are the logits where nothing is heard. Parts (z0, the subchannels, topology) add up to the logits minus
    the baseline minus ``residual``, the error of the numerical integral; so do components, beside what
    ``of_subgraph`` has of the subgraph as a whole.
    """

    steps: int
    baseline: Values
    residual: Values
    channels: tuple[ChannelContribution, ...]
    components: tuple[ComponentContribution, ...]
    anchors: tuple[AnchorContribution, ...]
    of_subgraph: Values


@dataclass(frozen=True, slots=True)
class Explanation:
    """A prediction and what carried it.

    Args:
        nodes, names: of the subgraph.
        label: as ``predict`` writes it.
        classes: what contributions are about, in order; ``value`` alone for real-valued labels.
        logits: for real-valued labels the value, in its own unit.
        probabilities: of the classes; none for real-valued labels.
        by_node, by_component: by leaving them out. Empty where that does not apply; ``notes`` say why.
        by_channel: by putting ``reference`` in the place of a part of the subgraph's vector.
        by_anchor: by not hearing an anchor; those that matter most, first.
        reference: ``training mean``, ``zero``, or nothing where there are no channels.
        attributions: where they were asked for.
        notes: what was left out, and why.
    """

    nodes: tuple[int, ...]
    names: tuple[str, ...]
    method: str
    task: Task
    label: str
    classes: tuple[str, ...]
    logits: Values
    probabilities: Values
    by_node: tuple[NodeContribution, ...] = ()
    by_component: tuple[ComponentContribution, ...] = ()
    by_channel: tuple[ChannelContribution, ...] = ()
    by_anchor: tuple[AnchorContribution, ...] = ()
    reference: str = ""
    attributions: Attributions | None = None
    notes: tuple[str, ...] = field(default=())

    def of_class(self, contributions: Sequence[float], name: str | None = None) -> float:
        """One class's number of a contribution; by default that of the most probable class, or of the value."""
        if name is None:
            return float(contributions[self.leading])
        return float(contributions[self.classes.index(name)])

    @property
    def leading(self) -> int:
        """The place of the class with the highest logit."""
        return max(range(len(self.logits)), key=self.logits.__getitem__)

    def to_json(self) -> dict[str, Any]:
        """Plain values; contributions by class name."""
        found = {
            "nodes": list(self.nodes),
            "names": list(self.names),
            "method": self.method,
            "task": self.task,
            "label": self.label,
            "classes": list(self.classes),
            "logits": self._by_class(self.logits),
            "probabilities": self._by_class(self.probabilities),
            "by_node": [self._item(item) for item in self.by_node],
            "by_component": [self._item(item) for item in self.by_component],
            "by_channel": [self._item(item) for item in self.by_channel],
            "by_anchor": [self._item(item) for item in self.by_anchor],
            "reference": self.reference,
            "attributions": None,
            "notes": list(self.notes),
        }
        if self.attributions is not None:
            had = self.attributions
            found["attributions"] = {
                "steps": had.steps,
                "baseline": self._by_class(had.baseline),
                "residual": self._by_class(had.residual),
                "by_channel": [self._item(item) for item in had.channels],
                "by_component": [self._item(item) for item in had.components],
                "of_subgraph": self._by_class(had.of_subgraph),
                "by_anchor": [self._item(item) for item in had.anchors],
            }
        return found

    def _by_class(self, values: Values) -> dict[str, float]:
        return {name: round(value, _DIGITS) for name, value in zip(self.classes, values, strict=False)}

    def _item(self, item: Any) -> dict[str, Any]:
        plain: dict[str, Any] = {}
        for name in item.__slots__:
            value = getattr(item, name)
            if name in ("contributions", "probability_changes"):
                if value:
                    plain[name] = self._by_class(value)
            else:
                plain[name] = list(value) if isinstance(value, tuple) else value
        return plain
