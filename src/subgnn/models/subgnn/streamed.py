"""Batches of subgraphs that number their nodes themselves, for tables too large to be looked at in every step.

A batch numbers the nodes of shared anchors first, then its own, each once. Their vectors come with the batch where they
are frozen, and are looked up in the network's table where they are learned. So a step costs what its batch holds,
whatever the number of nodes; and prepared arrays may stay in a file, of which a batch reads the rows it needs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray

from subgnn.channels.channel import each_array
from subgnn.models.subgnn.batches import Batch, Places, make_batch, rows_of, spans
from subgnn.prepare.measure import Prepared

Lookup = Callable[[NDArray[np.int32]], NDArray[np.float32]]


class StreamedInputs:
    """Prepared subgraphs; :meth:`batch` reads some.

    Args:
        prepared: what :func:`~subgnn.prepare.measure.prepare` or ``extend`` gave.
        anchor_nodes: the nodes of shared anchors and walks, sorted, as the network has them.
        table: the nodes of the network's table, sorted; None where vectors come with the batch.
        vectors: gives the embeddings of nodes; None where they are in the network's table, or there are none.
        features: gives the standardised features of nodes.
        component_stats, subgraph_stats, known, baseline_scores: as for :class:`Inputs`.
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
        self.of_components = {"component_stats": component_stats, "known": known}
        self.of_subgraphs = {"subgraph_stats": subgraph_stats, "baseline_scores": baseline_scores}
        self.draw, self.device = draw, torch.device("cpu")
        self.first = np.concatenate([[0], np.cumsum(prepared.components.counts)])

    def __len__(self) -> int:
        return len(self.prepared.components.counts)

    def to(self, device: torch.device | str) -> Self:
        self.device = torch.device(device)
        return self

    def batch(self, rows: NDArray[np.int64]) -> Batch:
        components, owner = spans(self.first, rows)
        nodes = self.prepared.components.nodes.take(components)
        inputs = each_array(lambda array: array[components], self.prepared.inputs)
        anchors = [one.own.touched for layer in inputs for one in layer if one.own is not None]
        own = np.unique(np.concatenate([nodes.values, *anchors]))
        numbered = np.concatenate([self.anchor_nodes, own])
        batch = make_batch(
            nodes,
            owner.astype(np.int64),
            len(rows),
            inputs,
            Places(own, first=len(self.anchor_nodes)),
            **{name: rows_of(values, components) for name, values in self.of_components.items()},
            **{name: rows_of(values, rows) for name, values in self.of_subgraphs.items()},
            rows=None if self.table is None else np.searchsorted(self.table, numbered),
            vectors=None if self.vectors is None else self.vectors(numbered),
            features=None if self.features is None else self.features(numbered),
        )
        return replace(batch, draw=self.draw).to(self.device)
