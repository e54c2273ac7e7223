"""A predictor that looks at its budget, and answers large questions a portion at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from subgnn.data.graph import Graph
from subgnn.inference.predictor import Predictor
from subgnn.models.checkpoint import Checkpoint
from subgnn.models.subgnn.inference_cache import Measured
from subgnn.ragged import Ragged
from subgnn.serve.budget import check

_PORTION = 2_000  # nodes, a subgraph counted as at least ten of them
_LEAST = 10
_KEEP_NUMBERS = 2**28  # a gigabyte: a server answers about all of the graph


def portions(subgraphs: Ragged, most: int = _PORTION) -> Iterator[Ragged]:
    """Consecutive subgraphs, a bounded number of nodes at a time; at least one of them.

    Example:
        >>> rows = Ragged.from_rows([[1] * 6, [2] * 20, [3], [4]])
        >>> [len(some) for some in portions(rows, most=30)]
        [2, 2]
    """
    ends = np.cumsum(np.maximum(subgraphs.lengths, _LEAST))
    begin = 0
    while begin < len(subgraphs):
        done = ends[begin - 1] if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, done + most, side="right")))
        yield subgraphs.take(np.arange(begin, end))
        begin = end


class PacedPredictor(Predictor):
    """As :class:`Predictor`; work whose budget is spent ends between two portions."""

    def __init__(
        self, checkpoint: Checkpoint | Path, graph: Graph, *, vectors: NDArray[np.float32] | None = None
    ) -> None:
        super().__init__(checkpoint, graph, vectors=vectors, keep_numbers=_KEEP_NUMBERS)

    def outputs(self, subgraphs: Ragged) -> NDArray[np.float32]:
        """Logits; values for regression."""
        parts = []
        for some in portions(subgraphs):
            check()
            parts.append(super().outputs(some))
        return np.concatenate([np.empty((0, self.checkpoint.num_outputs), np.float32), *parts])

    def embeddings(self, subgraphs: Ragged) -> NDArray[np.float32]:
        """z_S of one subgraph or more."""
        parts = []
        for some in portions(subgraphs):
            check()
            parts.append(super().embeddings(some))
        return np.concatenate(parts)

    def measured(self, subgraphs: Ragged, *, draws: int) -> Measured:
        """Subgraphs measured against the first draws of anchors."""
        check()
        return super().measured(subgraphs, draws=draws)
