"""Contributions of channels and anchors: outputs of the networks with a part of their inputs masked.

A channel is masked in the subgraph's vector z_S: its columns, as the head receives them, are replaced by those of a
reference. An anchor is masked in the similarities: those of all components to it become 0.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from subgnn.channels.channel import PatchAnchors, each_array
from subgnn.inference.explanation import AnchorContribution, ChannelContribution, Compare, Outputs
from subgnn.inference.predictor import Predictor, names_of
from subgnn.models.subgnn.batches import Batch, Inputs
from subgnn.models.subgnn.model import SubGNN
from subgnn.prepare.measure import Prepared
from subgnn.ragged import Ragged

_BATCH_NUMBERS = 4_000_000  # similarities of the masked copies that are computed together
_MAX_NUMBERS = 400_000_000  # similarities of all masked copies of a subgraph; beyond, its anchors are not masked


@dataclass(frozen=True, slots=True, eq=False)
class Anchor:
    """An anchor of a layer and channel, and its positions in the similarities (C, n_A)."""

    layer: int
    channel: int
    nodes: tuple[int, ...]
    positions: tuple[Tensor, Tensor]


@dataclass(frozen=True, slots=True, eq=False)
class SubgraphInputs:
    """The inputs of one network for one subgraph."""

    model: SubGNN
    batch: Batch
    prepared: Prepared
    rows: NDArray[np.int64]
    initial: Tensor  # (C, d), z^(0) of the components
    gammas: list[list[Tensor]]  # [layer][channel] (C, n_A), their similarities to anchors
    anchors: list[list[Tensor]]  # the anchors' vectors, of :meth:`SubGNN.anchor_vectors`

    @property
    def size(self) -> int:
        return sum(gamma.numel() for layer in self.gammas for gamma in layer) + self.initial.numel()

    def vector(self) -> Tensor:
        """z_S (1, width)."""
        z = self.model.pass_messages(self.batch, self.initial, gammas=self.gammas, anchors=self.anchors)
        return self.model.read_out(self.batch, z)

    def each_anchor(self) -> Iterator[Anchor]:
        """Anchors with a similarity above 0 to any component, by layer and channel; a node drawn twice is one."""
        for layer, row in enumerate(self.gammas):
            for channel, gamma in enumerate(row):
                shared, own = self.prepared.frame.shared[layer][channel], self.prepared.inputs[layer][channel].own
                similar = gamma.cpu().numpy() > 0
                patches = shared.patches if isinstance(shared, PatchAnchors) else None
                keys: NDArray[Any]
                if shared is not None:
                    each = shared.touched if patches is None else np.arange(len(patches))
                    keys = np.broadcast_to(each, similar.shape)
                elif own is not None:
                    keys, similar = own.nodes[self.rows], similar & own.present[self.rows][:, None]
                places = np.nonzero(similar)
                found, group = np.unique(keys[similar], return_inverse=True)
                by_key = Ragged.from_lengths(np.argsort(group, kind="stable"), np.bincount(group, minlength=len(found)))
                for key, some in zip(found.tolist(), by_key, strict=True):
                    nodes = (key,) if patches is None else tuple(patches[key].tolist())
                    components, slots = (torch.from_numpy(place[some]) for place in places)
                    yield Anchor(layer, channel, nodes, (components, slots))

    def outputs_without(self, anchors: Sequence[Anchor]) -> Tensor:
        """Outputs with each anchor masked in its layer and channel (anchors, outputs), each in its own copy."""
        b, batch = len(anchors), self.batch
        gammas = [[gamma.repeat(b, 1, 1) for gamma in layer] for layer in self.gammas]
        for i, anchor in enumerate(anchors):
            gammas[anchor.layer][anchor.channel][i][anchor.positions] = 0.0

        def repeated(table: Tensor) -> Tensor:
            return table.repeat(b, *(1,) * (table.ndim - 1))

        copies = replace(
            batch,
            sizes=batch.sizes.repeat(b),
            subgraph=torch.arange(b, device=self.initial.device).repeat_interleave(len(self.rows)),
            num_subgraphs=b,
            channels=[[replace(one, own=each_array(repeated, one.own)) for one in layer] for layer in batch.channels],
            beside=each_array(repeated, batch.beside),
        )
        flat = [[gamma.flatten(0, 1) for gamma in layer] for layer in gammas]
        z = self.model.pass_messages(copies, self.initial.repeat(b, 1), gammas=flat, anchors=self.anchors)
        outputs: Tensor = self.model.head(self.model.read_out(copies, z))
        return outputs


@torch.no_grad()
def subgraph_inputs(model: SubGNN, inputs: Inputs, prepared: Prepared) -> Iterator[SubgraphInputs]:
    """The inputs of every subgraph; the anchors' vectors (the LSTM over walks) are computed once."""
    nodes = model.node_vectors()
    anchors = model.anchor_vectors(nodes)
    for i in range(len(inputs)):
        batch = inputs.batch(np.array([i]))
        rows, initial = inputs.components[i], model.component_vectors(batch, nodes)
        yield SubgraphInputs(model, batch, prepared, rows, initial, model.similarities(batch, nodes.dtype), anchors)


class Masking:
    """Masks anchors and channels of a subgraph in all networks; ``compare`` computes contributions from outputs."""

    def __init__(
        self, predictor: Predictor, inputs: Sequence[SubgraphInputs], *, compare: Compare, max_anchors: int
    ) -> None:
        self._predictor, self._inputs = predictor, inputs
        self._compare, self._max_anchors = compare, max_anchors
        self._outputs = torch.cat([one.model.head(one.vector()) for one in inputs])  # (networks, outputs)
        self.output: Outputs = self._outputs.mean(dim=0).float().cpu().numpy()  # (outputs,)
        self._anchors = list(inputs[0].each_anchor())
        self.num_anchors = len(self._anchors)
        self.too_many = self.num_anchors * inputs[0].size > _MAX_NUMBERS

    def by_anchor(self, leading: int | None) -> tuple[AnchorContribution, ...]:
        """How the mean output drops without each anchor; first those that matter most to the leading class, or any."""
        if not self._anchors:
            return ()
        mean = self._outputs.mean(dim=0)
        without = mean.expand(self.num_anchors, -1)
        for one, output in zip(self._inputs, self._outputs, strict=True):
            step = max(1, _BATCH_NUMBERS // max(1, one.size))
            begins = range(0, self.num_anchors, step)
            parts = [one.outputs_without(self._anchors[begin : begin + step]) for begin in begins]
            without = without + (torch.cat(parts) - output) / len(self._inputs)
        found = []
        each = self._compare(mean.cpu().numpy(), without.cpu().numpy())
        for anchor, numbers in zip(self._anchors, each, strict=True):
            # Learned similarities differ between networks.
            similar = [one.gammas[anchor.layer][anchor.channel][anchor.positions] for one in self._inputs]
            similarity, slot = float(torch.stack(similar).mean(dim=0).max()), int(anchor.positions[1].min())
            channel = self._predictor.spec.channels[anchor.channel].name
            names = names_of(self._predictor.graph, anchor.nodes)
            found.append(AnchorContribution(channel, anchor.layer, slot, anchor.nodes, names, similarity, **numbers))
        ranked = slice(None) if leading is None else slice(leading, leading + 1)
        found.sort(key=lambda anchor: max(map(abs, anchor.contributions[ranked])), reverse=True)
        return tuple(found[: self._max_anchors])

    def by_channel(self, reference: NDArray[np.float32] | None) -> tuple[ChannelContribution, ...]:
        """Contributions of the parts of z_S, each replaced by the reference (networks, width), or by 0."""
        parts = {name: list(columns) for name, columns in self._inputs[0].model.parts().items()}
        groups = {("part", name): columns for name, columns in parts.items() if "/" not in name}
        for kind in dict.fromkeys(name.partition("/")[0] for name in parts if "/" in name):
            sides = {name: columns for name, columns in parts.items() if name.startswith(f"{kind}/")}
            groups["channel", kind] = [some for columns in sides.values() for some in columns]
            groups |= {("subchannel", name): columns for name, columns in sides.items()}
        without = []
        for i, one in enumerate(self._inputs):
            vector = one.vector()[0]
            mean = torch.zeros_like(vector) if reference is None else torch.from_numpy(reference[i]).to(vector)
            masked = vector.repeat(len(groups), 1)  # (groups, width)
            for row, columns in zip(masked, groups.values(), strict=True):
                for some in columns:
                    row[some] = mean[some]
            without.append(one.model.head(masked))
        numbers = self._compare(self.output, torch.stack(without).mean(dim=0).float().cpu().numpy())
        return tuple(ChannelContribution(name, level, **n) for (level, name), n in zip(groups, numbers, strict=True))
