"""DENSITY: the label is a quantile of the density inside the subgraph, 2 |E_S| / (|S| (|S| - 1)).

A Barabasi-Albert graph; subgraphs by breadth-first search; then edges inside each are added or removed at random until
its density is the one wanted.

*Differs from the paper:* the targets are met exactly, for any two subgraphs share one node at most and no edge lies in
two of them. A node belongs to ten subgraphs at most, so that hubs are not in nearly all.
"""

from __future__ import annotations

from dataclasses import dataclass

from subgnn.data.synthetic.base_graphs import barabasi_albert
from subgnn.data.synthetic.edges import connect_parts, density_targets, set_internal_edges
from subgnn.data.synthetic.placement import Search, bfs_subgraphs
from subgnn.data.synthetic.recipe import Draft, Recipe, bin_names, check_counts, check_range, quantile_bins
from subgnn.kernels import shapes
from subgnn.rng import stream


@dataclass(frozen=True, slots=True)
class DensitySettings:
    """Sizes and targets of DENSITY; the defaults give the paper's tables.

    Args:
        num_nodes: nodes of the base graph.
        m: edges that each new node of the base graph adds.
        num_subgraphs, subgraph_size: how many subgraphs, of how many nodes.
        bins: classes.
        max_depth: hops of the breadth-first search.
        max_uses: how many subgraphs a node may belong to.
        min_density, max_density: targets are spread evenly between the two.
    """

    num_nodes: int = 5_000
    m: int = 5
    num_subgraphs: int = 250
    subgraph_size: int = 20
    bins: int = 3
    max_depth: int = 3
    max_uses: int = 10
    min_density: float = 0.005
    max_density: float = 0.43

    def __post_init__(self) -> None:
        check_counts(self.num_nodes, self.num_subgraphs, self.subgraph_size, self.bins)
        check_range(self.min_density, self.max_density, where="density", least=0.0, most=1.0)


def make_density(settings: DensitySettings, seed: int) -> Draft:
    """Draw a DENSITY graph and its subgraphs."""
    graph = barabasi_albert(settings.num_nodes, settings.m, stream(seed, "synthetic/density/base"))
    subgraphs = bfs_subgraphs(
        graph,
        settings.num_subgraphs,
        Search(settings.subgraph_size, settings.max_depth, settings.max_uses),
        stream(seed, "synthetic/density/subgraphs"),
    )
    targets = density_targets(
        settings.subgraph_size,
        settings.min_density,
        settings.max_density,
        count=settings.num_subgraphs,
        bins=settings.bins,
    )
    wanted = stream(seed, "synthetic/density/targets").permutation(targets)
    graph = set_internal_edges(graph, subgraphs, wanted, stream(seed, "synthetic/density/edges"))
    graph = connect_parts(graph, subgraphs, stream(seed, "synthetic/density/joins"))
    density = shapes(*graph.csr, subgraphs).density
    labels = bin_names(quantile_bins(density, settings.bins, where="density"))
    return Draft(graph, subgraphs, labels, {"density": density})


DENSITY = Recipe(
    "density",
    DensitySettings,
    make_density,
    "label: quantile bin of the density of the induced subgraph, 0 the lowest; subgraphs by breadth-first search",
)
