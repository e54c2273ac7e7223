"""SubGNN (paper, section 4 and algorithm 1).

    y_S = head(READOUT over components c of S of [z^(0)_c ; AGG_L over layers l of AGG_C over subchannels of z^(l)_c])

z^(l)_c is what a layer of a subchannel gives (:mod:`subgnn.models.subgnn.layer`). :meth:`SubGNN.forward` computes it.
"""

from collections.abc import Iterable, Sequence
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from subgnn.channels.channel import PatchAnchors, SharedAnchors
from subgnn.channels.table import channel_of
from subgnn.channels.topology import NODE_SET_STATISTICS
from subgnn.config.settings import ChannelSettings, EmbeddingSettings, ModelSettings
from subgnn.models.heads import Head
from subgnn.models.subgnn.batches import Batch
from subgnn.models.subgnn.layer import BatchNorm, ChannelInput, SubchannelLayer, property_outputs, segment_reduce
from subgnn.models.subgnn.patch_encoder import PatchEncoder, Walks
from subgnn.ragged import Ragged

Anchors = Sequence[Sequence[SharedAnchors | None]]


class AnchorPlaces(nn.Module):
    """The shared anchors as places in the node table: anchor nodes, and the walks over anchor patches."""

    def __init__(self, shared: Anchors, table_nodes: NDArray[np.int32]) -> None:
        super().__init__()
        patches: list[PatchAnchors] = []
        for layer, row in enumerate(shared):
            for channel, anchors in enumerate(row):
                if isinstance(anchors, PatchAnchors):
                    patches.append(anchors)
                elif anchors is not None:
                    places = np.searchsorted(table_nodes, anchors.touched).astype(np.int64)
                    self.register_buffer(f"nodes_{layer}_{channel}", torch.from_numpy(places), persistent=False)
        self.walks: Walks | None = None
        if patches:
            # All patches, in the order of layers and channels.
            places = np.searchsorted(table_nodes, np.concatenate([a.walks.values for a in patches])).astype(np.int64)
            lengths = np.concatenate([a.walks.lengths for a in patches])
            self.walks = Walks(Ragged.from_lengths(places, lengths), len(patches[0].walks) // len(patches[0].patches))

    def nodes(self, layer: int, channel: int) -> Tensor:
        return self.get_buffer(f"nodes_{layer}_{channel}")


class SubGNN(nn.Module):
    """The network, over a compact table of touched nodes.

    A node's vector is its embedding e_v, or e_v + W f_v, or W f_v + b without an embedding; f_v are its features, and W
    and b are learned. z^(0) of a component is the sum, mean or maximum over its nodes, and the initial state h of every
    channel. With ``settings.trainable_components``, the state of the neighborhood channel starts instead at a free
    vector for each component of the training split, which itself starts at z^(0) (as in the authors' code).

    *Differs from the paper:* a network may also correct a baseline (``settings.baseline``): its output is then
    b(S) + head(z_S), with the baseline's scores b(S) in the batch.

    Args:
        table: (T, d) embeddings of the touched nodes; None if features replace them, or batches hold them.
        table_nodes: those nodes, sorted; only the nodes of shared anchors if batches number their nodes themselves.
        shared: for each layer and channel, its shared anchors, or None if components have their own.
        num_outputs: classes, or 1 for regression.
        embeddings: their width, if there is no table; whether they are learned, and whether features replace them.
        features: (T, F) of the touched nodes; if batches hold those of their nodes, ``num_features`` is F.
        num_known: number of components that the neighborhood channel starts at a learned vector.
    """

    features: Tensor | None

    def __init__(
        self,
        table: Tensor | None,
        table_nodes: NDArray[np.int32],
        *,
        channels: Sequence[ChannelSettings],
        shared: Anchors,
        settings: ModelSettings,
        num_outputs: int,
        embeddings: EmbeddingSettings | None = None,
        features: Tensor | None = None,
        num_features: int = 0,
        num_known: int = 0,
    ) -> None:
        super().__init__()
        embeddings = embeddings or EmbeddingSettings()
        dim = embeddings.dim if table is None else table.shape[1]
        self.settings, self.channels, self.dim = settings, tuple(channels), dim
        self.num_stats = NODE_SET_STATISTICS if settings.topology else 0  # of components, and of subgraphs
        self.num_scores = 0 if settings.baseline == "none" else num_outputs
        self.table = None if table is None else nn.Parameter(table.clone(), requires_grad=embeddings.trainable)
        # Not stored in checkpoints: the graph has them.
        self.register_buffer("features", features, persistent=False)
        num_features = num_features if features is None else features.shape[1]
        self.feature_map = nn.Linear(num_features, dim, bias=embeddings.features == "instead") if num_features else None
        # Row 0 is unused: it stands for components without a vector of their own.
        self.component_states = nn.Parameter(torch.zeros(num_known + 1, dim)) if num_known else None
        self.anchors = AnchorPlaces(shared, table_nodes)
        self.encoder: PatchEncoder | None = None
        if any(channel_of(channel).patches for channel in self.channels) and shared:
            self.encoder = PatchEncoder(dim, lstm_layers=settings.lstm_layers, dropout=settings.lstm_dropout)
        normed = settings.hidden_norm == "batch"
        kinds = [{"state": channel_of(channel).output == "state", "norm": normed} for channel in self.channels]
        self.layers = nn.ModuleList(nn.ModuleList(SubchannelLayer(dim, **kind) for kind in kinds) for _ in shared)
        width = sum(part.stop - part.start for name, of in self.parts().items() for part in of if name != "baseline")
        self.norm = BatchNorm(width) if settings.norm == "batch" else nn.Identity()
        corrects = self.num_scores > 0
        self.head = Head(width, num_outputs, hidden=settings.head, dropout=settings.dropout, corrects=corrects)

    def parts(self) -> dict[str, list[slice]]:
        """Columns of z_S that hold z^(0) (``z0``), each subchannel, ``topology`` and ``baseline``, in order."""
        dim = self.dim
        of_channels = [(c.name, dim if channel_of(c).output == "state" else c.num_anchors) for c in self.channels]
        widths = [("z0", dim if self.settings.initial else 0), *of_channels * len(self.layers)]
        widths += [("topology", self.num_stats)] * 2 + [("baseline", self.num_scores)]
        found, begin = dict[str, list[slice]](), 0
        for name, width in widths:
            if width:
                found.setdefault(name, []).append(slice(begin, begin + width))
            begin += width
        return found

    def node_vectors(self, batch: Batch | None = None) -> Tensor:
        """x: the vectors of the table's nodes (T, d), or of the nodes that a batch numbers (U, d)."""
        table: Tensor | None = self.table
        features = self.features
        if batch is not None and (batch.rows is not None or batch.vectors is not None or batch.features is not None):
            features = batch.features
            if batch.rows is not None and self.table is not None:
                # A sparse gradient: only the rows that were looked up have one.
                table = functional.embedding(batch.rows, self.table, sparse=self.table.requires_grad)
            else:
                table = batch.vectors
        if self.feature_map is None:
            return cast(Tensor, table)
        mapped: Tensor = self.feature_map(features).to(cast(Tensor, features).dtype)
        return mapped if table is None else table + mapped

    def component_vectors(self, batch: Batch, nodes: Tensor) -> Tensor:
        """z^(0) (C, d): the sum, mean or maximum of a component's node vectors."""
        return functional.embedding_bag(batch.nodes, nodes, batch.node_starts, mode=self.settings.component_init)

    @torch.no_grad()
    def start_components(self, batches: Iterable[Batch]) -> None:
        """Start the free vectors of components at z^(0), from batches of the training split."""
        states = cast(Tensor, self.component_states)
        for batch in batches:
            states[cast(Tensor, batch.beside.known)] = self.component_vectors(batch, self.node_vectors(batch))

    def initial_states(self, batch: Batch, initial: Tensor) -> list[Tensor]:
        """h^(0) (C, d) by channel: z^(0), or the free vector of a training component where the state is the output."""
        if self.component_states is None or batch.beside.known is None:
            return [initial for _ in self.channels]
        own = functional.embedding(batch.beside.known, self.component_states, padding_idx=0)
        free = torch.where(batch.beside.known[:, None] > 0, own.to(initial.dtype), initial)
        return [free if channel_of(channel).output == "state" else initial for channel in self.channels]

    def anchor_vectors(self, nodes: Tensor) -> list[list[Tensor]]:
        """a: for each layer and channel, the vectors of its shared anchors, or of all nodes (T, d) for own anchors."""
        numbers = [c.num_anchors for c in self.channels if channel_of(c).patches] * len(self.layers)
        # All patches are encoded at once, in the order of layers and channels. One split, whose gradient is one array;
        # that of a slice would be as large as all patches.
        patches = () if self.encoder is None else torch.split(self.encoder(nodes, self.anchors.walks), numbers)
        encoded, vectors = iter(patches), list[list[Tensor]]()
        for layer in range(len(self.layers)):
            vectors.append([])
            for i, kind in enumerate(map(channel_of, self.channels)):
                if kind.patches:
                    vectors[-1].append(next(encoded))
                else:
                    vectors[-1].append(nodes.index_select(0, self.anchors.nodes(layer, i)) if kind.shared else nodes)
        return vectors

    def similarities(self, batch: Batch, dtype: torch.dtype) -> list[list[Tensor]]:
        """Similarities gamma of components and anchors (C, n_A), by layer and channel."""
        return [[seen.similarity.to(dtype) for seen in layer] for layer in batch.channels]

    def pass_messages(
        self, batch: Batch, initial: Tensor, *, gammas: list[list[Tensor]], anchors: list[list[Tensor]]
    ) -> Tensor:
        """z_c (C, width), from z^(0), similarities and the vectors of anchors.

        Of the batch, it reads own anchors, statistics and the components that fill it up.
        """
        states = self.initial_states(batch, initial)
        present = batch.subgraph < batch.num_subgraphs if batch.spare else None
        inputs = [
            ChannelInput(subchannel, gamma, vectors, one.own)
            for layer in zip(self.layers, gammas, anchors, batch.channels, strict=True)
            for subchannel, gamma, vectors, one in zip(*cast(Any, layer), strict=True)
        ]
        z = [initial] if self.settings.initial else []
        for i, (one, output) in enumerate(zip(inputs, property_outputs(inputs), strict=True)):
            channel = i % len(self.channels)
            state = one.subchannel(one.gamma, one.anchors, one.own, states[channel], present)
            states[channel] = states[channel] if state is None else state
            z += [part for part in (state, output) if part is not None]
        if batch.beside.component_stats is not None:
            z.append(batch.beside.component_stats)
        return torch.cat(z, dim=1)

    def read_out(self, batch: Batch, z: Tensor) -> Tensor:
        """z_S (n, width) from the z_c of its components, beside the scores of a corrected baseline, if any."""
        n = batch.num_subgraphs
        vectors = [segment_reduce(z, batch.subgraph, n + batch.spare, self.settings.readout)[:n]]
        if batch.beside.subgraph_stats is not None:
            vectors.append(batch.beside.subgraph_stats)
        embedded: Tensor = self.norm(torch.cat(vectors, dim=1))
        return embedded if batch.beside.scores is None else torch.cat([embedded, batch.beside.scores], dim=1)

    def embed(self, batch: Batch, nodes: Tensor | None = None, anchors: list[list[Tensor]] | None = None) -> Tensor:
        """z_S (n, width), the vector of each subgraph and the head's input; vectors that are given are not computed."""
        nodes = self.node_vectors(batch) if nodes is None else nodes
        initial, gammas = self.component_vectors(batch, nodes), self.similarities(batch, nodes.dtype)
        anchors = self.anchor_vectors(nodes) if anchors is None else anchors
        return self.read_out(batch, self.pass_messages(batch, initial, gammas=gammas, anchors=anchors))

    def forward(self, batch: Batch) -> Tensor:
        return cast(Tensor, self.head(self.embed(batch)))
