"""A dataset from tables: edges, subgraphs and node attributes, from files or data frames."""

import difflib
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.data.dataset import Dataset, Problems
from subgnn.data.formats import FORMATS, read_dataset
from subgnn.data.formats.bundle import BUNDLE
from subgnn.data.formats.folder import FOLDER, read_folder
from subgnn.data.formats.format import LabelFormat, ReadOptions, missing
from subgnn.data.formats.graph_tables import read_aliases, read_attributes, read_edges
from subgnn.data.formats.libraries import graph_from_object
from subgnn.data.formats.members import Members, read_members
from subgnn.data.formats.subgraph_text import ASK_ID_BASE
from subgnn.data.formats.tables import Source
from subgnn.data.graph import Graph
from subgnn.data.splits import split_subgraphs
from subgnn.data.strings import Strings, is_id, is_number, several_nodes
from subgnn.data.subgraphs import SPLITS, SubgraphSet, encode_labels, present_and_absent, single_classes, with_absent
from subgnn.errors import DataError, choices, counted, excerpt, warn
from subgnn.ragged import Ragged

_FRACTIONS = (0.8, 0.1, 0.1)
_SPLIT_NAMES = {"training": "train", "valid": "val", "validation": "val", "dev": "val", "testing": "test"}


def read_tables(
    edges: Source,
    members: Source | None = None,
    *,
    nodes: Source | None = None,
    name: str = "",
    options: ReadOptions = ReadOptions(),
    seed: int = 0,
) -> Dataset:
    """A dataset from a graph, its subgraphs (``members``) and attributes of ``nodes``, each a file or a data frame."""
    graph, card = read_graph(edges, options), dict[str, Any]()
    try:
        if nodes is not None:
            graph, card = read_attributes(nodes, graph, options)
        if options.aliases is not None:
            graph = read_aliases(options.aliases, graph, options)
    except DataError as error:
        options.refuse(error)
    subgraphs, unlabelled = SubgraphSet(Ragged.from_rows([])), None
    if members is not None:
        subgraphs, unlabelled = read_subgraphs(members, graph, options, seed=seed)
    if not name:
        paths = [Path(source) for source in (members, edges) if isinstance(source, str | Path)]
        name = next((path.name.partition(".")[0] for path in paths), "tables")
    return Dataset(name, graph, subgraphs, card, unlabelled, options.reading)


def read_graph(source: Source, options: ReadOptions = ReadOptions()) -> Graph:
    """A graph from a file of any format that holds one, a data frame of edges, or an object of another library."""
    if not isinstance(source, str | Path):
        found = graph_from_object(source, options.on_note)
        return read_edges(source, options) if found is None else found
    path = Path(source)
    form = next(each for each in FORMATS if each.accepts(path))
    if path.name.endswith(("subgraphs.tsv", "subgraphs.tsv.gz", "subgraphs.pth")):
        raise DataError("this is a file of subgraphs, not of edges", where=str(path), hint="give it with --subgraphs")
    if form.read_graph is not None:
        return form.read_graph(path, options)
    if not path.exists():
        raise DataError("no such file", where=str(path), hint="check the path")
    what = "this is a dataset, which already has subgraphs"
    raise DataError(what, where=str(path), hint="give only the dataset, or give a table of edges here")


def read_graph_of(source: Source, options: ReadOptions = ReadOptions()) -> Graph:
    """:func:`read_graph`, or the graph of a dataset: of a folder, which need not have subgraphs, or of a bundle."""
    if isinstance(source, str | Path):
        path = Path(source)
        if FOLDER.accepts(path) and path.exists():
            problems = Problems()
            reading = ReadOptions(id_base=options.id_base)
            return problems.require(read_folder(path, reading, problems, graph_alone=True), path).graph
        if BUNDLE.accepts(path):
            return read_dataset(path).graph
    return read_graph(source, options)


def read_subgraphs(
    source: Source, graph: Graph, options: ReadOptions = ReadOptions(), *, seed: int = 0, draw_split: bool = True
) -> tuple[SubgraphSet, SubgraphSet | None]:
    """Labelled subgraphs, with the split of the file or a drawn one, and those without a label, if they are kept."""
    members = read_members(source, graph, options)
    matched = match_nodes(members, graph, options)
    nodes, kept, told = matched.nodes, np.arange(len(members)), list[str]()
    if len(matched.empty):
        first = excerpt(members.names[int(matched.empty[0])])
        if len(matched.empty) == len(members):
            hint = "are nodes named as in the edges?"
            raise DataError("no subgraph has a node in the graph", where=members.where, hint=hint)
        told.append(f"left out: {counted(len(matched.empty), 'subgraph')} without a node in the graph ({first})")
        kept = np.flatnonzero(nodes.lengths > 0)
    labels, unlabelled = members.labels, None
    lacking = [] if labels is None else [i for i in kept.tolist() if options.no_label(labels[i])]
    if 0 < len(lacking) < len(kept):
        written = "" if labels is None or not labels[lacking[0]] else f": {excerpt(str(labels[lacking[0]]))}"
        place = f"{members.unit} {members.rows[lacking[0]]}{written}"
        predicts = options.unlabelled == "predict"
        becomes = "kept to be predicted" if predicts else "left out"
        told.append(f"without a label and {becomes}: {len(lacking):,} of {len(kept):,} subgraphs ({place})")
        unlabelled = _subgraph_set(members.take(lacking), nodes.take(lacking)) if predicts else None
        kept = np.setdiff1d(kept, lacking)
    members, nodes = members.take(kept), nodes.take(kept)
    try:
        form, texts = options.labels or LabelFormat(), members.labels
        if texts is None and members.titles:
            raise missing(members.where, members.titles, ["label"])
        if texts is None or all(map(options.no_label, texts)):
            hint = "a column of labels is needed, or a table of them, --labels TABLE"
            raise DataError("the subgraphs have no labels", where=members.where, hint=hint)
        joins = form.joins if form.stated_task and all(isinstance(text, str) for text in texts) else None
        encoded = encode_labels(texts, form.stated_task, members.place, separator=joins, keep_na=options.keep_na)
        splits = _splits(members, options, whole=draw_split)
        labelled: dict[str, Any] = dict(zip(("task", "targets", "classes"), encoded, strict=True))
        subgraphs = replace(_subgraph_set(members, nodes), **labelled, splits=splits)
        if draw_split:
            single_classes(subgraphs)
        if drawn := draw_split and subgraphs.splits is None:
            subgraphs = split_subgraphs(subgraphs, method="stratified", fractions=_FRACTIONS, seed=seed)
    except DataError as error:
        where = members.where if error.where == "labels" else error.where
        raise DataError(error.what, where=where, hint="; ".join([error.hint, *told])) from None
    replace(matched, unknown={} if options.unknown == "error" else matched.unknown).warn()
    if matched.repeated:
        told.insert(0, f"{counted(matched.repeated, 'repeated node')} in subgraphs; each counts once")
    if drawn:
        shares = "/".join(f"{share:.0%}".removesuffix("%") for share in _FRACTIONS)
        told.append(f"no column 'split', so the split was drawn: stratified {shares}, seed {seed}")
    for line in told:
        warn(f"{members.where}: {line}")
    return subgraphs, unlabelled


def _subgraph_set(members: Members, nodes: Ragged) -> SubgraphSet:
    names = Strings.of(members.names) if members.named else None
    columns = {title: values for title, values in members.others.items() if title in members.titles}
    return SubgraphSet(nodes, names=names, times=members.times, columns=columns)


def _splits(members: Members, options: ReadOptions, *, whole: bool = True) -> Any:
    """The places of the splits in :data:`SPLITS`; None if the file has no splits. A ``whole`` set needs all three."""
    if members.splits is None:
        return None
    found = [_SPLIT_NAMES.get(text.casefold(), text.casefold()) for text in members.splits]
    for i, (split, text) in enumerate(zip(found, members.splits, strict=True)):
        if split not in SPLITS:
            found[i] = SPLITS[0]
            what = f"unknown split {excerpt(text)}" if text else "the split is missing"
            hint = choices(text, SPLITS) if text else "fill or drop empty cells"
            options.refuse(DataError(what, where=members.place(i), hint=hint))
    for split in SPLITS if whole else ():
        if split not in found:
            hint = "train, val and test each need at least one; without the column, a split is drawn"
            raise DataError(f"no subgraph in split '{split}'", where=members.where, hint=hint)
    return np.array([SPLITS.index(split) for split in found], np.int8)


_SHOWN = 3
_SAMPLE = 1000
_MOST_COMPARED = 20_000
_MOST_DIGITS = 3  # of a word, such as TP53
_DATE = re.compile(r"\d{4}-\d\d-\d\d( 00:00:00)?|\d{1,2}-(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)")


@dataclass(frozen=True, slots=True, eq=False)
class Matched:
    """The nodes of subgraphs, sorted, and what was not found."""

    nodes: Ragged
    unknown: dict[str, int]  # texts, and how many subgraphs each is in
    dropped: NDArray[np.int64]  # how many nodes of each subgraph are unknown
    by_case: dict[str, str]  # texts, and the names they stand for
    repeated: int
    where: str
    nearest: dict[str, str]  # unknown texts, and similar names
    by_alias: dict[str, str] = field(default_factory=dict)  # texts, and the names they stand for

    @property
    def empty(self) -> NDArray[np.int64]:
        return np.flatnonzero(self.nodes.lengths == 0)

    def unknown_text(self) -> str:
        """The nodes that are not in the graph in a few words: how many, in how many subgraphs, the nearest names."""
        within = [f"in {np.count_nonzero(self.dropped):,} of {len(self.nodes):,} subgraphs"] * (len(self.nodes) > 1)
        dates = "; a spreadsheet has turned names into dates" if any(map(_DATE.fullmatch, self.unknown)) else ""
        near = {text: f"nearest: {excerpt(name)}" for text, name in self.nearest.items()}
        if len(self.unknown) == 1:
            (text,) = self.unknown
            details = [*within, *near.values()]
            return f"node {excerpt(text)} is not in the graph" + (f" ({', '.join(details)})" if details else "") + dates
        shown = [excerpt(text) + (f" ({near[text]})" if text in near else "") for text in list(self.unknown)[:_SHOWN]]
        more = ", ..." if len(self.unknown) > _SHOWN else ""
        begin = ", ".join([f"{len(self.unknown):,} nodes are not in the graph", *within])
        return f"{begin}: {', '.join(shown)}{more}{dates}"

    def warn(self) -> None:
        if self.unknown:
            warn(f"{self.where}: {self.unknown_text()}; left out")
        for how, found in (("matched by ignoring case", self.by_case), ("replaced by aliases", self.by_alias)):
            if found:
                pairs = [f"{excerpt(text)} is {excerpt(name)}" for text, name in list(found.items())[:_SHOWN]]
                more = ", ..." if len(found) > _SHOWN else ""
                warn(f"{self.where}: {counted(len(found), 'name')} {how}: {', '.join(pairs)}{more}")


def match_nodes(members: Members, graph: Graph, options: ReadOptions = ReadOptions()) -> Matched:
    """Find the nodes of subgraphs: by exact name (``#12`` is row 12), by alias, then ignoring case, or refuse them."""
    places = np.empty(len(members.texts), np.int64)
    by_case: dict[str, str] = {}
    by_alias: dict[str, str] = {}
    for i, text in enumerate(members.texts):
        node, in_another_case = graph.find(text)
        if node is not None and node < 0:
            error = several_nodes(text, graph.names)
            options.refuse(DataError(error.what, where=members.place_of_text(i), hint=error.hint))
        elif node is not None and graph.names is not None and (in_another_case or graph.names.is_alias(text)):
            (by_case if in_another_case else by_alias)[text] = graph.names[node]
        places[i] = -1 if node is None else node
    found = replace(_collect(members, places, by_case, graph), by_alias=by_alias)
    if members.absent is not None:
        absent = _collect(replace(members, nodes=members.absent), places, by_case, graph)
        keys = [one.row_ids * graph.num_nodes + one.values for one in (found.nodes, absent.nodes)]
        if len(both := np.intersect1d(*keys)):
            subgraph, node = divmod(int(both[0]), graph.num_nodes)
            text = str(node) if graph.names is None else graph.names[node]
            options.refuse(present_and_absent(text, members.place(subgraph)))
        unknown = {text: found.unknown.get(text, 0) + count for text, count in absent.unknown.items()}
        nodes, nearest = with_absent(found.nodes, absent.nodes), found.nearest | absent.nearest
        lost = found.dropped if options.unknown == "drop" else found.dropped + absent.dropped
        found = replace(found, nodes=nodes, unknown=found.unknown | unknown, nearest=nearest, dropped=lost)
    if found.unknown and options.unknown == "error":
        them = "it" if len(found.unknown) == 1 else "them"
        hint = f"correct {them}, or pass --unknown drop to leave {them} out"
        first, last = members.texts.index(next(iter(found.unknown))), graph.num_nodes - 1
        where = members.place_of_text(first) if len(members) > 1 else members.where
        if graph.names is None:
            hint += f"; ids run 0..{last}{ASK_ID_BASE if str(last + 1) in found.unknown else ''}"
        elif not any(map(is_number, graph.names.primary[:_SAMPLE])):
            rows = [text for text in found.unknown if is_id(text) and int(text) <= last]
            hint += f"; nodes have names here: if {rows[0]} is a row number, write #{rows[0]}" if rows else ""
        options.refuse(DataError(found.unknown_text(), where=where, hint=hint))
    return found


def _collect(members: Members, places: NDArray[np.int64], by_case: dict[str, str], graph: Graph) -> Matched:
    nodes = members.nodes.mapped(places)
    lost = members.nodes.mapped(np.where(places < 0, np.arange(len(places)), -1))
    dropped, counts = lost.lengths, np.bincount(lost.values, minlength=len(members.texts))
    order = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]
    unknown = {members.texts[i]: int(counts[i]) for i in order}
    repeated = int(np.count_nonzero(places[members.nodes.values] >= 0)) - len(nodes.values)
    # The most similar name of each word; none for a text of many digits, whose nearest is somebody else's.
    names, nearest = list(graph.names.primary) if graph.names and unknown else [], dict[str, str]()
    for text in list(unknown)[:_SHOWN] if names else ():
        near = names
        if len(names) > _MOST_COMPARED:
            begin = text[:2].casefold()
            near = [name for name in names if name[:2].casefold() == begin][:_MOST_COMPARED]
        if sum(map(str.isdigit, text)) > min(_MOST_DIGITS, sum(map(str.isalpha, text))):
            continue
        if best := difflib.get_close_matches(text[:100], near, n=1):
            nearest[text] = best[0]
    return Matched(nodes, unknown, dropped, by_case, repeated, members.where, nearest)
