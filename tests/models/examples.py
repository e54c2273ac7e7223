"""A recipe of each baseline that fits in a moment, and a graph whose parts can be drawn on paper."""

import pytest
import torch

from subgnn import Graph, SubgraphSet
from subgnn.config.settings import Recipe
from subgnn.models.interface import TrainingData
from subgnn.models.recipes import find_recipe
from subgnn.models.registry import MODELS
from subgnn.models.tensor_model import PaperBaselineSettings, TensorModel

NAMES = sorted(name for name, model in MODELS.items() if isinstance(model, TensorModel))
TRANSDUCTIVE = sorted(name for name, model in MODELS.items() if not model.predicts_new_subgraphs)
INDUCTIVE = sorted(set(NAMES) - set(TRANSDUCTIVE))
TUNED = sorted(name for name in NAMES if PaperBaselineSettings in MODELS[name].settings)
SMALL = (
    "training.epochs=3",
    "training.batch_size=8",
    "training.lr=1e-2",
    "embeddings.source=random",
    "embeddings.dim=8",
    "model.head=[16, 8]",
    "model.dropout=0.1",
    "wlks.rounds=[1, 2]",
    "wlks.inverse_penalty=[1.0]",
    "embeddings.source=random",
)


def recipe(name: str, *settings: str) -> Recipe:
    """The baseline's own recipe, small; later settings win. Without gensim, tests of Sub2Vec are skipped."""
    if name.startswith("s2v"):
        pytest.importorskip("gensim")
    return find_recipe(name, [*SMALL, *settings])


def training_data(graph: Graph, subgraphs: SubgraphSet, seed: int = 0) -> TrainingData:
    """A dataset as models are set up from it, on the CPU."""
    return TrainingData(graph, subgraphs, seed, torch.device("cpu"))


def two_triangles() -> Graph:
    """Triangles 0 1 2 and 3 4 5, joined by 2 - 3, with a tail 5 - 6 and a node 7 on its own."""
    return Graph.from_edges([0, 0, 1, 2, 3, 3, 4, 5], [1, 2, 2, 3, 4, 5, 5, 6], num_nodes=8)
