"""Explain the predictions of a trained model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from subgnn.data.subgraphs import SubgraphSet
from subgnn.explain.explanation import ComponentContribution, Explanation, NodeContribution, names_of, to_values
from subgnn.explain.integrated_gradients import attribute
from subgnn.explain.leave_one_out import Compare, Outputs, components_of, differences, leave_one_out
from subgnn.explain.masking import AnchorMasking, SubgraphInputs, channel_contributions, subgraph_inputs
from subgnn.inference.open import OpenedRun
from subgnn.inference.predictor import Predictor
from subgnn.ragged import Ragged
from subgnn.task import task_of

_BATCH = 64


@dataclass(frozen=True, slots=True, eq=False)
class _Masked:
    """Inputs of the networks with channels for one subgraph, their outputs, and how a change of these is compared.

    Shapes:
        outputs: (networks x draws, outputs).
    """

    inputs: list[SubgraphInputs]
    outputs: Tensor
    compare: Compare

    @property
    def output(self) -> Outputs:
        """The mean over networks and draws (outputs,)."""
        mean: Outputs = self.outputs.mean(dim=0).float().cpu().numpy()
        return mean


Subgraphs = SubgraphSet | Ragged | Sequence[Sequence[int]]


class Explainer:
    """Explains predictions; what does not depend on the subgraphs is computed once.

    Args:
        predictor: of any model.
        background: training subgraphs, whose mean vectors (:meth:`Predictor.mean_vectors`) are the reference of
            channels. Without them the reference is 0.
        reference: the mean vectors, in place of a background.
        max_nodes: subgraphs with more nodes have no contributions of nodes.
        max_anchors: how many anchors are listed for each subgraph, those that matter most.

    Shapes:
        reference: (networks x draws, width).
    """

    def __init__(
        self,
        predictor: Predictor,
        *,
        background: Ragged | None = None,
        reference: NDArray[np.float32] | None = None,
        max_nodes: int = 500,
        max_anchors: int = 100,
    ) -> None:
        self.predictor, self.max_nodes, self.max_anchors = predictor, max_nodes, max_anchors
        self._background = background if background is not None and len(background) else None
        self._reference = None if reference is None else np.array(reference, np.float32)
        self._source = predictor.with_channels()
        self._member = predictor.member_with_channels
        self._predicts_new_subgraphs = predictor.model.predicts_new_subgraphs

    @classmethod
    def of_run(cls, run: OpenedRun, *, max_nodes: int = 500, max_anchors: int = 100) -> Explainer:
        """Of the predictions of a run; the background are the training subgraphs of its dataset."""
        return cls(
            run.predictor,
            background=run.training_subgraphs(),
            reference=run.reference,
            max_nodes=max_nodes,
            max_anchors=max_anchors,
        )

    def explain(self, subgraphs: Subgraphs, *, attributions: bool = False) -> list[Explanation]:
        """Explain the prediction of each subgraph.

        Args:
            attributions: compute integrated gradients as well; they need Captum.
        """
        rows = subgraphs.nodes if isinstance(subgraphs, SubgraphSet) else subgraphs
        nodes = SubgraphSet.from_lists(list(rows), num_nodes=self.predictor.graph.num_nodes).nodes
        batches = [range(begin, min(begin + _BATCH, len(nodes))) for begin in range(0, len(nodes), _BATCH)]
        return [found for batch in batches for found in self._explain_batch(nodes.take(batch), attributions)]

    def reference(self) -> NDArray[np.float32] | None:
        """The mean vectors of the background by each network and draw; None without channels or a background.

        Shapes:
            returns: (networks x draws, width).
        """
        if self._reference is None and self._background is not None:
            self._reference = self.predictor.mean_vectors(self._background)
        return self._reference

    @torch.no_grad()
    def _explain_batch(self, subgraphs: Ragged, attributions: bool) -> list[Explanation]:
        predictor = self.predictor
        components, masked = components_of(predictor.graph, subgraphs), self._masked(subgraphs)
        # The output of networks with channels is known already, unless they are but a part of the model.
        whole = np.stack([one.output for one in masked]) if self._own_channels else predictor.outputs(subgraphs)
        without: list[tuple[tuple[NodeContribution, ...], tuple[ComponentContribution, ...]]]
        without = [((), ())] * len(subgraphs)
        if self._predicts_new_subgraphs:
            without = leave_one_out(predictor, subgraphs, components, whole=whole, max_nodes=self.max_nodes)
        found = []
        for i, (by_node, by_component) in enumerate(without):
            mine = masked[i] if masked else None
            explained = self._explain_one(components[i], whole[i], masked=mine, attributions=attributions)
            found.append(replace(explained, by_node=by_node, by_component=by_component))
        return found

    @property
    def _own_channels(self) -> bool:
        return self._source is self.predictor

    def _masked(self, subgraphs: Ragged) -> list[_Masked]:
        """The inputs of the networks with channels for each subgraph; empty without channels."""
        source = self._source
        if source is None:
            return []
        inputs: list[list[SubgraphInputs]] = [[] for _ in subgraphs]
        for network in source.measured(subgraphs, draws=source.draws).combinations():
            for mine, one in zip(inputs, subgraph_inputs(*network), strict=True):
                mine.append(one)
        outputs = [torch.cat([one.output() for one in mine]) for mine in inputs]
        compare: list[Compare] = [partial(differences, self.predictor)] * len(subgraphs)
        if self._member is not None:
            compare = [self._through(whole) for whole in self.predictor.fitted.through(self._member, subgraphs)]
        return [_Masked(*each) for each in zip(inputs, outputs, compare, strict=True)]

    def _through(self, whole: Callable[[Outputs], Outputs]) -> Compare:
        """Compare outputs of the whole model by those of one member."""
        return lambda with_all, without: differences(self.predictor, whole(with_all[None])[0], whole(without))

    def _explain_one(
        self,
        components: Sequence[NDArray[np.int32]],
        whole: Outputs,
        *,
        masked: _Masked | None,
        attributions: bool,
    ) -> Explanation:
        """One subgraph's explanation, except for contributions of its nodes and components.

        Shapes:
            whole: (outputs,).
        """
        predictor, checkpoint = self.predictor, self.predictor.checkpoint
        scores = predictor.scores(whole[None])[0]
        task = task_of(checkpoint.spec.task)
        nodes = sorted(int(node) for part in components for node in part)
        masking = None
        if masked is not None and self._source is not None:
            leading = int(task.decide(scores[None], predictor.thresholds)[0]) if task.one_class else None
            masking = AnchorMasking(
                self._source, masked.inputs, compare=masked.compare, leading=leading, max_anchors=self.max_anchors
            )
        found = Explanation(
            nodes=tuple(nodes),
            names=names_of(predictor.graph, nodes),
            method=checkpoint.spec.method,
            task=checkpoint.spec.task,
            label=predictor.label_text(scores),
            classes=task.columns(checkpoint.spec.classes),
            logits=to_values(scores if task.real else whole),
            probabilities=() if task.real else to_values(scores),
            notes=tuple(self._notes(len(nodes), len(components), masking, attributions)),
        )
        if masking is None or masked is None:
            return found
        reference = self.reference()
        return replace(
            found,
            by_channel=channel_contributions(
                masked.inputs, compare=masked.compare, whole=masked.output, reference=reference
            ),
            by_anchor=() if masking.too_many else masking.contributions(masked.outputs),
            reference="zero" if reference is None else "training mean",
            member=self._member or "",
            attributions=attribute(masking, components) if attributions else None,
        )

    def _notes(
        self, num_nodes: int, num_components: int, masking: AnchorMasking | None, attributions: bool
    ) -> Iterator[str]:
        """State what is missing from an explanation, and why."""
        method = self.predictor.checkpoint.spec.method
        if not self._predicts_new_subgraphs:
            yield f"{method} cannot predict new subgraphs, so no node or component can be left out"
        else:
            if num_nodes == 1:
                yield "the subgraph is one node: nothing is left without it"
            elif num_nodes > self.max_nodes:
                yield f"{num_nodes} nodes, more than max_nodes ({self.max_nodes}): they were not left out one by one"
            if num_components == 1:
                yield "the subgraph is one component: nothing is left without it"
            elif num_components > self.max_nodes:
                yield f"{num_components} components, more than max_nodes ({self.max_nodes}): none was left out"
        if self._member is not None:
            share = self.predictor.fitted.shares[self._member]
            yield f"channels and anchors are those of the member {self._member}, which has {share:.0%} of the weight"
        if masking is None:
            yield f"{method} has no channels and no anchors" + (", so it has no attributions" if attributions else "")
        elif masking.too_many:
            yield f"{masking.num_anchors:,} anchors: too many to mask each of them; attributions have them"
        elif masking.num_anchors > self.max_anchors:
            yield f"{self.max_anchors} of {masking.num_anchors:,} anchors are listed, those that matter most"
