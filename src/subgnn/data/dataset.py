"""A dataset: a graph, its labelled subgraphs and a card that describes them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from subgnn.data.graph import Graph
from subgnn.data.subgraphs import SubgraphSet
from subgnn.errors import DataError


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """One base graph and subgraphs of it.

    ``card`` is the content of ``dataset.json``: name, source, licence, note and any other entries.
    """

    name: str
    graph: Graph
    subgraphs: SubgraphSet
    card: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        nodes = self.subgraphs.nodes.values
        if len(nodes) and int(nodes.max()) >= self.graph.num_nodes:
            raise DataError(
                f"node {int(nodes.max())} is not in the graph",
                where="subgraphs",
                hint=f"ids run 0..{self.graph.num_nodes - 1}",
            )
