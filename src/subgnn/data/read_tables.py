"""A dataset from tables: edges, subgraphs and node attributes, from files or data frames."""

from __future__ import annotations

import difflib
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.data.dataset import Dataset
from subgnn.data.formats import FORMATS, read_dataset
from subgnn.data.formats.bundle import BUNDLE
from subgnn.data.formats.folder import FOLDER, read_folder_graph
from subgnn.data.formats.format import LabelFormat, ReadOptions, Unknown, missing
from subgnn.data.formats.graph_tables import read_attributes, read_edges
from subgnn.data.formats.libraries import graph_from_object
from subgnn.data.formats.members import Members, no_label, read_members
from subgnn.data.formats.subgraph_text import ASK_ID_BASE, SUBGRAPH_TEXT
from subgnn.data.formats.tables import Source
from subgnn.data.graph import Graph
from subgnn.data.splits import split_subgraphs
from subgnn.data.strings import Strings, several_nodes
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
        seed: of the split, if the subgraphs have none.
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
    """A graph from a file of any format that holds one, a data frame of edges, or an object of another library."""
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
    what = "this is a dataset, which already has subgraphs"
    raise DataError(what, where=str(path), hint="give only the dataset, or give a table of edges here")


def read_graph_of(source: Source, options: ReadOptions = _DEFAULTS) -> Graph:
    """:func:`read_graph`, or the graph of a dataset: of a folder, which need not have subgraphs, or of a bundle."""
    if isinstance(source, str | Path):
        path = Path(source)
        if FOLDER.accepts(path) and path.exists():
            return read_folder_graph(path)
        if BUNDLE.accepts(path):
            return read_dataset(path).graph
    return read_graph(source, options)


def read_subgraphs(
    source: Source, graph: Graph, options: ReadOptions = _DEFAULTS, *, seed: int = 0, draw_split: bool = True
) -> SubgraphSet:
    """Labelled subgraphs of a graph, with the split of the file or else one drawn by the seed, if one is to be drawn.

    A subgraph of which no node is in the graph, or that has no label, is left out, with a warning. A label is whole
    unless ``options.labels`` states that the task is multi-label.
    """
    members = read_members(source, graph, options)
    matched = match_nodes(members, graph, unknown=options.unknown)
    nodes, kept, told = matched.nodes, np.arange(len(members)), list[str]()
    if len(matched.empty):
        first = excerpt(members.names[int(matched.empty[0])])
        if len(matched.empty) == len(members):
            hint = "are nodes named as in the edges?"
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
        subgraphs = SubgraphSet(
            nodes, task, targets, classes, _splits(members, whole=draw_split), names, times=members.times
        )
        drawn = draw_split and subgraphs.splits is None
        if drawn:
            subgraphs = split_subgraphs(subgraphs, method="stratified", fractions=_FRACTIONS, seed=seed)
    except DataError as error:
        raise DataError(error.what, where=error.where, hint="; ".join([error.hint, *told])) from None
    matched.warn()
    if matched.repeated:
        told.insert(0, f"{matched.repeated} repeated nodes in subgraphs; each counts once")
    if drawn:
        shares = "/".join(f"{share:.0%}".removesuffix("%") for share in _FRACTIONS)
        told.append(
            f"no column 'split': drew one, stratified {shares}, seed {seed}; subgnn data split draws a different one"
        )
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


def _splits(members: Members, *, whole: bool = True) -> Any:
    """The places of the splits in :data:`SPLITS`; None if the file has no splits. A ``whole`` set needs all three."""
    if members.splits is None:
        return None
    found = [_SPLIT_NAMES.get(text.casefold(), text.casefold()) for text in members.splits]
    for i, (split, text) in enumerate(zip(found, members.splits, strict=True)):
        if not text:
            raise DataError("the split is missing", where=members.place(i), hint="fill or drop empty cells")
        if split not in SPLITS:
            raise DataError(f"unknown split {excerpt(text)}", where=members.place(i), hint=choices(text, SPLITS))
    for split in SPLITS if whole else ():
        if split not in found:
            hint = "train, val and test each need at least one; without the column, a split is drawn"
            raise DataError(f"no subgraph in split '{split}'", where=members.where, hint=hint)
    return np.array([SPLITS.index(split) for split in found], np.int8)


_SHOWN = 3
_MOST_COMPARED = 20_000
_DATE = re.compile(r"\d{4}-\d\d-\d\d( 00:00:00)?|\d{1,2}-(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)")


@dataclass(frozen=True, slots=True, eq=False)
class Matched:
    """The nodes of subgraphs, and what was not found.

    Args:
        nodes: for each subgraph its nodes, sorted, each once; without those that are not in the graph.
        unknown: texts that are not in the graph, with the number of subgraphs they are in, the most frequent first.
        dropped: for each subgraph, how many of its nodes are not in the graph.
        by_case: texts that were matched by ignoring case, with the name that they matched.
        nearest: for the first unknown texts, the most similar name in the graph.
    """

    nodes: Ragged
    unknown: dict[str, int]
    dropped: NDArray[np.int64]
    by_case: dict[str, str]
    repeated: int
    where: str
    nearest: dict[str, str]

    @property
    def empty(self) -> NDArray[np.int64]:
        """The subgraphs that have no node in the graph."""
        return np.flatnonzero(self.nodes.lengths == 0)

    def unknown_text(self) -> str:
        """The nodes that are not in the graph in a few words: how many, in how many subgraphs, the nearest names."""
        within = f"in {int(np.count_nonzero(self.dropped)):,} of {len(self.nodes):,} subgraphs"
        dates = "; a spreadsheet has turned names into dates" if any(map(_DATE.fullmatch, self.unknown)) else ""
        near = {text: f"nearest: {excerpt(name)}" for text, name in self.nearest.items()}
        if len(self.unknown) == 1:
            (text,) = self.unknown
            details = [within] * (len(self.nodes) > 1) + list(near.values())
            return f"node {excerpt(text)} is not in the graph" + (f" ({', '.join(details)})" if details else "") + dates
        shown = [excerpt(text) + (f" ({near[text]})" if text in near else "") for text in list(self.unknown)[:_SHOWN]]
        more = ", ..." if len(self.unknown) > _SHOWN else ""
        return f"{len(self.unknown):,} nodes are not in the graph, {within}: {', '.join(shown)}{more}{dates}"

    def warn(self) -> None:
        """Warn about nodes that were dropped, and about nodes that differ in case only."""
        if self.unknown:
            warnings.warn(f"{self.where}: {self.unknown_text()}; left out", DataWarning, stacklevel=2)
        if self.by_case:
            text, name = next(iter(self.by_case.items()))
            what = f"{len(self.by_case):,} name{'s' if len(self.by_case) > 1 else ''} matched by ignoring case"
            warnings.warn(f"{self.where}: {what}: {excerpt(text)} is {excerpt(name)}", DataWarning, stacklevel=2)


def match_nodes(members: Members, graph: Graph, *, unknown: Unknown = "error") -> Matched:
    """Find the nodes of subgraphs in the graph: by exact name (``#12`` is row 12), then ignoring case.

    Nodes that are not in the graph are refused, listed with counts and the nearest names; ``drop`` leaves them out,
    so that a subgraph may be empty. A text that names several nodes is always refused.
    """
    places = np.empty(len(members.texts), np.int64)
    by_case: dict[str, str] = {}
    for i, text in enumerate(members.texts):
        node, in_another_case = graph.find(text)
        if node is not None and node < 0:
            error, place = several_nodes(text, graph.names), np.argmax(members.nodes.values == i)
            subgraph = int(members.nodes.row_ids[place])
            raise DataError(error.what, where=members.place(subgraph), hint=error.hint)
        if node is not None and in_another_case and graph.names is not None:
            by_case[text] = graph.names[node]
        places[i] = -1 if node is None else node
    found = _collect(members, places, by_case, graph)
    if found.unknown and unknown == "error":
        them = "it" if len(found.unknown) == 1 else "them"
        hint = f"correct {them}, or pass --unknown drop to leave {them} out"
        first = int(np.argmax(found.dropped > 0))
        where = members.place(first) if len(members) > 1 else members.where
        last, number = graph.num_nodes - 1, next((text for text in found.unknown if text.isdigit()), None)
        if graph.names is None:
            hint += f"; ids run 0..{last}{ASK_ID_BASE if str(last + 1) in found.unknown else ''}"
        elif number is not None:
            hint += f"; nodes have names here, so write row {number[:18]} as #{number[:18]}"
        raise DataError(found.unknown_text(), where=where, hint=hint)
    return found


def _collect(members: Members, places: NDArray[np.int64], by_case: dict[str, str], graph: Graph) -> Matched:
    values, rows = places[members.nodes.values], members.nodes.row_ids
    known = values >= 0
    # Each node of a subgraph once, sorted.
    pairs = np.unique(np.stack([rows[known], values[known]]), axis=1)
    nodes = Ragged.from_lengths(pairs[1].astype(np.int32), np.bincount(pairs[0], minlength=len(members)))
    lost = np.unique(np.stack([rows[~known], members.nodes.values[~known].astype(np.int64)]), axis=1)
    dropped, counts = np.bincount(lost[0], minlength=len(members)), np.bincount(lost[1], minlength=len(members.texts))
    order = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]
    unknown = {members.texts[i]: int(counts[i]) for i in order}
    repeated, nearest = int(np.count_nonzero(known)) - pairs.shape[1], _nearest(list(unknown)[:_SHOWN], graph)
    return Matched(nodes, unknown, dropped, by_case, repeated, members.where, nearest)


def _nearest(texts: Sequence[str], graph: Graph) -> dict[str, str]:
    """The most similar name of each text, among names that begin alike where there are many."""
    if graph.names is None or not texts:
        return {}
    names, found = list(graph.names.primary), {}
    for text in texts:
        near = names
        if len(names) > _MOST_COMPARED:
            begin = text[:2].casefold()
            near = [name for name in names if name[:2].casefold() == begin][:_MOST_COMPARED]
        if best := difflib.get_close_matches(text[:100], near, n=1):
            found[text] = best[0]
    return found
