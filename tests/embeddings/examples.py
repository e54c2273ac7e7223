"""Graphs with something to learn, and settings that learn it in a second."""

import numpy as np

from subgnn import Graph
from subgnn.config.settings import PretrainSettings


def blocks(num_blocks: int = 6, size: int = 25, *, inside: float = 0.5, seed: int = 0, **parts: object) -> Graph:
    """A stochastic block model: edges are likely inside a block and rare between blocks; degrees say nothing."""
    rng = np.random.default_rng(seed)
    block = np.repeat(np.arange(num_blocks), size)
    tails, heads = np.triu_indices(len(block), k=1)
    likely = np.where(block[tails] == block[heads], inside, 0.01)
    kept = rng.random(len(tails)) < likely
    return Graph.from_edges(tails[kept], heads[kept], num_nodes=len(block), **parts)


def quick(**changes: object) -> PretrainSettings:
    """Few and small steps."""
    small = {"hidden": 32, "batch_size": 512, "steps": 5, "epochs": 20, "walk_length": 3}
    return PretrainSettings(**{**small, "lr": 0.02, **changes})
