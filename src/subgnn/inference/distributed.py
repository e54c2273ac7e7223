"""Predict with a trained network on the workers of an engine.

Subgraphs are measured in parts (:mod:`subgnn.prepare.distributed`); then each worker computes whole batches, the same
ones as on one machine, so that every sum adds the same numbers in the same order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from subgnn.channels.channel import each_array
from subgnn.data.graph import Graph
from subgnn.kernels import Components
from subgnn.models.subgnn import SubGNN
from subgnn.models.subgnn.network import Network
from subgnn.parallel.engine import Engine, Failure, Shared
from subgnn.prepare.distributed import place_graph, spread_over
from subgnn.prepare.measure import Measuring, Prepared
from subgnn.ragged import Ragged


@dataclass(frozen=True, slots=True, eq=False)
class _Batch:
    """Subgraphs that are computed together, and the position of this batch among all."""

    network: Shared[tuple[Network, Shared[Graph]]]
    position: int
    subgraphs: Ragged
    draws: list[Prepared]


class Workers:
    """Workers of an engine that measure subgraphs of one graph and predict them.

    Args:
        graph: undirected.
        source: the file it was read from, as for :func:`~subgnn.prepare.distributed.place_graph`.
    """

    def __init__(self, engine: Engine, graph: Graph, *, source: Path | None = None) -> None:
        self._engine = engine
        self._graph = place_graph(engine, graph, source=source)
        self.measure: Measuring = spread_over(engine, self._graph)

    def outputs(self, network: Network, subgraphs: Ragged, draws: list[Prepared], *, size: int) -> list[torch.Tensor]:
        """Outputs of the network for prepared subgraphs, for each draw of anchors.

        Args:
            size: subgraphs in a batch.

        Shapes:
            returns: for each draw (n, outputs), or (n, width) for vectors.
        """
        shared = self._engine.share((network, self._graph))
        cuts = [(i, min(i + size, len(subgraphs))) for i in range(0, max(1, len(subgraphs)), size)]
        jobs = [
            _Batch(shared, position, subgraphs.take(np.arange(*cut)), [_rows(draw, *cut) for draw in draws])
            for position, cut in enumerate(cuts)
        ]
        found: list[list[NDArray[np.float32]]] = [[] for _ in jobs]
        for job, result in self._engine.map(_batch_outputs, jobs):
            if isinstance(result, Failure):
                result.throw()
            found[job.position] = result
        return [torch.cat([torch.from_numpy(np.array(of[draw])) for of in found]) for draw in range(len(draws))]


@torch.no_grad()
def _batch_outputs(batch: _Batch) -> list[NDArray[np.float32]]:
    """Outputs for one batch, for each draw; called in a worker."""
    model, network, graph = _built(batch.network)
    method = getattr(model, network.method)
    rows = np.arange(len(batch.subgraphs))
    return [method(draw.batch(rows)).numpy() for draw in network.inputs(graph, batch.subgraphs, batch.draws)]


@lru_cache(maxsize=1)
def _built(shared: Shared[tuple[Network, Shared[Graph]]]) -> tuple[SubGNN, Network, Graph]:
    """The network, built once: the next batch of a worker is often for the same one."""
    network, placed = shared.get()
    graph = placed.get()
    return network.model(graph), network, graph


def _rows(prepared: Prepared, begin: int, end: int) -> Prepared:
    """The subgraphs from begin up to end."""
    components = prepared.components
    first, last = (int(at) for at in np.searchsorted(components.subgraph, [begin, end]))
    some = slice(first, last)
    return replace(
        prepared,
        components=Components(
            components.nodes.take(np.arange(first, last)),
            components.subgraph[some] - begin,
            components.counts[begin:end],
        ),
        inputs=each_array(lambda array: array[some], prepared.inputs),
    )
