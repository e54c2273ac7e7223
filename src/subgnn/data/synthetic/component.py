"""COMPONENT: the label is whether the subgraph has a single component or multiple ones.

A Barabasi-Albert tree; small Barabasi-Albert graphs, the components, are stapled to it or to an earlier subgraph. Their
number follows the authors, who draw it from 1, 1, 1, 1, 5, 6, 7, 8, 9, 10: the classes are not equal in size.

*Differs from the paper:* each number of that list occurs equally often, rather than by chance. Two thirds of the
staples lead to an earlier subgraph, which gives about the mean and the spread of the paper's cut ratios.
"""

from dataclasses import dataclass

import numpy as np

from subgnn.data.synthetic import graphs
from subgnn.data.values import MAX_NODES
from subgnn.kernels.induced import induced_components
from subgnn.ragged import Ragged
from subgnn.rng import stream

_SINGLE = 0.4  # the share of subgraphs with one component; others have as many as in _SEVERAL
_SEVERAL = np.arange(5, 11)
_SIZE = 15  # nodes of a component
_NEW_EDGES = np.arange(1, 6)  # that a new node adds to a component, spread evenly over components
_CHAINED = 0.65  # the share of staples that lead to an earlier subgraph


@dataclass(frozen=True, slots=True)
class ComponentSettings:
    """Sizes of COMPONENT; the defaults give the paper's tables."""

    num_nodes: int = 1_000
    num_subgraphs: int = 250

    def __post_init__(self) -> None:
        graphs.check_subgraphs(self.num_subgraphs, 2)
        largest = self.num_nodes + self.num_subgraphs * int(_SEVERAL[-1]) * _SIZE
        what, hint = f"up to {largest:,} nodes", f"at most {MAX_NODES:,}"
        graphs.require(largest <= MAX_NODES, what, where="num_subgraphs", hint=hint)


def make_component(settings: ComponentSettings, seed: int) -> graphs.Draft:
    """Draw a COMPONENT graph and its subgraphs."""
    base = graphs.barabasi_albert(settings.num_nodes, 1, stream(seed, "synthetic/component/base"))
    draws = stream(seed, "synthetic/component/counts")
    single = min(max(round(_SINGLE * settings.num_subgraphs), 1), settings.num_subgraphs - 1)
    several = draws.permutation(np.resize(_SEVERAL, settings.num_subgraphs - single))
    counts = draws.permutation(np.concatenate([np.ones(single, np.int64), several]))
    total, size = int(counts.sum()), _SIZE
    grow = stream(seed, "synthetic/component/pieces")
    ms = grow.permutation(np.resize(_NEW_EDGES, total)).tolist()
    offsets, tails, heads = graphs.end_to_end((size, *graphs.barabasi_albert_edges(size, m, grow)) for m in ms)
    draws = stream(seed, "synthetic/component/staples")
    starts = np.repeat(size * (np.cumsum(counts) - counts), counts)  # stapled nodes before the subgraph of a component
    earlier = (draws.random(total) < _CHAINED) & (starts > 0)
    place = draws.random(total)
    begin, room = np.where(earlier, base.num_nodes, 0), np.where(earlier, starts, base.num_nodes)
    targets = begin + (place * room).astype(np.int64)
    # STAPLE: the small graphs are new nodes; an edge leads from a target to a random node of each.
    contacts, n = draws.integers(size, size=total), base.num_nodes
    tails = np.concatenate([n + tails, targets])
    heads = np.concatenate([n + heads, n + offsets[:-1] + contacts])
    graph = graphs.with_edges(base, tails, heads, more_nodes=int(offsets[-1]))
    subgraphs = Ragged.from_lengths(np.arange(base.num_nodes, graph.num_nodes, dtype=np.int32), size * counts)
    components = induced_components(*graph.csr, subgraphs).counts
    labels = ["single" if c == 1 else "multiple" for c in components.tolist()]
    return graphs.Draft(graph, subgraphs, labels, {"components": components})
