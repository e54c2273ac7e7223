"""Find the nearest vectors, exactly.

The distance of a query q from a known vector k is 1 - cos(q - m, k - m), m being the mean of the known ones, whose
subtraction tells similar vectors apart. The cosine with a vector of zeros is 0. Known vectors on a line, such as scores
of two classes with a constant sum, have no cosines but 1 and -1: there it is |q - k|. Pairs are compared in 64 bits,
each by itself, so the answer to a query does not depend on other queries.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from subgnn.errors import DataError, UserError
from subgnn.parallel.memory import share

_LINE = 1e-8  # of squares of vectors: that of the smaller direction which is rounding
_DIGITS = 12  # of cosines; those beyond are rounding
Found = tuple[NDArray[np.int64], NDArray[np.float64]]
"""Places among the known vectors and distances, the nearest first: (n, k) each, k being ``top`` or, where there are
fewer, the number of known vectors; -1 and NaN for a query that is NaN."""


class Nearest:
    """Known vectors (m, width), ready for queries; those with NaN are never found."""

    def __init__(self, known: NDArray[Any]) -> None:
        vectors = _checked(known, "known vectors")
        self.present = np.flatnonzero(~np.isnan(vectors).any(axis=1))
        points = vectors[self.present].astype(np.float64)
        self.mean = points.mean(axis=0) if len(points) else np.zeros(points.shape[1])
        self.on_a_line = False
        if len(points) > 1 and points.shape[1] <= 2:
            spread = np.linalg.eigvalsh((points - self.mean).T @ (points - self.mean))
            self.on_a_line = len(spread) == 1 or bool(spread[0] <= _LINE * spread[-1])
        self.known, self.lengths = self._points(points)

    def find(self, queries: Any, top: int = 10) -> Found:
        """Find the nearest known vectors for each query; ties are broken by position."""
        check_top(top)
        vectors = _checked(queries, "queries")
        if vectors.shape[1] != self.known.shape[1]:
            what = f"the vectors have {vectors.shape[1]} numbers, but the known ones have {self.known.shape[1]}"
            raise DataError(what, where="queries", hint="use vectors from the same run")
        top = min(top, len(self.present))
        places = np.full((len(vectors), top), -1, np.int64)
        distances = np.full((len(vectors), top), np.nan)
        there = np.flatnonzero(~np.isnan(vectors).any(axis=1)) if top else ()
        size = max(1, int(share(0.05)) // (8 * max(len(self.present), 1)))
        for begin in range(0, len(there), size):
            rows = there[begin : begin + size]
            for row, values in zip(rows, self._distances(vectors[rows].astype(np.float64)), strict=True):
                near = np.flatnonzero(values <= np.partition(values, top - 1)[top - 1])
                near = near[np.argsort(values[near], kind="stable")[:top]]
                places[row], distances[row] = self.present[near], values[near]
        return places, distances

    def _distances(self, queries: NDArray[np.float64]) -> NDArray[np.float64]:
        """Distances of queries from all known vectors that are present."""
        points, lengths = self._points(queries)
        if self.on_a_line:
            return np.asarray(cdist(points, self.known))
        # Half the squared distance of vectors of length one.
        cosines = np.where(lengths * self.lengths.T > 0, 1 - cdist(points, self.known, "sqeuclidean") / 2, 0.0)
        return np.asarray((1 - cosines).round(_DIGITS))

    def _points(self, vectors: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Vectors as they are compared, for cosines of length one, and their lengths (n, 1)."""
        points = vectors - self.mean
        lengths = np.linalg.norm(points, axis=1, keepdims=True)
        return points if self.on_a_line else points / np.where(lengths > 0, lengths, 1), lengths


def nearest_vectors(queries: Any, known: Any, *, top: int = 10) -> Found:
    """Find the nearest known vectors (m, width) for each query (n, width): positions and distances, nearest first.

    Example:
        >>> places, distances = nearest_vectors([[1.0, 0.2]], [[0.0, 1.0], [2.0, 0.0], [0.0, 0.0]], top=1)
        >>> places.tolist(), distances.round(3).tolist()
        ([[1]], [[0.009]])
    """
    return Nearest(known).find(queries, top)


def check_top(top: int) -> None:
    """Refuse a number of neighbours below 1."""
    if top < 1:
        raise UserError(f"cannot find {top} neighbours", where="top", hint="accepted: 1 or more")


def _checked(vectors: Any, noun: str) -> NDArray[np.float32]:
    """Vectors as a table of 32-bit numbers, each finite or NaN."""
    table = np.asarray(vectors)
    if table.ndim != 2 or table.dtype.kind not in "fiub":
        what = f"got an array of shape {table.shape} and type {table.dtype}"
        raise DataError(what, where=noun, hint="accepted: numbers, one row per vector")
    with np.errstate(over="ignore"):
        found: NDArray[np.float32] = table.astype(np.float32, copy=False)
    infinite = np.isinf(found).any(axis=1)
    if infinite.any():
        row = int(np.argmax(infinite))
        raise DataError("a number is infinite in 32 bits", where=f"{noun}: row {row}", hint="scale the vectors")
    return found
