"""What the network hears of one subgraph, by one draw of anchors, and what it answers when it hears something else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from subgnn.channels.anchors import NodeAnchors, PatchAnchors
from subgnn.models.subgnn.inputs import Batch, ChannelBatch, Inputs
from subgnn.models.subgnn.model import SubGNN
from subgnn.prepare.measure import Prepared
from subgnn.ragged import Ragged


@dataclass(frozen=True, slots=True, eq=False)
class Anchor:
    """An anchor of a layer and channel, and where the subgraph's components hear it.

    Shapes:
        components, slots: (places,) where it stands in the similarities (C, n_A).
    """

    layer: int
    channel: int
    nodes: tuple[int, ...]
    components: NDArray[np.int64]
    slots: NDArray[np.int64]

    def of(self, similarities: Tensor) -> Tensor:
        """The similarities to it.

        Shapes:
            similarities: (..., C, n_A). returns: (..., places).
        """
        return similarities[..., torch.from_numpy(self.components), torch.from_numpy(self.slots)]


@dataclass(frozen=True, slots=True, eq=False)
class Heard:
    """One subgraph as the network takes it: z^(0) of its components, similarities, and the anchors' vectors.

    Shapes:
        initial: (C, d). gammas: [layer][channel] (C, n_A). anchors: as :meth:`SubGNN.anchor_vectors` gives them.
    """

    model: SubGNN
    batch: Batch
    prepared: Prepared
    rows: NDArray[np.int64]
    initial: Tensor
    gammas: list[list[Tensor]]
    anchors: list[list[Tensor]]

    @property
    def num_components(self) -> int:
        """C."""
        return len(self.rows)

    def outputs(
        self, initial: Tensor, gammas: Sequence[Sequence[Tensor]], stats: tuple[Tensor | None, Tensor | None]
    ) -> Tensor:
        """Answers for b versions of what is heard.

        Shapes:
            initial: (b, C, d). gammas: (b, C, n_A) each. stats: of components (b, C, F), of the subgraph (b, F').
            returns: (b, outputs).
        """
        b, c, scores = len(initial), self.num_components, self.batch.baseline_scores
        versions = Batch(
            nodes=self.batch.nodes,
            node_starts=self.batch.node_starts,
            sizes=self.batch.sizes.repeat(b),
            subgraph=torch.arange(b, device=initial.device).repeat_interleave(c),
            num_subgraphs=b,
            channels=[
                [
                    ChannelBatch(seen.distance, seen.reached, None if seen.own is None else seen.own.repeat(b, 1))
                    for seen in layer
                ]
                for layer in self.batch.channels
            ],
            component_stats=None if stats[0] is None else stats[0].flatten(0, 1),
            subgraph_stats=stats[1],
            baseline_scores=None if scores is None else scores.expand(b, -1),
            draw=self.batch.draw,
        )
        z = self.model.pass_messages(
            versions,
            initial.flatten(0, 1),
            gammas=[[gamma.flatten(0, 1) for gamma in layer] for layer in gammas],
            anchors=self.anchors,
        )
        answers: Tensor = self.model.head(self.model.read_out(versions, z))
        return answers

    def vector(self) -> Tensor:
        """z_S.

        Shapes:
            returns: (1, width).
        """
        z = self.model.pass_messages(self.batch, self.initial, gammas=self.gammas, anchors=self.anchors)
        return self.model.read_out(self.batch, z)

    def answer(self) -> Tensor:
        """What the network answers to what it hears.

        Shapes:
            returns: (1, outputs).
        """
        answers: Tensor = self.model.head(self.vector())
        return answers

    @property
    def stats(self) -> tuple[Tensor | None, Tensor | None]:
        """Statistics of the components (C, F) and of the subgraph (1, F'), where there are any."""
        return self.batch.component_stats, self.batch.subgraph_stats

    def each_anchor(self) -> Iterator[Anchor]:
        """The anchors that any component hears, in the order of layers and channels; a node drawn twice is one."""
        for layer, row in enumerate(self.gammas):
            for channel, gamma in enumerate(row):
                yield from self._anchors(layer, channel, gamma.cpu().numpy() > 0)

    def _anchors(self, layer: int, channel: int, audible: NDArray[np.bool_]) -> Iterator[Anchor]:
        shared, own = self.prepared.frame.shared[layer][channel], self.prepared.inputs[layer][channel].own
        patches = shared.patches if isinstance(shared, PatchAnchors) else None
        keys: NDArray[Any]
        if patches is not None:
            keys = np.broadcast_to(np.arange(len(patches)), audible.shape)
        elif isinstance(shared, NodeAnchors):
            keys = np.broadcast_to(shared.nodes, audible.shape)
        elif own is not None:
            keys, audible = own.nodes[self.rows], audible & own.present[self.rows][:, None]
        components, slots = np.nonzero(audible)
        found, group = np.unique(keys[audible], return_inverse=True)
        by_key = Ragged.from_lengths(np.argsort(group, kind="stable"), np.bincount(group, minlength=len(found)))
        for key, places in zip(found.tolist(), by_key, strict=True):
            nodes = (key,) if patches is None else tuple(patches[key].tolist())
            yield Anchor(layer, channel, nodes, components[places], slots[places])


@torch.no_grad()
def hear(model: SubGNN, inputs: Inputs, prepared: Prepared) -> Iterator[Heard]:
    """Every subgraph in turn; the anchors' vectors, and with them the walks' LSTM, are computed once."""
    nodes = model.node_vectors()
    anchors = model.anchor_vectors(nodes, inputs.whole.draw)
    for i in range(len(inputs)):
        batch = inputs.batch(np.array([i]))
        yield Heard(
            model=model,
            batch=batch,
            prepared=prepared,
            rows=np.arange(inputs.first[i], inputs.first[i + 1]),
            initial=model.component_vectors(batch, nodes),
            gammas=model.similarities(batch, nodes.dtype),
            anchors=anchors,
        )
