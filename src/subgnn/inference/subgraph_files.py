"""Predictions and vectors for a file of subgraphs, which is read in chunks and may be of any length."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from subgnn.config.settings import Recipe
from subgnn.data.formats.folder import folder_node_field, is_folder_file
from subgnn.data.formats.subgraph_text import NodeField
from subgnn.data.formats.text import read_lines
from subgnn.data.formats.vectors import write_npy, write_parquet
from subgnn.data.graph import Graph
from subgnn.errors import DataError
from subgnn.inference.open import open_run
from subgnn.models.interface import BATCH
from subgnn.models.spec import ModelSpec
from subgnn.parallel.engine import Engine
from subgnn.parallel.memory import share
from subgnn.ragged import Ragged
from subgnn.storage.files import atomic_write


def chunk_size(recipe: Recipe | ModelSpec) -> int:
    """Number of subgraphs to measure at once: as fit in a fifth of the memory if each has four components.

    Each chunk searches the whole graph from the shared anchors, so chunks are large; they are a multiple of the sizes
    of batches, so that outputs do not depend on them.
    """
    each = 4 * 12 * recipe.model.layers * sum(channel.num_anchors for channel in recipe.channels) + 1000
    return BATCH * max(1, min(64, share(0.2) // (BATCH * each)))


def chunks(path: Path, graph: Graph, *, size: int) -> Iterator[tuple[list[str], Ragged]]:
    """The subgraphs of a file, as text and as nodes, ``size`` at a time.

    Nodes are names where the graph has names, and ``#12`` is row 12; the subgraphs.tsv of a dataset folder holds ids.
    """
    field = folder_node_field(path, graph) if is_folder_file(path) else NodeField(graph.num_nodes, graph.names)
    texts: list[str] = []
    rows: list[NDArray[np.int64]] = []
    for number, line in read_lines(path):
        text = line.split("\t")[0].strip()
        try:
            nodes, _ = field.parse(text)
        except DataError as error:
            raise DataError(error.what, where=f"{path}:{number}", hint=error.hint) from None
        texts.append(text)
        rows.append(nodes)
        if len(rows) == size:
            yield texts, Ragged.from_rows(rows)
            texts, rows = [], []
    if rows:
        yield texts, Ragged.from_rows(rows)


def write_predictions(
    run: Path,
    subgraphs: Path,
    out: Path,
    *,
    data: Path | None = None,
    overwrite: bool = False,
    engine: Engine | None = None,
) -> int:
    """Write a TSV with a header and a row for each input line: subgraph, label or labels, a probability for each class.

    Returns:
        The number of subgraphs.
    """
    predictor = open_run(run, data, engine=engine).predictor
    task, classes = predictor.checkpoint.spec.task, predictor.checkpoint.spec.classes
    columns = ["value"] if task == "regression" else list(classes)
    count = 0
    with (
        atomic_write(out, overwrite=overwrite) as temporary,
        temporary.open("w", encoding="utf-8", newline="\n") as file,
    ):
        file.write("\t".join(["subgraph", "label", *columns]) + "\n")
        for texts, rows in chunks(subgraphs, predictor.graph, size=chunk_size(predictor.checkpoint.spec)):
            for text, scores in zip(texts, predictor.probabilities(rows), strict=True):
                label = predictor.label_text(scores)
                file.write("\t".join([text, label, *(f"{p:.6g}" for p in scores)]) + "\n")
            count += len(texts)
    return count


def write_embeddings(
    run: Path,
    subgraphs: Path,
    out: Path,
    *,
    data: Path | None = None,
    overwrite: bool = False,
    engine: Engine | None = None,
) -> tuple[int, int]:
    """Write the vectors of subgraphs as .npy, or as .parquet with the subgraphs beside them.

    Returns:
        The shape of the vectors.
    """
    if out.suffix not in (".npy", ".parquet"):
        raise DataError(f"unknown kind of file '{out.suffix}'", where=str(out), hint="accepted: .npy, .parquet")
    predictor = open_run(run, data, engine=engine).predictor
    parts = chunks(subgraphs, predictor.graph, size=chunk_size(predictor.checkpoint.spec))
    embedded = ((texts, predictor.embeddings(rows)) for texts, rows in parts)
    with atomic_write(out, overwrite=overwrite) as temporary:
        write = write_npy if out.suffix == ".npy" else write_parquet
        shape = write(temporary, embedded)
        if not shape[0]:
            raise DataError("no subgraphs", where=str(subgraphs), hint="write one subgraph in each line")
    return shape
