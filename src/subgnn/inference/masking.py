"""Contributions of channels and anchors: outputs of the networks with a part of their inputs masked.

A channel is masked in the subgraph's vector z_S: its columns, as the head receives them, are replaced by those of a
reference. An anchor is masked in the similarities: those of all components to it become 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from subgnn.inference.explanation import (
    AnchorContribution,
    ChannelContribution,
    Compare,
    Outputs,
    Values,
)
from subgnn.inference.predictor import Predictor, names_of
from subgnn.models.subgnn.batches import Batch, Inputs
from subgnn.models.subgnn.model import SubGNN
from subgnn.prepare.measure import Prepared
from subgnn.ragged import Ragged

_BATCH_NUMBERS = 4_000_000  # similarities of the masked copies that are computed together
_MAX_NUMBERS = 400_000_000  # similarities of all masked copies of a subgraph; beyond, its anchors are not masked


@dataclass(frozen=True, slots=True, eq=False)
class Anchor:
    """An anchor of a layer and channel, and its positions in the similarities (C, n_A).

    Shapes:
        components, slots: (positions,).
    """

    layer: int
    channel: int
    nodes: tuple[int, ...]
    components: NDArray[np.int64]
    slots: NDArray[np.int64]

    @property
    def positions(self) -> tuple[Tensor, Tensor]:
        """Its positions, as indices of the last two dimensions."""
        return torch.from_numpy(self.components), torch.from_numpy(self.slots)

    def select(self, similarities: Tensor) -> Tensor:
        """The similarities to this anchor: (..., positions) of (..., C, n_A)."""
        return similarities[..., *self.positions]


@dataclass(frozen=True, slots=True, eq=False)
class SubgraphInputs:
    """The inputs of one network for one subgraph.

    Shapes:
        initial: (C, d), z^(0) of the components. gammas: [layer][channel] (C, n_A), their similarities to anchors.
        anchors: the anchors' vectors, as :meth:`SubGNN.anchor_vectors` returns them.
    """

    model: SubGNN
    batch: Batch
    prepared: Prepared
    rows: NDArray[np.int64]
    initial: Tensor
    gammas: list[list[Tensor]]
    anchors: list[list[Tensor]]

    @property
    def stats(self) -> tuple[Tensor | None, Tensor | None]:
        """Statistics of the components (C, F) and of the subgraph (1, F'), where the network uses them."""
        return self.batch.component_stats, self.batch.subgraph_stats

    @property
    def size(self) -> int:
        """How many numbers the similarities and component vectors have."""
        return sum(gamma.numel() for layer in self.gammas for gamma in layer) + self.initial.numel()

    def vector(self) -> Tensor:
        """z_S (1, width)."""
        z = self.model.pass_messages(self.batch, self.initial, gammas=self.gammas, anchors=self.anchors)
        return self.model.read_out(self.batch, z)

    def output(self) -> Tensor:
        """Output for the unchanged inputs (1, outputs)."""
        output: Tensor = self.model.head(self.vector())
        return output

    def outputs(
        self, initial: Tensor, gammas: Sequence[Sequence[Tensor]], stats: tuple[Tensor | None, Tensor | None]
    ) -> Tensor:
        """Outputs for b changed copies of the inputs.

        Shapes:
            initial: (b, C, d). gammas: (b, C, n_A) each. stats: of components (b, C, F), of the subgraph (b, F').
            returns: (b, outputs).
        """
        b, scores = len(initial), self.batch.baseline_scores
        copies = replace(
            self.batch,
            sizes=self.batch.sizes.repeat(b),
            subgraph=torch.arange(b, device=initial.device).repeat_interleave(len(self.rows)),
            num_subgraphs=b,
            channels=[
                [replace(seen, own=None if seen.own is None else seen.own.repeat(b, 1)) for seen in layer]
                for layer in self.batch.channels
            ],
            component_stats=None if stats[0] is None else stats[0].flatten(0, 1),
            subgraph_stats=stats[1],
            known=None if self.batch.known is None else self.batch.known.repeat(b),
            baseline_scores=None if scores is None else scores.expand(b, -1),
        )
        flat = [[gamma.flatten(0, 1) for gamma in layer] for layer in gammas]
        z = self.model.pass_messages(copies, initial.flatten(0, 1), gammas=flat, anchors=self.anchors)
        outputs: Tensor = self.model.head(self.model.read_out(copies, z))
        return outputs

    def each_anchor(self) -> Iterator[Anchor]:
        """Anchors with a similarity above 0 to any component, by layer and channel; a node drawn twice is one."""
        for layer, row in enumerate(self.gammas):
            for channel, gamma in enumerate(row):
                shared, own = self.prepared.frame.shared[layer][channel], self.prepared.inputs[layer][channel].own
                similar = gamma.cpu().numpy() > 0
                keys: NDArray[Any]
                if shared is not None:
                    keys = np.broadcast_to(shared.keys, similar.shape)
                elif own is not None:
                    keys, similar = own.nodes[self.rows], similar & own.present[self.rows][:, None]
                components, slots = np.nonzero(similar)
                found, group = np.unique(keys[similar], return_inverse=True)
                by_key = Ragged.from_lengths(np.argsort(group, kind="stable"), np.bincount(group, minlength=len(found)))
                for key, positions in zip(found.tolist(), by_key, strict=True):
                    nodes = (key,) if shared is None else shared.nodes_of(key)
                    yield Anchor(layer, channel, nodes, components[positions], slots[positions])

    def outputs_without(self, anchors: list[Anchor]) -> Tensor:
        """Outputs with each anchor masked in its layer and channel (anchors, outputs)."""
        step = max(1, _BATCH_NUMBERS // max(1, self.size))
        component, subgraph = self.stats
        found = []
        for begin in range(0, len(anchors), step):
            some = anchors[begin : begin + step]
            b = len(some)
            gammas = [[gamma.repeat(b, 1, 1) for gamma in layer] for layer in self.gammas]
            for i, anchor in enumerate(some):
                gammas[anchor.layer][anchor.channel][i][anchor.positions] = 0.0
            stats = (
                None if component is None else component.repeat(b, 1, 1),
                None if subgraph is None else subgraph.repeat(b, 1),
            )
            found.append(self.outputs(self.initial.repeat(b, 1, 1), gammas, stats))
        return torch.cat(found)


@torch.no_grad()
def subgraph_inputs(model: SubGNN, inputs: Inputs, prepared: Prepared) -> Iterator[SubgraphInputs]:
    """The inputs of every subgraph; the anchors' vectors (the LSTM over walks) are computed once."""
    nodes = model.node_vectors()
    anchors = model.anchor_vectors(nodes)
    for i in range(len(inputs)):
        batch = inputs.batch(np.array([i]))
        yield SubgraphInputs(
            model=model,
            batch=batch,
            prepared=prepared,
            rows=np.arange(inputs.first[i], inputs.first[i + 1]),
            initial=model.component_vectors(batch, nodes),
            gammas=model.similarities(batch, nodes.dtype),
            anchors=anchors,
        )


class Masking:
    """Masks the anchors and channels of one subgraph in all networks, and measures how the outputs drop.

    Args:
        inputs: for each network; all share the anchors.
        compare: computes contributions from outputs of the networks.
        max_anchors: how many anchors to list.
    """

    def __init__(
        self, predictor: Predictor, inputs: Sequence[SubgraphInputs], *, compare: Compare, max_anchors: int
    ) -> None:
        self.predictor, self.inputs = predictor, inputs
        self._compare, self._max_anchors = compare, max_anchors
        self.channels = predictor.spec.channels
        self.outputs = torch.cat([one.output() for one in inputs])  # (networks, outputs)
        self.anchors = list(inputs[0].each_anchor())

    @property
    def output(self) -> Outputs:
        """The mean output over networks (outputs,)."""
        mean: Outputs = self.outputs.mean(dim=0).float().cpu().numpy()
        return mean

    @property
    def num_anchors(self) -> int:
        """How many anchors there are."""
        return len(self.anchors)

    @property
    def too_many(self) -> bool:
        """Whether masking each anchor in turn is too much work."""
        return len(self.anchors) * self.inputs[0].size > _MAX_NUMBERS

    def by_anchor(self, leading: int | None) -> tuple[AnchorContribution, ...]:
        """How the mean output drops if an anchor is masked in all networks, for the :meth:`strongest` anchors."""
        if not self.anchors:
            return ()
        mean = self.outputs.mean(dim=0)
        without = mean.expand(len(self.anchors), -1)
        for one, output in zip(self.inputs, self.outputs, strict=True):
            without = without + (one.outputs_without(self.anchors) - output) / len(self.inputs)
        numbers = self._compare(mean.cpu().numpy(), without.cpu().numpy())
        return self.strongest(map(self.describe, self.anchors, numbers), leading)

    def describe(self, anchor: Anchor, numbers: dict[str, Values]) -> AnchorContribution:
        """An anchor with its contributions; learned similarities are averaged over networks."""
        similar = torch.stack([anchor.select(one.gammas[anchor.layer][anchor.channel]) for one in self.inputs]).mean(
            dim=0
        )
        return AnchorContribution(
            channel=self.channels[anchor.channel].name,
            layer=anchor.layer,
            slot=int(anchor.slots.min()),
            nodes=anchor.nodes,
            names=names_of(self.predictor.graph, anchor.nodes),
            similarity=float(similar.max()),
            **numbers,
        )

    def strongest(self, found: Iterable[AnchorContribution], leading: int | None) -> tuple[AnchorContribution, ...]:
        """The anchors that matter most to the leading class, or to any class if there is none; strongest first."""

        def strength(anchor: AnchorContribution) -> float:
            numbers = anchor.contributions
            return max(map(abs, numbers)) if leading is None else abs(numbers[leading])

        return tuple(sorted(found, key=strength, reverse=True)[: self._max_anchors])

    def by_channel(self, reference: NDArray[np.float32] | None) -> tuple[ChannelContribution, ...]:
        """Contributions of the parts of z_S, each masked in all networks at once.

        Shapes:
            reference: (networks, width), 0 by default.
        """
        groups = channel_groups(self.inputs[0].model.parts())
        without = []
        for i, one in enumerate(self.inputs):
            vector = one.vector()[0]
            mean = torch.zeros_like(vector) if reference is None else torch.from_numpy(reference[i]).to(vector)
            masked = vector.repeat(len(groups), 1)  # (groups, width)
            for row, columns in zip(masked, groups.values(), strict=True):
                for some in columns:
                    row[some] = mean[some]
            without.append(one.model.head(masked))
        numbers = self._compare(self.output, torch.stack(without).mean(dim=0).float().cpu().numpy())
        return tuple(ChannelContribution(name, level, **n) for (level, name), n in zip(groups, numbers, strict=True))


def channel_groups(parts: Mapping[str, Sequence[slice]]) -> dict[tuple[str, str], list[slice]]:
    """Columns to mask together, by level and name: each part of z_S, and the two sides of a channel."""
    found = {("part", name): list(columns) for name, columns in parts.items() if "/" not in name}
    for kind in dict.fromkeys(name.partition("/")[0] for name in parts if "/" in name):
        sides = {name: list(columns) for name, columns in parts.items() if name.startswith(f"{kind}/")}
        found["channel", kind] = [some for columns in sides.values() for some in columns]
        found |= {("subchannel", name): columns for name, columns in sides.items()}
    return found
