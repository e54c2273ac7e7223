"""One dataset, other files: folder, bundle, graph files of other libraries, tables with ids of any kind."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from subgnn.data.dataset import Dataset
from subgnn.data.edge_store import MEMORY
from subgnn.data.formats import read_dataset
from subgnn.data.formats.bundle import SUFFIX, is_bundle, open_own_bundle, write_bundle
from subgnn.data.formats.folder import LabelForm, read_folder, write_folder
from subgnn.data.formats.graph_files import READERS, GraphOptions, read_graph_file
from subgnn.data.formats.staged_edges import Staging
from subgnn.data.formats.subgraph_text import read_subgraphs
from subgnn.data.formats.tables import SUFFIXES, is_table, read_edge_table, read_membership_table
from subgnn.data.formats.text import read_lines
from subgnn.data.graph import Graph
from subgnn.data.problems import Problems
from subgnn.data.splits import split_subgraphs
from subgnn.data.subgraphs import SubgraphSet, encode_labels, label_separator, split_labels
from subgnn.errors import DataError, DataWarning
from subgnn.parallel.progress import OnProgress
from subgnn.ragged import Ragged
from subgnn.storage.files import refuse_existing, scratch_folder

Layout = Literal["folder", "bundle"]


@dataclass(frozen=True, slots=True)
class TableColumns:
    """Which columns of a table of edges mean what; the first two are the ends where nothing is said."""

    source: str | None = None
    target: str | None = None
    weight: str | None = None


def convert(
    source: Path,
    destination: Path,
    *,
    to: Layout | None = None,
    subgraphs: Path | None = None,
    columns: TableColumns | None = None,
    directed: bool = False,
    id_base: int | None = None,
    labels: LabelForm | None = None,
    compress: bool = False,
    overwrite: bool = False,
    memory: int = MEMORY,
    on_progress: OnProgress | None = None,
) -> tuple[Dataset, Layout]:
    """Read a dataset or a graph and write it in another form.

    Args:
        source: a dataset folder or bundle; or a graph alone: CSV, TSV, Parquet, GraphML, GML, node-link JSON, PyG .pt,
            scipy .npz, Matrix Market .mtx.
        to: what to write; by default a folder becomes a bundle, everything else a folder, and a destination that ends
            in ``.subgnn`` is a bundle.
        subgraphs: for a graph alone, its subgraphs: a table of memberships or a subgraphs.tsv.
        columns: for a table of edges.
        directed: for a table of edges, keep orientations.
        labels: how labels stand in the source; by default what its card says, or, in tables, whole.
        compress: gzip the edge list of a folder.
        memory: bytes to work in where a folder becomes a bundle; its edge list may be larger.
        on_progress: called with what is done, how much of it and how much there is, where a folder becomes a bundle.
    """
    if destination.suffix == SUFFIX and to is None:
        to = "bundle"
    layout: Layout = to if to is not None else "bundle" if source.is_dir() else "folder"
    if not source.exists():
        raise DataError("no such file or folder", where=str(source), hint="check the path")
    if source.is_dir() and layout == "bundle" and subgraphs is None:
        staged = _convert_on_disk(source, destination, memory, id_base, labels, overwrite, on_progress)
        return staged, layout
    name = destination.name.removesuffix(SUFFIX)
    dataset = _read(source, name, subgraphs, columns or TableColumns(), directed, id_base, labels)
    if layout == "bundle":
        write_bundle(dataset, destination, overwrite=overwrite)
    else:
        write_folder(dataset, destination, compress=compress, overwrite=overwrite)
    return dataset, layout


def _convert_on_disk(
    source: Path,
    destination: Path,
    memory: int,
    id_base: int | None,
    labels: LabelForm | None,
    overwrite: bool,
    on_progress: OnProgress | None,
) -> Dataset:
    """A folder to a bundle; the graph is built beside the bundle and never in memory."""
    refuse_existing(destination, overwrite=overwrite)
    problems = Problems()
    with scratch_folder(destination) as scratch:
        staging = Staging(scratch, memory, on_progress)
        dataset = read_folder(source, problems, id_base=id_base, labels=labels, staging=staging)
        problems.stop()
        if dataset is None:
            raise DataError("nothing could be read", where=str(source))
        if on_progress is not None:
            on_progress("writing the bundle", 0, 1)
        write_bundle(dataset, destination, overwrite=overwrite)
    if on_progress is not None:
        on_progress("writing the bundle", 1, 1)
    return open_own_bundle(destination)


def _read(
    source: Path,
    name: str,
    subgraphs: Path | None,
    columns: TableColumns,
    directed: bool,
    id_base: int | None,
    labels: LabelForm | None,
) -> Dataset:
    if source.is_dir() or is_bundle(source):
        if subgraphs is not None:
            raise DataError(
                "a dataset has subgraphs of its own", where=str(subgraphs), hint="--subgraphs goes with a graph alone"
            )
        dataset = read_dataset(source, id_base=id_base, labels=labels)
        if source.is_dir() or labels is None:
            return dataset
        return replace(dataset, subgraphs=_relabel(dataset.subgraphs, labels, str(source)))
    if labels is not None and subgraphs is None:
        raise DataError("a graph alone has no labels", where=str(source), hint="--task goes with --subgraphs")
    if _is_subgraph_text(source):
        raise DataError("this is a file of subgraphs, not of edges", where=str(source), hint="give it with --subgraphs")
    if is_table(source):
        graph = read_edge_table(
            source, source=columns.source, target=columns.target, weight=columns.weight, directed=directed
        )
    elif source.suffix in READERS:
        graph = read_graph_file(source, GraphOptions(weight=columns.weight, directed=directed))
    else:
        accepted = ", ".join((*SUFFIXES, *READERS, SUFFIX))
        raise DataError(
            f"unknown kind of file '{source.suffix}'", where=str(source), hint=f"accepted: a dataset folder, {accepted}"
        )
    members = None if subgraphs is None else _read_members(subgraphs, graph, id_base, labels or LabelForm())
    if members is not None and members.splits is None:
        members = split_subgraphs(members, method="stratified", fractions=(0.8, 0.1, 0.1), seed=0)
        what = "no column 'split': drew one, stratified 80/10/10, seed 0; subgnn data split draws another"
        warnings.warn(f"{subgraphs}: {what}", DataWarning, stacklevel=2)
    none = SubgraphSet(nodes=Ragged.from_rows([]))
    return Dataset(name=name, graph=graph, subgraphs=members or none)


def _is_subgraph_text(path: Path) -> bool:
    """Whether a file is called as subgraphs in text are."""
    return path.name.endswith(("subgraphs.tsv", "subgraphs.tsv.gz", "subgraphs.pth"))


def _is_membership_table(path: Path) -> bool:
    """CSV and Parquet are tables; a TSV is one where its first line names the columns."""
    if not is_table(path) or ".tsv" not in path.suffixes:
        return is_table(path)
    first = next(read_lines(path), (0, ""))[1]
    return {"subgraph", "node"} <= set(first.split("\t"))


def _relabel(subgraphs: SubgraphSet, labels: LabelForm, where: str) -> SubgraphSet:
    """Subgraphs of a bundle whose labels are taken as another task."""
    several = subgraphs.task == "multi-label"
    if subgraphs.targets is None:
        raise DataError("the subgraphs have no labels", where=where, hint="leave --task out")
    if several and labels.stated != "multi-label" and (subgraphs.targets.sum(axis=1) != 1).any():
        hint = "convert the files it was made of again, with --task"
        raise DataError("some subgraphs have several labels", where=where, hint=hint)
    texts = [subgraphs.label_text(row) for row in range(len(subgraphs))]
    separator = label_separator(subgraphs.classes) if several else labels.separator or "-"
    try:
        task, targets, classes = encode_labels(split_labels(texts, labels.stated, separator), labels.stated)
    except DataError as error:
        raise DataError(error.what, where=f"{where}: {error.where}", hint=error.hint) from None
    return replace(subgraphs, task=task, targets=targets, classes=classes)


def _read_members(path: Path, graph: Graph, id_base: int | None, labels: LabelForm) -> SubgraphSet:
    separator = labels.separator or "-"
    if _is_membership_table(path):
        return read_membership_table(path, graph, task=labels.stated, separator=separator)
    problems = Problems()
    subgraphs = read_subgraphs(
        path,
        problems,
        num_nodes=graph.num_nodes,
        names=graph.names,
        id_base=id_base or 0,
        task=labels.stated,
        separator=separator,
    )
    problems.stop()
    if subgraphs is None:
        raise DataError("nothing could be read", where=str(path))
    return subgraphs
