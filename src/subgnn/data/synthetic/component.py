"""COMPONENT: the label is whether the subgraph has a single component or multiple ones.

A Barabasi-Albert tree; small Barabasi-Albert graphs, the components, are stapled to it or to an earlier subgraph. Their
number follows the authors, who draw it from 1, 1, 1, 1, 5, 6, 7, 8, 9, 10: the classes are not equal in size.

*Differs from the paper:* each number of that list occurs equally often, rather than by chance. Two thirds of the
staples lead to an earlier subgraph, which gives about the mean and the spread of the paper's cut ratios.
"""

from dataclasses import dataclass

import numpy as np

from subgnn.data.synthetic import graphs
from subgnn.data.synthetic.graphs import require
from subgnn.data.values import MAX_NODES
from subgnn.kernels.induced import induced_components
from subgnn.ragged import Ragged
from subgnn.rng import stream


@dataclass(frozen=True, slots=True)
class ComponentSettings:
    """Sizes of COMPONENT; the defaults give the paper's tables.

    ``single`` is the share of subgraphs with one component, and others have from ``min_components`` to
    ``max_components``; ``chained`` is the share of staples that lead to an earlier subgraph. A new node adds ``m``
    edges to the base graph, and from ``min_m`` to ``max_m`` in a component, spread evenly.
    """

    num_nodes: int = 1_000
    m: int = 1
    num_subgraphs: int = 250
    single: float = 0.4
    component_size: int = 15
    min_components: int = 5
    max_components: int = 10
    min_m: int = 1
    max_m: int = 5
    chained: float = 0.65

    def __post_init__(self) -> None:
        graphs.check_subgraphs(self.num_subgraphs, 2)
        require(0 < self.single < 1, f"single is {self.single}", where="single", hint="between 0 and 1 is accepted")
        what, hint = f"{self.min_components} to {self.max_components} components", "at least 2, and an ascending range"
        require(2 <= self.min_components <= self.max_components, what, where="components", hint=hint)
        what = f"m from {self.min_m} to {self.max_m} for components of {self.component_size} nodes"
        hint = f"an ascending range within 1 to {self.component_size - 1} is accepted"
        require(1 <= self.min_m <= self.max_m < self.component_size, what, where="m of the components", hint=hint)
        largest = self.num_nodes + self.num_subgraphs * self.max_components * self.component_size
        require(largest <= MAX_NODES, f"up to {largest:,} nodes", where="num_subgraphs", hint=f"at most {MAX_NODES:,}")
        require(0 <= self.chained <= 1, f"chained is {self.chained}", where="chained", hint="0 to 1 is accepted")


def make_component(settings: ComponentSettings, seed: int) -> graphs.Draft:
    """Draw a COMPONENT graph and its subgraphs."""
    base = graphs.barabasi_albert(settings.num_nodes, settings.m, stream(seed, "synthetic/component/base"))
    draws = stream(seed, "synthetic/component/counts")
    single = min(max(round(settings.single * settings.num_subgraphs), 1), settings.num_subgraphs - 1)
    numbers = np.arange(settings.min_components, settings.max_components + 1)
    several = draws.permutation(np.resize(numbers, settings.num_subgraphs - single))
    counts = draws.permutation(np.concatenate([np.ones(single, np.int64), several]))
    total, size = int(counts.sum()), settings.component_size
    grow = stream(seed, "synthetic/component/pieces")
    ms = grow.permutation(np.resize(np.arange(settings.min_m, settings.max_m + 1), total)).tolist()
    small = graphs.SmallGraphs.of((size, *graphs.barabasi_albert_edges(size, m, grow)) for m in ms)
    draws = stream(seed, "synthetic/component/staples")
    starts = np.repeat(size * (np.cumsum(counts) - counts), counts)  # stapled nodes before the subgraph of a component
    earlier = (draws.random(total) < settings.chained) & (starts > 0)
    place = draws.random(total)
    begin, room = np.where(earlier, base.num_nodes, 0), np.where(earlier, starts, base.num_nodes)
    targets = begin + (place * room).astype(np.int64)
    # STAPLE: the small graphs are new nodes; an edge leads from a target to a random node of each.
    contacts, n = draws.integers(size, size=total), base.num_nodes
    tails = np.concatenate([n + small.tails, targets])
    heads = np.concatenate([n + small.heads, n + small.offsets[:-1] + contacts])
    graph = graphs.with_edges(base, tails, heads, more_nodes=small.num_nodes)
    nodes = np.arange(base.num_nodes, graph.num_nodes, dtype=np.int32)
    subgraphs = Ragged.from_lengths(nodes, size * counts)
    components = induced_components(*graph.csr, subgraphs).counts
    labels = ["single" if c == 1 else "multiple" for c in components.tolist()]
    return graphs.Draft(graph, subgraphs, labels, {"components": components})
