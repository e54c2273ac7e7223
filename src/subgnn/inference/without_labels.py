"""Models whose vectors need no labels, set up for subgraphs that have none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from subgnn.config.recipes import find_recipe, recipe_names
from subgnn.config.settings import Recipe
from subgnn.data.graph import Graph
from subgnn.data.subgraphs import SubgraphSet
from subgnn.errors import UserError
from subgnn.inference.open import OpenedRun
from subgnn.inference.predictor import Predictor
from subgnn.models.interface import TrainingData
from subgnn.models.registry import check_edges, check_recipe, model_of, set_up_model
from subgnn.ragged import Ragged
from subgnn.result import RunResult, Seconds
from subgnn.versions import versions


def fit_without_labels(graph: Graph, subgraphs: Ragged, recipe: Recipe, *, seed: int = 0) -> OpenedRun:
    """A model that gives vectors, and no predictions, fitted to subgraphs without labels.

    Args:
        subgraphs: sets of nodes, none of them empty.
        seed: of the draw of references where there are more subgraphs than those.

    Raises:
        UserError: for a recipe whose vectors are learned from labels.
    """
    model = model_of(recipe)
    if model.vectors_need_labels:
        free = [name for name in recipe_names() if not model_of(find_recipe(name)).vectors_need_labels]
        hint = f"accepted: {', '.join(free)}; or train it, and give the run in place of the graph"
        raise UserError(f"the recipe {recipe.name} learns its vectors from labels", where="--recipe", hint=hint)
    graph = graph.undirected()
    check_recipe(recipe, graph)
    check_edges(recipe, graph)
    known = SubgraphSet(subgraphs, splits=np.zeros(len(subgraphs), np.int8))
    data = TrainingData(graph, known, seed, torch.device("cpu"))
    candidate = set_up_model(data, recipe).candidates[0]
    checkpoint = replace(candidate.checkpoint, weights=model.stored_weights(candidate.network.state_dict()))
    result = RunResult(
        run="",
        dataset="",
        source="",
        split="stored",
        recipe=recipe.name,
        method=recipe.method,
        seed=seed,
        task=known.task,
        fitted_to=("train",),
        unused=(),
        selected_epoch=0,
        epochs=1,
        val={},
        test={},
        intervals={},
        published={},
        seconds=Seconds(pretrain=0.0, prepare=0.0, train=0.0, epoch_median=0.0),
        peak_memory_mb=0.0,
        device="cpu",
        devices=1,
        versions=versions(),
        date="",
    )
    return OpenedRun(Predictor(checkpoint, graph), result)
