"""Outputs of a run from the workers of an engine, which open the run once and keep it.

Subgraphs are divided into pieces that are multiples of a batch, so that outputs are those of one process, byte for
byte. The workers get the checkpoint and the graph from here: they need no file of the run.
"""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from subgnn.data.graph import Graph
from subgnn.data.place_graph import place_graph
from subgnn.embeddings.sources import Tables
from subgnn.errors import UserError
from subgnn.inference.predictor import Predictor
from subgnn.models.interface import BATCH, FittedModel, LoadContext
from subgnn.models.registry import open_checkpoint
from subgnn.models.spec import Checkpoint
from subgnn.parallel.engine import Engine, Failure, Shared
from subgnn.ragged import Ragged

_PIECES_A_SLOT = 4  # so that one slow piece delays the end little

What = Literal["outputs", "vectors"]
Floats = NDArray[np.float32]


def pooled(predictor: Predictor, engine: Engine | None, *, bundle: Path | None = None) -> Predictor:
    """A predictor that computes with an engine, whose workers map ``bundle``, the unchanged file of the graph."""
    if engine is None or engine.slots == 1:
        return predictor
    graph = place_graph(engine, predictor.graph, source=bundle)
    model = engine.share((predictor.checkpoint, dict(predictor.tables)))
    found = copy(predictor)
    found.fitted = _PooledModel(engine, partial(_Piece, uuid4().hex, graph, model), predictor.fitted)
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _Piece:
    """Subgraphs, and what a worker opens: a checked checkpoint, with the node embeddings that it starts from."""

    key: str
    graph: Shared[Graph]
    model: Shared[tuple[Checkpoint, Tables]]
    number: int
    what: What
    nodes: Ragged


_opened: dict[str, FittedModel] = {}  # by the key of its pieces: what this worker has opened, at most one model


def _answer(piece: _Piece) -> Floats:
    if piece.key not in _opened:
        import torch

        torch.set_num_threads(1)
        checkpoint, tables = piece.model.get()
        _opened.clear()
        _opened[piece.key] = open_checkpoint(checkpoint, piece.graph.get(), LoadContext("cpu", tables, cache=True))
    answer: Floats = getattr(_opened[piece.key], piece.what)(piece.nodes)
    return answer


class _PooledModel(FittedModel):
    """A fitted model in each worker of an engine; ``here`` is the same in this process."""

    def __init__(self, engine: Engine, piece: Callable[..., _Piece], here: FittedModel) -> None:
        self._engine, self._piece, self._here = engine, piece, here
        self.thresholds = here.thresholds

    def outputs(self, subgraphs: Ragged) -> Floats:
        return self._answer("outputs", subgraphs)

    def vectors(self, subgraphs: Ragged) -> Floats:
        return self._answer("vectors", subgraphs)

    def _answer(self, what: What, subgraphs: Ragged) -> Floats:
        count = len(subgraphs)
        size = BATCH * max(1, -(-count // (_PIECES_A_SLOT * self._engine.slots * BATCH)))
        if count <= size:
            return getattr(self._here, what)(subgraphs)  # type: ignore[no-any-return]
        rows = [np.arange(begin, min(begin + size, count)) for begin in range(0, count, size)]
        pieces = [self._piece(i, what, subgraphs.take(part)) for i, part in enumerate(rows)]
        found: dict[int, Floats] = {}
        for piece, answer in self._engine.map(_answer, pieces):
            if isinstance(answer, Failure):
                if answer.error is None and not answer.details:  # a lost worker, which is no bug
                    hint = "use fewer processes, so that each has more memory"
                    raise UserError(answer.message, where="workers", hint=hint)
                answer.throw()
            found[piece.number] = answer
        return np.concatenate([found[i] for i in range(len(rows))])
