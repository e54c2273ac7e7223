"""Plan the jobs of a suite: one for each dataset, model and seed that differ in content.

A run is identified by its key, the SHA-256 of its inputs: graph, subgraphs with labels and split, seed, the settings
after all overrides, and the versions of the algorithms. So a finished run is found again under any name, and folders of
runs can be copied from one machine to another.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from subgnn.config.settings import recipe_key
from subgnn.data.dataset import Dataset
from subgnn.data.splits import Method, draw_folds, named_split, split_subgraphs
from subgnn.data.subgraphs import SPLITS
from subgnn.embeddings.pretrain import ALGORITHM as PRETRAIN_ALGORITHM
from subgnn.errors import DataError
from subgnn.lab.suites.spec import DatasetSpec, ModelSpec, Suite
from subgnn.models.recipes import portfolio
from subgnn.models.registry import trainable_model_of
from subgnn.prepare.measure import ALGORITHM_VERSION as PREPARE_ALGORITHM
from subgnn.storage.files import json_digest
from subgnn.task import task_of

TRAINING_ALGORITHM = 3
"""Increased when the same settings and seed train another model than before."""
PORTFOLIO_ALGORITHM = 1
"""Increased when the same portfolio makes another choice than before."""
FOLDS = 10
"""Folds of all subgraphs, by the protocol ``folds``."""
_ALGORITHMS = {"prepare": PREPARE_ALGORITHM, "pretrain": PRETRAIN_ALGORITHM, "training": TRAINING_ALGORITHM}


@dataclass(frozen=True, slots=True)
class Request:
    """Options of all runs of a suite; ``split`` is that of all datasets, by default as the suite says."""

    seeds: int
    overrides: tuple[str, ...] = ()
    split: str = ""
    device: str = "auto"
    cache: bool = True
    id_base: int | None = None
    command: str = ""


def with_split(dataset: Dataset, split: str, seed: int) -> Dataset:
    """A dataset with a split: ``random``, ``folds``, or one of :data:`~subgnn.data.splits.NAMED_SPLITS`.

    Subgraphs with equal nodes, and those of one group, are in one part of a random split (50/25/25 by seed) and in one
    fold. With ``folds``, the seed also numbers the fold: the test split of seed s is fold s mod 10 of the draw s // 10,
    the validation split the fold after it, and all other folds are the training split, so that ten runs predict every
    subgraph once.
    """
    subgraphs = dataset.subgraphs
    subgraphs.require_labels(dataset.name)
    if split == "random":
        method: Method = "random" if subgraphs.groups is None else "group"
        groups = None if subgraphs.groups is None else list(subgraphs.groups)
        drawn = split_subgraphs(subgraphs, method=method, groups=groups, seed=seed)
        return replace(dataset, subgraphs=drawn)
    if split == "folds":
        folds = draw_folds(subgraphs, seed // FOLDS, "suites/folds", folds=FOLDS)
        if len(np.unique(folds)) < FOLDS:
            what = f"{len(subgraphs)} subgraphs are too few for {FOLDS} folds"
            hint = "subgraphs of one group or with equal nodes share a fold; set protocol.split = 'random'"
            raise DataError(what, where=dataset.name, hint=hint)
        parts = [SPLITS.index(name) for name in ("test", "val", *["train"] * (FOLDS - 2))]
        return replace(dataset, subgraphs=replace(subgraphs, splits=np.array(parts, np.int8)[(folds - seed) % FOLDS]))
    if subgraphs.splits is None:
        hint = "draw one with subgnn data split, or use a suite with protocol.split = 'random'"
        raise DataError("the subgraphs have no splits", where=dataset.name, hint=hint)
    return replace(dataset, subgraphs=named_split(subgraphs, split))


def plan_jobs(
    suite: Suite, spec: DatasetSpec, source: Path, dataset: Dataset, *, models: Sequence[ModelSpec], request: Request
) -> list[dict[str, Any]]:
    """The jobs of one dataset at a path, for :func:`~subgnn.lab.suites.job.run_job`, seed by seed.

    So all models have their first runs early. Models with the same content share a job.
    """
    name, split, graph = spec.name, request.split or spec.split or suite.protocol.split, dataset.graph.undirected()
    if task_of(dataset.subgraphs.task).real:
        raise DataError("its labels are real numbers", where=name, hint="suites compare classifiers: give classes")
    graph = replace(graph, known_hash=graph.content_hash)
    drawn = split in ("random", "folds")
    recipes = [(model, suite.recipe(model, name, request.overrides)) for model in models]
    on_gpu = request.device == "cuda" or (request.device == "auto" and torch.cuda.is_available())
    jobs: dict[str, dict[str, Any]] = {}
    for seed in range(request.seeds):
        subgraphs_hash = with_split(dataset, split, seed).subgraphs.content_hash
        for model, recipe in recipes:
            if not drawn and model.seeds and seed >= model.seeds:
                continue
            settings = recipe_key(recipe)
            if recipe.auto.candidates:  # their settings instead of the names of their recipes
                candidates = {label: recipe_key(one) for label, one in portfolio(recipe, ()).items()}
                own = {"only": [], "candidates": candidates, "algorithm": PORTFOLIO_ALGORITHM}
                settings["auto"] = {**settings["auto"], **own}
            same = {"graph": graph.content_hash, "split": split, "settings": settings, "algorithms": _ALGORITHMS}
            key = json_digest(same | {"subgraphs": subgraphs_hash, "seed": seed})
            if key in jobs:
                jobs[key]["models"].append(model.label)
                continue
            jobs[key] = {
                "key": key,
                "folder": f"{_plain(name)}_{_plain(recipe.name)}_{seed}_{key[:12]}",
                "suite": suite.name,
                "dataset": name,
                "graph": graph.content_hash,
                "source": str(source),
                "split": split,
                "seed": seed,
                "models": [model.label],
                "set": list(request.overrides),
                # Without the parts that are not in the key: an interrupted run is resumed although a note has changed.
                "recipe": replace(recipe, note="", published={}).plain(),
                "device": request.device,
                # A network is trained step by step; a portfolio decides by itself what runs on a GPU.
                "on_gpu": on_gpu and not (recipe.is_portfolio or trainable_model_of(recipe).is_fitted_in_one_go),
                "cache": request.cache,
                "id_base": request.id_base,
                "command": request.command,
            }
    return list(jobs.values())


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9.-]+", "-", name)[:40]
