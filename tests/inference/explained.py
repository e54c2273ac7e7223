"""Small trained runs to open, export, search and explain."""

import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path

from subgnn import NodeNames, write_folder
from subgnn.api.train_recipe import train
from subgnn.data.dataset import Dataset
from subgnn.inference.explain import Explainer, Explanation, Subgraphs
from subgnn.inference.predictor import Predictor
from subgnn.models.recipes import find_recipe
from subgnn.training.run_dir import CHECKPOINT
from tests.training.examples import dataset, recipe


@cache
def explained(task: str = "multi-class", **model: object) -> tuple[Dataset, Predictor]:
    """A dataset and a run on it, with all channels; one for each set of arguments."""
    data = dataset(task)
    return data, run_of(data, recipe(3, **model))


@cache
def baseline(name: str) -> tuple[Dataset, Predictor]:
    """A baseline on the same dataset."""
    data = dataset()
    small = {"bag": [], "topology": ["topology.classifier=forest"]}.get(
        name, ["embeddings.dim=8", "embeddings.source=random", "training.epochs=2"]
    )
    return data, run_of(data, find_recipe(name, small))


def run_of(data: Dataset, settings) -> Predictor:
    """Train and open."""
    with tempfile.TemporaryDirectory() as folder:
        train(data, settings, Path(folder) / "run", device="cpu", cache=False, report=False)
        return Predictor(Path(folder) / "run" / CHECKPOINT, data.graph)


def named_run(folder: Path, settings=None, task: str = "multi-class", *, prefix: str = "n") -> Path:
    """A finished run, of the recipe bag by default, on a dataset folder with names."""
    data = dataset(task)
    names = NodeNames.of(f"{prefix}{i}" for i in range(data.graph.num_nodes))
    data = replace(data, graph=replace(data.graph, names=names))
    write_folder(data, folder / "data")
    options = {"device": "cpu", "source": str(folder / "data"), "cache": False, "report": False}
    train(data, settings or find_recipe("bag"), folder / "run", **options)
    return folder / "run"


def explain(predictor: Predictor, subgraphs: Subgraphs, **options: int) -> list[Explanation]:
    """Explanations without a background."""
    return Explainer(predictor, **options).explain(subgraphs)
