"""Prepared subgraphs as tensors, and batches of them.

Nodes are numbered by their place in a compact table of touched nodes, so nothing here grows with N.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from subgnn.prepare.measure import Prepared


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
        known: (C,) int64 rows of the components' learned offsets, 0 for those that have none, or None.
        baseline_scores: (n, outputs) of the baseline that the network corrects, or None.
        draw: which draw of anchors the channels were measured against.
        spare: 1 where components beyond the subgraphs' own were added to fill fixed shapes; they belong to subgraph n.
        rows: (U,) int64, or None: the batch numbers its nodes itself, and these are their places in the table.
        vectors: (U, d), or None: embeddings of the nodes that the batch numbers, where the network has no table.
        features: (U, F), or None: features of the nodes that the batch numbers.
    """

    nodes: Tensor
    node_starts: Tensor
    sizes: Tensor
    subgraph: Tensor
    num_subgraphs: int
    channels: list[list[ChannelBatch]]
    component_stats: Tensor | None = None
    subgraph_stats: Tensor | None = None
    known: Tensor | None = None
    baseline_scores: Tensor | None = None
    draw: int = 0
    spare: int = 0
    rows: Tensor | None = None
    vectors: Tensor | None = None
    features: Tensor | None = None

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
        prepared: what :func:`~subgnn.prepare.measure.prepare` or ``extend`` gave.
        table: the nodes that have an embedding, sorted; all that are touched must be among them.
        component_stats, subgraph_stats: statistics for the topology channel.
        known: rows of the components' learned offsets, 0 for those that have none.
        baseline_scores: of the baseline that the network corrects.
    """

    def __init__(
        self,
        prepared: Prepared,
        table: NDArray[np.int32],
        *,
        component_stats: NDArray[np.float32] | None = None,
        subgraph_stats: NDArray[np.float32] | None = None,
        known: NDArray[np.int64] | None = None,
        baseline_scores: NDArray[np.float32] | None = None,
    ) -> None:
        components = prepared.components
        places = _places(components.nodes.values, table)
        self.first = np.concatenate([[0], np.cumsum(components.counts)])
        self.node_first = np.array(components.nodes.offsets)
        self.whole = Batch(
            nodes=places,
            node_starts=torch.from_numpy(self.node_first[:-1]),
            sizes=torch.from_numpy(components.nodes.lengths),
            subgraph=torch.from_numpy(components.subgraph),
            num_subgraphs=len(components.counts),
            channels=_channels(prepared, table),
            component_stats=None if component_stats is None else torch.from_numpy(component_stats),
            subgraph_stats=None if subgraph_stats is None else torch.from_numpy(subgraph_stats),
            known=None if known is None else torch.from_numpy(known),
            baseline_scores=None if baseline_scores is None else torch.from_numpy(baseline_scores),
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
        return self

    def redrawn(self, prepared: Prepared, table: NDArray[np.int32], *, draw: int) -> Inputs:
        """The same subgraphs, measured against another draw of anchors; all that does not depend on it is shared."""
        other = copy.copy(self)
        whole = replace(self.whole, channels=_channels(prepared, table), draw=draw)
        other.whole = whole.to(self.whole.nodes.device)
        return other

    def batch(self, rows: NDArray[np.int64]) -> Batch:
        """The chosen subgraphs, in the given order."""
        return self.pick(self.choose(rows).to(self.device))

    def choose(self, rows: NDArray[np.int64], room: Room | None = None) -> Choice:
        """Where the chosen subgraphs lie; with ``room``, filled up to fixed shapes."""
        components, owner = spans(self.first, rows)
        places, _ = spans(self.node_first, components)
        starts = np.concatenate([[0], np.cumsum(np.diff(self.node_first)[components])])[:-1]
        if room is not None:
            # The first added component holds all added nodes.
            filler = room.components - len(components)
            owner = np.concatenate([owner, np.full(filler, len(rows))])
            components = np.concatenate([components, np.zeros(filler, np.int64)])
            starts = np.concatenate([starts, [len(places)], np.full(filler - 1, room.nodes)])
            places = np.concatenate([places, np.zeros(room.nodes - len(places), np.int64)])
        parts = [np.asarray(part, np.int64) for part in (rows, components, owner, places, starts)]
        lengths = tuple(len(part) for part in parts)
        return Choice(torch.from_numpy(np.concatenate(parts)), lengths, spare=int(room is not None))

    def pick(self, choice: Choice) -> Batch:
        """The chosen subgraphs as tensors; shapes follow the choice's alone, and nothing waits for the device."""
        whole, (rows, components, owner, places, starts) = self.whole, choice.tensors
        return Batch(
            nodes=whole.nodes[places],
            node_starts=starts,
            sizes=whole.sizes[components],
            subgraph=owner,
            num_subgraphs=len(rows),
            channels=[[channel.take(components) for channel in layer] for layer in whole.channels],
            component_stats=None if whole.component_stats is None else whole.component_stats[components],
            subgraph_stats=None if whole.subgraph_stats is None else whole.subgraph_stats[rows],
            known=None if whole.known is None else whole.known[components],
            baseline_scores=None if whole.baseline_scores is None else whole.baseline_scores[rows],
            draw=whole.draw,
            spare=choice.spare,
        )

    def room(self, count: int) -> Room:
        """What any ``count`` subgraphs fit into, with one component to spare."""
        components = np.diff(self.first)
        nodes = np.diff(self.node_first[self.first])
        largest = (int(np.sort(sizes)[-count:].sum()) for sizes in (components, nodes))
        return Room(next(largest) + 1, next(largest))


@dataclass(frozen=True, slots=True)
class Room:
    """Fixed shapes: how many components and component nodes there is room for."""

    components: int
    nodes: int


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """Where the subgraphs of a batch lie in all of them.

    All in one tensor, so that one copy moves them.

    Shapes:
        tensors: rows (n,), components (C,), owner (C,), places (component nodes,), starts (C,).
    """

    joined: Tensor
    lengths: tuple[int, ...]
    spare: int

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """Rows, components, owner, places, starts."""
        return tuple(torch.split(self.joined, list(self.lengths)))

    @property
    def rows(self) -> Tensor:
        """(n,): which subgraphs."""
        return self.joined[: self.lengths[0]]

    def to(self, device: torch.device) -> Choice:
        """The same choice on a device."""
        return self if device.type == "cpu" else Choice(self._pinned().to(device), self.lengths, self.spare)

    def overwrite(self, other: Choice) -> None:
        """Put a choice of the same shapes, on the host, in place of this one."""
        self.joined.copy_(other._pinned(), non_blocking=True)

    def _pinned(self) -> Tensor:
        # A copy from pinned memory need not wait for what the device is doing.
        return self.joined.pin_memory() if torch.cuda.is_available() else self.joined


def _places(nodes: NDArray[Any], table: NDArray[np.int32]) -> Tensor:
    return torch.from_numpy(np.searchsorted(table, nodes).astype(np.int64))


def _channels(prepared: Prepared, table: NDArray[np.int32]) -> list[list[ChannelBatch]]:
    return [[_channel(inputs, table) for inputs in layer] for layer in prepared.inputs]


def _channel(inputs: Any, table: NDArray[np.int32]) -> ChannelBatch:
    own = None
    if inputs.own is not None:
        # A component without anchors has similarity 0 to whatever stands here: place 0 will do.
        own = _places(np.where(inputs.own.present[:, None], inputs.own.nodes, table[0]), table)
    return ChannelBatch(torch.from_numpy(inputs.nearness.distance), torch.from_numpy(inputs.nearness.reached), own)


def spans(first: NDArray[np.int64], rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """All items of the chosen rows of a ragged layout, and for each the place of its row in ``rows``."""
    lengths = first[rows + 1] - first[rows]
    owner = np.repeat(np.arange(len(rows)), lengths)
    within = np.arange(len(owner)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return first[rows][owner] + within, owner
