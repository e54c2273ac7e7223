"""Batches of prepared subgraphs as tensors.

Nodes are numbered by their place in a compact table of touched nodes, so memory does not grow with N. :class:`Inputs`
holds all subgraphs as tensors, and a batch picks rows of them. Tables that are too large to be looked at in every step
have :class:`StreamedInputs`, whose batches number their nodes themselves: those of shared anchors first, then their
own, each once. Frozen vectors come with the batch, and learned ones are looked up in the network's table. So a step
costs what its batch holds, and prepared arrays may stay in a file, of which a batch reads the rows it needs.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from subgnn.channels.channel import each_array
from subgnn.prepare.measure import Prepared, SubchannelInputs
from subgnn.ragged import Ragged

_CPU = torch.device("cpu")
_DEVIATIONS = 4.0  # one batch in some hundreds is larger
PaddedShape = tuple[int, int]
"""How many components and component nodes a batch is filled up to."""
Lookup = Callable[[NDArray[np.int32]], NDArray[np.float32]]


@dataclass(frozen=True, slots=True, eq=False)
class ChannelBatch:
    """One layer of one subchannel, for the components of a batch.

    Shapes:
        similarity: (C, n_A). own: (C, n_A) int64 places in the table, or None where anchors are shared.
    """

    similarity: Tensor
    own: Tensor | None


@dataclass(frozen=True, slots=True, eq=False)
class Beside:
    """What a network takes of components and subgraphs beside their anchors; None for what it does without.

    Shapes:
        component_stats: (C, F), subgraph_stats: (n, F'), for the topology channel. known: (C,) int64 rows of the
        components' learned offsets, 0 for those that have none. scores: (n, outputs) of the corrected baseline.
    """

    component_stats: Any = None
    subgraph_stats: Any = None
    known: Any = None
    scores: Any = None

    def pick(self, components: Any, rows: Any) -> "Beside":
        """Those of some components, and of the subgraphs that have them."""
        pairs = (self.component_stats, components), (self.subgraph_stats, rows), (self.known, components)
        return Beside(*(None if one is None else one[places] for one, places in (*pairs, (self.scores, rows))))


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Subgraphs, their components, and what each subchannel sees of them.

    Shapes:
        nodes: (component nodes,) int64 places in the table. node_starts: (C,) int64, where each component begins.
        sizes: (C,) nodes of each component. subgraph: (C,) int64. num_subgraphs: n.
        channels: [layer][channel].
        spare: 1 where further components were added to fill fixed shapes; they belong to subgraph n.
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
    beside: Beside = Beside()
    spare: int = 0
    rows: Tensor | None = None
    vectors: Tensor | None = None
    features: Tensor | None = None

    def to(self, device: torch.device | str) -> Self:
        return each_array(lambda tensor: tensor.to(device), self)


def make_batch(
    nodes: Ragged,
    subgraph: NDArray[np.int64],
    num_subgraphs: int,
    inputs: list[list[SubchannelInputs]],
    table: NDArray[np.int32],
    beside: Beside,
    *,
    first: int = 0,
    **extra: Any,
) -> Batch:
    """A batch of the given components; ``extra`` are further fields, as arrays.

    Places of nodes in the ``table``, which is sorted, are counted from ``first`` on.
    """
    every = len(table) > 0 and table[-1] == len(table) - 1  # as they are distinct

    def places(nodes: NDArray[Any]) -> Tensor:
        found = nodes if every else np.searchsorted(table, nodes)
        return torch.from_numpy(found.astype(np.int64) + first)

    def channel(inputs: SubchannelInputs) -> ChannelBatch:
        own, similarity = inputs.own, torch.from_numpy(inputs.similarity)
        if own is None:
            return ChannelBatch(similarity, None)
        # A component without anchors has similarity 0 to whatever stands here: any node will do.
        absent = ~own.present
        nodes = np.where(absent[:, None], table[0], own.nodes) if absent.any() else own.nodes
        return ChannelBatch(similarity, places(nodes))

    optional: dict[str, Any] = {name: torch.from_numpy(value) for name, value in extra.items() if value is not None}
    return Batch(
        nodes=places(nodes.values),
        node_starts=torch.from_numpy(nodes.offsets[:-1]),
        sizes=torch.from_numpy(nodes.lengths),
        subgraph=torch.from_numpy(subgraph),
        num_subgraphs=num_subgraphs,
        channels=[[channel(one) for one in layer] for layer in inputs],
        beside=each_array(torch.from_numpy, beside),
        **optional,
    )


class Inputs:
    """All prepared subgraphs as tensors, of which :meth:`batch` picks some.

    ``table`` has the nodes with an embedding, sorted; all that are touched must be among them.
    """

    def __init__(self, prepared: Prepared, table: NDArray[np.int32], beside: Beside | None = None) -> None:
        components = prepared.components
        offsets = np.array(components.nodes.offsets)
        self.members = Ragged(np.arange(len(components.nodes.values)), offsets)
        self.components = Ragged.from_lengths(np.arange(len(components.nodes)), components.counts)
        self.sizes = np.stack([components.counts, np.diff(offsets[self.components.offsets])])  # components, nodes
        self.shapes: dict[int, tuple[NDArray[np.int64], NDArray[np.int64]]] = {}
        nodes, count = Ragged(components.nodes.values, offsets), len(components.counts)
        self._hold(make_batch(nodes, components.subgraph, count, prepared.inputs, table, beside or Beside()))

    def _hold(self, whole: Batch) -> None:
        self.stacks = _Stacks(whole.channels)
        self.whole = replace(whole, channels=self.stacks.channels)

    def __len__(self) -> int:
        return self.whole.num_subgraphs

    @property
    def device(self) -> torch.device:
        return self.whole.nodes.device

    def to(self, device: torch.device | str) -> Self:
        if self.device != torch.device(device):
            self._hold(self.whole.to(device))
        return self

    def batch(self, rows: NDArray[np.int64]) -> Batch:
        return self.pick(self.positions(rows).to(self.device))

    def positions(self, rows: NDArray[np.int64], shape: PaddedShape | None = None) -> "BatchPositions":
        """Positions of the chosen subgraphs, filled up to a fixed shape if one is given."""
        chosen = self.components.take(rows)
        members = self.members.take(chosen.values)
        components, owner, places, starts = chosen.values, chosen.row_ids, members.values, members.offsets[:-1]
        if shape is not None:
            # The added components share the added nodes: a GPU adds up the nodes of a component one after the other.
            filler, added = shape[0] - len(components), shape[1] - len(places)
            owner = np.concatenate([owner, np.full(filler, len(rows))])
            components = np.concatenate([components, np.zeros(filler, np.int64)])
            starts = np.concatenate([starts, len(places) + added * np.arange(filler) // filler])
            places = np.concatenate([places, np.zeros(added, np.int64)])
        parts = [np.asarray(part, np.int64) for part in (rows, components, owner, places, starts)]
        lengths = tuple(len(part) for part in parts)
        return BatchPositions(torch.from_numpy(np.concatenate(parts)), lengths, spare=int(shape is not None))

    def pick(self, positions: "BatchPositions") -> Batch:
        """A batch as tensors, without waiting for the device; shapes follow from those of the positions alone."""
        whole, (rows, components, owner, places, starts) = self.whole, positions.tensors
        return Batch(
            nodes=whole.nodes[places],
            node_starts=starts,
            sizes=whole.sizes[components],
            subgraph=owner,
            num_subgraphs=len(rows),
            channels=self.stacks.pick(components),
            beside=whole.beside.pick(components, rows),
            spare=positions.spare,
        )

    def padded_shape(self, rows: NDArray[np.int64]) -> PaddedShape:
        """The shape for a batch of these subgraphs, one of two: that of most batches of as many, or of the largest.

        The first is four standard deviations above the mean, the second fits any. Both have one further component.
        """
        if len(rows) not in self.shapes:
            largest = np.sort(self.sizes)[:, -len(rows) :].sum(axis=1)
            spread = _DEVIATIONS * self.sizes.std(axis=1) * len(rows) ** 0.5
            usual = np.minimum((len(rows) * self.sizes.mean(axis=1) + spread).astype(np.int64), largest)
            self.shapes[len(rows)] = usual, largest
        usual, largest = self.shapes[len(rows)]
        total = self.sizes[:, rows].sum(axis=1)
        components, nodes = usual if (total <= usual).all() else np.maximum(largest, total)  # one may be there twice
        return int(components) + 1, int(nodes)


class _Stacks:
    """The arrays of channels, those of one shape in one tensor: on a GPU, one kernel picks rows of all of them.

    Shapes:
        tensors: (k, C, n_A) each. places: the tensor of each array, and its place there.
    """

    def __init__(self, channels: list[list[ChannelBatch]]) -> None:
        groups: dict[tuple[Any, ...], list[Tensor]] = {}
        self.places: list[tuple[int, int]] = []

        def enter(tensor: Tensor) -> Tensor:
            kind = (tensor.shape, tensor.dtype)
            groups.setdefault(kind, []).append(tensor)
            self.places.append((list(groups).index(kind), len(groups[kind]) - 1))
            return tensor

        self.channels = each_array(enter, channels)
        self.tensors = [torch.stack(group) for group in groups.values()]
        self.channels = self._views(self.tensors)

    def _views(self, tensors: Sequence[Sequence[Tensor] | Tensor]) -> list[list[ChannelBatch]]:
        places = iter(self.places)

        def view(_: Tensor) -> Tensor:
            i, j = next(places)
            return tensors[i][j]

        return each_array(view, self.channels)

    def pick(self, rows: Tensor) -> list[list[ChannelBatch]]:
        return self._views([tensor.index_select(1, rows).unbind() for tensor in self.tensors])


@dataclass(frozen=True, slots=True, eq=False)
class BatchPositions:
    """Positions of the subgraphs of a batch among all, in one tensor, so that one copy moves them.

    Shapes:
        tensors: rows (n,), components (C,), owner (C,), places (component nodes,), starts (C,).
    """

    joined: Tensor
    lengths: tuple[int, ...]
    spare: int

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        return tuple(torch.split(self.joined, list(self.lengths)))

    def to(self, device: torch.device) -> "BatchPositions":
        return self if device.type == "cpu" else BatchPositions(self._pinned().to(device), self.lengths, self.spare)

    def overwrite(self, other: "BatchPositions") -> None:
        """Put positions of the same shapes, on the host, in place of these."""
        self.joined.copy_(other._pinned(), non_blocking=True)

    def _pinned(self) -> Tensor:
        # A copy from pinned memory need not wait for what the device is doing.
        return self.joined.pin_memory() if torch.cuda.is_available() else self.joined


@dataclass(slots=True, eq=False)
class StreamedInputs:
    """Prepared subgraphs; :meth:`batch` reads some.

    Args:
        prepared, beside: as for :class:`Inputs`.
        anchor_nodes: the nodes of shared anchors and walks, sorted, as the network has them.
        table: the nodes of the network's table, sorted; None where vectors come with the batch.
        vectors: gives the embeddings of nodes; None where they are in the network's table, or there are none.
        features: gives the standardised features of nodes.
    """

    looks_up_rows: ClassVar[bool] = True
    prepared: Prepared
    anchor_nodes: NDArray[np.int32]
    table: NDArray[np.int32] | None = None
    vectors: Lookup | None = None
    features: Lookup | None = None
    beside: Beside = Beside()
    device: torch.device = _CPU

    def __len__(self) -> int:
        return len(self.prepared.components.counts)

    def to(self, device: torch.device | str) -> Self:
        self.device = torch.device(device)
        return self

    def batch(self, rows: NDArray[np.int64]) -> Batch:
        counts, nodes = self.prepared.components.counts, self.prepared.components.nodes
        chosen = Ragged.from_lengths(np.arange(len(nodes)), counts).take(rows)
        components, nodes = chosen.values, nodes.take(chosen.values)
        inputs = each_array(lambda array: array[components], self.prepared.inputs)
        anchors = [one.own.touched for layer in inputs for one in layer if one.own is not None]
        own = np.unique(np.concatenate([nodes.values, *anchors]))
        numbered = np.concatenate([self.anchor_nodes, own])
        batch = make_batch(
            nodes,
            chosen.row_ids,
            len(rows),
            inputs,
            own,
            self.beside.pick(components, rows),
            first=len(self.anchor_nodes),
            rows=None if self.table is None else np.searchsorted(self.table, numbered),
            vectors=None if self.vectors is None else self.vectors(numbered),
            features=None if self.features is None else self.features(numbered),
        )
        return batch.to(self.device)
