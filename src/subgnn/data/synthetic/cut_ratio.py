"""CUT RATIO: the label is a quantile of the share of possible edges to the rest that exist, |B_S| / (|S| |V - S|).

A Barabasi-Albert graph; complete graphs, thinned a little, are planted on random nodes around an edge; then edges from
planted nodes to nodes outside are added until every subgraph has the cut ratio wanted.

*Differs from the paper:* the targets are met exactly. They are assigned in the order of the cut ratios that planting
alone gives, since edges are added and never removed; nothing is planted on hubs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from subgnn.data.graph import Graph
from subgnn.data.synthetic.base_graphs import barabasi_albert, complete_graphs
from subgnn.data.synthetic.edges import add_border_edges
from subgnn.data.synthetic.placement import plant, planting_nodes
from subgnn.data.synthetic.recipe import (
    Draft,
    Recipe,
    bin_names,
    check_counts,
    check_range,
    quantile_bins,
    spread_targets,
)
from subgnn.errors import DataError
from subgnn.kernels import shapes
from subgnn.kernels.arrays import Array
from subgnn.ragged import Ragged
from subgnn.rng import stream

_PAPER_OUTSIDE = 4_980  # nodes outside a subgraph of the paper's graph
_PLANTINGS = 20  # how often the complete graphs are planted anew where their cut ratios come out too high
_HUB_SHARE = 5  # nothing is planted on a node with more than a fifth of the edges that may leave a subgraph


@dataclass(frozen=True, slots=True)
class CutRatioSettings:
    """Sizes and targets of CUT RATIO; the defaults give the paper's tables.

    Args:
        num_nodes: nodes of the base graph.
        m: edges that each new node of the base graph adds.
        num_subgraphs, subgraph_size: how many subgraphs, of how many nodes.
        bins: classes.
        max_uses: how many subgraphs a node may belong to.
        min_density, max_density: what the complete graphs are thinned to, at random between the two.
        min_cut_ratio, max_cut_ratio: targets are spread evenly between the two; by default 0.0053 and 0.0091 at the
            paper's 5,000 nodes, and for other sizes what gives a node as many edges to the outside.
    """

    num_nodes: int = 5_000
    m: int = 5
    num_subgraphs: int = 250
    subgraph_size: int = 20
    bins: int = 3
    max_uses: int = 6
    min_density: float = 0.9
    max_density: float = 0.99
    min_cut_ratio: float | None = None
    max_cut_ratio: float | None = None

    def __post_init__(self) -> None:
        check_counts(self.num_nodes, self.num_subgraphs, self.subgraph_size, self.bins)
        check_range(*self.targets, where="cut ratio", least=0.0, most=1.0)

    @property
    def targets(self) -> tuple[float, float]:
        """The smallest and the largest cut ratio wanted."""
        scale = _PAPER_OUTSIDE / (self.num_nodes - self.subgraph_size)
        low = 0.0053 * scale if self.min_cut_ratio is None else self.min_cut_ratio
        high = 0.0091 * scale if self.max_cut_ratio is None else self.max_cut_ratio
        return low, high


def _planted(graph: Graph, settings: CutRatioSettings, targets: Array, seed: int) -> tuple[Graph, Ragged, Array]:
    """The graph with complete graphs planted on it, their nodes, and how many edges each lacks to its target."""
    nodes_rng, graphs_rng = stream(seed, "synthetic/cut-ratio/sites"), stream(seed, "synthetic/cut-ratio/planted")
    count, size = settings.num_subgraphs, settings.subgraph_size
    lowest = np.inf
    for _ in range(_PLANTINGS):
        limit = int(targets[-1]) // _HUB_SHARE
        nodes = planting_nodes(graph, count, size=size, rng=nodes_rng, max_uses=settings.max_uses, max_degree=limit)
        small = complete_graphs(
            count, size, graphs_rng, min_density=settings.min_density, max_density=settings.max_density
        )
        grown = plant(graph, small, nodes.reshape(-1))
        subgraphs = Ragged.from_lengths(np.sort(nodes, axis=1).reshape(-1), np.full(count, size))
        leaving = shapes(*grown.csr, subgraphs).cut_edges
        order = np.argsort(leaving, kind="stable")
        missing = np.empty(count, np.int64)
        missing[order] = targets - leaving[order]
        if (missing >= 0).all():
            return grown, subgraphs, missing
        lowest = min(lowest, float(np.max(leaving[order] - targets)))
    outside = size * (settings.num_nodes - size)
    low, high = (targets[0] + lowest) / outside, (targets[-1] + lowest) / outside
    what = f"planting alone gives cut ratios up to {lowest / outside:.5f} above the targets"
    hint = f"targets from {low:.5f} to {high:.5f} can be met, or fewer or smaller subgraphs on more nodes"
    raise DataError(what, where="cut ratio", hint=hint)


def make_cut_ratio(settings: CutRatioSettings, seed: int) -> Draft:
    """Draw a CUT RATIO graph and its subgraphs."""
    graph = barabasi_albert(settings.num_nodes, settings.m, stream(seed, "synthetic/cut-ratio/base"))
    outside = settings.subgraph_size * (settings.num_nodes - settings.subgraph_size)
    low, high = (round(target * outside) for target in settings.targets)
    targets = spread_targets(low, high, count=settings.num_subgraphs, bins=settings.bins, where="cut ratio")
    graph, subgraphs, missing = _planted(graph, settings, targets, seed)
    graph = add_border_edges(graph, subgraphs, missing, stream(seed, "synthetic/cut-ratio/edges"))
    cut_ratio = shapes(*graph.csr, subgraphs).cut_ratio
    labels = bin_names(quantile_bins(cut_ratio, settings.bins, where="cut ratio"))
    return Draft(graph, subgraphs, labels, {"cut_ratio": np.asarray(cut_ratio)})


CUT_RATIO = Recipe(
    "cut-ratio",
    CutRatioSettings,
    make_cut_ratio,
    "label: quantile bin of the cut ratio, 0 the lowest; subgraphs are nearly complete graphs, planted",
)
