"""A trained network for one question: over a table of all nodes it may meet, or without one where that is large."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from subgnn.data.graph import Graph
from subgnn.models.spec import Checkpoint
from subgnn.models.subgnn import Inputs, SubGNN
from subgnn.models.subgnn.batches import StreamedInputs
from subgnn.models.subgnn.build import build_inputs, build_model
from subgnn.models.subgnn.streaming import NodeLookup, build_streamed_model, build_streams
from subgnn.prepare.measure import Prepared
from subgnn.ragged import Ragged


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """What a network follows from, beside the graph, as data that can be sent to another process.

    Args:
        vectors: embeddings of all nodes (N, d), unless they are random.
        table: the nodes it may meet, sorted; None where batches number their nodes themselves
            (:mod:`subgnn.models.subgnn.streaming`).
        method: what it is asked: ``forward`` or ``embed``.
    """

    checkpoint: Checkpoint
    vectors: NDArray[np.float32] | None
    table: NDArray[np.int32] | None
    method: str

    def model(self, graph: Graph) -> SubGNN:
        """The network, ready to be asked."""
        if self.table is None:
            return build_streamed_model(self.checkpoint, graph).eval()
        return build_model(self.checkpoint, graph, self.table, vectors=self.vectors).eval()

    def inputs(
        self, graph: Graph, subgraphs: Ragged, draws: list[Prepared], *, device: torch.device | str = "cpu"
    ) -> list[Inputs] | list[StreamedInputs]:
        """Prepared subgraphs as the network takes them, for each draw of anchors."""
        options: dict[str, Any] = {"draws": draws}
        if self.table is not None:
            return build_inputs(self.checkpoint, graph, subgraphs, table=self.table, device=device, **options)
        streams = build_streams(self.checkpoint, graph, subgraphs, lookup=self._lookup(graph), **options)
        return [stream.to(device) for stream in streams]

    def _lookup(self, graph: Graph) -> NodeLookup:
        learned = None
        if "table" in self.checkpoint.weights:
            learned = self.checkpoint.spec.table_nodes, self.checkpoint.weights["table"].numpy()
        return NodeLookup(
            self.checkpoint.spec.embeddings,
            num_nodes=graph.num_nodes,
            seed=self.checkpoint.spec.seed,
            vectors=self.vectors,
            learned=learned,
        )
