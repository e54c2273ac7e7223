"""The structure channel: how a component is shaped, seen from patches of the graph (paper, section 4.2).

Patches are the nodes of triangular walks over the graph, the same for all subgraphs and for both sides of a layer.
Walks over a patch, inside it or between it and its border, go through an LSTM to become its vector.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from subgnn.channels.channel import Channel, PatchAnchors, SharedAnchors, Work
from subgnn.kernels import border_walks, graph_walks, inside_walks, node_set_keys
from subgnn.ragged import Ragged


def sample_inside(work: Work) -> list[SharedAnchors]:
    """Patches, and walks inside each."""
    return _sample(work, inside_walks)


def sample_border(work: Work) -> list[SharedAnchors]:
    """Patches, and walks between each and its border."""
    return _sample(work, partial(border_walks, hops=work.settings.hops))


def _sample(work: Work, walk: Callable[..., Ragged]) -> list[SharedAnchors]:
    csr, settings = work.graph.csr, work.settings
    found: list[SharedAnchors] = []
    for layer in range(work.layers):
        key = work.key(f"anchors/{work.channel.kind}/{layer}")
        rows = graph_walks(
            *csr, walks=work.channel.num_anchors, length=settings.patch_length, beta=settings.beta, key=key
        )
        patches = Ragged.from_rows([np.unique(row) for row in rows])
        keys = node_set_keys(work.key(f"walks/{work.channel.name}/{layer}"), patches)
        walks = walk(*csr, patches, walks=settings.walks, length=settings.walk_length, beta=settings.beta, key=keys)
        found.append(PatchAnchors(patches, walks))
    return found


SIDES = {
    "internal": Channel(similarity="warping", sample_shared=sample_inside, patches=True),
    "border": Channel(similarity="warping", sample_shared=sample_border, patches=True),
}
