"""TYPE-PLANTED: only the types of edges carry the label.

There are two groups of hubs. Every other node has an edge to a random hub of each group, one of the type ``left`` and
one of the type ``right``. In a subgraph of class 0 the edges to the first group are of the type ``left``, in one of
class 1 those to the second; at the nodes of no subgraph, and for all other edges, types are drawn at random. Without
types the classes have one distribution, and nothing can tell them apart.

This task is not in the paper.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from subgnn.data.graph import Graph
from subgnn.data.synthetic.recipe import Draft, Recipe, bin_names, check_counts, class_sizes, require
from subgnn.ragged import Ragged
from subgnn.rng import stream

TYPES = ("left", "right")


@dataclass(frozen=True, slots=True)
class TypePlantedSettings:
    """Sizes of TYPE-PLANTED.

    Args:
        num_nodes: nodes of the graph, hubs included.
        num_subgraphs, subgraph_size: how many subgraphs, of how many nodes; no node is in two of them.
        num_hubs: hubs of each of the two groups.
        degree: mean number of further edges of a node, to random nodes.
    """

    num_nodes: int = 3_000
    num_subgraphs: int = 240
    subgraph_size: int = 10
    num_hubs: int = 10
    degree: float = 3.0

    def __post_init__(self) -> None:
        check_counts(self.num_nodes, self.num_subgraphs, self.subgraph_size, 2)
        require(self.num_hubs >= 1, f"{self.num_hubs} hubs", where="num_hubs", hint="at least 1 is needed")
        require(self.degree >= 0, f"degree {self.degree:g}", where="degree", hint="at least 0 is needed")
        least = 2 * self.num_hubs + self.num_subgraphs * self.subgraph_size
        require(self.num_nodes >= least, f"{self.num_nodes} nodes", where="num_nodes", hint=f"at least {least} needed")


def make_type_planted(settings: TypePlantedSettings, seed: int) -> Draft:
    """Draw a TYPE-PLANTED graph and its subgraphs."""
    name, n, hubs = "synthetic/type-planted", settings.num_nodes, settings.num_hubs
    others = np.arange(2 * hubs, n)
    count, size = settings.num_subgraphs, settings.subgraph_size
    members = stream(seed, f"{name}/subgraphs").permutation(others)[: count * size].reshape(count, size)
    label = stream(seed, f"{name}/labels").permutation(np.repeat([0, 1], class_sizes(count, 2)))
    rng = stream(seed, f"{name}/edges")
    swapped = rng.integers(2, size=n)  # whether a node's edge to the first group is of the second type
    swapped[members] = label[:, None]
    path = members[:, :-1].ravel(), members[:, 1:].ravel()
    more = rng.integers(2 * hubs, n, size=(2, round(settings.degree * len(others) / 2)))
    more = more[:, more[0] != more[1]]
    pairs = np.unique(np.sort(np.concatenate([path, more], axis=1), axis=0), axis=1)
    random_types = rng.integers(2, size=pairs.shape[1])
    graph = Graph.from_edges(
        np.concatenate([others, others, pairs[0]]),
        np.concatenate(
            [rng.integers(hubs, size=len(others)), rng.integers(hubs, 2 * hubs, size=len(others)), pairs[1]]
        ),
        num_nodes=n,
        types=np.array(TYPES)[np.concatenate([swapped[others], 1 - swapped[others], random_types])],
    )
    return Draft(graph, Ragged.from_rows(np.sort(members, axis=1)), bin_names(label), {"class": label})


TYPE_PLANTED = Recipe(
    "type-planted",
    TypePlantedSettings,
    make_type_planted,
    "label: the group of hubs, 0 or 1, to which the edges of a subgraph are of the type 'left'",
)
