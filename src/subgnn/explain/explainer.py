"""A run that explains its predictions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from subgnn.data.subgraphs import SubgraphSet
from subgnn.explain import channels
from subgnn.explain.attributions import attribute
from subgnn.explain.differences import values
from subgnn.explain.explanation import VALUE, ChannelContribution, Explanation, names_of
from subgnn.explain.heard import Heard, hear
from subgnn.explain.items import Rows, channel_items, component_items, node_items
from subgnn.explain.left_out import LeftOut, components_of, left_out
from subgnn.explain.listening import Listening
from subgnn.inference.predictor import Predictor, label_text
from subgnn.models.registry import METHODS, known_subgraphs
from subgnn.models.subgnn.inference_cache import Measured
from subgnn.ragged import Ragged

_BACKGROUND = 256
_AT_ONCE = 64

Subgraphs = SubgraphSet | Ragged | Sequence[Sequence[int]]


class Explainer:
    """Explains predictions; what does not depend on the subgraphs is computed once.

    Args:
        predictor: of any method.
        background: training subgraphs. Their mean vector is the reference of channels; of more than 256 subgraphs, as
            many are taken, evenly spaced. Without them the reference is 0.
        reference: the mean vectors, in place of a background.
        max_nodes: of a subgraph with more nodes, nodes are not left out one by one.
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

    def explain(self, subgraphs: Subgraphs, *, attributions: bool = False) -> list[Explanation]:
        """Explain the prediction of each subgraph.

        Args:
            attributions: give integrated gradients, too; they need Captum.
        """
        rows = subgraphs.nodes if isinstance(subgraphs, SubgraphSet) else subgraphs
        nodes = SubgraphSet.from_lists(list(rows), num_nodes=self.predictor.graph.num_nodes).nodes
        pieces = [range(begin, min(begin + _AT_ONCE, len(nodes))) for begin in range(0, len(nodes), _AT_ONCE)]
        return [found for piece in pieces for found in self._some(nodes.take(piece), attributions)]

    def reference(self) -> NDArray[np.float32] | None:
        """The mean vectors of the background by each network and draw; None for a baseline, or without a background.

        Shapes:
            returns: (networks x draws, width).
        """
        if self._reference is None and self._background is not None and self._is_network:
            count = len(self._background)
            chosen = np.unique(np.linspace(0, count - 1, min(count, _BACKGROUND)).astype(np.int64))
            measured = self.predictor.measured(self._background.take(chosen), draws=self.predictor.draws)
            self._reference = _means(measured)
        return self._reference

    @property
    def _is_network(self) -> bool:
        return self.predictor.checkpoint.recipe.method == "subgnn"

    @property
    def _knows_no_others(self) -> bool:
        """Whether the method cannot predict subgraphs that were not there in training."""
        method = METHODS.get(self.predictor.checkpoint.recipe.method)
        return method is not None and method.inputs is known_subgraphs.inputs

    @torch.no_grad()
    def _some(self, nodes: Ragged, attributions: bool) -> list[Explanation]:
        components = components_of(self.predictor.graph, nodes)
        heard: list[list[Heard]] = [[] for _ in nodes]
        if self._is_network:
            measured = self.predictor.measured(nodes, draws=self.predictor.draws)
            for voice in measured.voices():
                for mine, one in zip(heard, hear(*voice), strict=True):
                    mine.append(one)
            drawn = [torch.cat([one.answer() for one in mine]) for mine in heard]
        else:
            drawn = list(torch.from_numpy(self.predictor.outputs(nodes))[:, None])
        without = [LeftOut(None, None)] * len(nodes)
        if not self._knows_no_others:
            without = left_out(self.predictor, nodes, components, max_nodes=self.max_nodes)
        return [
            self._one(parts, drawn[i], left=without[i], heard=heard[i], attributions=attributions)
            for i, parts in enumerate(components)
        ]

    def _one(
        self, components: Rows, drawn: Tensor, *, left: LeftOut, heard: list[Heard], attributions: bool
    ) -> Explanation:
        """One subgraph's explanation.

        Shapes:
            drawn: (networks x draws, outputs).
        """
        predictor = self.predictor
        checkpoint = predictor.checkpoint
        whole: NDArray[np.float32] = drawn.mean(dim=0).float().cpu().numpy()
        scores = predictor.scores(whole[None])[0]
        real = checkpoint.task == "regression"
        nodes = sorted(int(node) for part in components for node in part)
        listening = None
        if heard:
            leading = int(whole.argmax()) if checkpoint.task in ("multi-class", "binary") else None
            listening = Listening(predictor, heard, leading=leading, most=self.max_anchors)
        silent = listening is not None and not listening.too_many
        return Explanation(
            nodes=tuple(nodes),
            names=names_of(predictor.graph, nodes),
            method=checkpoint.recipe.method,
            task=checkpoint.task,
            label=label_text(scores, checkpoint),
            classes=(VALUE,) if real else checkpoint.classes,
            logits=values(scores if real else whole),
            probabilities=() if real else values(scores),
            by_node=node_items(predictor, components, whole=whole, without=left.nodes),
            by_component=component_items(predictor, components, whole=whole, without=left.components),
            by_channel=self._channels(heard, whole) if heard else (),
            by_anchor=listening.silenced(drawn) if listening is not None and silent else (),
            reference="" if not heard else "zero" if self.reference() is None else "training mean",
            attributions=attribute(listening, components) if attributions and listening is not None else None,
            notes=tuple(self._notes(len(nodes), len(components), listening, attributions)),
        )

    def _channels(self, heard: list[Heard], whole: NDArray[np.float32]) -> tuple[ChannelContribution, ...]:
        """Contributions of the parts of z_S, each put aside in all networks and draws at once."""
        groups = channels.groups(heard[0].model.parts())
        reference, without = self.reference(), []
        for draw, one in enumerate(heard):
            vector = one.vector()
            mean = torch.zeros_like(vector[0]) if reference is None else torch.from_numpy(reference[draw]).to(vector)
            replaced = channels.outputs_without(one.model.head, list(groups.values()), vectors=vector, reference=mean)
            without.append(replaced[0])
        outputs = torch.stack(without).mean(dim=0).float().cpu().numpy()
        return channel_items(self.predictor, list(groups), whole=whole, without=outputs)

    def _notes(
        self, num_nodes: int, num_components: int, listening: Listening | None, attributions: bool
    ) -> Iterator[str]:
        """What is not there, and why."""
        method = self.predictor.checkpoint.recipe.method
        if self._knows_no_others:
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
        if listening is None:
            yield f"{method} has no channels and no anchors" + (", so it has no attributions" if attributions else "")
            return
        if listening.too_many:
            yield f"{listening.num_anchors:,} anchors: too many to silence each of them; attributions have them"
        elif listening.num_anchors > self.max_anchors:
            yield f"{self.max_anchors} of {listening.num_anchors:,} anchors are listed, those that matter most"


@torch.no_grad()
def _means(measured: Measured) -> NDArray[np.float32]:
    vectors = [model.embed(inputs.whole).mean(dim=0) for model, inputs, _ in measured.voices()]
    return torch.stack(vectors).float().cpu().numpy()
