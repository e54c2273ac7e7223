"""What a run fits, and what it learns from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from subgnn.config.settings import Recipe
from subgnn.data.dataset import Dataset
from subgnn.data.graph import Graph
from subgnn.data.subgraphs import SubgraphSet
from subgnn.errors import UserError
from subgnn.models.cross_fit import fit_baseline
from subgnn.models.registry import set_up as set_up_baseline
from subgnn.models.spec import Checkpoint, ModelSpec, member_seed
from subgnn.models.subgnn import Inputs, SubGNN
from subgnn.models.subgnn.batches import StreamedInputs
from subgnn.models.subgnn.build import (
    build_inputs,
    build_model,
    build_standards,
    component_keys,
    label_unit,
    target_tensor,
    touched_nodes,
)
from subgnn.models.subgnn.streaming import (
    NodeLookup,
    anchor_nodes,
    build_streamed_model,
    build_streams,
    check_room,
    is_large,
)
from subgnn.parallel.progress import OnProgress
from subgnn.prepare.cached import prepare_draws_cached
from subgnn.rng import stream_key
from subgnn.training.candidates import Candidate
from subgnn.training.evaluation import Examples, Source
from subgnn.training.labels import check_labels, warn_of_labels


def set_up(
    dataset: Dataset,
    recipe: Recipe,
    seed: int,
    device: torch.device,
    *,
    vectors: NDArray[np.float32] | None = None,
    cache: bool = True,
    on_prepare: OnProgress | None = None,
) -> tuple[Sequence[Candidate], Examples]:
    """Make the models that are to be fitted, and what they learn from.

    Args:
        vectors: embeddings of all nodes (N, d), where the method uses them and they are not random.
        cache, on_prepare: as for :func:`~subgnn.experiments.train.train`.
    """
    graph, subgraphs = dataset.graph.undirected(), dataset.subgraphs
    check_labels(subgraphs)
    warn_of_labels(subgraphs)
    candidates: Sequence[Candidate]
    first: Source
    redrawn: Sequence[Source] = ()
    if recipe.method == "subgnn":
        models, checkpoint, (first, *redrawn) = set_up_subgnn(
            graph, subgraphs, recipe, seed, device, vectors=vectors, cache=cache, on_prepare=on_prepare
        )
        candidates = [
            Candidate(f"member {i}" if len(models) > 1 else "", model, checkpoint, recipe, seed=member_seed(seed, i))
            for i, model in enumerate(models)
        ]
    else:
        candidates, first = set_up_baseline(graph, subgraphs, recipe, seed=seed, device=device, vectors=vectors)
    examples = Examples(
        inputs=first.to(device),
        targets=target_tensor(subgraphs, candidates[0].checkpoint.spec.standards).to(device),
        task=subgraphs.task,
        train=subgraphs.indices("train"),
        val=subgraphs.indices("val"),
        redrawn=[inputs.to(device) for inputs in redrawn],
        ensemble=recipe.prepare.ensemble,
        num_classes=subgraphs.num_classes,
        unit=label_unit(candidates[0].checkpoint.spec.standards),
    )
    return candidates, examples


def set_up_subgnn(
    graph: Graph,
    subgraphs: SubgraphSet,
    recipe: Recipe,
    seed: int,
    device: torch.device,
    *,
    vectors: NDArray[np.float32] | None = None,
    cache: bool = True,
    on_prepare: OnProgress | None = None,
) -> tuple[list[SubGNN], Checkpoint, Sequence[Inputs | StreamedInputs]]:
    """Prepare the subgraphs and make the network, or several; the checkpoint has everything but weights."""
    baseline, scores = None, None
    if recipe.model.baseline != "none":
        baseline, scores = fit_baseline(graph, subgraphs, recipe, seed=seed)
    kept = prepare_draws_cached(recipe, graph, subgraphs.nodes, seed=seed, cache=cache, on_progress=on_prepare)
    draws = [found.prepared for found in kept]
    table = touched_nodes(draws)
    spec = ModelSpec.of(
        recipe,
        graph,
        subgraphs,
        seed=seed,
        table_nodes=table,
        shared=draws[0].frame.shared,
        standards=build_standards(graph, subgraphs, recipe, draws[0]),
        redrawn=[prepared.frame.shared for prepared in draws[1:]],
        component_keys=component_keys(subgraphs, recipe, draws[0]),
    )
    checkpoint = Checkpoint(spec, {}, baseline)
    large = is_large(len(table), recipe.embeddings)
    learned = recipe.embeddings.trainable and recipe.embeddings.features != "instead"
    if large and learned and not is_large(len(touched_nodes(draws, subgraphs.indices("train"))), recipe.embeddings):
        # A large table is learned in another way, and which one must not hang on subgraphs that are not learned from.
        check_room(len(table), recipe.embeddings)
        large = False
    learned = large and learned
    if large and checkpoint.spec.members > 1:
        what = f"training.members is {checkpoint.spec.members}, and the table has {len(table):,} nodes"
        hint = "several networks are for tables that every batch can look at: set training.members=1"
        raise UserError(what, where="train", hint=hint)
    if large and not learned:
        # What is frozen can be had again for any node: a checkpoint need not have it.
        checkpoint = replace(checkpoint, spec=replace(spec, table_nodes=anchor_nodes(checkpoint)))
    models = []
    with torch.random.fork_rng():
        for member in map(checkpoint.member, range(checkpoint.spec.members)):
            torch.manual_seed(stream_key(member.spec.seed, "initialisation"))
            if large:
                model = build_streamed_model(member, graph, table=table if learned else None, vectors=vectors)
            else:
                model = build_model(member, graph, table, vectors=vectors)
            models.append(model)
    inputs: Sequence[Inputs | StreamedInputs]
    if learned:
        inputs = build_streams(checkpoint, graph, subgraphs.nodes, draws=draws, table=table, scores=scores)
    elif large:
        lookup = NodeLookup(recipe.embeddings, num_nodes=graph.num_nodes, seed=seed, vectors=vectors, ahead=table)
        inputs = build_streams(checkpoint, graph, subgraphs.nodes, draws=draws, lookup=lookup, scores=scores)
    else:
        inputs = build_inputs(
            checkpoint, graph, subgraphs.nodes, draws=draws, table=table, device=device, scores=scores
        )
    return models, checkpoint, inputs
