"""SubGNN: head(READOUT over components of AGG_L over layers of AGG_C over subchannels).

Read from top to bottom: :meth:`SubGNN.forward` is the paper's algorithm 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from subgnn.anchors import NodeAnchors, PatchAnchors, SharedAnchors
from subgnn.config import ChannelSettings, ModelSettings
from subgnn.nn.head import Head
from subgnn.nn.inputs import Batch
from subgnn.nn.layer import SubchannelLayer
from subgnn.nn.patch_encoder import PatchEncoder
from subgnn.nn.readout import Readout
from subgnn.nn.similarity import ClosedSimilarity, LearnedSimilarity
from subgnn.nn.walk_lstm import Walks
from subgnn.ragged import Ragged


class SubGNN(nn.Module):
    """The network, over a compact table of touched nodes.

    Args:
        table: embeddings of the touched nodes.
        table_nodes: which nodes those are, sorted.
        channels: the subchannels.
        shared: for each layer and channel, its shared anchors, or None where anchors are a subgraph's own.
        settings: the network's options.
        num_outputs: classes, or 1 for regression.
        trainable: whether the table is fine-tuned.
        num_component_stats, num_subgraph_stats: widths of the topology channel's inputs; 0 without it.

    Shapes:
        table: (T, d).
    """

    def __init__(
        self,
        table: Tensor,
        table_nodes: NDArray[np.int32],
        *,
        channels: Sequence[ChannelSettings],
        shared: Sequence[Sequence[SharedAnchors | None]],
        settings: ModelSettings,
        num_outputs: int,
        trainable: bool = True,
        num_component_stats: int = 0,
        num_subgraph_stats: int = 0,
    ) -> None:
        super().__init__()
        dim = table.shape[1]
        self.settings, self.channels = settings, tuple(channels)
        self.num_stats = (num_component_stats, num_subgraph_stats)
        self.table = nn.Parameter(table.clone(), requires_grad=trainable)
        self.anchor_nodes = nn.ModuleList(
            nn.ModuleList(AnchorNodes(anchors, table_nodes) for anchors in layer) for layer in shared
        )
        self.walks = _all_walks(shared, table_nodes)
        self.encoder = (
            None
            if self.walks is None
            else PatchEncoder(dim, lstm_layers=settings.lstm_layers, dropout=settings.lstm_dropout)
        )
        self.similarity = nn.ModuleList(
            LearnedSimilarity() if settings.learned_similarity else ClosedSimilarity() for _ in self.channels
        )
        self.layers = nn.ModuleList(nn.ModuleList(self._layer(c, dim) for c in self.channels) for _ in shared)
        width = (dim if settings.initial else 0) + num_component_stats
        per_layer = sum(self._width(channel, dim) for channel in self.channels)
        width += per_layer * (len(shared) if settings.layer_aggregation == "concat" else 1)
        self.readout = Readout(settings.readout, width)
        width += num_subgraph_stats + (2 if settings.size_aware else 0)
        self.norm = {"none": nn.Identity, "batch": nn.BatchNorm1d, "layer": nn.LayerNorm}[settings.norm](width)
        self.head = Head(width, num_outputs, hidden=settings.head, dropout=settings.dropout)

    def _layer(self, channel: ChannelSettings, dim: int) -> SubchannelLayer:
        neighborhood = channel.kind == "neighborhood"
        output = self.settings.output
        return SubchannelLayer(
            dim,
            aggregation=self.settings.aggregation,
            hidden=neighborhood or output != "property",
            property_aware=not neighborhood and output != "hidden",
        )

    def _width(self, channel: ChannelSettings, dim: int) -> int:
        if channel.kind == "neighborhood":
            return dim
        return {"property": 0, "hidden": dim, "both": dim}[self.settings.output] + (
            0 if self.settings.output == "hidden" else channel.num_anchors
        )

    def parts(self) -> dict[str, list[slice]]:
        """Which columns of z_S hold z^(0) (``z0``), each subchannel, ``topology`` and ``size``; in the order of z_S."""
        dim, layers = self.table.shape[1], len(self.layers) if self.settings.layer_aggregation == "concat" else 1
        widths = [("z0", dim if self.settings.initial else 0)]
        widths += [(channel.name, self._width(channel, dim)) for channel in self.channels] * layers
        widths += [("topology", self.num_stats[0]), ("size", 2 if self.settings.size_aware else 0)]
        found: dict[str, list[slice]] = {}
        begin = 0
        for name, width in [*widths, ("topology", self.num_stats[1])]:
            if width:
                found.setdefault(name, []).append(slice(begin, begin + width))
            begin += width
        return found

    def component_vectors(self, batch: Batch) -> Tensor:
        """z^(0): the sum, mean or maximum of a component's node embeddings.

        Shapes:
            returns: (C, d).
        """
        return functional.embedding_bag(batch.nodes, self.table, batch.node_starts, mode=self.settings.component_init)

    def anchor_vectors(self) -> list[list[Tensor]]:
        """a: for each layer and channel, the vectors of its shared anchors, or the whole table for own anchors."""
        # All patches go through the encoder at once, in the order of layers and channels.
        patches = None if self.encoder is None else self.encoder(self.table, self.walks)
        vectors, begin = [], 0
        for layer in self.anchor_nodes:
            row = []
            for channel, places in zip(self.channels, cast(nn.ModuleList, layer), strict=True):
                if channel.kind == "structure" and patches is not None:
                    row.append(patches[begin : begin + channel.num_anchors])
                    begin += channel.num_anchors
                else:
                    row.append(
                        self.table.index_select(0, cast(AnchorNodes, places).nodes) if channel.shared else self.table
                    )
            vectors.append(row)
        return vectors

    def embed(self, batch: Batch) -> Tensor:
        """z_S, the vector of each subgraph, as the head receives it.

        Shapes:
            returns: (n, width).
        """
        n = batch.num_subgraphs
        z = [self.component_vectors(batch)]  # (C, d)
        states = [z[0] for _ in self.channels]
        for layer, inputs, anchors in zip(self.layers, batch.channels, self.anchor_vectors(), strict=True):
            outputs = []
            for i, (subchannel, seen) in enumerate(zip(cast(nn.ModuleList, layer), inputs, strict=True)):
                gamma = self.similarity[i](seen.distance, seen.reached)
                state, output = subchannel(gamma, anchors[i], seen.own, states[i])
                states[i] = states[i] if state is None else state
                if state is not None:
                    outputs.append(state)
                if output is not None:
                    outputs.append(output)
            if self.settings.layer_aggregation == "last":
                z = z[:1]
            z += outputs
        if not self.settings.initial:
            z = z[1:]
        if batch.component_stats is not None:
            z.append(batch.component_stats)
        vectors = [self.readout(torch.cat(z, dim=1), batch.subgraph, n + batch.spare)[:n]]
        if self.settings.size_aware:
            vectors.append(self._sizes(batch))
        if batch.subgraph_stats is not None:
            vectors.append(batch.subgraph_stats)
        embedded: Tensor = self.norm(torch.cat(vectors, dim=1))
        return embedded

    def forward(self, batch: Batch) -> Tensor:
        """Logits; one value for regression.

        Shapes:
            returns: (n, outputs).
        """
        logits: Tensor = self.head(self.embed(batch))
        return logits

    def _sizes(self, batch: Batch) -> Tensor:
        counts = torch.stack([torch.ones_like(batch.sizes), batch.sizes], dim=1).to(self.table.dtype)
        totals = counts.new_zeros(batch.num_subgraphs + batch.spare, 2).index_add(0, batch.subgraph, counts)
        return torch.log(totals[: batch.num_subgraphs])


class AnchorNodes(nn.Module):
    """Shared anchor nodes as places in the table; empty for patches, and where anchors are a subgraph's own."""

    nodes: Tensor

    def __init__(self, anchors: SharedAnchors | None, table_nodes: NDArray[np.int32]) -> None:
        super().__init__()
        nodes = anchors.nodes if isinstance(anchors, NodeAnchors) else np.empty(0, np.int32)
        self.register_buffer("nodes", torch.from_numpy(np.searchsorted(table_nodes, nodes).astype(np.int64)))


def _all_walks(shared: Sequence[Sequence[SharedAnchors | None]], table_nodes: NDArray[np.int32]) -> Walks | None:
    patches = [anchors for layer in shared for anchors in layer if isinstance(anchors, PatchAnchors)]
    if not patches:
        return None
    values = np.concatenate([anchors.walks.values for anchors in patches])
    lengths = np.concatenate([anchors.walks.lengths for anchors in patches])
    places = np.searchsorted(table_nodes, values).astype(np.int64)
    return Walks(Ragged.from_lengths(places, lengths), len(patches[0].walks) // len(patches[0].patches))
