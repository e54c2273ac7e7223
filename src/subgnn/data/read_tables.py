"""A dataset from tables: edges, subgraphs and node attributes, from files or data frames."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from subgnn.data.dataset import Dataset
from subgnn.data.formats import FORMATS, read_dataset
from subgnn.data.formats.bundle import BUNDLE
from subgnn.data.formats.columns import missing
from subgnn.data.formats.edge_table import read_edges
from subgnn.data.formats.folder import FOLDER, read_folder_graph
from subgnn.data.formats.format import LabelFormat, ReadOptions
from subgnn.data.formats.members import Members, no_label, read_members
from subgnn.data.formats.node_table import read_attributes
from subgnn.data.formats.objects import graph_from_object
from subgnn.data.formats.subgraph_text import SUBGRAPH_TEXT
from subgnn.data.formats.tables import Source
from subgnn.data.graph import Graph
from subgnn.data.matching import match_nodes
from subgnn.data.splits import split_subgraphs
from subgnn.data.strings import Strings
from subgnn.data.subgraphs import SPLITS, SubgraphSet, encode_labels, split_labels
from subgnn.errors import DataError, DataWarning, choices, excerpt
from subgnn.ragged import Ragged

_DEFAULTS = ReadOptions()
_FRACTIONS = (0.8, 0.1, 0.1)
_SPLIT_NAMES = {"training": "train", "valid": "val", "validation": "val", "dev": "val", "testing": "test"}


def read_tables(
    edges: Source,
    members: Source | None = None,
    *,
    nodes: Source | None = None,
    name: str = "",
    options: ReadOptions = _DEFAULTS,
    seed: int = 0,
) -> Dataset:
    """A dataset from a graph and its subgraphs, each a file or a data frame.

    Args:
        edges: a table of edges, a graph file of another library (GraphML, GML, ...), or a graph.
        members: the subgraphs, in any form that :func:`~subgnn.data.formats.members.read_members` reads.
        nodes: a table of node attributes, which become features.
        name: of the dataset; by default that of the file of subgraphs.
        options: columns, encoding, what to do with unknown nodes, how labels are written.
        seed: of the split, if the subgraphs have none.

    Raises:
        DataError: for anything that cannot be read as what it should be.
    """
    graph, card = read_graph(edges, options), dict[str, Any]()
    if nodes is not None:
        graph, card = read_attributes(nodes, graph, options)
    subgraphs = SubgraphSet(Ragged.from_rows([]))
    if members is not None:
        subgraphs = read_subgraphs(members, graph, options, seed=seed)
    if not name:
        paths = [Path(source) for source in (members, edges) if isinstance(source, str | Path)]
        name = next((path.name.partition(".")[0] for path in paths), "tables")
    return Dataset(name=name, graph=graph, subgraphs=subgraphs, card=card)


def read_graph(source: Source, options: ReadOptions = _DEFAULTS) -> Graph:
    """A graph from a file of any format that holds one, a data frame of edges, or an object of another library.

    Raises:
        DataError: for a file that holds a dataset or subgraphs instead, or cannot be read.
    """
    if not isinstance(source, str | Path):
        found = graph_from_object(source, options.on_note)
        return read_edges(source, options) if found is None else found
    path = Path(source)
    form = next(each for each in FORMATS if (each.read_dataset or each.read_graph) and each.accepts(path))
    if form.read_graph is not None:
        return form.read_graph(path, options)
    if not path.exists():
        raise DataError("no such file", where=str(path), hint="check the path")
    if form is SUBGRAPH_TEXT:
        raise DataError("this is a file of subgraphs, not of edges", where=str(path), hint="give it with --subgraphs")
    raise DataError(
        "this is a dataset, which has subgraphs already", where=str(path), hint="give it alone, or give edges here"
    )


def read_graph_of(source: Source) -> Graph:
    """:func:`read_graph`, or the graph of a dataset: of a folder, which need not have subgraphs, or of a bundle."""
    if isinstance(source, str | Path):
        path = Path(source)
        if FOLDER.accepts(path) and path.exists():
            return read_folder_graph(path)
        if BUNDLE.accepts(path):
            return read_dataset(path).graph
    return read_graph(source)


def read_subgraphs(source: Source, graph: Graph, options: ReadOptions = _DEFAULTS, *, seed: int = 0) -> SubgraphSet:
    """Labelled subgraphs of a graph, with the split of the file or else a drawn one.

    Args:
        options: ``unknown`` decides about nodes that are not in the graph; a subgraph of which none is left, or that
            has no label, is left out, with a warning. A label is whole unless ``labels`` states that the task is
            multi-label.
        seed: of the split, if one is drawn.
    """
    members = read_members(source, graph, options)
    matched = match_nodes(members, graph, unknown=options.unknown)
    nodes, kept, told = matched.nodes, np.arange(len(members)), list[str]()
    if len(matched.empty):
        first = excerpt(members.names[int(matched.empty[0])])
        if len(matched.empty) == len(members):
            hint = "are nodes written as in the edges?"
            raise DataError("no subgraph has a node in the graph", where=members.where, hint=hint)
        told.append(f"{len(matched.empty):,} subgraphs have no node in the graph and are left out ({first})")
        kept = np.flatnonzero(nodes.lengths > 0)
    labels = members.labels
    lacking = [] if labels is None else [i for i in kept.tolist() if no_label(labels[i])]
    if 0 < len(lacking) < len(kept):
        written = "" if labels is None or not labels[lacking[0]] else f": {excerpt(str(labels[lacking[0]]))}"
        place = f"{members.unit} {members.rows[lacking[0]]}{written}"
        told.append(f"{len(lacking):,} of {len(kept):,} subgraphs have no label and are left out ({place})")
        kept = np.setdiff1d(kept, lacking)
    members, nodes = members.take(kept), nodes.take(kept)
    try:
        task, targets, classes = _labels(members, options.labels or LabelFormat())
        names = Strings.of(members.names) if members.named else None
        subgraphs = SubgraphSet(nodes, task, targets, classes, _splits(members), names, times=members.times)
        drawn = subgraphs.splits is None
        if drawn:
            subgraphs = split_subgraphs(subgraphs, method="stratified", fractions=_FRACTIONS, seed=seed)
    except DataError as error:
        raise DataError(error.what, where=error.where, hint="; ".join([error.hint, *told])) from None
    matched.warn()
    if matched.repeated:
        told.insert(0, f"{matched.repeated} repeated nodes in subgraphs; each counts once")
    if drawn:
        shares = "/".join(f"{share:.0%}".removesuffix("%") for share in _FRACTIONS)
        told.append(f"no column 'split': drew one, stratified {shares}, seed {seed}; subgnn data split draws another")
    for line in told:
        warnings.warn(f"{members.where}: {line}", DataWarning, stacklevel=2)
    return subgraphs


def _labels(members: Members, form: LabelFormat) -> Any:
    labels: Sequence[Any] | None = members.labels
    if labels is None and members.titles:
        raise missing(members.where, members.titles, ["label"])
    if labels is None or all(map(no_label, labels)):
        raise DataError("the subgraphs have no labels", where=members.where, hint="a column of labels is needed")
    task = form.stated_task
    if all(isinstance(label, str) for label in labels):
        labels = [label or "" for label in split_labels(labels, task, form.joins if task else None)]
    try:
        return encode_labels(labels, task, members.place)
    except DataError as error:
        where = error.where if error.where.startswith(members.where) else members.where
        raise DataError(error.what, where=where, hint=error.hint) from None


def _splits(members: Members) -> Any:
    """The places of the splits in :data:`SPLITS`; None if the file has no splits."""
    if members.splits is None:
        return None
    found = [_SPLIT_NAMES.get(text.casefold(), text.casefold()) for text in members.splits]
    for i, (split, text) in enumerate(zip(found, members.splits, strict=True)):
        if not text:
            raise DataError("the split is missing", where=members.place(i), hint="fill or drop empty cells")
        if split not in SPLITS:
            raise DataError(f"unknown split {excerpt(text)}", where=members.place(i), hint=choices(text, SPLITS))
    for split in SPLITS:
        if split not in found:
            hint = "train, val and test each need at least one; without the column, a split is drawn"
            raise DataError(f"no subgraph in split '{split}'", where=members.where, hint=hint)
    return np.array([SPLITS.index(split) for split in found], np.int8)
