"""The position channel: how far a component is from anchors (paper, section 4.2).

Border: anchors are nodes drawn uniformly from the graph, the same for all subgraphs. Internal: they are drawn from the
nodes of the component's subgraph.
"""

import numpy as np

from subgnn.channels.channel import Channel, NodeAnchors, OwnAnchors, SharedAnchors, Work
from subgnn.kernels.draws import node_set_keys, sample_members
from subgnn.kernels.induced import Components
from subgnn.ragged import Ragged
from subgnn.rng import stream


def sample_graph(work: Work) -> list[SharedAnchors]:
    """Uniform nodes of the graph."""
    names = (f"anchors/{work.channel.kind}/{layer}" for layer in range(work.layers))
    draws = (stream(work.seed, name).integers(0, work.graph.num_nodes, work.channel.num_anchors) for name in names)
    return [NodeAnchors(nodes.astype(np.int32)) for nodes in draws]


def sample_subgraphs(work: Work, subgraphs: Ragged, components: Components) -> list[OwnAnchors]:
    """Uniform nodes of each component's subgraph; all components of a subgraph have the same."""
    keys = node_set_keys(work.key(f"anchors/{work.channel.name}"), subgraphs)
    drawn = sample_members(subgraphs, draws=work.layers * work.channel.num_anchors, key=keys)
    return work.own_anchors(drawn[components.subgraph])


SIDES = {
    "internal": Channel(similarity="hops", anchors=OwnAnchors, sample=sample_subgraphs),
    "border": Channel(similarity="hops", anchors=NodeAnchors, sample=sample_graph),
}
