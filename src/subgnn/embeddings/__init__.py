"""Node embeddings: random ones, pretrained ones, or given in a file.

A run takes rows for the nodes it touches (:func:`node_vectors`). Random rows are drawn when they are asked for;
pretrained and given ones are rows of a table of all N nodes (:func:`source_vectors`), of which a run keeps a copy, so
that it can be asked about nodes it has not met, also elsewhere (:mod:`subgnn.embeddings.of_run`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.config.settings import EmbeddingSettings, Recipe
from subgnn.data.graph import Graph
from subgnn.errors import DataError
from subgnn.kernels.draws import normal_rows
from subgnn.rng import stream_key

PRETRAINED = ("gin", "graphsaint")


def node_vectors(
    settings: EmbeddingSettings,
    nodes: NDArray[np.int32],
    *,
    num_nodes: int,
    seed: int,
    table: NDArray[np.float32] | None = None,
) -> NDArray[np.float32]:
    """Embeddings of the given nodes.

    Random vectors are a function of the seed and the node, so a node that is first met in prediction has one too.

    Args:
        table: what :func:`source_vectors` gave; it is needed for all but random embeddings.

    Shapes:
        nodes: (n,). table: (num_nodes, dim). returns: (n, dim) float32.
    """
    if settings.source == "random":
        rows = normal_rows(stream_key(seed, "embeddings/random"), nodes, settings.dim)
        return rows * np.float32(settings.scale)
    if table is None or len(table) != num_nodes:
        raise DataError(
            "the table of node embeddings is not there", where=settings.source, hint="pretrain or give the file again"
        )
    return np.array(table[nodes], np.float32)


def check_source(recipe: Recipe) -> None:
    """Raise :class:`UserError` for a file that is not there and for pretraining that cannot be, before any work."""
    settings = recipe.embeddings
    if settings.source in PRETRAINED:
        from subgnn.embeddings.pretrain import check_settings

        check_settings(settings.source, settings.dim, recipe.pretrain)
    elif settings.source != "random":
        from pathlib import Path

        from subgnn.embeddings.stored import require_file

        require_file(Path(settings.source))


def source_vectors(
    recipe: Recipe, graph: Graph, *, device: str = "auto", cache: bool = True, on_epoch: Any = None
) -> NDArray[np.float32] | None:
    """The table of all node embeddings that a recipe asks for; None where they are random.

    Pretrained ones come from the cache, or are made and put there, and are brought to a root mean square of
    ``embeddings.scale``; those of a file are taken as they are.

    Args:
        graph: undirected.
        device: where to pretrain.
        cache: whether to look for pretrained ones in the cache, and leave them there.
        on_epoch: called after every epoch of a pretraining.

    Shapes:
        returns: (N, dim) float32.
    """
    settings = recipe.embeddings
    if settings.source == "random":
        return None
    if settings.source in PRETRAINED:
        from subgnn.embeddings.cached import pretrained_vectors

        vectors = pretrained_vectors(
            graph,
            settings.source,
            dim=settings.dim,
            settings=recipe.pretrain,
            device=device,
            cache=cache,
            on_epoch=on_epoch,
        )
        return scaled(vectors, settings.scale)
    from pathlib import Path

    from subgnn.embeddings.stored import read_vectors

    vectors = read_vectors(Path(settings.source), graph)
    if vectors.shape[1] != settings.dim:
        what = f"embeddings of shape {vectors.shape}, but {(graph.num_nodes, settings.dim)} is wanted"
        hint = f"the width is embeddings.dim: --set embeddings.dim={vectors.shape[1]}"
        raise DataError(what, where=settings.source, hint=hint)
    return vectors


def scaled(vectors: NDArray[np.float32], scale: float) -> NDArray[np.float32]:
    """The same directions, with a root mean square of ``scale`` over all numbers."""
    size = float(np.sqrt(np.mean(np.square(vectors, dtype=np.float64))))
    return vectors * np.float32(scale / size) if size > 0 else vectors
