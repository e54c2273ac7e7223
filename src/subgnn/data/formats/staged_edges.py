"""``edge_list.txt`` read a piece at a time, its edges kept on disk: for lists larger than memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from subgnn.data.edge_store import MEMORY, EdgeStore
from subgnn.data.formats.edge_list import EdgeReader
from subgnn.data.formats.text import read_chunks
from subgnn.data.problems import Problems
from subgnn.data.strings import NodeNames
from subgnn.parallel.progress import OnProgress

_LARGEST_PIECE, _SMALLEST_PIECE = 2**26, 2**12


@dataclass(frozen=True, slots=True)
class Staging:
    """Where edges are kept while they are read, in how much memory, and who is told.

    Args:
        folder: where files may be written.
        memory: bytes to work in.
        on_progress: called with what is done, how much of it and how much there is.
    """

    folder: Path
    memory: int = MEMORY
    on_progress: OnProgress | None = None

    def pieces(self, path: Path) -> Iterator[NDArray[np.uint8]]:
        """A file's text in pieces, with progress in megabytes of the file."""
        size = max(_SMALLEST_PIECE, min(_LARGEST_PIECE, self.memory // 16))
        total = path.stat().st_size // 10**6
        for data, done in read_chunks(path, size):
            yield data
            if self.on_progress is not None:
                self.on_progress("reading edges, MB", done // 10**6, total)


def stage_edge_list(
    path: Path, problems: Problems, staging: Staging, *, names: NodeNames | None = None, id_base: int = 0
) -> EdgeStore:
    """Read an edge list; what is wrong with it goes to ``problems``, with file and line."""
    for by_name in (False, True):
        reader = EdgeReader(path, names=names, id_base=id_base, by_name=by_name)
        store = EdgeStore(staging.folder, memory=staging.memory, on_progress=staging.on_progress)
        for data in staging.pieces(path):
            edges = reader.read(data)
            if reader.needs_names:
                break
            if not reader.num_errors:
                store.append(edges.tails, edges.heads, edges.weights)
        if not reader.needs_names:
            break
    reader.report(problems)
    return store
