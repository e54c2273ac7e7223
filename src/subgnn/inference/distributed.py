"""Asking a trained network over the machines of a cluster.

Subgraphs are measured in parts (:mod:`subgnn.prepare.distributed`); then each worker answers for whole batches, the
same ones that one machine would make, so that every sum is of the same numbers in the same order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from subgnn.channels.anchors import OwnAnchors
from subgnn.channels.similarity import Nearness
from subgnn.data.graph import Graph
from subgnn.kernels import Components
from subgnn.models.subgnn import SubGNN
from subgnn.models.subgnn.network import Network
from subgnn.parallel.engine import Engine, Failure, Shared
from subgnn.prepare.distributed import place_graph, spread_over
from subgnn.prepare.measure import Measuring, Prepared, SubchannelInputs
from subgnn.ragged import Ragged


@dataclass(frozen=True, slots=True, eq=False)
class _Asked:
    """A network and its graph."""

    network: Network
    graph: Shared[Graph]


@dataclass(frozen=True, slots=True, eq=False)
class _Batch:
    """Subgraphs that are answered for together; place is that of the batch among all."""

    asked: Shared[_Asked]
    place: int
    subgraphs: Ragged
    draws: list[Prepared]


class Spread:
    """An engine's workers for one graph.

    Args:
        graph: undirected.
        source: where it was read from, as for :func:`~subgnn.prepare.distributed.place_graph`.
    """

    def __init__(self, engine: Engine, graph: Graph, *, source: Path | None = None) -> None:
        self._engine = engine
        self._graph = place_graph(engine, graph, source=source)
        self.measure: Measuring = spread_over(engine, self._graph)

    def answer(self, network: Network, subgraphs: Ragged, draws: list[Prepared], *, size: int) -> list[torch.Tensor]:
        """What the network answers for prepared subgraphs, for each draw of anchors.

        Args:
            size: subgraphs in a batch.

        Shapes:
            returns: for each draw (n, outputs), or (n, width) for vectors.
        """
        asked = self._engine.share(_Asked(network, self._graph))
        cuts = [(i, min(i + size, len(subgraphs))) for i in range(0, max(1, len(subgraphs)), size)]
        jobs = [
            _Batch(asked, place, subgraphs.take(np.arange(*cut)), [_rows(draw, *cut) for draw in draws])
            for place, cut in enumerate(cuts)
        ]
        found: list[list[NDArray[np.float32]]] = [[] for _ in jobs]
        for job, result in self._engine.map(_answer, jobs):
            if isinstance(result, Failure):
                result.throw()
            found[job.place] = result
        return [torch.cat([torch.from_numpy(np.array(of[draw])) for of in found]) for draw in range(len(draws))]


@torch.no_grad()
def _answer(batch: _Batch) -> list[NDArray[np.float32]]:
    """What a worker does: answers for one batch, for each draw."""
    model, network, graph = _opened(batch.asked)
    method = getattr(model, network.method)
    rows = np.arange(len(batch.subgraphs))
    return [method(draw.batch(rows)).numpy() for draw in network.inputs(graph, batch.subgraphs, batch.draws)]


@lru_cache(maxsize=1)
def _opened(asked: Shared[_Asked]) -> tuple[SubGNN, Network, Graph]:
    """A worker's next batch is often for the same network."""
    found = asked.get()
    graph = found.graph.get()
    return found.network.model(graph), found.network, graph


def _rows(prepared: Prepared, begin: int, end: int) -> Prepared:
    """Some of the subgraphs, one after the other."""
    components = prepared.components
    first, last = (int(at) for at in np.searchsorted(components.subgraph, [begin, end]))
    some = slice(first, last)

    def cut(inputs: SubchannelInputs) -> SubchannelInputs:
        near, own = inputs.nearness, inputs.own
        return SubchannelInputs(
            Nearness(near.distance[some], near.reached[some]),
            None if own is None else OwnAnchors(own.nodes[some], own.present[some]),
        )

    return replace(
        prepared,
        components=Components(
            components.nodes.take(np.arange(first, last)),
            components.subgraph[some] - begin,
            components.counts[begin:end],
        ),
        inputs=[[cut(inputs) for inputs in layer] for layer in prepared.inputs],
    )
