"""SSNP: message passing over the whole graph, and a sampled neighbourhood of the subgraph beside its nodes (CIKM 2023).

The layers are those of ``peers/message_passing.py`` with one set of weights, so that vectors of nodes do not depend on
the subgraph. From every node of a subgraph S start M walks of m uniform steps; the nodes outside of S that they visit
are its border sample. The vectors of S and of the border sample are pooled apart and laid side by side, and a linear
layer gives the outputs.

*Differs from the paper:* prediction takes one fixed sample, a function of the seed and of the nodes of S alone, where
the published one walks anew at each call. Training walks anew in every step (the paper's online views), or takes one of
``message_passing.views`` fixed samples at random for each subgraph and step (its pre-computed views). All nodes of S
start walks, and there is no further network between pooling and the linear layer: the paper has options for both.
"""

from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from subgnn.data.graph import Graph
from subgnn.kernels.draws import node_set_keys
from subgnn.kernels.walks import walk_from_members
from subgnn.models.interface import Settings, View
from subgnn.models.peers.message_passing import MessagePassing, MessagePassingModel, NodeSetBatch, in_blocks, pool
from subgnn.models.spec import Checkpoint
from subgnn.ragged import Ragged
from subgnn.rng import stream_key

_VISITS_AT_A_TIME = 2**22


class SSNP(MessagePassing):
    """The network."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        spec = checkpoint.spec
        super().__init__(checkpoint, labels=False, width=2 * spec.model.layers * spec.embeddings.dim)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                nn.init.zeros_(module.bias)
        self.seed = spec.seed

    def embed(self, batch: NodeSetBatch) -> Tensor:
        graph, settings, nodes = batch.graph, self.settings, batch.nodes

        def after_each_layer() -> list[Tensor]:
            pairs = zip(self.stack, self.whole_pass(graph, graph.labels())[0], strict=True)
            return [in_blocks(partial(layer.jump, moments=one.jump), one.out) for layer, one in pairs]

        vectors = self.kept(after_each_layer)
        # The border sample is view 0 in prediction, another in each training step.
        if self.training and not settings.views:
            keys = node_set_keys(int(torch.randint(2**62, ())), nodes)
        else:
            view = np.zeros(len(nodes), np.int64)
            if self.training:
                view = torch.randint(settings.views, (len(nodes),)).numpy()
            keys = np.zeros(len(nodes), np.uint64)
            for v in np.unique(view):
                own = np.flatnonzero(view == v)
                keys[own] = node_set_keys(stream_key(self.seed, f"ssnp/walks/{v}"), nodes.take(own))
        border = border_sample(graph.graph, nodes, walks=settings.walks, length=settings.walk_length, keys=keys)
        # Without a copy of the rows: a border may have many nodes.
        parts = [(part, part.places) for part in (batch, NodeSetBatch(graph, border))]
        pooled = [pool(layer, places, part, settings.pool) for part, places in parts for layer in vectors]
        return torch.cat(pooled, dim=1)


def border_sample(graph: Graph, subgraphs: Ragged, *, walks: int, length: int, keys: NDArray[np.uint64]) -> Ragged:
    """The nodes outside of each subgraph that walks from its nodes visit, sorted, each once.

    Example:
        In the path 0 - 1 - 2, the only step from 0 leads to 1, and a second one to 0 or 2.

        >>> path, keys = Graph.from_edges([0, 1], [1, 2]), np.arange(2, dtype=np.uint64)
        >>> [row.tolist() for row in border_sample(path, Ragged.from_rows([[0], [0, 1]]), walks=9, length=2, keys=keys)]
        [[1, 2], [2]]
    """
    number, begin = graph.num_nodes, 0
    rows: list[NDArray[np.int32]] = []
    for some in subgraphs.batches(max(1, _VISITS_AT_A_TIME // (walks * length))):
        own, begin = keys[begin : begin + len(some)], begin + len(some)
        visited = walk_from_members(*graph.csr, some, walks=walks, length=length, keys=own)
        met = np.unique(some.row_ids[:, None, None] * number + visited)
        border = met[~np.isin(met, some.row_ids * number + some.values, assume_unique=True)]
        counts = np.bincount(border // number, minlength=len(some))
        rows += Ragged.from_lengths((border % number).astype(np.int32), counts)
    return Ragged.from_rows(rows)


class SSNPModel(MessagePassingModel):
    """SSNP."""

    network = SSNP

    def sees(self, settings: Settings) -> View:
        return "surroundings" if self.uses_embeddings(settings) else "shape"
