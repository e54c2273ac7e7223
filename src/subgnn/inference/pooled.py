"""Outputs of a run from the workers of an engine, which open the run once and keep it.

Subgraphs are divided into pieces that are multiples of a batch, so that outputs are those of one process, byte for
byte. The workers get the checkpoint and the graph from here: they need no file of the run.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from subgnn.data.graph import Graph
from subgnn.data.place_graph import place_graph
from subgnn.embeddings.sources import Tables
from subgnn.inference.predictor import Predictor
from subgnn.models.interface import BATCH, FittedModel, LoadContext
from subgnn.models.registry import open_checkpoint
from subgnn.models.spec import Checkpoint
from subgnn.parallel.cluster import RayEngine
from subgnn.parallel.engine import LocalEngine, Pool, Shared
from subgnn.ragged import Ragged

_PIECES_A_SLOT = 4  # so that one slow piece delays the end little

Piece = tuple[Literal["outputs", "vectors"], Ragged]
Floats = NDArray[np.float32]


@contextmanager
def pooled(
    predictor: Predictor, engine: LocalEngine | RayEngine | None, *, bundle: Path | None = None
) -> Iterator[Predictor]:
    """A predictor whose outputs and vectors come from the engine's workers; without an engine, the predictor itself.

    Args:
        bundle: the file that the graph was read from, unchanged, which each worker then maps into memory.
    """
    if engine is None or engine.slots == 1:
        yield predictor
        return
    graph = place_graph(engine, predictor.graph, source=bundle)
    source = _Source(graph, engine.share((predictor.checkpoint, dict(predictor.tables))))
    with engine.pool(_open, source) as pool:
        found = copy(predictor)
        found.fitted = _PooledModel(pool, predictor.fitted, engine.slots)
        yield found


@dataclass(frozen=True, slots=True, eq=False)
class _Source:
    """What a worker opens: a checkpoint that was checked here, with the node embeddings that it starts from."""

    graph: Shared[Graph]
    model: Shared[tuple[Checkpoint, Tables]]


def _open(source: _Source) -> Callable[[Piece], Floats]:
    """Open the model in a worker, and return the function that answers a piece."""
    import torch

    torch.set_num_threads(1)
    checkpoint, tables = source.model.get()
    fitted = open_checkpoint(checkpoint, source.graph.get(), LoadContext("cpu", tables, cache=True))

    def answer(piece: Piece) -> Floats:
        what, nodes = piece
        return fitted.outputs(nodes) if what == "outputs" else fitted.vectors(nodes)

    return answer


class _PooledModel(FittedModel):
    """A fitted model in each worker of a pool; ``here`` is the same in this process."""

    def __init__(self, pool: Pool, here: FittedModel, slots: int) -> None:
        self._pool, self._here, self._slots = pool, here, slots
        self.thresholds = here.thresholds

    def outputs(self, subgraphs: Ragged) -> Floats:
        return self._answer("outputs", subgraphs)

    def vectors(self, subgraphs: Ragged) -> Floats:
        return self._answer("vectors", subgraphs)

    def _answer(self, what: Literal["outputs", "vectors"], subgraphs: Ragged) -> Floats:
        count = len(subgraphs)
        size = BATCH * max(1, -(-count // (_PIECES_A_SLOT * self._slots * BATCH)))
        if count <= size:
            return getattr(self._here, what)(subgraphs)  # type: ignore[no-any-return]
        rows = [np.arange(begin, min(begin + size, count)) for begin in range(0, count, size)]
        return np.concatenate(list(self._pool.map([(what, subgraphs.take(part)) for part in rows])))
