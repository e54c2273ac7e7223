"""Vectors of subgraphs without labels, in Python."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from subgnn.api.answers import as_asked, vector_frame
from subgnn.api.inputs import Settings, Subgraphs, as_graph, as_recipe
from subgnn.config.settings import Recipe
from subgnn.data.dataset import Dataset
from subgnn.data.formats.format import Unknown
from subgnn.inference.without_labels import fit_without_labels

if TYPE_CHECKING:
    import pandas as pd


def embed_subgraphs(
    graph: Any,
    subgraphs: Subgraphs,
    *,
    recipe: str | Path | Recipe = "unsupervised",
    settings: Settings = (),
    seed: int = 0,
    unknown: Unknown = "error",
) -> pd.DataFrame:
    """Vectors of subgraphs without labels: a row each, with the name of the subgraph as index.

    They are fitted to these subgraphs: for vectors of further ones that can be compared with them, keep the model with
    ``subgnn embed --model``, or :func:`~subgnn.api.train.train` the recipe.

    Args:
        graph: of this library or another one, a dataset, a table of edges, or the path of any of them.
        subgraphs: as for :class:`~subgnn.api.run.Run`.
        recipe: ``unsupervised`` or ``contrastive``, or a .toml file.
        settings: overrides, as ``{"vectors.width": 64}``.
        seed: of references and of training.
        unknown: what to do with nodes that are not in the graph.

    Raises:
        UserError: for a recipe whose vectors are learned from labels.

    Example:
        >>> import networkx as nx
        >>> embed_subgraphs(nx.karate_club_graph(), {"a": [0, 1, 2], "b": [32, 33]}).shape
        (2, 256)
    """
    chosen = as_recipe(recipe, settings)
    found = graph.graph if isinstance(graph, Dataset) else as_graph(graph, datasets=True)
    asked = as_asked(subgraphs, found, unknown)
    asked.refuse_empty()
    there = np.flatnonzero(asked.matched.nodes.lengths > 0)
    return vector_frame(fit_without_labels(found, asked.matched.nodes.take(there), chosen, seed=seed).predictor, asked)
