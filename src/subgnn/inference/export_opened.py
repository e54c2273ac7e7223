"""An exported run, ready to be asked."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from subgnn.data.formats import read_dataset
from subgnn.embeddings.stored import vectors_hash
from subgnn.errors import DataError
from subgnn.inference.export_file import Exported, read_export
from subgnn.inference.predictor import Predictor
from subgnn.inference.subgraph_files import OpenedRun


def open_export(path: Path, data: Path | None = None) -> OpenedRun:
    """A file that ``subgnn export`` wrote, with its graph, or with that of a dataset.

    Raises:
        DataError: where the file is damaged, or has no graph and no dataset is given.
    """
    exported = read_export(path)
    dataset = None if data is None else read_dataset(data)
    graph = exported.graph if dataset is None else dataset.graph.undirected()
    if graph is None:
        name = exported.results.get("dataset", "the run's dataset")
        hint = "say where it is with --data, or export the run with --with-graph"
        raise DataError(f"the graph of {name} is not in the file", where=str(path), hint=hint)
    _check_vectors(exported, graph.num_nodes, path)
    again = "export the run again"
    predictor = Predictor(exported.checkpoint, graph, vectors=exported.vectors, where=str(path), again=again)
    reference = exported.reference
    if reference is not None:
        networks = predictor.networks()
        width = networks[0].head.width + networks[0].num_scores if networks else 0
        if reference.shape != (predictor.members * predictor.draws, width) or reference.dtype != np.float32:
            raise DataError("its mean vector does not fit its recipe", where=str(path), hint="export the run again")
    return OpenedRun(predictor, exported.results, None if dataset is None else dataset.subgraphs, reference)


def _check_vectors(exported: Exported, num_nodes: int, path: Path) -> None:
    """The node embeddings must be those the run was trained with."""
    expected = exported.checkpoint.spec.vectors_hash
    given = exported.vectors
    if given is None:
        if expected:
            raise DataError("its node embeddings are missing", where=str(path), hint="export the run again")
        return
    if given.ndim != 2 or len(given) != num_nodes or vectors_hash(given) != expected:
        what = "its node embeddings are not those the run was trained with"
        raise DataError(what, where=str(path), hint="export the run again")
