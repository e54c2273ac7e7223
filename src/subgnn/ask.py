"""Files of subgraphs through a run: read in chunks, answered, written; so that a file may be of any length."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.data.formats import read_dataset
from subgnn.data.formats.subgraph_text import NodeField
from subgnn.data.formats.text import appearing, stream_lines
from subgnn.data.graph import Graph
from subgnn.data.subgraphs import SubgraphSet
from subgnn.errors import DataError
from subgnn.predict import Predictor, label_text
from subgnn.ragged import Ragged
from subgnn.training.run_dir import CHECKPOINT, read_results

_CHUNK = 4096


def open_run(run: Path, data: Path | None = None) -> Predictor:
    """A finished run with its graph, read from where the run read it unless ``data`` says otherwise."""
    return open_whole(run, data).predictor


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


def open_whole(run: Path, data: Path | None = None) -> OpenedRun:
    """A finished run, the folder of one or a file that ``subgnn export`` wrote."""
    if run.is_file():
        from subgnn.export.opened import open_export  # which opens runs, and so imports what is here

        return open_export(run, data)
    results = read_results(run)
    source = data if data is not None else Path(results["source"])
    if not source.exists():
        raise DataError("the run's dataset is not there", where=str(source), hint="say where it is with --data")
    dataset = read_dataset(source)
    return OpenedRun(Predictor(run / CHECKPOINT, dataset.graph.undirected()), results, dataset.subgraphs)


def chunks(path: Path, graph: Graph, *, size: int = _CHUNK) -> Iterator[tuple[list[str], Ragged]]:
    """The subgraphs of a file, as they are written and as nodes, so many at a time."""
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
    run: Path, subgraphs: Path, out: Path, *, data: Path | None = None, overwrite: bool = False
) -> int:
    """Write a TSV with a header line and a row per input line: subgraph, label or labels, a probability per class."""
    predictor = open_run(run, data)
    task, classes = predictor.checkpoint.task, predictor.checkpoint.classes
    columns = ["value"] if task == "regression" else list(classes)
    count = 0
    with appearing(out, overwrite=overwrite) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
        file.write("\t".join(["subgraph", "label", *columns]) + "\n")
        for texts, rows in chunks(subgraphs, predictor.graph):
            for text, scores in zip(texts, predictor.probabilities(rows), strict=True):
                label = label_text(scores, predictor.checkpoint)
                file.write("\t".join([text, label, *(f"{p:.6g}" for p in scores)]) + "\n")
            count += len(texts)
    return count


def write_embeddings(
    run: Path, subgraphs: Path, out: Path, *, data: Path | None = None, overwrite: bool = False
) -> tuple[int, int]:
    """Write the vectors of subgraphs as .npy, or as .parquet with the subgraphs beside them; returns their shape."""
    if out.suffix not in (".npy", ".parquet"):
        raise DataError(f"unknown kind of file '{out.suffix}'", where=str(out), hint="accepted: .npy, .parquet")
    predictor = open_run(run, data)
    texts: list[str] = []
    parts = []
    for some, rows in chunks(subgraphs, predictor.graph):
        texts += some
        parts.append(predictor.embeddings(rows))
    if not parts:
        raise DataError("no subgraphs", where=str(subgraphs), hint="a subgraph a line is needed")
    vectors = np.concatenate(parts)
    with appearing(out, overwrite=overwrite) as temporary:
        if out.suffix == ".npy":
            with temporary.open("wb") as file:
                np.save(file, vectors, allow_pickle=False)
        else:
            import pyarrow as pa
            from pyarrow import parquet

            flat = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), vectors.shape[1])
            parquet.write_table(pa.table({"subgraph": texts, "vector": flat}), temporary)
    return vectors.shape[0], vectors.shape[1]
