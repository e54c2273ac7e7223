"""The kernel of subgraphs by their views (``kernel_machines/kernel_machine.py``), and its principal components.

Cosines follow from inner products of the views as they are,

    (v_S - m) . (v_T - m) = v_S . v_T - mean over U of v_S . v_U - v_T . m + m . m

so that the views and their inner products do not depend on the split, and are shared by fits to many splits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from subgnn.channels.topology import Standard
from subgnn.models.kernel_machines.regression import Floats
from subgnn.models.kernel_machines.views import TOPOLOGY, Rows, row_blocks
from subgnn.rng import stream

_TOPOLOGY_SCALE, _FARTHEST = 0.003, 4.0
_ROUNDING = 1e-3
_SMALLEST = 1e-12  # of the largest eigenvalue: smaller components are rounding


def draw_landmarks(count: int, most: int, seed: int) -> NDArray[np.int64]:
    """The training subgraphs that stand for all of them: all, or at most so many, drawn at random."""
    if count <= most:
        return np.arange(count)
    return np.sort(stream(seed, "kernel machine/landmarks").choice(count, most, replace=False))


def cosines(products: Floats, squared: Floats, with_mean: Floats, lengths: Floats) -> Floats:
    """Cosines (n, m) of rows of a view with the landmarks, all less the landmarks' mean; 0 where a row is the mean.

    Args:
        products: (n, m) inner products of rows and landmarks, as they are.
        squared: (n,) squared lengths of rows.
        with_mean, lengths: (m,) inner products of landmarks with their mean, and their lengths after subtracting it.
    """
    own, of_mean = products.mean(axis=1), with_mean.mean()
    inverse = _inverse(centred_lengths(squared, own, of_mean))
    centred: Floats = products - own[:, None] - with_mean + of_mean
    return centred * inverse[:, None] * _inverse(lengths)


def centred_lengths(squared: Floats, with_mean: Floats, of_mean: float) -> Floats:
    """|v - m|, from v . v, v . m and m . m; 0 for what is rounding beside |v|."""
    lengths = np.sqrt(np.maximum(squared - 2 * with_mean + of_mean, 0))
    return np.where(lengths > _ROUNDING * np.sqrt(squared), lengths, 0)


def _inverse(lengths: Floats) -> Floats:
    return np.divide(1, lengths, out=np.zeros(len(lengths)), where=lengths > 0)


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """The kernel of subgraphs with the landmarks, from inner products of views and statistics as they are.

    ``with_mean`` and ``lengths`` (views, m) are as in :func:`cosines`; ``sharpness`` multiplies the exponent of a
    Gaussian kernel.
    """

    kernel: str
    with_mean: Floats
    lengths: Floats
    standard: Standard | None = None
    sharpness: float = 1.0

    @classmethod
    def of(
        cls, squared: list[Floats], products: list[Floats], *, kernel: str, standard: Standard | None = None
    ) -> Reference:
        """From squared lengths of the landmarks by view, and their inner products with each other."""
        with_mean = np.stack([one.mean(axis=1) for one in products])
        lengths = [centred_lengths(own, mean, mean.mean()) for own, mean in zip(squared, with_mean, strict=True)]
        return cls(kernel, with_mean, np.stack(lengths), standard)

    def __call__(
        self, products: list[Floats], squared: list[Floats], statistics: tuple[Floats, Floats] | None
    ) -> Floats:
        """K (n, m), from products (n, m) and squared lengths (n,) by view, and statistics (n, 18), (m, 18)."""
        parts = zip(products, squared, self.with_mean, self.lengths, strict=True)
        found: Floats = np.mean([cosines(*part) for part in parts], axis=0)
        if self.kernel == "linear":
            return found
        if self.standard is not None and statistics is not None:
            own, known = (np.clip(self.standard(table), -_FARTHEST, _FARTHEST) for table in statistics)
            found -= _TOPOLOGY_SCALE * scipy.spatial.distance.cdist(own, known, "sqeuclidean")
        return np.exp(self.sharpness * (found - 1))


@dataclass(frozen=True, slots=True, eq=False)
class Components:
    """Training subgraphs by their principal components.

    Shapes:
        rows: (training subgraphs, r), with rows^T rows diagonal. basis: (m, r), K basis = rows.
        landmarks: (m,) places among all subgraphs.
    """

    rows: Floats
    basis: Floats
    landmarks: NDArray[np.int64]
    reference: Reference

    @classmethod
    def of(
        cls, views: dict[str, Rows], train: NDArray[np.int64], chosen: NDArray[np.int64], *, kernel: str
    ) -> Components:
        """The components of the kernel over the views; ``chosen`` are the landmarks, as places in ``train``."""
        known = train[chosen]
        compared = [view for name, view in views.items() if name != TOPOLOGY]
        table = views[TOPOLOGY].values if TOPOLOGY in views else None
        standard = None if table is None else Standard.of(table[train])

        def kernel_of(rows: NDArray[np.int64], products: list[Floats]) -> Floats:
            statistics = None if table is None else (table[rows], table[known])
            return reference(products, [view.squared[rows] for view in compared], statistics)

        products = [view.products(known, known) for view in compared]
        reference = Reference.of([view.squared[known] for view in compared], products, kernel=kernel, standard=standard)
        of_landmarks = kernel_of(known, products)
        values, vectors = np.linalg.eigh(of_landmarks)
        kept = values > _SMALLEST * max(values[-1], _SMALLEST)
        basis = vectors[:, kept] / np.sqrt(values[kept])
        if len(chosen) == len(train):
            return cls(of_landmarks @ basis, basis, known, reference)
        rows = np.empty((len(train), basis.shape[1]))
        blocks = row_blocks(len(train))
        for block in blocks:
            rows[block] = kernel_of(train[block], [view.products(train[block], known) for view in compared]) @ basis
        _, turn = np.linalg.eigh(rows.T @ rows)
        for block in blocks:
            rows[block] = rows[block] @ turn
        return cls(rows, basis @ turn, known, reference)
