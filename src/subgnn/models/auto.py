"""AUTO: a portfolio of models, each fitted by a recipe of its own, as one model; beyond the paper.

Members are weighted by w_i, which sum to 1. With p_i(S) the probabilities of member i, the output for a subgraph S is

    classes         a log(sum_i w_i p_i(S)) + b
    several labels  a logit(sum_i w_i p_i(S)) + b
    a real value    a ((sum_i w_i v_i(S) - mean) / deviation) + b, with v_i in units of the label

with a scale a and an offset b: one of each for all outputs; for two classes, an offset for each; for several labels,
one of each for each label. So the probabilities of the whole, a softmax or a sigmoid as for any model, are calibrated
by a and b. Of several labels, a subgraph has those whose probabilities are above their thresholds.

The vector of a subgraph has those of all members side by side, each scaled to length 1 and multiplied by sqrt(w_i): the
cosine of two such vectors is the mean of the members' cosines by weight.

Which members there are, and how they are judged and weighted, is decided in training; this module combines them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from subgnn.data.graph import Graph
from subgnn.models.interface import FittedModel, LoadContext, Model, Settings
from subgnn.models.spec import Checkpoint, Weights
from subgnn.ragged import Ragged
from subgnn.task import Scores, task_of

Outputs = NDArray[np.float32]
MemberOutputs = Mapping[str, Outputs]
"""The outputs (n, outputs) of each member, by name."""


class AutoModel(Model):
    """A portfolio of models."""

    needs_edges = False
    on_new_graph = "members answer by their own methods, with the same weights and thresholds"

    def uses_tensors(self, settings: Settings) -> bool:
        return False

    def open(self, checkpoint: Checkpoint, graph: Graph, context: LoadContext) -> FittedModel:
        return FittedAuto(checkpoint, context)

    def expected_weights(self, checkpoint: Checkpoint, graph: Graph) -> Weights:
        task, outputs = task_of(checkpoint.spec.task), checkpoint.spec.num_outputs
        shapes = {"member_weights": len(checkpoint.parts), "scale": outputs if task.several else 1}
        shapes |= {"offset": outputs if task.has_thresholds else 1} | ({"thresholds": outputs} if task.several else {})
        return {name: np.empty(length, np.float32) for name, length in shapes.items()}

    def problems(self, checkpoint: Checkpoint, graph: Graph) -> Iterator[str]:
        weights = checkpoint.weights
        shares = weights["member_weights"].astype(np.float64)
        if not (shares > 0).all() or abs(shares.sum() - 1) > 1e-3:
            yield "the weights of its members are not above 0, or do not sum to 1"
        if not (weights["scale"] > 0).all():
            yield "its scale is not above 0"
        thresholds = weights.get("thresholds", np.empty(0))
        if not ((thresholds >= 0) & (thresholds <= 1)).all():
            yield "its thresholds are not between 0 and 1"


class FittedAuto(FittedModel):
    """A fitted portfolio. ``parts`` are its members, and ``shares`` their weights, by name."""

    def __init__(self, checkpoint: Checkpoint, context: LoadContext) -> None:
        self.spec = checkpoint.spec
        self.parts: Mapping[str, FittedModel] = context.parts
        weights = {name: weight.astype(np.float64) for name, weight in checkpoint.weights.items()}
        self._standards = {name: part.spec.standards.get("target") for name, part in checkpoint.parts.items()}
        self._scale, self._offset = weights["scale"], weights["offset"]
        self.shares = dict(zip(checkpoint.parts, weights["member_weights"].tolist(), strict=True))
        if "thresholds" in checkpoint.weights:
            self.thresholds = checkpoint.weights["thresholds"]

    def outputs(self, subgraphs: Ragged) -> Outputs:
        return self.combined(self.member_outputs(subgraphs))

    def member_outputs(self, subgraphs: Ragged) -> MemberOutputs:
        return {name: part.outputs(subgraphs) for name, part in self.parts.items()}

    def combined(self, own: MemberOutputs) -> Outputs:
        """The outputs of the portfolio, from those of its members."""
        scores = [self._scores(name, outputs) for name, outputs in own.items()]
        return self._combined(mean_scores(scores, list(self.shares.values())))

    def vectors(self, subgraphs: Ragged) -> NDArray[np.float32]:
        found = []
        for name, part in self.parts.items():
            vectors = part.vectors(subgraphs).astype(np.float64)
            lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
            found.append(vectors * (np.sqrt(self.shares[name]) / np.where(lengths > 0, lengths, 1.0)))
        return np.concatenate(found, axis=1).astype(np.float32)

    def outputs_given_member(self, part: str, own: MemberOutputs) -> list[Callable[[Outputs], Outputs]]:
        """Ensemble outputs as a function of one member's outputs (k, outputs): a function for each subgraph."""
        others = np.zeros(own[part].shape)
        for name in (name for name in self.shares if name != part):
            others += self.shares[name] * self._scores(name, own[name])

        def from_part(rest: Scores, outputs: Outputs) -> Outputs:
            return self._combined(rest + self.shares[part] * self._scores(part, outputs))

        return [partial(from_part, rest) for rest in others]

    def members_alone_and_left_out(self, own: MemberOutputs) -> dict[str, tuple[Outputs, Outputs]]:
        """By member: its own outputs, and those of the others, which share its weight; 0 if there are none."""
        weighted = {name: self.shares[name] * self._scores(name, outputs) for name, outputs in own.items()}
        whole = sum(weighted.values(), np.zeros(()))
        found = {}
        for name, outputs in own.items():
            rest = 1 - self.shares[name]
            others = self._combined((whole - weighted[name]) / rest) if len(own) > 1 else np.zeros_like(outputs)
            found[name] = outputs, others
        return found

    def _scores(self, name: str, outputs: Outputs) -> Scores:
        return task_of(self.spec.task).scores(outputs, self._standards[name])

    def _combined(self, scores: Scores) -> Outputs:
        target = self.spec.standards.get("target")
        return task_of(self.spec.task).calibrated(scores, self._scale, self._offset, target).astype(np.float32)


def mean_scores(scores: Sequence[Scores], weights: Sequence[float]) -> Scores:
    """The mean of the members' scores (n, outputs) by weight."""
    return sum((weight * one for weight, one in zip(weights, scores, strict=True)), np.zeros_like(scores[0]))
