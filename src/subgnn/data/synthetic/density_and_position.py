"""DENSITY AND POSITION: the label needs two properties at once, so no single channel can solve it.

Two Barabasi-Albert regions are joined by long bridges; the landmark is node 0, the oldest node of the first. Subgraphs
are found by breadth-first search inside a region. Any two share one node at most, so each can be set to a density of
its own. The label is 1 where exactly one of these holds: the density is in the upper half, the mean hop distance to the
landmark is in the upper half. Both labels occur equally often at either density and at either distance, so each
property alone is uninformative.

This task is not in the paper.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from subgnn.data.graph import Graph
from subgnn.data.synthetic.base_graphs import barabasi_albert_edges
from subgnn.data.synthetic.edges import connect_parts, set_internal_edges
from subgnn.data.synthetic.placement import Search, bfs_subgraphs_apart
from subgnn.data.synthetic.recipe import (
    Draft,
    Recipe,
    bin_names,
    check_counts,
    check_range,
    class_sizes,
    quantile_bins,
    require,
    spread_targets,
)
from subgnn.errors import DataError
from subgnn.kernels import hop_distances, shapes
from subgnn.kernels.arrays import Array
from subgnn.ragged import Ragged
from subgnn.rng import stream

LANDMARK = 0
_NEAR, _FAR, _BRIDGE = 0, 1, 2


@dataclass(frozen=True, slots=True)
class DensityAndPositionSettings:
    """Sizes and targets of DENSITY AND POSITION.

    Args:
        num_nodes: nodes of the graph, bridges included.
        m: edges that each new node of a region adds.
        num_subgraphs, subgraph_size: how many subgraphs, of how many nodes.
        max_depth: hops of the breadth-first search.
        max_uses: how many subgraphs a node may belong to.
        min_density, max_density: targets are spread evenly between the two.
        num_bridges, bridge_length: paths between the regions, and nodes on each.
    """

    num_nodes: int = 5_000
    m: int = 5
    num_subgraphs: int = 240
    subgraph_size: int = 20
    max_depth: int = 3
    max_uses: int = 10
    min_density: float = 0.005
    max_density: float = 0.43
    num_bridges: int = 4
    bridge_length: int = 8

    def __post_init__(self) -> None:
        check_counts(self.num_nodes, self.num_subgraphs, self.subgraph_size, 2)
        check_range(self.min_density, self.max_density, where="density", least=0.0, most=1.0)
        what = f"{self.num_bridges} bridges of {self.bridge_length} nodes"
        hint = "at least one bridge of one node is needed"
        require(self.num_bridges >= 1 and self.bridge_length >= 1, what, where="bridges", hint=hint)
        least = 2 * (self.subgraph_size + self.m + 1) + self.num_bridges * self.bridge_length
        require(self.num_nodes >= least, f"{self.num_nodes} nodes", where="num_nodes", hint=f"at least {least} needed")


def two_regions(settings: DensityAndPositionSettings, rng: np.random.Generator) -> tuple[Graph, Array]:
    """The base graph, and for each node whether it is in the first region, the second or on a bridge (0, 1, 2)."""
    spans = settings.num_bridges * settings.bridge_length
    near = (settings.num_nodes - spans) // 2
    far = settings.num_nodes - spans - near
    tails, heads = [], []
    for size, first in ((near, 0), (far, near)):
        region_tails, region_heads = barabasi_albert_edges(size, settings.m, rng)
        tails.append(region_tails.astype(np.int64) + first)
        heads.append(region_heads.astype(np.int64) + first)
    for b in range(settings.num_bridges):
        first = near + far + b * settings.bridge_length
        path = np.arange(first, first + settings.bridge_length)
        path = np.concatenate([[rng.integers(near)], path, [near + rng.integers(far)]])
        tails.append(path[:-1])
        heads.append(path[1:])
    regions = np.repeat([_NEAR, _FAR, _BRIDGE], [near, far, spans])
    graph = Graph.from_edges(np.concatenate(tails), np.concatenate(heads), num_nodes=settings.num_nodes)
    return graph, regions


def _search_regions(
    graph: Graph, regions: Array, counts: Array, settings: DensityAndPositionSettings, rng: np.random.Generator
) -> Ragged:
    """Subgraphs of the first region, then those of the second."""
    search = Search(settings.subgraph_size, settings.max_depth, settings.max_uses)
    found = [
        bfs_subgraphs_apart(graph, int(count), search, rng, within=regions == region)
        for region, count in zip((_NEAR, _FAR), counts, strict=True)
    ]
    return Ragged.from_rows([row for family in found for row in family])


def _wanted_edges(counts: Array, settings: DensityAndPositionSettings, rng: np.random.Generator) -> Array:
    """Edges inside each subgraph: the lower and the upper half of the targets, shared evenly by both regions."""
    pairs = settings.subgraph_size * (settings.subgraph_size - 1) // 2
    low, high = round(settings.min_density * pairs), round(settings.max_density * pairs)
    targets = spread_targets(low, high, count=settings.num_subgraphs, bins=2, where="density")
    lower, upper = np.split(targets, [int(class_sizes(len(targets), 2)[0])])
    lower, upper = rng.permutation(lower), rng.permutation(upper)
    few = int(counts[0]) // 2
    near = np.concatenate([lower[:few], upper[: int(counts[0]) - few]])
    far = np.concatenate([lower[few:], upper[int(counts[0]) - few :]])
    return np.concatenate([near, far])


def mean_distances(graph: Graph, subgraphs: Ragged) -> Array:
    """Mean hop distance of the nodes of each subgraph to the landmark."""
    hops = hop_distances(*graph.csr, np.array([LANDMARK]))[0].astype(np.float64)
    return np.bincount(subgraphs.row_ids, hops[subgraphs.values]) / subgraphs.lengths


def make_density_and_position(settings: DensityAndPositionSettings, seed: int) -> Draft:
    """Draw a DENSITY AND POSITION graph and its subgraphs."""
    name = "synthetic/density-and-position"
    graph, regions = two_regions(settings, stream(seed, f"{name}/base"))
    counts = class_sizes(settings.num_subgraphs, 2)
    subgraphs = _search_regions(graph, regions, counts, settings, stream(seed, f"{name}/subgraphs"))
    wanted = _wanted_edges(counts, settings, stream(seed, f"{name}/targets"))
    graph = set_internal_edges(graph, subgraphs, wanted, stream(seed, f"{name}/edges"))
    graph = connect_parts(graph, subgraphs, stream(seed, f"{name}/joins"), regions=regions)
    order = stream(seed, f"{name}/order").permutation(len(subgraphs))
    subgraphs = subgraphs.take(order)
    distance, density = mean_distances(graph, subgraphs), shapes(*graph.csr, subgraphs).density
    far, dense = quantile_bins(distance, 2, where="position"), quantile_bins(density, 2, where="density")
    if not np.array_equal(far, (order >= counts[0]).astype(np.int64)):
        what = "some subgraphs of the second region are as near the landmark as some of the first"
        hint = f"make the bridges longer than {settings.bridge_length} nodes"
        raise DataError(what, where="bridge_length", hint=hint)
    return Draft(graph, subgraphs, bin_names(far ^ dense), {"density": density, "mean_distance": distance})


DENSITY_AND_POSITION = Recipe(
    "density-and-position",
    DensityAndPositionSettings,
    make_density_and_position,
    "label: 1 where exactly one of density and mean hop distance to node 0 is in its upper half, else 0",
)
