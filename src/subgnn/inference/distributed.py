"""Predict over the machines of a cluster.

Subgraphs are measured in parts (:mod:`subgnn.prepare.distributed`); then each worker computes whole batches, the same
ones that one machine would make, so that every sum is of the same numbers in the same order.
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
from subgnn.models.subgnn.build import Measured
from subgnn.models.subgnn.fitted import PortableNetwork
from subgnn.parallel.engine import Engine, Failure, Shared
from subgnn.prepare.distributed import DistributedMeasuring, place_graph
from subgnn.prepare.measure import Measuring, Prepared


@dataclass(frozen=True, slots=True, eq=False)
class _Job:
    """A network, its graph, and the method of it that is computed."""

    network: PortableNetwork
    graph: Shared[Graph]
    what: str


@dataclass(frozen=True, slots=True, eq=False)
class _Batch:
    """Subgraphs of one batch; ``place`` is that of the batch among all."""

    job: Shared[_Job]
    place: int
    measured: Measured


class Workers:
    """Workers of an engine that measure subgraphs of one graph and predict them.

    Args:
        graph: undirected.
        source: where it was read from, as for :func:`~subgnn.prepare.distributed.place_graph`.
    """

    def __init__(self, engine: Engine, graph: Graph, *, source: Path | None = None) -> None:
        self._engine = engine
        self._graph = place_graph(engine, graph, source=source)
        self.measure: Measuring = DistributedMeasuring(engine, self._graph)

    def compute(self, network: PortableNetwork, what: str, measured: Measured, *, size: int) -> list[torch.Tensor]:
        """Results of a network for measured subgraphs, for each draw of anchors.

        Args:
            what: ``forward`` or ``embed``.
            size: subgraphs in a batch.

        Shapes:
            returns: for each draw (n, outputs), or (n, width) for vectors.
        """
        job = self._engine.share(_Job(network, self._graph, what))
        count = len(measured.subgraphs)
        cuts = [(i, min(i + size, count)) for i in range(0, max(1, count), size)]
        batches = [_Batch(job, place, _cut(measured, *cut)) for place, cut in enumerate(cuts)]
        found: list[list[NDArray[np.float32]]] = [[] for _ in batches]
        for batch, result in self._engine.map(_compute, batches):
            if isinstance(result, Failure):
                result.throw()
            found[batch.place] = result
        return [torch.cat([torch.from_numpy(np.array(of[d])) for of in found]) for d in range(len(measured.draws))]


@torch.no_grad()
def _compute(batch: _Batch) -> list[NDArray[np.float32]]:
    """Results for one batch, for each draw; this runs in a worker."""
    job, graph, network = _opened(batch.job)
    rows = np.arange(len(batch.measured.subgraphs))
    inputs = job.network.inputs(graph, batch.measured)
    return [getattr(network, job.what)(draw.batch(rows)).numpy() for draw in inputs]


@lru_cache(maxsize=1)
def _opened(shared: Shared[_Job]) -> tuple[_Job, Graph, SubGNN]:
    """A worker's next batch is often for the same network."""
    job = shared.get()
    graph = job.graph.get()
    return job, graph, job.network.build(graph)


def _cut(measured: Measured, begin: int, end: int) -> Measured:
    """Some of the subgraphs, one after the other."""
    scores = None if measured.scores is None else measured.scores[begin:end]
    draws = [_rows(draw, begin, end) for draw in measured.draws]
    return Measured(measured.subgraphs.take(np.arange(begin, end)), draws, scores)


def _rows(prepared: Prepared, begin: int, end: int) -> Prepared:
    """Some of the subgraphs, one after the other."""
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
