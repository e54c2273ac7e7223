"""The neighborhood channel: the nodes in a component and those around it (paper, section 4.2).

Internal: anchors are drawn from the component, with similarity 1. Border: they are drawn from the nodes within k hops
of it, and compared by hops; or they are the nodes of its 1-hop border with the largest weights, which are their
similarities.

*Differs from the paper:* there, border anchors are drawn uniformly, and their similarity is by distance.
"""

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from subgnn.channels.channel import Channel, NodeAnchors, OwnAnchors, PatchAnchors, Similarity, Work
from subgnn.errors import UserError
from subgnn.kernels.borders import BYTES_AN_EDGE, heaviest_borders, sample_borders
from subgnn.kernels.draws import node_set_keys, sample_members
from subgnn.kernels.induced import Components
from subgnn.parallel.memory import workers
from subgnn.ragged import Ragged

POWERS = 1.0, 0.25
"""Powers of the degrees in the weights of the heaviest border nodes (:mod:`subgnn.kernels.borders`)."""


def sample_components(work: Work, subgraphs: Ragged, components: Components) -> list[OwnAnchors]:
    """Uniform nodes of each component."""
    keys = node_set_keys(work.key(f"anchors/{work.channel.name}"), components.nodes)
    return work.own_anchors(sample_members(components.nodes, draws=work.layers * work.channel.num_anchors, key=keys))


def sample_border(work: Work, subgraphs: Ragged, components: Components) -> list[OwnAnchors]:
    """Nodes around each component: drawn uniformly, or the heaviest, which are the same in every layer."""
    rows, csr = components.nodes, work.graph.csr
    if work.settings.border_anchors == "heaviest":
        shape, threads = (len(rows), work.channel.num_anchors), int(numba.get_num_threads())
        nodes, weights = np.zeros(shape, np.int32), np.zeros(shape, np.float32)
        ends = np.append(0, np.cumsum(csr[0][rows.values + 1] - csr[0][rows.values]))
        at_once = workers(BYTES_AN_EDGE * int(np.diff(ends[rows.offsets]).max(initial=0)), threads)
        step, most = (256, None) if at_once == threads else (at_once, at_once)
        for part in work.pieces(len(rows), step=step, most=most, what="the heaviest of borders"):
            some = rows.take(np.arange(part.start, part.stop))
            nodes[part], weights[part] = heaviest_borders(*csr, some, most=shape[1], powers=POWERS)
        return [OwnAnchors(nodes, weights[:, 0] > 0, weights)] * work.layers
    hops, draws = work.settings.hops, work.layers * work.channel.num_anchors
    drawn, present = np.zeros((len(rows), draws), np.int32), np.zeros(len(rows), np.bool_)
    keys = node_set_keys(work.key(f"anchors/{work.channel.name}"), rows)
    # Borders of more hops are marked in an array of all nodes: there must be enough of them to be worth clearing it.
    step = 256 if hops == 1 else max(256, work.graph.num_nodes // 256)
    for part in work.pieces(len(rows), step=step, what="anchors at borders"):
        some = rows.take(np.arange(part.start, part.stop))
        found, sizes = sample_borders(*csr, some, hops=hops, draws=draws, key=keys[part])
        present[part] = sizes > 0
        drawn[part][sizes > 0] = found.values.reshape(-1, draws)
    return work.own_anchors(drawn, present)


SIDES = {
    "internal": Channel(similarity="constant", anchors=OwnAnchors, sample=sample_components, output="state"),
    "border": Channel(
        similarity=lambda settings: "hops" if settings.border_anchors == "drawn" else "weight",
        anchors=OwnAnchors,
        sample=sample_border,
        output="state",
    ),
}


def weight(work: Work, components: Ragged, anchors: list[OwnAnchors]) -> list[Any]:
    """The weights that anchors were sampled with."""
    if any(own.weights is None for own in anchors):
        hint = 'set prepare.border_anchors to "heaviest", or choose another similarity'
        raise UserError(f"the anchors of {work.channel.name} have no weights", where="channels.similarity", hint=hint)
    return [own.weights for own in anchors]


def constant(work: Work, components: Ragged, anchors: list[Any]) -> list[NDArray[np.float32]]:
    """1, as for nodes of the component itself (paper, section 4.2)."""
    return [np.ones((len(components), work.channel.num_anchors), np.float32)] * len(anchors)


WEIGHT = Similarity(measure={OwnAnchors: weight})
CONSTANT = Similarity(measure={NodeAnchors: constant, PatchAnchors: constant, OwnAnchors: constant})
