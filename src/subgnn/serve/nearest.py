"""The training subgraphs nearest to a subgraph, by the cosine of their vectors z_S."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from subgnn.data.subgraphs import SubgraphSet
from subgnn.inference.predictor import Predictor
from subgnn.ragged import Ragged

_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class Near:
    """A training subgraph: its place in the dataset, and the cosine."""

    place: int
    similarity: float


def unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Vectors of length 1; those of length 0 stay as they are."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)


class TrainingSet:
    """The training subgraphs of a run; their vectors are computed when first asked for, a portion at a time.

    What a request did before its time was spent is kept, so that the next one goes on from there.
    """

    def __init__(self, predictor: Predictor, subgraphs: SubgraphSet | None) -> None:
        self._predictor, self._lock = predictor, threading.Lock()
        has = subgraphs is not None and subgraphs.splits is not None
        self.places = subgraphs.indices("train") if subgraphs is not None and has else np.empty(0, np.int64)
        self.nodes = subgraphs.nodes.take(self.places) if subgraphs is not None else Ragged.from_rows([])
        self._parts: list[NDArray[np.float32]] = []
        self._done = 0
        self._vectors: NDArray[np.float32] | None = None

    def __len__(self) -> int:
        return len(self.places)

    @property
    def ready(self) -> bool:
        """Whether all vectors are there."""
        return self._vectors is not None

    def vectors(self) -> NDArray[np.float32]:
        """All vectors, of length 1.

        Shapes:
            returns: (training subgraphs, width).
        """
        while self._vectors is None:
            self.advance()
        return self._vectors

    def advance(self) -> bool:
        """Compute the next vectors, where there are any left to compute; returns whether all are there."""
        with self._lock:
            if self._vectors is None:
                some = np.arange(self._done, min(self._done + _AT_ONCE, len(self)))
                self._parts.append(unit(self._predictor.embeddings(self.nodes.take(some))))
                self._done += len(some)
                if self._done == len(self):
                    self._vectors, self._parts = np.concatenate(self._parts), []
            return self._vectors is not None

    def nearest(self, subgraph: NDArray[np.int32], count: int) -> list[Near]:
        """The nearest, first; ties by their place."""
        if not len(self):
            return []
        cosines = self.vectors() @ unit(self._predictor.embeddings(Ragged.from_rows([subgraph])))[0]
        count = min(count, len(cosines))
        some = np.argpartition(-cosines, count - 1)[:count]
        order = some[np.lexsort((some, -cosines[some]))]
        return [Near(int(self.places[i]), float(cosines[i])) for i in order]
