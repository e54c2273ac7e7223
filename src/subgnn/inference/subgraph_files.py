"""Files of subgraphs through a run: read in chunks, answered, written; so that a file may be of any length."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.config.settings import Recipe
from subgnn.data.formats import read_dataset
from subgnn.data.formats.folder import is_own_subgraphs, own_node_field
from subgnn.data.formats.subgraph_text import NodeField
from subgnn.data.formats.text import read_lines
from subgnn.data.formats.vectors import write_npy, write_parquet
from subgnn.data.graph import Graph
from subgnn.data.subgraphs import SubgraphSet
from subgnn.errors import DataError
from subgnn.inference.distributed import Spread
from subgnn.inference.predictor import BATCH, Predictor, label_text
from subgnn.models.spec import ModelSpec
from subgnn.parallel.engine import Engine
from subgnn.parallel.memory import share
from subgnn.ragged import Ragged
from subgnn.storage.files import atomic_write
from subgnn.training.run_dir import CHECKPOINT, read_results, source_of


def open_run(run: Path, data: Path | None = None, *, engine: Engine | None = None) -> Predictor:
    """A finished run with its graph, read from where the run read it unless ``data`` says otherwise.

    Args:
        engine: what measures subgraphs and answers for them; this process by default.
    """
    return open_whole(run, data, engine=engine).predictor


@dataclass(frozen=True, slots=True, eq=False)
class OpenedRun:
    """A run, what it reported, and what is known of its dataset.

    Shapes:
        reference: (draws, width), the mean vector of the training split, where the run is a file that holds it.
    """

    predictor: Predictor
    results: dict[str, Any]
    subgraphs: SubgraphSet | None = None
    reference: NDArray[np.float32] | None = None

    def background(self) -> Ragged | None:
        """The training subgraphs, where they are at hand."""
        if self.subgraphs is None or self.subgraphs.splits is None:
            return None
        return self.subgraphs.nodes.take(self.subgraphs.indices("train"))


def open_whole(run: Path, data: Path | None = None, *, engine: Engine | None = None) -> OpenedRun:
    """A finished run, the folder of one or a file that ``subgnn export`` wrote."""
    if run.is_file():
        if engine is not None:
            raise DataError(
                "an exported run is asked here", where=str(run), hint="leave --engine out, or give its folder"
            )
        from subgnn.inference.export_opened import open_export  # which opens runs, and so imports what is here

        return open_export(run, data)
    results = read_results(run)
    source = source_of(results, data)
    dataset = read_dataset(source)
    graph = dataset.graph.undirected()
    spread = None if engine is None else Spread(engine, graph, source=source)
    return OpenedRun(Predictor(run / CHECKPOINT, graph, spread=spread), results, dataset.subgraphs)


def chunk_size(recipe: Recipe | ModelSpec) -> int:
    """How many subgraphs are measured at once: as many as fit in a fifth of the memory, if each had four components.

    Shared anchors are searched from once a chunk, across the whole graph, so chunks are large; a multiple of the sizes
    of batches, so that answers do not depend on it.
    """
    each = 4 * 12 * recipe.model.layers * sum(channel.num_anchors for channel in recipe.channels) + 1000
    return BATCH * max(1, min(64, share(0.2) // (BATCH * each)))


def chunks(path: Path, graph: Graph, *, size: int) -> Iterator[tuple[list[str], Ragged]]:
    """The subgraphs of a file, as they are written and as nodes, so many at a time.

    Nodes are names where the graph has names, and ``#12`` is row 12; the subgraphs.tsv of a dataset folder holds ids.
    """
    field = own_node_field(path, graph) if is_own_subgraphs(path) else NodeField(graph.num_nodes, graph.names)
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
    """Write a TSV with a header line and a row per input line: subgraph, label or labels, a probability per class."""
    predictor = open_run(run, data, engine=engine)
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
                label = label_text(scores, predictor.checkpoint)
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
    """Write the vectors of subgraphs as .npy, or as .parquet with the subgraphs beside them; returns their shape."""
    if out.suffix not in (".npy", ".parquet"):
        raise DataError(f"unknown kind of file '{out.suffix}'", where=str(out), hint="accepted: .npy, .parquet")
    predictor = open_run(run, data, engine=engine)
    parts = chunks(subgraphs, predictor.graph, size=chunk_size(predictor.checkpoint.spec))
    answered = ((texts, predictor.embeddings(rows)) for texts, rows in parts)
    with atomic_write(out, overwrite=overwrite) as temporary:
        write = write_npy if out.suffix == ".npy" else write_parquet
        shape = write(temporary, answered)
        if not shape[0]:
            raise DataError("no subgraphs", where=str(subgraphs), hint="a subgraph a line is needed")
    return shape
