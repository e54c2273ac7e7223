"""A small dataset whose labels a network can learn, and a recipe that trains in a second."""

import signal
from pathlib import Path

import numpy as np
import pytest
import torch

from subgnn import Dataset, Graph, SubgraphSet
from subgnn.api.train_recipe import train
from subgnn.config.settings import (
    ChannelSettings,
    EmbeddingSettings,
    ModelSettings,
    PrepareSettings,
    Recipe,
    TrainingSettings,
)
from subgnn.models.checkpoint import load_checkpoint
from subgnn.training.cross_validation import CrossValidation
from subgnn.training.fit import HELD_OUT
from subgnn.training.fits import Entry, open_fits
from subgnn.training.options import Callbacks, TrainOptions
from subgnn.training.run_dir import CHECKPOINT, METRICS

CHANNELS = (
    ChannelSettings("position", "internal", 3),
    ChannelSettings("position", "border", 4),
    ChannelSettings("neighborhood", "internal", 3),
    ChannelSettings("neighborhood", "border", 3),
    ChannelSettings("structure", "internal", 3),
    ChannelSettings("structure", "border", 3),
)


def dataset(task: str = "multi-class", count: int = 30) -> Dataset:
    """Node sets of a ring of cliques; the label is the clique most of their nodes come from."""
    rng = np.random.default_rng(0)
    cliques, size = 3, 8
    edges = [(c * size + i, c * size + j) for c in range(cliques) for i in range(size) for j in range(i)]
    edges += [(c * size, ((c + 1) % cliques) * size + 1) for c in range(cliques)]
    nodes, owner = [], []
    for i in range(count):
        home = i % cliques
        inside = home * size + rng.choice(size, 4, replace=False)
        nodes.append(np.append(inside, rng.integers(0, cliques * size)))
        owner.append(home)
    labels = {
        "multi-class": [f"clique{c}" for c in owner],
        "binary": ["first" if c == 0 else "other" for c in owner],
        "multi-label": [[f"clique{c}", "late"] if c else [f"clique{c}"] for c in owner],
        "regression": [c * 2.5 - 1 for c in owner],
    }[task]
    subgraphs = SubgraphSet.from_lists(
        nodes, num_nodes=cliques * size, labels=labels, splits=(["train"] * 20 + ["val"] * 5 + ["test"] * 5)
    )
    return Dataset("cliques", Graph.from_edges(*zip(*edges, strict=True)), subgraphs)


def recipe(epochs: int = 5, *, channels=CHANNELS, trainable: bool = True, **model: object) -> Recipe:
    """All channels, small."""
    return Recipe(
        name="small",
        channels=channels,
        prepare=PrepareSettings(patch_length=5, walks=2, walk_length=4),
        embeddings=EmbeddingSettings(dim=8, trainable=trainable),
        model=ModelSettings(**{"layers": 1, "norm": "batch", "head": (16, 8), "dropout": 0.1} | model),
        training=TrainingSettings(epochs=epochs, batch_size=8, lr=1e-2, clip=1.0),
    )


def train_until(epoch: int, data: Dataset, settings: Recipe, out: Path, *, candidate: str = "", **options) -> None:
    """Train, and interrupt the run after an epoch."""

    def stop(record) -> None:
        if (record.get("candidate", ""), record["epoch"]) == (candidate, epoch):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(data, settings, out, callbacks=Callbacks(on_epoch=stop), **options)


def weights(run: Path) -> dict[str, torch.Tensor]:
    """All weights of a run, those of its parts included."""
    checkpoint = load_checkpoint(run / CHECKPOINT)
    parts = {f"{name}/{key}": w for name, part in checkpoint.parts.items() for key, w in part.weights.items()}
    return {**checkpoint.weights, **parts}


def assert_equal_runs(a: Path, b: Path) -> None:
    """Two runs have the same weights and the same epochs."""
    ours, theirs = weights(a), weights(b)
    assert ours.keys() == theirs.keys()
    for name, value in ours.items():
        assert np.array_equal(value, theirs[name]), name
    assert (a / METRICS).read_text() == (b / METRICS).read_text()


def press_ctrl_c() -> None:
    """Call this process's handler of Ctrl-C: a real signal could arrive later, in the code of another test."""
    handler = signal.getsignal(signal.SIGINT)
    assert callable(handler)
    handler(signal.SIGINT, None)


def out_of_fold(recipe: Recipe, pool: CrossValidation, folds: int, options: TrainOptions) -> np.ndarray:
    """Out-of-fold predictions of one recipe (1, n, outputs), however long they take."""
    entry, splits = Entry(recipe.name, recipe), pool.folds(0, folds)
    with open_fits(pool, options) as fits:
        fits.prepare_vectors(entry)
        jobs = [fits.job(entry, one, fold=i) for i, one in enumerate(splits)]
        found = {job.fold: fold.predictions for job, fold in fits.fit(jobs)}
    rows = np.concatenate([np.flatnonzero(one == HELD_OUT) for one in splits])
    return np.concatenate([found[i] for i in range(len(splits))])[np.argsort(rows)][None]
