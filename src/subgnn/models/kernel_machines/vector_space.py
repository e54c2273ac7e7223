"""Vectors of subgraphs among references: statistics, and principal components of a kernel of views."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from subgnn.channels.topology import SUBGRAPH_STATISTICS, Standard, subgraph_statistics
from subgnn.config.method_settings import BaselineSettings
from subgnn.config.settings import Recipe
from subgnn.data.graph import Graph
from subgnn.models.kernel_machines.convex import Floats
from subgnn.models.kernel_machines.view_kernel import Reference
from subgnn.models.kernel_machines.views import CACHE, Diffusing, Rows, compute_view, multiply
from subgnn.models.spec import Checkpoint, Weights
from subgnn.ragged import Ragged

_BLOCK_NUMBERS, _BLOCKS = 2**22, (32, 256)  # pairs of a subgraph and a node whose views are computed at once
_SHARPNESS = 3.0  # of the Gaussian kernel
_STATISTIC = 0.05  # a deviation of a statistic, beside rows of length one: distances are to see both
_FARTHEST = 4.0  # deviations
_SMALLEST = 1e-5  # of the largest eigenvalue: smaller components are rounding
_EQUAL = 1e-4  # relative distance of eigenvalues below which they count as equal
_NEAR_LARGEST = 0.9


def in_standard_units(vectors: NDArray[Any]) -> NDArray[Any]:
    """Vectors with statistics in deviations from their mean, as a penalised regression should see them.

    In the vectors themselves they are smaller, so that distances are not those of statistics alone.

    Shapes:
        vectors, returns: (n, width).
    """
    found = vectors.copy()
    found[:, :SUBGRAPH_STATISTICS] /= _STATISTIC
    return found


SPACE = ("nodes", "offsets", "with_mean", "lengths", "mean", "deviation", "basis", "centre")
"""Names of the tensors of a vector space in a checkpoint."""


@dataclass(frozen=True, slots=True, eq=False)
class VectorSpace:
    """Statistics of subgraphs, and their principal components among references.

    Shapes:
        references: m sets. basis: (m, components). centre: (components,), what is subtracted from all.
    """

    references: Ragged
    kernel: Reference
    standard: Standard
    basis: Floats
    centre: Floats
    settings: BaselineSettings
    width: int

    @classmethod
    def of(cls, graph: Graph, references: Ragged, recipe: Recipe) -> VectorSpace:
        """The space of a graph and references."""
        settings, width = recipe.baseline, recipe.vectors.width
        views = _reference_views(graph, references, settings)
        every = np.arange(len(references))
        products = [rows.products(every, every) for rows in views]
        squared = [rows.squared for rows in views]
        kernel = replace(Reference.of(squared, products, kernel=settings.kernel), sharpness=_SHARPNESS)
        whole = kernel(products, squared, None)
        own = whole.mean(axis=0)
        values, vectors = np.linalg.eigh(whole - own - own[:, None] + own.mean())
        values, vectors = fix_directions(values[::-1], vectors[:, ::-1], width - SUBGRAPH_STATISTICS)
        basis = vectors / np.sqrt(values)
        standard = Standard.of(subgraph_statistics(graph, references))
        return cls(references, kernel, standard, basis, own @ basis, settings, width)

    @classmethod
    def from_checkpoint(cls, checkpoint: Checkpoint) -> VectorSpace:
        """The space that a checkpoint holds."""
        spec = checkpoint.spec
        arrays = {name: checkpoint.weights[name].cpu().numpy() for name in SPACE}
        kernel = Reference(spec.baseline.kernel, arrays["with_mean"], arrays["lengths"], sharpness=_SHARPNESS)
        return cls(
            Ragged(arrays["nodes"], arrays["offsets"]),
            kernel,
            Standard(arrays["mean"], arrays["deviation"]),
            arrays["basis"],
            arrays["centre"],
            spec.baseline,
            spec.vectors.width,
        )

    def weights(self) -> Weights:
        """The tensors of a checkpoint.

        Shapes:
            nodes: (entries,) int32. offsets: (m + 1,). with_mean, lengths: (views, m) float64, as in
            ``view_kernel.cosines``. mean, deviation: (18,) float64. basis, centre: float64.
        """
        kernel, standard = self.kernel, self.standard
        arrays = (self.references.values, self.references.offsets, kernel.with_mean, kernel.lengths)
        more = (standard.mean, standard.deviation, self.basis, self.centre)
        return {name: torch.from_numpy(np.array(array)) for name, array in zip(SPACE, (*arrays, *more), strict=True)}

    def reference_views(self, graph: Graph, *, stored: bool = False) -> list[Rows]:
        """The views of the references, from the cache of this process if they are there."""
        return _reference_views(graph, self.references, self.settings, stored=stored)

    def __call__(self, graph: Graph, nodes: Ragged) -> NDArray[np.float32]:
        """Vectors of subgraphs, some at a time, whatever the memory at hand; columns that are not needed are 0.

        Shapes:
            returns: (n, width).
        """
        known, diffusing = self.reference_views(graph), Diffusing.of(self.settings)
        found = np.zeros((len(nodes), self.width), np.float32)
        step = int(np.clip(_BLOCK_NUMBERS // max(1, graph.num_nodes), *_BLOCKS))
        for begin in range(0, len(nodes), step):
            some = nodes.take(np.arange(begin, min(len(nodes), begin + step)))
            rows = found[begin : begin + step]
            views = [compute_view(graph, some, view, diffusing) for view in self.settings.views]
            products = [multiply(a.values, b.values) for a, b in zip(views, known, strict=True)]
            kernel = self.kernel(products, [view.squared for view in views], None)
            statistics = self.standard(subgraph_statistics(graph, some))
            rows[:, :SUBGRAPH_STATISTICS] = _STATISTIC * np.clip(statistics, -_FARTHEST, _FARTHEST)
            rows[:, SUBGRAPH_STATISTICS:][:, : self.basis.shape[1]] = kernel @ self.basis - self.centre
        return found


def _reference_views(
    graph: Graph, references: Ragged, settings: BaselineSettings, *, stored: bool = False
) -> list[Rows]:
    diffusing = Diffusing.of(settings)
    return [CACHE.get(graph, references, view, diffusing, keep=True, stored=stored) for view in settings.views]


def fix_directions(values: Floats, vectors: Floats, most: int) -> tuple[Floats, Floats]:
    """Eigenvectors whose signs follow from their entries, as does the basis where eigenvalues are equal.

    The eigenvectors of equal eigenvalues span a space that is unique, of which any basis would do. The one that is
    chosen begins with the projection of the first axis whose projection is nearly the longest, and goes on with what is
    left of the others. Exact ties are thus decided by the order of axes, not by rounding. For one eigenvector: the
    first of its nearly largest entries is positive.

    Args:
        values: falling; those that are rounding are left out.
        most: how many to keep; equal ones are kept together or not at all.

    Shapes:
        values: (m,). vectors: (m, m), by column. returns: (k,), (m, k), k up to ``most``.

    Example:
        >>> turned = np.array([[0.6, -0.8, 0], [0.8, 0.6, 0], [0, 0, -1]])
        >>> fix_directions(np.array([2.0, 2.0, 1.0]), turned, 3)[1].round(9) + 0
        array([[1., 0., 0.],
               [0., 1., 0.],
               [0., 0., 1.]])
    """
    values, vectors = (
        array[..., : int((values > _SMALLEST * max(values[0], 1e-12)).sum())] for array in (values, vectors)
    )
    ends = np.append(np.flatnonzero(values[1:] < (1 - _EQUAL) * values[:-1]) + 1, len(values))
    ends = ends[ends <= most]
    fixed = np.empty((len(vectors), ends[-1] if len(ends) and len(values) else 0))
    for begin, end in zip([0, *ends[:-1]], ends, strict=True):
        rest = vectors[:, begin:end].copy()  # axes, as the space of these eigenvalues sees them
        for column in range(begin, end):
            lengths = np.linalg.norm(rest, axis=1)
            axis = int(np.argmax(lengths >= _NEAR_LARGEST * lengths.max()))
            direction = rest[axis] / lengths[axis]
            fixed[:, column] = vectors[:, begin:end] @ direction
            rest -= np.outer(rest @ direction, direction)
    return values[: fixed.shape[1]], fixed
