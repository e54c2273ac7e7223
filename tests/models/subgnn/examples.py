"""Small graphs, subgraphs, prepared inputs and models for the tests of the network."""

from __future__ import annotations

import numpy as np
import torch

from subgnn import Graph, Ragged
from subgnn.config.settings import ChannelSettings, EmbeddingSettings, ModelSettings, PrepareSettings
from subgnn.models.subgnn import SubGNN
from subgnn.prepare.measure import Plan, Prepared, prepare

ALL_CHANNELS = (
    ChannelSettings("position", "internal", 3),
    ChannelSettings("position", "border", 4),
    ChannelSettings("neighborhood", "internal", 2),
    ChannelSettings("neighborhood", "border", 3),
    ChannelSettings("structure", "internal", 2),
    ChannelSettings("structure", "border", 3),
)
SMALL = PrepareSettings(patch_length=5, walks=2, walk_length=4)


def random_graph(seed: int, nodes: int = 12, edges: int = 16) -> Graph:
    """A sparse random graph; it may be disconnected and have isolated nodes."""
    rng = np.random.default_rng(seed)
    pairs = {(int(min(u, v)), int(max(u, v))) for u, v in rng.integers(0, nodes, (edges, 2)) if u != v}
    tails, heads = zip(*sorted(pairs), strict=True)
    return Graph.from_edges(tails, heads, num_nodes=nodes)


def random_subgraphs(seed: int, nodes: int = 12, count: int = 5) -> Ragged:
    """Node sets of one to six nodes, and one that is the whole graph."""
    rng = np.random.default_rng(seed + 1000)
    rows = [np.sort(rng.choice(nodes, size=rng.integers(1, 7), replace=False)) for _ in range(count - 1)]
    return Ragged.from_rows([*rows, np.arange(nodes)])


def build_model(
    prepared: Prepared,
    *,
    dim: int = 4,
    outputs: int = 3,
    seed: int = 0,
    features: str = "none",
    num_known: int = 0,
    **settings: object,
) -> tuple[SubGNN, np.ndarray]:
    """A model in double precision, without dropout, over the touched nodes; components' learned states are random."""
    torch.manual_seed(seed)
    nodes = prepared.touched()
    table = torch.randn(len(nodes), dim)
    model = SubGNN(
        None if features == "instead" else table,
        nodes,
        channels=prepared.frame.channels,
        shared=prepared.frame.shared,
        settings=ModelSettings(**{"layers": prepared.frame.layers, "head": (6, 5), "dropout": 0.0} | settings),
        num_outputs=outputs,
        embeddings=EmbeddingSettings(dim=dim, features=features),
        features=None if features == "none" else torch.randn(len(nodes), 5),
        num_known=num_known,
    )
    if model.component_states is not None:
        torch.nn.init.normal_(model.component_states[1:])
    return model.double(), nodes


def prepare_example(seed: int = 0, *, layers: int = 2, channels=ALL_CHANNELS, settings=SMALL) -> tuple[Graph, Prepared]:
    """A random graph and all its prepared subgraphs."""
    graph = random_graph(seed)
    subgraphs = random_subgraphs(seed)
    return graph, prepare(graph, subgraphs, Plan(channels=channels, layers=layers, settings=settings, seed=seed))
