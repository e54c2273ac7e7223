"""The shared anchors of one draw as places in the node table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from subgnn.channels.anchors import NodeAnchors, PatchAnchors, SharedAnchors
from subgnn.models.subgnn.walks import Walks
from subgnn.ragged import Ragged


class AnchorPlaces(nn.Module):
    """Anchor nodes, and the walks over anchor patches, by layer and channel.

    Args:
        shared: for each layer and channel, its shared anchors, or None where anchors are a subgraph's own.
        table_nodes: the nodes of the table, sorted.
    """

    def __init__(self, shared: Sequence[Sequence[SharedAnchors | None]], table_nodes: NDArray[np.int32]) -> None:
        super().__init__()
        for layer, row in enumerate(shared):
            for channel, anchors in enumerate(row):
                if isinstance(anchors, NodeAnchors):
                    places = torch.from_numpy(_places(anchors.nodes, table_nodes))
                    self.register_buffer(f"nodes_{layer}_{channel}", places)
        self.walks = _all_walks(shared, table_nodes)

    def nodes(self, layer: int, channel: int) -> Tensor:
        """The places of a channel's anchor nodes.

        Shapes:
            returns: (n_A,) int64.
        """
        return self.get_buffer(f"nodes_{layer}_{channel}")


def _places(nodes: NDArray[np.int32], table_nodes: NDArray[np.int32]) -> NDArray[np.int64]:
    return np.searchsorted(table_nodes, nodes).astype(np.int64)


def _all_walks(shared: Sequence[Sequence[SharedAnchors | None]], table_nodes: NDArray[np.int32]) -> Walks | None:
    """The walks of all patches, in the order of layers and channels."""
    patches = [anchors for layer in shared for anchors in layer if isinstance(anchors, PatchAnchors)]
    if not patches:
        return None
    values = np.concatenate([anchors.walks.values for anchors in patches])
    lengths = np.concatenate([anchors.walks.lengths for anchors in patches])
    rows = Ragged.from_lengths(_places(values, table_nodes), lengths)
    return Walks(rows, len(patches[0].walks) // len(patches[0].patches))
