"""Where it is known what a label hangs on, explanations find it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from subgnn.config.settings import (
    ChannelSettings,
    EmbeddingSettings,
    ModelSettings,
    PrepareSettings,
    Recipe,
    TrainingSettings,
)
from subgnn.data.dataset import Dataset
from subgnn.data.synthetic import generate
from subgnn.inference.explain import Explainer
from tests.inference.explained import run_of

pytestmark = pytest.mark.slow

KINDS = [(kind, side) for kind in ("position", "neighborhood", "structure") for side in ("internal", "border")]


def channels(*counts: int) -> tuple[ChannelSettings, ...]:
    return tuple(ChannelSettings(kind, side, n) for (kind, side), n in zip(KINDS, counts, strict=True))


def carried(data: Dataset, settings: Recipe) -> dict[str, float]:
    """What each channel adds to the logit of the predicted class: the mean over test subgraphs."""
    predictor, subgraphs = run_of(data, settings), data.subgraphs
    background = subgraphs.nodes.take(subgraphs.indices("train"))
    explainer = Explainer(predictor, background=background, max_nodes=0, max_anchors=0)
    found = explainer.explain(subgraphs.nodes.take(subgraphs.indices("test")[:20]))
    names = [item.name for item in found[0].by_channel]
    numbers = [[one.of_class(item.contributions) for item in one.by_channel] for one in found]
    return dict(zip(names, np.mean(numbers, axis=0).tolist(), strict=True))


@pytest.mark.filterwarnings("ignore:.*the same nodes")
def test_density_hangs_on_structure():
    settings = Recipe(
        channels=channels(57, 183, 10, 43, 42, 42),
        prepare=PrepareSettings(hops=2),
        embeddings=EmbeddingSettings(dim=32),
        model=ModelSettings(component_init="max"),
        training=TrainingSettings(epochs=20, lr=3e-4, batch_size=64),
    )
    found = carried(generate("density", seed=0), settings)
    others = max(abs(found[name]) for name in ("z0", "position", "neighborhood"))
    assert found["structure"] > 5 * others


def test_component_hangs_on_position():
    data = generate("component", seed=0, num_nodes=500, num_subgraphs=60)
    constant = np.ones((data.graph.num_nodes, 1), np.float32)
    settings = Recipe(
        channels=channels(10, 10, 5, 10, 5, 5),
        prepare=PrepareSettings(patch_length=10, walks=2, walk_length=5),
        embeddings=EmbeddingSettings(dim=8, features="instead"),
        model=ModelSettings(readout="mean", norm="batch", dropout=0.0),
        training=TrainingSettings(epochs=25, lr=5e-3, batch_size=20),
    )
    found = carried(replace(data, graph=replace(data.graph, features=constant, known_hash="")), settings)
    others = max(abs(found[name]) for name in ("z0", "neighborhood", "structure"))
    assert found["position"] > 5 * others
    assert found["position/internal"] > 5 * abs(found["position/border"])
