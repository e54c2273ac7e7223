"""Small portfolios made by hand: members that the library trains, and weights that a test chooses."""

import json
import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

from subgnn import Dataset, NodeNames, write_folder
from subgnn.api.train_recipe import train
from subgnn.config.settings import EmbeddingSettings, Recipe
from subgnn.inference.predictor import Predictor
from subgnn.models.checkpoint import load_checkpoint, save_checkpoint
from subgnn.models.recipes import find_recipe
from subgnn.models.spec import Checkpoint, ModelSpec
from subgnn.training.run_dir import CHECKPOINT, RECIPE, keep_subgraphs
from tests.results import result
from tests.training.examples import dataset, recipe

SHARES = {"bag": 0.5, "channels": 0.3, "topology": 0.2}


def named_dataset(task: str = "multi-class") -> Dataset:
    """The dataset of the tests of training, with names of nodes."""
    data = dataset(task)
    return replace(data, graph=replace(data.graph, names=NodeNames.of(f"n{i}" for i in range(24))))


def members() -> dict[str, Recipe]:
    """Recipes by name: one of them a network that corrects a baseline, so that it has a part of its own."""
    return {
        "bag": find_recipe("bag"),
        "channels": recipe(2, baseline="bag"),
        "topology": find_recipe("topology", ["topology.classifier=forest"]),
    }


@cache
def trained(task: str, name: str) -> Checkpoint:
    """The checkpoint of a member."""
    with tempfile.TemporaryDirectory() as folder:
        train(named_dataset(task), members()[name], Path(folder) / "run", device="cpu", cache=False, report=False)
        return load_checkpoint(Path(folder) / "run" / CHECKPOINT)


def calibration(task: str, outputs: int) -> dict[str, np.ndarray]:
    """A scale and an offset other than 1 and 0, and thresholds that differ, where there are several labels."""
    if task != "multi-label":
        offset = [0.0, 0.3] if task == "binary" else [0.0]
        scale = [1.0 if task == "regression" else 1.5]
        return {"scale": np.array(scale, np.float32), "offset": np.array(offset, np.float32)}
    spread = np.linspace(-0.4, 0.4, outputs, dtype=np.float32)
    return {"scale": 1.5 + spread, "offset": spread, "thresholds": 0.5 + 1.2 * spread}


def portfolio(task: str = "multi-class", shares: dict[str, float] | None = None) -> Checkpoint:
    """A portfolio of the members that have a share, in their order."""
    shares, data = shares or SHARES, named_dataset(task)
    spec = ModelSpec.for_recipe(find_recipe("auto"), data.graph, data.subgraphs, seed=0)
    weights = {"member_weights": np.array(list(shares.values()), np.float32), **calibration(task, spec.num_outputs)}
    return Checkpoint(spec, weights, {name: trained(task, name) for name in shares})


def opened(task: str = "multi-class", shares: dict[str, float] | None = None) -> tuple[Dataset, Predictor]:
    """A dataset and the predictor of a portfolio."""
    data = named_dataset(task)
    return data, Predictor(portfolio(task, shares), data.graph)


def write_run(folder: Path, checkpoint: Checkpoint, task: str = "multi-class") -> Path:
    """The folder of a run, as far as predictions need it, beside that of its dataset."""
    write_folder(named_dataset(task), folder / "data")
    run = folder / "run"
    run.mkdir()
    save_checkpoint(checkpoint, run / CHECKPOINT)
    keep_subgraphs(named_dataset(task), run)
    result(run=str(run), source=str(folder / "data"), task=task).save(run)
    (run / RECIPE).write_text(json.dumps(find_recipe("auto").plain() | {"seed": 0}))
    return run


def given_embeddings(folder: Path, seed: int) -> Recipe:
    """A recipe whose node embeddings come from a file of random numbers."""
    path = folder / f"given{seed}.npy"
    np.save(path, np.random.default_rng(seed).normal(size=(24, 8)).astype(np.float32))
    return replace(recipe(1), embeddings=EmbeddingSettings(dim=8, source=str(path), trainable=False))
