"""Answers about subgraphs as data frames: what is asked for, in any form, and the tables of what is found."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from subgnn.api.inputs import Subgraphs, as_members
from subgnn.data.formats.format import ReadOptions, Unknown
from subgnn.data.graph import Graph
from subgnn.data.matching import match_nodes
from subgnn.inference.answers import AnswerTable, Asked, vector_table
from subgnn.inference.predictor import Predictor

if TYPE_CHECKING:
    import pandas as pd


def as_asked(subgraphs: Subgraphs, graph: Graph, unknown: Unknown) -> Asked:
    """Subgraphs in any form, as nodes of the graph."""
    members = as_members(subgraphs, graph, ReadOptions(unknown=unknown))
    matched = match_nodes(members, graph, unknown=unknown)
    matched.warn()
    return Asked(members, matched, drops=unknown == "drop")


def answer_frame(table: AnswerTable) -> pd.DataFrame:
    """A table of answers as a data frame."""
    import pandas as pd

    parts = list(table.parts)
    columns = {column.title: [value for part in parts for value in part[i]] for i, column in enumerate(table.columns)}
    return pd.DataFrame(columns)


def vector_frame(predictor: Predictor, asked: Asked) -> pd.DataFrame:
    """Vectors of subgraphs: a row each, with the name of the subgraph as index."""
    import pandas as pd

    vectors = np.concatenate([np.asarray(part[1]) for part in vector_table(predictor, asked).parts])
    return pd.DataFrame(vectors, index=pd.Index(list(asked.members.names), name="subgraph"))
