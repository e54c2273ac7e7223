"""The node embeddings a run started from.

Up to 256 MB of them are kept in the run's folder, so that a run can be copied and asked about nodes it has not met.
Larger ones are read again from where they came from, the cache or a file, and refused if they have changed; pretrained
ones that the cache does not have are kept in the run's folder, too.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from subgnn.config.settings import EmbeddingSettings, PretrainSettings
from subgnn.data.graph import Graph
from subgnn.embeddings import PRETRAINED, scaled
from subgnn.embeddings.stored import read_vectors, vectors_hash, write_vectors
from subgnn.errors import DataError


class StartsFromVectors(Protocol):
    """Settings of node embeddings: of a recipe, or of a model."""

    @property
    def embeddings(self) -> EmbeddingSettings:
        """Where they come from."""

    @property
    def pretrain(self) -> PretrainSettings:
        """How they are pretrained."""


FILE = "embeddings.safetensors"
LARGEST_COPY = 256 * 2**20


def keep_vectors(table: NDArray[np.float32] | None, recipe: StartsFromVectors, graph: Graph, run: Path) -> str:
    """Copy the table into a run's folder unless it is large, and elsewhere.

    Returns:
        Its hash; nothing for random embeddings.
    """
    if table is None:
        return ""
    if table.nbytes <= LARGEST_COPY or not _source_file(recipe, graph).is_file():
        about = {"source": recipe.embeddings.source, "scale": recipe.embeddings.scale}
        write_vectors(run / FILE, table, about, graph_hash=graph.content_hash, overwrite=True)
    return vectors_hash(table)


def kept_vectors(run: Path, recipe: StartsFromVectors, graph: Graph, expected: str) -> NDArray[np.float32] | None:
    """The table a run started from.

    Args:
        expected: its hash, as the checkpoint has it.

    Raises:
        DataError: where it is gone, or is no longer what the run was trained with.
    """
    if recipe.embeddings.source == "random":
        return None
    if (run / FILE).is_file():
        table = read_vectors(run / FILE, graph)
        where = str(run / FILE)
    else:
        table = _from_source(recipe, graph, run)
        where = recipe.embeddings.source
    if vectors_hash(table) != expected:
        what = "the node embeddings are no longer those the run was trained with"
        raise DataError(what, where=where, hint="put the former file back, or train again")
    return table


def _from_source(recipe: StartsFromVectors, graph: Graph, run: Path) -> NDArray[np.float32]:
    file = _source_file(recipe, graph)
    if recipe.embeddings.source not in PRETRAINED:
        return read_vectors(file, graph)
    if not file.is_file():
        what = f"neither {FILE} nor the cache has the run's node embeddings"
        raise DataError(what, where=str(run), hint=f"copy {FILE} or {file} from where the run was trained")
    return scaled(read_vectors(file, graph), recipe.embeddings.scale)


def _source_file(recipe: StartsFromVectors, graph: Graph) -> Path:
    """The file that embeddings come from; of pretrained ones that of the cache."""
    from subgnn.embeddings.cached import cache_file

    settings = recipe.embeddings
    if settings.source not in PRETRAINED:
        return Path(settings.source)
    return cache_file(graph, settings.source, dim=settings.dim, settings=recipe.pretrain)
