"""Prepared subgraphs as tensors, and batches of them.

Nodes are numbered by their place in a compact table of touched nodes, so nothing here grows with N.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from subgnn.prepare import Prepared


@dataclass(frozen=True, slots=True, eq=False)
class ChannelBatch:
    """One layer of one subchannel, for the components of a batch.

    Shapes:
        distance, reached: (C, n_A). own: (C, n_A) int64 places in the table, or None where anchors are shared.
    """

    distance: Tensor
    reached: Tensor
    own: Tensor | None

    def take(self, rows: Tensor) -> ChannelBatch:
        """The chosen components."""
        return ChannelBatch(self.distance[rows], self.reached[rows], None if self.own is None else self.own[rows])


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Subgraphs, their components, and what each subchannel sees of them.

    Shapes:
        nodes: (component nodes,) int64 places in the table. node_starts: (C,) int64, where each component begins.
        sizes: (C,) nodes of each component. subgraph: (C,) int64. num_subgraphs: n.
        channels: [layer][channel]. component_stats: (C, F) or None. subgraph_stats: (n, F') or None.
    """

    nodes: Tensor
    node_starts: Tensor
    sizes: Tensor
    subgraph: Tensor
    num_subgraphs: int
    channels: list[list[ChannelBatch]]
    component_stats: Tensor | None = None
    subgraph_stats: Tensor | None = None

    def to(self, device: torch.device | str) -> Batch:
        """The same batch on a device."""
        moved: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self)}
        for name, value in moved.items():
            if isinstance(value, Tensor):
                moved[name] = value.to(device)
        moved["channels"] = [
            [
                ChannelBatch(c.distance.to(device), c.reached.to(device), None if c.own is None else c.own.to(device))
                for c in layer
            ]
            for layer in self.channels
        ]
        return Batch(**moved)


class Inputs:
    """All prepared subgraphs as tensors; :meth:`batch` picks some.

    Args:
        prepared: what :func:`~subgnn.prepare.prepare` or ``extend`` gave.
        table: the nodes that have an embedding, sorted; all that are touched must be among them.
        component_stats, subgraph_stats: statistics for the topology channel.
    """

    def __init__(
        self,
        prepared: Prepared,
        table: NDArray[np.int32],
        *,
        component_stats: NDArray[np.float32] | None = None,
        subgraph_stats: NDArray[np.float32] | None = None,
    ) -> None:
        components = prepared.components
        places = _places(components.nodes.values, table)
        self.first = torch.from_numpy(np.concatenate([[0], np.cumsum(components.counts)]))
        self.node_first = torch.from_numpy(np.array(components.nodes.offsets))
        self.whole = Batch(
            nodes=places,
            node_starts=self.node_first[:-1],
            sizes=torch.from_numpy(components.nodes.lengths),
            subgraph=torch.from_numpy(components.subgraph),
            num_subgraphs=len(components.counts),
            channels=[[_channel(inputs, table) for inputs in layer] for layer in prepared.inputs],
            component_stats=None if component_stats is None else torch.from_numpy(component_stats),
            subgraph_stats=None if subgraph_stats is None else torch.from_numpy(subgraph_stats),
        )

    def __len__(self) -> int:
        return self.whole.num_subgraphs

    @property
    def device(self) -> torch.device:
        """Where the tensors are."""
        return self.whole.nodes.device

    def to(self, device: torch.device | str) -> Inputs:
        """Move all tensors to a device, in place."""
        self.whole = self.whole.to(device)
        self.first, self.node_first = self.first.to(device), self.node_first.to(device)
        return self

    def batch(self, rows: Tensor) -> Batch:
        """The chosen subgraphs, in the given order."""
        whole = self.whole
        components, owner = spans(self.first, rows)
        node_places, _ = spans(self.node_first, components)
        sizes = whole.sizes[components]
        return Batch(
            nodes=whole.nodes[node_places],
            node_starts=torch.cumsum(sizes, 0) - sizes,
            sizes=sizes,
            subgraph=owner,
            num_subgraphs=len(rows),
            channels=[[channel.take(components) for channel in layer] for layer in whole.channels],
            component_stats=None if whole.component_stats is None else whole.component_stats[components],
            subgraph_stats=None if whole.subgraph_stats is None else whole.subgraph_stats[rows],
        )


def _places(nodes: NDArray[Any], table: NDArray[np.int32]) -> Tensor:
    return torch.from_numpy(np.searchsorted(table, nodes).astype(np.int64))


def _channel(inputs: Any, table: NDArray[np.int32]) -> ChannelBatch:
    own = None
    if inputs.own is not None:
        # A component without anchors has similarity 0 to whatever stands here: place 0 will do.
        own = _places(np.where(inputs.own.present[:, None], inputs.own.nodes, table[0]), table)
    return ChannelBatch(torch.from_numpy(inputs.nearness.distance), torch.from_numpy(inputs.nearness.reached), own)


def spans(first: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """All items of the chosen rows of a ragged layout, and for each the place of its row in ``rows``."""
    begin, lengths = first[rows], first[rows + 1] - first[rows]
    owner = torch.repeat_interleave(torch.arange(len(rows), device=rows.device), lengths)
    ends = torch.cumsum(lengths, 0)
    within = torch.arange(len(owner), device=rows.device) - (ends - lengths)[owner]
    return begin[owner] + within, owner
