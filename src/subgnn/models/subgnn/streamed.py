"""Batches straight from prepared arrays, for tables of nodes too large to be looked at in every step.

A batch numbers the nodes it uses itself: those of shared anchors first, then its own, each once. Their vectors come
with the batch where they are frozen, and are looked up in the network's table where they are learned. So a step costs
what its batch holds, whatever the number of nodes; and prepared arrays may stay in a file, of which a batch reads the
rows it needs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from subgnn.models.subgnn.inputs import Batch, ChannelBatch, spans
from subgnn.prepare.measure import Prepared, SubchannelInputs

Lookup = Callable[[NDArray[np.int32]], NDArray[np.float32]]


class StreamedInputs:
    """Prepared subgraphs; :meth:`batch` reads some.

    Args:
        prepared: what :func:`~subgnn.prepare.measure.prepare` or ``extend`` gave.
        anchor_nodes: the nodes of shared anchors and walks, sorted, as the network has them.
        table: the nodes of the network's table, sorted; None where vectors come with the batch.
        vectors: gives the embeddings of nodes; None where they are in the network's table, or there are none.
        features: gives the standardised features of nodes.
        component_stats, subgraph_stats, known, baseline_scores: as for :class:`~subgnn.models.subgnn.inputs.Inputs`.
        draw: which draw of anchors this is.
    """

    def __init__(
        self,
        prepared: Prepared,
        anchor_nodes: NDArray[np.int32],
        *,
        table: NDArray[np.int32] | None = None,
        vectors: Lookup | None = None,
        features: Lookup | None = None,
        component_stats: NDArray[np.float32] | None = None,
        subgraph_stats: NDArray[np.float32] | None = None,
        known: NDArray[np.int64] | None = None,
        baseline_scores: NDArray[np.float32] | None = None,
        draw: int = 0,
    ) -> None:
        self.prepared, self.anchor_nodes, self.table = prepared, anchor_nodes, table
        self.vectors, self.features = vectors, features
        self.component_stats, self.subgraph_stats, self.known = component_stats, subgraph_stats, known
        self.baseline_scores = baseline_scores
        self.draw, self.device = draw, torch.device("cpu")
        self.first = np.concatenate([[0], np.cumsum(prepared.components.counts)])

    def __len__(self) -> int:
        return len(self.prepared.components.counts)

    def to(self, device: torch.device | str) -> Self:
        """Send batches to a device."""
        self.device = torch.device(device)
        return self

    def batch(self, rows: NDArray[np.int64]) -> Batch:
        """The chosen subgraphs, in the given order."""
        components, owner = spans(self.first, rows)
        nodes = self.prepared.components.nodes.take(components)
        numbers = _Numbers(self.anchor_nodes)
        numbers.note(nodes.values)
        channels = [[_read(inputs, components, numbers) for inputs in layer] for layer in self.prepared.inputs]
        numbers.close()
        return Batch(
            nodes=numbers.places(nodes.values),
            node_starts=torch.from_numpy(nodes.offsets[:-1]),
            sizes=torch.from_numpy(nodes.lengths),
            subgraph=torch.from_numpy(owner.astype(np.int64)),
            num_subgraphs=len(rows),
            channels=[[_channel(part, numbers) for part in layer] for layer in channels],
            component_stats=_rows(self.component_stats, components),
            subgraph_stats=_rows(self.subgraph_stats, rows),
            known=_rows(self.known, components),
            baseline_scores=_rows(self.baseline_scores, rows),
            draw=self.draw,
            rows=None if self.table is None else torch.from_numpy(np.searchsorted(self.table, numbers.all)),
            vectors=None if self.vectors is None else torch.from_numpy(self.vectors(numbers.all)),
            features=None if self.features is None else torch.from_numpy(self.features(numbers.all)),
        ).to(self.device)


class _Numbers:
    """The nodes of a batch, numbered from those of the shared anchors on."""

    def __init__(self, first: NDArray[np.int32]) -> None:
        self.all, self._first, self._noted = first, len(first), [np.empty(0, np.int32)]
        self._own = np.empty(0, np.int32)

    def note(self, nodes: NDArray[Any]) -> None:
        self._noted.append(np.asarray(nodes, np.int32).reshape(-1))

    def close(self) -> None:
        self._own = np.unique(np.concatenate(self._noted))
        self.all = np.concatenate([self.all, self._own])

    def places(self, nodes: NDArray[Any]) -> Tensor:
        return torch.from_numpy(np.searchsorted(self._own, nodes).astype(np.int64) + self._first)


_Part = tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.int32] | None]


def _read(inputs: SubchannelInputs, components: NDArray[np.int64], numbers: _Numbers) -> _Part:
    """Distances and reach of some components, and their own anchors, which are noted."""
    near, own = inputs.nearness, inputs.own
    distance, reached = np.asarray(near.distance[components]), np.asarray(near.reached[components])
    if own is None:
        return distance, reached, None
    nodes = np.asarray(own.nodes[components])
    absent = ~own.present[components]
    if absent.any():
        # A component without anchors has similarity 0 to whatever stands here: any node of the batch will do.
        nodes = np.where(absent[:, None], numbers._noted[1][0], nodes)
    numbers.note(nodes)
    return distance, reached, nodes


def _channel(part: _Part, numbers: _Numbers) -> ChannelBatch:
    distance, reached, own = part
    places = None if own is None else numbers.places(own)
    return ChannelBatch(torch.from_numpy(distance), torch.from_numpy(reached), places)


def _rows(values: NDArray[Any] | None, rows: NDArray[np.int64]) -> Tensor | None:
    return None if values is None else torch.from_numpy(values[rows])
