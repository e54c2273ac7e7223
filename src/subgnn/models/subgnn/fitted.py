"""SubGNN behind the interface of models: networks that are to be fitted, and fitted ones that predict.

Prediction measures subgraphs, and builds networks and their inputs, in one pipeline, whether the table of node vectors
is whole or batches carry its rows.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from subgnn.channels.channel import moved_anchors
from subgnn.channels.table import check_channels
from subgnn.channels.topology import NODE_SET_STATISTICS
from subgnn.config.settings import Recipe
from subgnn.data.graph import Graph
from subgnn.data.node_match import NodeMatch
from subgnn.embeddings.sources import moved_vectors, require_features
from subgnn.errors import UserError
from subgnn.models.correction import scores_of
from subgnn.models.examples import in_batches
from subgnn.models.interface import (
    Candidate,
    ChannelModel,
    FittedChannelModel,
    LoadContext,
    Settings,
    SetUp,
    TrainingData,
    Vectors,
)
from subgnn.models.spec import BASELINE, Checkpoint, ModelSpec, Weights, join_weights, member_seed
from subgnn.models.subgnn import build
from subgnn.models.subgnn.batches import Batch, Inputs, StreamedInputs
from subgnn.models.subgnn.build import Measured, NodeLookup, NodeTable, has_embeddings, is_large
from subgnn.models.subgnn.model import SubGNN
from subgnn.parallel.memory import share
from subgnn.prepare.measure import Frame, Prepared, measure, prepare_cached
from subgnn.ragged import Ragged
from subgnn.rng import stream_key

NETWORK_BATCH = 1024
"""Subgraphs in a batch of predictions; larger ones leave the processor's cache."""


class OpenNetwork:
    """The network of a checkpoint, over a table of nodes and ready to predict.

    Where the table is whole, the vectors of nodes (T, d) and anchors are computed once.
    """

    @torch.no_grad()
    def __init__(
        self, checkpoint: Checkpoint, graph: Graph, table: NodeTable, *, vectors: Vectors, device: torch.device
    ) -> None:
        self.checkpoint, self.graph, self.table, self.vectors, self.device = checkpoint, graph, table, vectors, device
        self.network = build.build_network(checkpoint, graph, table, vectors=vectors).to(device).eval()
        self.nodes = self.network.node_vectors() if table.access == "whole" else None
        self.anchors = None if self.nodes is None else self.network.anchor_vectors(self.nodes)

    def inputs(self, measured: Measured) -> Inputs | StreamedInputs:
        spec, weights, lookup = self.checkpoint.spec, self.checkpoint.weights, None
        if self.table.access == "carried":
            learned = (spec.table_nodes, weights["table"].numpy()) if "table" in weights else None
            lookup = NodeLookup(spec, self.graph.num_nodes, self.vectors, learned)
        return build.build_inputs(spec, self.graph, measured, self.table, lookup=lookup, device=self.device)

    def embed(self, batch: Batch) -> Tensor:
        """z_S (n, width): :meth:`SubGNN.embed`, from the vectors that are at hand."""
        return self.network.embed(batch, self.nodes, self.anchors)

    def forward(self, batch: Batch) -> Tensor:
        return cast(Tensor, self.network.head(self.embed(batch)))


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredForNetworks:
    """Measured subgraphs, as all networks take them."""

    networks: list[OpenNetwork]
    inputs: Inputs
    prepared: Prepared


class FittedSubGNN(FittedChannelModel):
    """SubGNN: one network, or an ensemble of them."""

    def __init__(self, checkpoint: Checkpoint, graph: Graph, context: LoadContext) -> None:
        self.checkpoint, self.graph, self.context = checkpoint, graph, context
        self.spec = checkpoint.spec
        self._cached: list[OpenNetwork] = []

    def outputs(self, subgraphs: Ragged) -> NDArray[np.float32]:
        return self._compute(subgraphs, "forward", members=self.spec.members)

    def vectors(self, subgraphs: Ragged) -> NDArray[np.float32]:
        """z_S by the first network."""
        return self._compute(subgraphs, "embed", members=1)

    def networks(self) -> list[SubGNN]:
        return [one.network for one in self._open(NodeTable(self.spec.table_nodes))]

    def measured(self, subgraphs: Ragged) -> MeasuredForNetworks:
        measured = self._measure(subgraphs)
        networks = self._covering(measured.prepared)
        return MeasuredForNetworks(networks, cast(Inputs, networks[0].inputs(measured)), measured.prepared)

    def _measure(self, subgraphs: Ragged) -> Measured:
        spec = self.spec
        frame = Frame(spec.channels, len(spec.shared), spec.prepare, spec.seed, spec.shared)
        prepared = measure(self.graph, subgraphs, frame, cache=self.context.cache)
        baseline = self.context.parts.get(BASELINE)
        scores = None if baseline is None else scores_of(baseline.outputs(subgraphs), spec.task)
        return Measured(subgraphs, prepared, scores)

    def _open(self, table: NodeTable, members: int | None = None) -> list[OpenNetwork]:
        vectors, device = self.context.vectors(self.spec), torch.device(self.context.device)
        checkpoints = map(self.checkpoint.member, range(self.spec.members if members is None else members))
        return [OpenNetwork(one, self.graph, table, vectors=vectors, device=device) for one in checkpoints]

    @torch.no_grad()
    def _compute(self, subgraphs: Ragged, what: str, *, members: int) -> NDArray[np.float32]:
        measured = self._measure(subgraphs)
        settings = self.spec.embeddings
        # Else batches carry frozen embeddings, of which the checkpoint has no table.
        whole = "table" in self.checkpoint.weights or not has_embeddings(self.spec)
        if not whole or is_large(self.graph.num_nodes, settings):  # else a table of any nodes is small
            nodes = np.union1d(self.spec.table_nodes, measured.prepared.touched())
            whole = whole and not is_large(len(nodes), settings)
        rows = np.arange(len(subgraphs))
        if whole:  # networks take the same inputs, so each batch is made once
            networks = self._covering(measured.prepared)[:members]

            def mean(batch: Batch) -> Tensor:
                return torch.stack([getattr(one, what)(batch) for one in networks]).mean(dim=0)

            found = torch.cat(list(in_batches(mean, networks[0].inputs(measured), rows, NETWORK_BATCH)))
        else:
            networks = self._open(NodeTable(nodes, "carried"), members)
            each = [in_batches(getattr(one, what), one.inputs(measured), rows, NETWORK_BATCH) for one in networks]
            found = torch.stack([torch.cat(list(parts)) for parts in each]).mean(dim=0)
        return found.float().cpu().numpy()

    def _covering(self, prepared: Prepared) -> list[OpenNetwork]:
        """Networks over the nodes of subgraphs; they are cached, and built again only for nodes they have not met."""
        spec, graph = self.spec, self.graph
        known = self._cached[0].table.nodes if self._cached else spec.table_nodes
        if self._cached and len(known) == graph.num_nodes:
            return self._cached
        touched = prepared.touched()
        if not self._cached or not np.isin(touched, known, assume_unique=True).all():
            nodes = np.union1d(known, touched)
            if is_large(len(nodes), spec.embeddings):
                nodes = np.union1d(spec.table_nodes, touched)
            width = max(spec.embeddings.dim, 0 if graph.features is None else graph.features.shape[1])
            if graph.num_nodes * width * spec.members <= self.context.cached_numbers:
                nodes = np.arange(graph.num_nodes, dtype=np.int32)
            self._cached = self._open(NodeTable(nodes))
        return self._cached


class SubGNNModel(ChannelModel):
    """SubGNN (paper, section 4); also as an ensemble, or correcting a baseline."""

    needs_edges = False
    trains_on_many_devices = True
    on_new_graph = "anchors stay, similarities are measured anew; a new node has the mean of its neighbours' vectors"
    switches = MappingProxyType({"features": "embeddings.features=beside"})

    def set_up(self, data: TrainingData, recipe: Recipe) -> SetUp:
        graph, subgraphs = data.graph, data.subgraphs
        on, nodes = data.on_prepare, subgraphs.nodes
        prepared = prepare_cached(recipe, graph, nodes, seed=data.seed, cache=data.cache, on_progress=on).prepared
        table = build.table_for_training(prepared, subgraphs.indices("train"), recipe.embeddings)
        spec = ModelSpec.for_recipe(
            recipe,
            graph,
            subgraphs,
            seed=data.seed,
            table_nodes=table.nodes,
            shared=prepared.frame.shared,
            standards=build.build_standards(graph, subgraphs, recipe, prepared),
            component_keys=build.component_keys(subgraphs, recipe, prepared),
        )
        if table.access != "whole" and spec.members > 1:
            what = f"training.members is {spec.members}, but the table has {len(table.nodes):,} nodes"
            hint = "several networks need a table small enough for every batch to use whole; set training.members=1"
            raise UserError(what, where="train", hint=hint)
        lookup = None
        if table.access == "carried":
            # Frozen vectors can be computed again for any node: a checkpoint need not have them.
            lookup = NodeLookup(spec, graph.num_nodes, data.vectors)
            if data.vectors is None and len(table.nodes) * spec.embeddings.dim * 4 <= share(0.25):
                lookup = replace(lookup, known=(table.nodes, lookup(table.nodes)))  # drawn at once, not again and again
            spec = replace(spec, table_nodes=build.anchor_nodes(spec))
        measured = Measured(subgraphs.nodes, prepared, data.scores)
        inputs = build.build_inputs(spec, graph, measured, table, lookup=lookup, device=data.device)
        unfitted, candidates = Checkpoint(spec, {}), []
        with torch.random.fork_rng():
            for i in range(spec.members):
                seed, name = member_seed(data.seed, i), f"member {i}" if spec.members > 1 else ""
                torch.manual_seed(stream_key(seed, "initialisation"))
                network = build.build_network(unfitted.member(i), graph, table, vectors=data.vectors)
                candidates.append(Candidate(name, network, unfitted, recipe, seed))
        if len(spec.component_keys):
            train, size = subgraphs.indices("train"), recipe.training.batch_size
            batches = [inputs.batch(train[begin : begin + size]) for begin in range(0, len(train), size)]
            for one in candidates:
                cast(SubGNN, one.network.to(data.device)).start_components(batches)
        return SetUp(candidates, inputs)

    def open(self, checkpoint: Checkpoint, graph: Graph, context: LoadContext) -> FittedSubGNN:
        return FittedSubGNN(checkpoint, graph, context)

    def moved(self, checkpoint: Checkpoint, match: NodeMatch, vectors: Vectors) -> Checkpoint:
        """Renumber the anchors, and make a table of all nodes of the new graph for each network."""
        spec, gone = checkpoint.spec, [0]
        shared = [[None if one is None else moved_anchors(one, match.rows, gone) for one in row] for row in spec.shared]
        match.tell_gone(gone[0], "anchors that are gone or have lost nodes, for which others stand in")
        moved = replace(spec, shared=shared)
        if not has_embeddings(spec):
            nodes = match.rows(spec.table_nodes)
            return replace(checkpoint, spec=replace(moved, table_nodes=np.sort(nodes[nodes >= 0]).astype(np.int32)))
        members = []
        for one in map(checkpoint.member, range(spec.members)):
            known = (spec.table_nodes, one.weights["table"].numpy()) if "table" in one.weights else None
            table = moved_vectors(one.spec.embeddings, match, seed=one.spec.seed, table=vectors, known=known)
            members.append(one.weights | {"table": torch.from_numpy(table)})
        every = np.arange(match.graph.num_nodes, dtype=np.int32)
        return replace(checkpoint, spec=replace(moved, table_nodes=every), weights=join_weights(members))

    def expected_weights(self, checkpoint: Checkpoint, graph: Graph) -> Weights:
        spec = checkpoint.spec
        no_anchors: list[Any] = [[None for _ in row] for row in spec.shared]
        unfitted = replace(checkpoint, spec=replace(spec, shared=no_anchors), weights={})
        with torch.device("meta"):
            found = build.build_network(unfitted, graph, NodeTable(np.empty(0, np.int32), "carried")).state_dict()
            # Frozen embeddings of many nodes are drawn or read again, and not stored.
            if has_embeddings(spec) and (spec.embeddings.trainable or "table" in checkpoint.weights):
                found["table"] = torch.empty(len(spec.table_nodes), spec.embeddings.dim)
        return found

    def problems(self, checkpoint: Checkpoint, graph: Graph) -> Iterator[str]:
        spec = checkpoint.spec
        if len(spec.shared) != spec.model.layers:
            yield f"its number of layers is {len(spec.shared)}"
        keys = spec.component_keys
        if bool((keys[1:] <= keys[:-1]).any()):
            yield "the keys of its components are not in order"
        if len(keys) and not spec.model.trainable_components:
            yield "it has learned component states, but its recipe has none"

    def standards(self, spec: ModelSpec, graph: Graph) -> dict[str, int]:
        found: dict[str, int] = {}
        if spec.model.topology:
            found |= {"component": NODE_SET_STATISTICS, "subgraph": NODE_SET_STATISTICS}
        if spec.embeddings.features != "none":
            require_features(graph)
            found["feature"] = np.asarray(graph.features).shape[1]
        return found

    def uses_embeddings(self, settings: Settings) -> bool:
        return has_embeddings(settings)

    def check(self, recipe: Recipe, graph: Graph) -> None:
        check_channels(recipe.channels, recipe.prepare)
        if recipe.embeddings.features != "none":
            require_features(graph)

    def check_inputs(self, recipe: Recipe) -> None:
        """Refuse a network whose output is the same for all subgraphs."""
        model = recipe.model
        if not ((recipe.channels and model.layers) or model.initial or model.topology):
            hint = "give it [[channels]] and a layer; or set model.initial or model.topology to true"
            raise UserError("the network sees nothing of a subgraph", where="recipe", hint=hint)

    def uses(self, recipe: Recipe) -> frozenset[str]:
        return super().uses(recipe) | ({"features"} if recipe.embeddings.features != "none" else set())
