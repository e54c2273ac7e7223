"""Node embeddings: random ones, or given in a file; rows are read for the nodes that are asked for, never all N."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from subgnn.config import EmbeddingSettings
from subgnn.errors import DataError
from subgnn.kernels.normal import normal_rows
from subgnn.rng import stream_key


def node_vectors(
    settings: EmbeddingSettings, nodes: NDArray[np.int32], *, num_nodes: int, seed: int
) -> NDArray[np.float32]:
    """Embeddings of the given nodes.

    Random vectors are a function of the seed and the node, so a node that is first met in prediction has one too.

    Shapes:
        nodes: (n,). returns: (n, dim) float32.
    """
    if settings.source == "random":
        rows = normal_rows(stream_key(seed, "embeddings/random"), nodes, settings.dim)
        return rows * np.float32(settings.scale)
    return _rows_of_file(Path(settings.source), nodes, num_nodes, settings.dim)


def _rows_of_file(path: Path, nodes: NDArray[np.int32], num_nodes: int, dim: int) -> NDArray[np.float32]:
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise DataError("no such file", where=str(path), hint="embeddings are 'random' or an .npy file") from None
    except (ValueError, OSError, EOFError):
        raise DataError("this is no .npy array of numbers", where=str(path), hint="write it with numpy.save") from None
    if array.shape != (num_nodes, dim):
        what = f"embeddings of shape {array.shape}, but {(num_nodes, dim)} is wanted"
        raise DataError(what, where=str(path), hint="one row a node; the width is embeddings.dim")
    rows = np.asarray(array[nodes], np.float32)
    if not np.isfinite(rows).all():
        raise DataError("embeddings that are not finite", where=str(path), hint="fill or drop missing values")
    return rows
