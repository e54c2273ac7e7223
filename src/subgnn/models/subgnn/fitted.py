"""A fitted SubGNN that predicts: subgraphs are measured, and networks and their inputs built, in one pipeline.

It is the same whether the table of node vectors is whole or its rows are carried by batches.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from subgnn.data.graph import Graph
from subgnn.models.correction import scores_of
from subgnn.models.examples import in_batches
from subgnn.models.interface import BATCH, FittedModel, Opening, Vectors
from subgnn.models.spec import BASELINE, Checkpoint
from subgnn.models.subgnn import Inputs, SubGNN
from subgnn.models.subgnn.batches import Batch
from subgnn.models.subgnn.build import (
    Measured,
    NodeLookup,
    NodeTable,
    build_inputs,
    build_network,
    is_carried,
    is_large,
    measure_draws,
    touched_nodes,
)
from subgnn.models.subgnn.streamed import StreamedInputs
from subgnn.prepare.measure import Prepared, measure
from subgnn.ragged import Ragged

STREAMED_BATCH = 1024
"""Subgraphs in a batch that carries the vectors of its nodes."""


@dataclass(frozen=True, slots=True, eq=False)
class PortableNetwork:
    """A network as data, from which it is built for a graph.

    ``checkpoint`` is that of one network; ``vectors`` are embeddings of all nodes (N, d), unless they are random.
    """

    checkpoint: Checkpoint
    vectors: Vectors
    table: NodeTable

    def build(self, graph: Graph, device: torch.device | str = "cpu") -> SubGNN:
        """The network, in evaluation mode."""
        network = build_network(self.checkpoint, graph, self.table, vectors=self.vectors)
        return network.to(device).eval()

    def inputs(
        self, graph: Graph, measured: Measured, device: torch.device | str = "cpu"
    ) -> list[Inputs] | list[StreamedInputs]:
        """Measured subgraphs as the network takes them, for each draw of anchors."""
        spec, weights, lookup = self.checkpoint.spec, self.checkpoint.weights, None
        if self.table.access == "carried":
            learned = (spec.table_nodes, weights["table"].numpy()) if "table" in weights else None
            lookup = NodeLookup(spec, graph.num_nodes, vectors=self.vectors, learned=learned)
        return build_inputs(spec, graph, measured, self.table, lookup=lookup, device=device)


@dataclass(frozen=True, slots=True, eq=False)
class OpenNetwork:
    """A network over a table of nodes, with the vectors of nodes and anchors computed once if the table is whole.

    Shapes:
        nodes: (T, d). anchors: by draw, as :meth:`SubGNN.anchor_vectors` gives them.
    """

    portable: PortableNetwork
    network: SubGNN
    nodes: Tensor | None
    anchors: list[list[list[Tensor]]]

    @classmethod
    @torch.no_grad()
    def of(cls, portable: PortableNetwork, graph: Graph, device: torch.device) -> OpenNetwork:
        """Build the network, and compute vectors."""
        network = portable.build(graph, device)
        if portable.table.access != "whole":
            return cls(portable, network, None, [])
        nodes = network.node_vectors()
        draws = range(1 + len(portable.checkpoint.spec.redrawn))
        return cls(portable, network, nodes, [network.anchor_vectors(nodes, draw) for draw in draws])

    @torch.no_grad()
    def embed(self, batch: Batch) -> Tensor:
        """z_S (n, width): :meth:`SubGNN.embed`, from the vectors that are at hand."""
        network, nodes = self.network, self.nodes
        if nodes is None:
            return network.embed(batch)
        z = network.pass_messages(
            batch,
            network.component_vectors(batch, nodes),
            gammas=network.similarities(batch, nodes.dtype),
            anchors=self.anchors[batch.draw],
        )
        return network.read_out(batch, z)

    @torch.no_grad()
    def forward(self, batch: Batch) -> Tensor:
        outputs: Tensor = self.network.head(self.embed(batch))
        return outputs


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredForNetworks:
    """Subgraphs measured for each draw of anchors, as all networks take them."""

    networks: list[OpenNetwork]
    inputs: list[Inputs]
    prepared: list[Prepared]

    def combinations(self) -> Iterator[tuple[SubGNN, Inputs, Prepared]]:
        """Each network with each draw of anchors: an output is the mean over them."""
        for one in self.networks:
            for inputs, prepared in zip(self.inputs, self.prepared, strict=True):
                yield one.network, inputs, prepared


class FittedSubGNN(FittedModel):
    """SubGNN: one network, or an ensemble of them, each with one draw of anchors or more."""

    def __init__(self, checkpoint: Checkpoint, graph: Graph, opening: Opening) -> None:
        self.checkpoint, self.graph, self.opening = checkpoint, graph, opening
        self.spec = checkpoint.spec
        self.draws = 1 + len(self.spec.redrawn)
        self._cached: list[OpenNetwork] = []

    def outputs(self, subgraphs: Ragged) -> NDArray[np.float32]:
        """Logits: the mean over networks, and over draws of anchors with prepare.ensemble."""
        return self._compute(subgraphs, "forward", draws=self.draws, members=self.spec.members)

    def vectors(self, subgraphs: Ragged) -> NDArray[np.float32]:
        """z_S by the first network and draw of anchors."""
        return self._compute(subgraphs, "embed", draws=1, members=1)

    def networks(self) -> list[SubGNN]:
        """All networks, over the nodes they were trained with."""
        return [one.build(self.graph, self.opening.device) for one in self._members(NodeTable(self.spec.table_nodes))]

    def measured(self, subgraphs: Ragged, *, draws: int) -> MeasuredForNetworks:
        """Subgraphs measured against the first draws of anchors, and networks over all nodes they touch."""
        measured = self.measure(subgraphs, draws)
        networks = self._covering(touched_nodes(measured.draws))
        inputs = networks[0].portable.inputs(self.graph, measured, self.opening.device)
        return MeasuredForNetworks(networks, cast(list[Inputs], inputs), list(measured.draws))

    def _members(self, table: NodeTable) -> list[PortableNetwork]:
        members = map(self.checkpoint.member, range(self.spec.members))
        return [PortableNetwork(member, self.opening.vectors(self.spec), table) for member in members]

    def measure(self, subgraphs: Ragged, draws: int) -> Measured:
        """Subgraphs measured against the first draws of anchors."""
        measuring = partial(measure, cache=self.opening.cache)
        prepared = measure_draws(self.spec, self.graph, subgraphs, draws=draws, measuring=measuring)
        baseline = self.opening.parts.get(BASELINE)
        scores = None if baseline is None else scores_of(baseline.outputs(subgraphs), self.spec.task)
        return Measured(subgraphs, prepared, scores)

    @torch.no_grad()
    def _compute(self, subgraphs: Ragged, what: str, *, draws: int, members: int) -> NDArray[np.float32]:
        """The mean of a network's results over networks and draws of anchors."""
        measured = self.measure(subgraphs, draws)
        touched = touched_nodes(measured.draws)
        table = NodeTable(np.union1d(self.spec.table_nodes, touched))
        if is_carried(self.checkpoint) or is_large(len(table.nodes), self.spec.embeddings):
            table = NodeTable(table.nodes, "carried")
        graph, device = self.graph, self.opening.device
        whole, rows = table.access == "whole", np.arange(len(measured.subgraphs))
        if whole:
            networks = self._covering(touched)[:members]
        else:
            networks = [OpenNetwork.of(one, graph, device) for one in self._members(table)[:members]]
        found: list[Tensor] = []
        inputs: list[Inputs] | list[StreamedInputs] = []
        for one in networks:
            if not (whole and inputs):  # which carry no vectors, so that all networks share them
                inputs = one.portable.inputs(graph, measured, device)
            size = BATCH if whole else STREAMED_BATCH
            found += [in_batches(getattr(one, what), draw, rows, size) for draw in inputs]
        mean: NDArray[np.float32] = torch.stack(found).mean(dim=0).float().cpu().numpy()
        return mean

    def _covering(self, touched: NDArray[np.int32]) -> list[OpenNetwork]:
        """Networks over the touched nodes; they are cached, and built again only for nodes they have not met."""
        spec, graph = self.spec, self.graph
        known = self._cached[0].portable.table.nodes if self._cached else spec.table_nodes
        complete = bool(self._cached) and len(known) == graph.num_nodes
        if not self._cached or not (complete or bool(np.isin(touched, known, assume_unique=True).all())):
            nodes = np.union1d(known, touched)
            if is_large(len(nodes), spec.embeddings):
                nodes = np.union1d(spec.table_nodes, touched)
            width = max(spec.embeddings.dim, 0 if graph.features is None else graph.features.shape[1])
            if graph.num_nodes * width * spec.members <= self.opening.cached_numbers:
                nodes = np.arange(graph.num_nodes, dtype=np.int32)
            members = self._members(NodeTable(nodes))
            self._cached = [OpenNetwork.of(one, graph, self.opening.device) for one in members]
        return self._cached
