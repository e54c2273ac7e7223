"""SubGNN behind the interface of models: its settings, networks to be fitted, and checks of its checkpoints."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import MappingProxyType
from typing import Any, cast

import numpy as np
import torch

from subgnn.channels.path_lengths import check_lengths
from subgnn.channels.table import channel_of, check_channels, similarity_of
from subgnn.channels.topology import NODE_SET_STATISTICS
from subgnn.config.settings import Recipe
from subgnn.data.graph import Graph
from subgnn.embeddings.sources import require_features
from subgnn.errors import UserError
from subgnn.models.interface import Candidate, Model, Opening, Settings, SetUp, TrainingData
from subgnn.models.spec import Checkpoint, ModelSpec, Weights, member_seed
from subgnn.models.subgnn.build import (
    Measured,
    NodeLookup,
    NodeTable,
    anchor_nodes,
    build_inputs,
    build_network,
    build_standards,
    component_keys,
    has_embeddings,
    stored_weights,
    table_for_training,
)
from subgnn.models.subgnn.fitted import FittedSubGNN
from subgnn.models.subgnn.layer import layers_width
from subgnn.models.subgnn.model import SubGNN
from subgnn.prepare.cached import prepare_draws_cached
from subgnn.rng import stream_key


class SubGNNModel(Model):
    """SubGNN (paper, section 4); also as an ensemble, or correcting a baseline."""

    needs_edges = False
    uses_many_devices = True
    has_ensembles = True
    corrects_baselines = True
    has_channels = True
    switches = MappingProxyType(
        {
            "weights": "prepare.weighted_walks=true",
            "direction": "prepare.directed=true",
            "features": "embeddings.features=beside",
        }
    )

    def set_up(self, data: TrainingData, recipe: Recipe) -> SetUp:
        graph, subgraphs = data.graph, data.subgraphs
        cached = prepare_draws_cached(
            recipe, graph, subgraphs.nodes, seed=data.seed, cache=data.cache, on_progress=data.on_prepare
        )
        draws = [found.prepared for found in cached]
        table = table_for_training(draws, subgraphs.indices("train"), recipe.embeddings)
        spec = ModelSpec.of(
            recipe,
            graph,
            subgraphs,
            seed=data.seed,
            table_nodes=table.nodes,
            shared=draws[0].frame.shared,
            standards=build_standards(graph, subgraphs, recipe, draws[0]),
            redrawn=[prepared.frame.shared for prepared in draws[1:]],
            component_keys=component_keys(subgraphs, recipe, draws[0]),
        )
        if table.access != "whole" and spec.members > 1:
            what = f"training.members is {spec.members}, and the table has {len(table.nodes):,} nodes"
            hint = "several networks are for tables that every batch can look at: set training.members=1"
            raise UserError(what, where="train", hint=hint)
        lookup = None
        if table.access == "carried":
            # Frozen vectors can be computed again for any node: a checkpoint need not have them.
            lookup = NodeLookup(spec, graph.num_nodes, vectors=data.vectors, ahead=table.nodes)
            spec = replace(spec, table_nodes=anchor_nodes(spec))
        measured = Measured(subgraphs.nodes, draws, data.scores)
        inputs = build_inputs(spec, graph, measured, table, lookup=lookup, device=data.device)
        candidates = self._networks(data, recipe, Checkpoint(spec, {}), table)
        if len(spec.component_keys):
            train, size = subgraphs.indices("train"), recipe.training.batch_size
            batches = [inputs[0].batch(train[begin : begin + size]) for begin in range(0, len(train), size)]
            for one in candidates:
                cast(SubGNN, one.network.to(data.device)).start_components(batches)
        return SetUp(candidates, inputs)

    def _networks(
        self, data: TrainingData, recipe: Recipe, checkpoint: Checkpoint, table: NodeTable
    ) -> list[Candidate]:
        members, found = checkpoint.spec.members, []
        with torch.random.fork_rng():
            for i in range(members):
                seed = member_seed(data.seed, i)
                torch.manual_seed(stream_key(seed, "initialisation"))
                network = build_network(checkpoint.member(i), data.graph, table, vectors=data.vectors)
                found.append(Candidate(f"member {i}" if members > 1 else "", network, checkpoint, recipe, seed))
        return found

    def open(self, checkpoint: Checkpoint, graph: Graph, opening: Opening) -> FittedSubGNN:
        return FittedSubGNN(checkpoint, graph, opening)

    def stored_weights(self, state: Weights) -> Weights:
        """All but places in the table, which follow from anchors."""
        return stored_weights(state)

    def expected_weights(self, checkpoint: Checkpoint, graph: Graph) -> Weights:
        spec = checkpoint.spec
        no_anchors: list[Any] = [[None for _ in row] for row in spec.shared]
        unfitted = replace(checkpoint, spec=replace(spec, shared=no_anchors, redrawn=[]), weights={})
        with torch.device("meta"):
            found = build_network(unfitted, graph, NodeTable(np.empty(0, np.int32), "carried")).state_dict()
            # Frozen embeddings of many nodes are drawn or read again, and not stored.
            if has_embeddings(spec) and (spec.embeddings.trainable or "table" in checkpoint.weights):
                found["table"] = torch.empty(len(spec.table_nodes), spec.embeddings.dim)
        return stored_weights(found)

    def problems(self, checkpoint: Checkpoint, graph: Graph) -> Iterator[str]:
        spec = checkpoint.spec
        if len(spec.shared) != spec.model.layers:
            yield f"its number of layers is {len(spec.shared)}"
        if 1 + len(spec.redrawn) != (spec.prepare.draws if spec.prepare.ensemble else 1):
            yield f"its number of draws is {1 + len(spec.redrawn)}"
        keys = spec.component_keys
        if bool((keys[1:] <= keys[:-1]).any()):
            yield "the keys of its components are not in order"
        if len(keys) and not spec.model.trainable_components:
            yield "it has learned states of components, and its recipe none"

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
        if recipe.prepare.directed and recipe.prepare.own_hops == "bounded":
            hint = "bounds hold for undirected hops alone: set prepare.own_hops=exact or prepare.directed=false"
            raise UserError("prepare.directed with prepare.own_hops=bounded", where="recipe", hint=hint)
        if recipe.prepare.edge_length != "one":
            check_lengths(graph, recipe.prepare)
        if recipe.prepare.draws < 1:
            raise UserError("prepare.draws is 0", where="recipe", hint="accepted: a whole number from 1")

    def check_inputs(self, recipe: Recipe) -> None:
        """Refuse a network whose output is the same for all subgraphs."""
        model = recipe.model
        width = layers_width(recipe.channels, model, recipe.embeddings.dim, layers=model.layers)
        if not (width or model.initial or model.topology):
            hint = "give it [[channels]] and a layer; or set model.initial or model.topology to true"
            raise UserError("the network sees nothing of a subgraph", where="recipe", hint=hint)

    def num_fits(self, recipe: Recipe) -> int:
        return recipe.training.members

    def uses(self, recipe: Recipe) -> frozenset[str]:
        """As for any model; and what channels by diffusion, hops and walks use, as well as features.

        Hops are measured for position and for drawn border anchors of neighborhood; structure has walks.
        """
        prepare, hops, walks = recipe.prepare, _measures_hops(recipe), _walks(recipe)
        by_weight = (prepare.weighted_walks and walks) or (prepare.edge_length != "one" and hops)
        direct = {
            "weights": _diffuses(recipe) or by_weight,
            "direction": (prepare.directed and hops) or (prepare.directed_walks and walks),
            "features": recipe.embeddings.features != "none",
        }
        return super().uses(recipe) | {name for name, used in direct.items() if used}


def _diffuses(recipe: Recipe) -> bool:
    """Whether a channel uses random walks over the graph, and so the weights of edges."""
    by_lift = any(channel.name == "neighborhood/border" for channel in recipe.channels)
    named = any(channel.similarity == "diffusion" for channel in recipe.channels)
    return recipe.model.layers > 0 and (named or (by_lift and recipe.prepare.border_anchors == "lift"))


def _walks(recipe: Recipe) -> bool:
    return recipe.model.layers > 0 and any(channel_of(channel).patches for channel in recipe.channels)


def _measures_hops(recipe: Recipe) -> bool:
    searches = any(similarity_of(channel, recipe.prepare).searches for channel in recipe.channels)
    return searches and recipe.model.layers > 0
