"""Answers about subgraphs as data frames, and vectors of subgraphs without labels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from subgnn.api.inputs import Settings, Subgraphs, as_graph, as_members, as_recipe
from subgnn.config.settings import Recipe
from subgnn.data.dataset import Dataset
from subgnn.data.formats.format import ReadOptions, Unknown
from subgnn.data.graph import Graph
from subgnn.data.read_tables import match_nodes
from subgnn.inference.answers import AnswerTable, Query, vector_table
from subgnn.inference.open import fit_without_labels
from subgnn.inference.predictor import Predictor

if TYPE_CHECKING:
    import pandas as pd


def as_query(subgraphs: Subgraphs, graph: Graph, unknown: Unknown) -> Query:
    """Subgraphs in any form, as nodes of the graph."""
    members = as_members(subgraphs, graph, ReadOptions(unknown=unknown))
    matched = match_nodes(members, graph, unknown=unknown)
    matched.warn()
    return Query(members, matched, drops=unknown == "drop")


def answer_frame(table: AnswerTable) -> pd.DataFrame:
    """A table of answers as a data frame."""
    import pandas as pd

    parts = list(table.parts)
    columns = {column.title: [value for part in parts for value in part[i]] for i, column in enumerate(table.columns)}
    return pd.DataFrame(columns)


def vector_frame(predictor: Predictor, query: Query) -> pd.DataFrame:
    """Vectors of subgraphs: a row each, with the name of the subgraph as index."""
    import pandas as pd

    vectors = np.concatenate([np.asarray(part[1]) for part in vector_table(predictor, query).parts])
    return pd.DataFrame(vectors, index=pd.Index(list(query.members.names), name="subgraph"))


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
        recipe: ``unsupervised``, or a .toml file.
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
    query = as_query(subgraphs, found, unknown)
    query.refuse_empty()
    there = np.flatnonzero(query.matched.nodes.lengths > 0)
    return vector_frame(fit_without_labels(found, query.matched.nodes.take(there), chosen, seed=seed).predictor, query)
