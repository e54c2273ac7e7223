"""Find the nearest vectors, exactly.

======================= =================================================================
distance                of a query q and a known vector k, m being the mean of the known
======================= =================================================================
cosine                  1 - cos(q, k)
centred (the default)   1 - cos(q - m, k - m)
euclidean               |q - k|
======================= =================================================================

The cosine with a vector of zeros is 0. Subtracting the mean tells similar vectors apart (docs/patients.md).

Candidates are found by 32-bit matrix products, with a margin for rounding, and ordered by 64-bit distances, so the
answer is exact, and the answer to a query does not depend on other queries.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from subgnn.errors import DataError, UserError, choices
from subgnn.parallel.memory import share

Distance = Literal["cosine", "centred", "euclidean"]
DISTANCES: tuple[Distance, ...] = get_args(Distance)
_ROUNDING = 1e-5  # of matrix products of 32 bits, relative to the squared lengths
_LINE = 1e-8  # of squares of vectors: that of the smaller direction which is rounding
_DIGITS = 12  # of cosines; those beyond are rounding
_BLOCK = 4096  # known vectors that are compared at once
Found = tuple[NDArray[np.int64], NDArray[np.float64]]
"""Places among the known vectors and distances, the nearest first: (n, k) each, k being ``top`` or, where there are
fewer, the number of known vectors; -1 and NaN for a query that is NaN."""


class Nearest:
    """Known vectors (m, width), ready for queries; those with NaN are never found."""

    def __init__(self, known: NDArray[Any], *, distance: Distance = "centred") -> None:
        if distance not in DISTANCES:
            raise UserError(f"unknown distance '{distance}'", where="distance", hint=choices(str(distance), DISTANCES))
        self.distance, self.known = distance, _checked(known, "known vectors")
        self.present = np.flatnonzero(~np.isnan(self.known).any(axis=1))
        self.mean, self._scale = np.zeros(self.known.shape[1]), 1.0
        if distance == "centred" and len(self.present):
            for rows in self._blocks():
                self.mean += self.known[rows].astype(np.float64).sum(axis=0)
            self.mean /= len(self.present)
        if distance == "euclidean":  # so that squares of 32 bits neither overflow nor vanish
            largest = [float(np.abs(self.known[rows]).max(initial=0)) for rows in self._blocks()]
            self._scale = max(largest, default=0.0) or 1.0
        self._screened = np.empty((len(self.present), self.known.shape[1]), np.float32)  # the points, 32 bits each
        for begin, rows in zip(range(0, len(self.present), _BLOCK), self._blocks(), strict=True):
            self._screened[begin : begin + len(rows)] = self._points(self.known[rows])
        self._half_squares = np.square(self._screened).sum(axis=1) / 2

    @property
    def sees_sides_only(self) -> bool:
        """Whether the known vectors lie on a line through the origin, so that all cosines are 1 or -1.

        This happens if the vectors are the scores of two classes with a constant sum.
        """
        if self.distance == "euclidean" or self.known.shape[1] > 2 or len(self.present) < 2:
            return False
        points = self.known[self.present].astype(np.float64) - self.mean
        spread = np.linalg.eigvalsh(points.T @ points)
        return len(spread) == 1 or bool(spread[0] <= _LINE * spread[-1])

    def find(self, queries: Any, top: int = 10) -> Found:
        """Find the nearest known vectors for each query; ties are broken by position."""
        if top < 1:
            raise UserError(f"cannot find {top} neighbours", where="top", hint="accepted: 1 or more")
        vectors = self.check(queries)
        top = min(top, len(self.present))
        places = np.full((len(vectors), top), -1, np.int64)
        distances = np.full((len(vectors), top), np.nan)
        if top == 0:
            return places, distances
        there = np.flatnonzero(~np.isnan(vectors).any(axis=1))
        size = max(1, int(share(0.05)) // (4 * max(len(self.present), self.known.shape[1], 1)))
        for begin in range(0, len(there), size):
            rows = there[begin : begin + size]
            points = self._points(vectors[rows])
            for row, point, found in zip(rows, points, self._candidates(points, top), strict=True):
                values = self._distances(point, self._points(self.known[found]))
                order = np.lexsort((found, values))[:top]
                places[row, : len(order)], distances[row, : len(order)] = found[order], values[order]
        return places, distances

    def check(self, queries: Any) -> NDArray[np.float32]:
        """Queries as 32-bit numbers; they must have the width of the known vectors."""
        vectors = _checked(queries, "queries")
        if vectors.shape[1] != self.known.shape[1]:
            what = f"the vectors have {vectors.shape[1]} numbers, but the known ones have {self.known.shape[1]}"
            raise DataError(what, where="queries", hint="use vectors from the same run")
        return vectors

    def _blocks(self) -> Iterator[NDArray[np.int64]]:
        for begin in range(0, len(self.present), _BLOCK):
            yield self.present[begin : begin + _BLOCK]

    def _points(self, vectors: NDArray[Any]) -> NDArray[np.float64]:
        """Vectors in the form in which they are compared: scaled as a whole, or centred and each of length 1."""
        points = (vectors.astype(np.float64) - self.mean) / self._scale
        if self.distance != "euclidean":
            lengths = np.linalg.norm(points, axis=1, keepdims=True)
            points /= np.where(lengths > 0, lengths, 1)
        return points

    def _distances(self, point: NDArray[np.float64], known: NDArray[np.float64]) -> NDArray[np.float64]:
        """Distances of one point from others, whose values depend on the two vectors alone, to the last bit."""
        found: NDArray[np.float64]
        if self.distance == "euclidean":
            found = self._scale * np.sqrt(np.square(known - point).sum(axis=1))
        else:
            found = np.maximum(1 - (known * point).sum(axis=1), 0).round(_DIGITS)
        return found

    def _candidates(self, points: NDArray[np.float64], top: int) -> Iterator[NDArray[np.int64]]:
        """For each point, positions that include those of the nearest vectors."""
        # What orders the distances of a point, but for rounding: -q.k or |k|^2 / 2 - q.k.
        scores = -(points.astype(np.float32) @ self._screened.T)
        rounding = np.full(len(points), _ROUNDING, np.float32)
        if self.distance == "euclidean":
            scores += self._half_squares
            squares = np.square(points).sum(axis=1).astype(np.float32)
            rounding *= np.maximum(squares, 2 * self._half_squares.max(initial=0))
        for row, least in zip(scores, rounding, strict=True):
            farthest = np.partition(row, top - 1)[top - 1] + least
            yield self.present[np.flatnonzero(~(row > farthest))]  # with NaN, of what overflows


def nearest_vectors(queries: Any, known: Any, *, top: int = 10, distance: Distance = "centred") -> Found:
    """Find the nearest known vectors for each query: positions and distances, (n, top) each, nearest first.

    Args:
        queries: (n, width).
        known: (m, width).
        distance: ``centred``, the cosine after subtracting the mean of the known vectors; ``cosine``; ``euclidean``.

    Example:
        >>> places, distances = nearest_vectors([[1.0, 0.2]], [[0.0, 1.0], [2.0, 0.0]], top=1, distance="cosine")
        >>> places.tolist(), distances.round(3).tolist()
        ([[1]], [[0.019]])
    """
    return Nearest(known, distance=distance).find(queries, top)


def _checked(vectors: Any, noun: str) -> NDArray[np.float32]:
    """Vectors as a table of 32-bit numbers, each finite or NaN."""
    table = np.asarray(vectors)
    if table.ndim != 2 or table.dtype.kind not in "fiub":
        what = f"got an array of shape {table.shape} and type {table.dtype}"
        raise DataError(what, where=noun, hint="accepted: numbers, one row per vector")
    with np.errstate(over="ignore"):
        found: NDArray[np.float32] = table.astype(np.float32, copy=False)
    for begin in range(0, len(found), _BLOCK):
        infinite = np.isinf(found[begin : begin + _BLOCK]).any(axis=1)
        if infinite.any():
            row = begin + int(np.argmax(infinite))
            raise DataError("a number is infinite in 32 bits", where=f"{noun}: row {row}", hint="scale the vectors")
    return found
