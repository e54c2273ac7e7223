"""Files of subgraphs through a run: read in chunks, answered, written; so that a file may be of any length."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from subgnn.config import Recipe
from subgnn.data.formats import read_dataset
from subgnn.data.formats.subgraph_text import NodeField
from subgnn.data.formats.text import appearing, stream_lines
from subgnn.data.formats.vectors import write_npy, write_parquet
from subgnn.data.graph import Graph
from subgnn.engine import Engine
from subgnn.errors import DataError
from subgnn.memory import share
from subgnn.predict import BATCH, Predictor
from subgnn.ragged import Ragged
from subgnn.spread_answers import Spread
from subgnn.training.run_dir import CHECKPOINT, read_results


def open_run(run: Path, data: Path | None = None, *, engine: Engine | None = None) -> Predictor:
    """A finished run with its graph, read from where the run read it unless ``data`` says otherwise.

    Args:
        engine: what measures subgraphs and answers for them; this process by default.
    """
    results = read_results(run)
    source = data if data is not None else Path(results["source"])
    if not source.exists():
        raise DataError("the run's dataset is not there", where=str(source), hint="say where it is with --data")
    graph = read_dataset(source).graph.undirected()
    spread = None if engine is None else Spread(engine, graph, source=source)
    return Predictor(run / CHECKPOINT, graph, spread=spread)


def chunk_size(recipe: Recipe) -> int:
    """How many subgraphs are measured at once: as many as fit in a fifth of the memory, if each had four components.

    Shared anchors are searched from once a chunk, across the whole graph, so chunks are large; a multiple of the sizes
    of batches, so that answers do not depend on it.
    """
    each = 4 * 12 * recipe.model.layers * sum(channel.num_anchors for channel in recipe.channels) + 1000
    return BATCH * max(1, min(64, share(0.2) // (BATCH * each)))


def _chunks(path: Path, graph: Graph, size: int) -> Iterator[tuple[list[str], Ragged]]:
    field = NodeField(graph.num_nodes, graph.names)
    texts: list[str] = []
    rows: list[NDArray[np.int64]] = []
    for number, line in stream_lines(path):
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
    task, classes = predictor.checkpoint.task, predictor.checkpoint.classes
    columns = ["value"] if task == "regression" else list(classes)
    count = 0
    with appearing(out, overwrite=overwrite) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
        file.write("\t".join(["subgraph", "label", *columns]) + "\n")
        for texts, rows in _chunks(subgraphs, predictor.graph, chunk_size(predictor.checkpoint.recipe)):
            for text, scores in zip(texts, predictor.probabilities(rows), strict=True):
                if task == "regression":
                    label = f"{scores[0]:.6g}"
                elif task == "multi-label":
                    label = "-".join(c for c, p in zip(classes, scores, strict=True) if p > 0.5)
                else:
                    label = classes[int(np.argmax(scores))]
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
    chunks = _chunks(subgraphs, predictor.graph, chunk_size(predictor.checkpoint.recipe))
    answered = ((texts, predictor.embeddings(rows)) for texts, rows in chunks)
    with appearing(out, overwrite=overwrite) as temporary:
        write = write_npy if out.suffix == ".npy" else write_parquet
        shape = write(temporary, answered)
        if not shape[0]:
            raise DataError("no subgraphs", where=str(subgraphs), hint="a subgraph a line is needed")
    return shape
