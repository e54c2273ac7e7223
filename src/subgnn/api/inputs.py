"""Recipes, graphs, subgraphs and tables as a caller gives them, also as objects of other libraries."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np

from subgnn.api.options import TableOptions, with_options
from subgnn.config.plugins import allow_plugins
from subgnn.config.recipes import recipe_names
from subgnn.config.settings import Recipe
from subgnn.data.dataset import Dataset
from subgnn.data.formats.format import ReadOptions
from subgnn.data.formats.libraries import graph_from_object
from subgnn.data.formats.members import Members, encode_texts, read_members
from subgnn.data.formats.tables import Source
from subgnn.data.graph import Graph
from subgnn.data.read_tables import read_graph, read_graph_of
from subgnn.data.read_tables import read_tables as read_dataset_tables
from subgnn.data.subgraphs import SubgraphSet, absent_of
from subgnn.errors import DataError, UserError, excerpt, warn
from subgnn.models.recipes import find_recipe, setting_text
from subgnn.ragged import Ragged

Settings = Mapping[str, Any] | Sequence[str]
"""Overrides of a recipe: ``{"training.epochs": 5}``, or ``["training.epochs=5"]`` as on the command line."""
Subgraphs = SubgraphSet | Ragged | Mapping[str, Iterable[Any]] | Iterable[Iterable[Any]] | str | Path
"""Subgraphs: a set, rows of a graph, names with their nodes, lists of nodes, or a table: its path, or a data frame."""
_WHERE = "subgraphs"


def as_recipe(recipe: str | Path | Recipe, settings: Settings = ()) -> Recipe:
    """A recipe by its name or file, with overrides; or one as it is.

    Example:
        >>> as_recipe("subgnn", {"training.epochs": 5, "model.head": [8, 8]}).training.epochs
        5
    """
    if isinstance(recipe, Recipe):
        if settings:
            hint = "give the name of the recipe, or leave the settings out"
            raise UserError("settings cannot be combined with a Recipe object", where="settings", hint=hint)
        allow_plugins(recipe.plain())
        return recipe
    if isinstance(settings, Mapping):
        settings = [f"{key}={setting_text(value)}" for key, value in settings.items()]
    return find_recipe(str(recipe), list(settings))


def as_graph(value: Any, *, datasets: bool = False) -> Graph:
    """A graph of this library, networkx, PyG or scipy, or a table of edges; with ``datasets``, also a dataset."""
    if isinstance(value, str) and value in recipe_names() and not Path(value).exists():
        raise DataError(f"{excerpt(value)} is a recipe", where="graph", hint=f"write recipe={value!r}")
    if not isinstance(value, (str, Path)) and not is_table(value) and graph_from_object(value) is None:
        hint = "accepted: a Graph, a networkx, PyG or scipy graph, or a table of edges"
        raise DataError("no graph" if value is None else f"a {type(value).__name__}", where="graph", hint=hint)
    return read_graph_of(value) if datasets else read_graph(value)


@with_options(TableOptions)
def read_tables(
    edges: Source, members: Source | None = None, *, name: str = "", tables: TableOptions, seed: int = 0
) -> Dataset:
    """Read a dataset from tables.

    The options of ``subgnn train`` for tables (:class:`~subgnn.api.options.TableOptions`) are keywords.
    A table is a data frame (pandas, polars, Arrow) or a file: CSV, TSV, Parquet, Excel, JSON lines. Warnings say which
    columns were guessed from their titles.

    Args:
        edges: a table with a row for each edge; or a graph: of this library or another one, or its file.
        members: the subgraphs: a table with a row for each membership, or with a row for each subgraph and a list of
            nodes; or a file of gene sets.
        name: of the dataset; by default that of the file of subgraphs.
        seed: of the split, if there is no column for it.

    Example:
        >>> import pyarrow as pa
        >>> edges = pa.table({"source": ["a", "b", "c"], "target": ["b", "c", "d"]})
        >>> members = pa.table({"subgraph": ["one", "two", "three"], "node": [["a", "b"], ["c"], ["b", "d"]],
        ...                     "label": ["x", "y", "x"], "split": ["train", "val", "test"]})
        >>> read_tables(edges, members).subgraphs
        SubgraphSet(3 subgraphs, binary, 2 classes, train 1, val 1, test 1)
    """
    reading = tables.reading(None, warn)
    return read_dataset_tables(edges, members, nodes=tables.nodes, name=name, options=reading, seed=seed)


def as_members(subgraphs: Subgraphs, graph: Graph, options: ReadOptions = ReadOptions()) -> Members:
    """Subgraphs with their nodes as text, which :func:`~subgnn.data.read_tables.match_nodes` finds in the graph.

    A node in a list is a name, also where it is a number; only a graph without names has row numbers. A set of
    subgraphs and rows hold row numbers. The index of a pandas object names its subgraphs where nothing else does.
    """
    names: Sequence[str] | None = None
    rows: Any = subgraphs
    if isinstance(subgraphs, (str, Path)) or is_table(subgraphs):
        found, names = read_members(subgraphs, graph, options), _index_names(subgraphs)
        fits = names is not None and not found.named and len(names) == len(found)
        return replace(found, names=names or (), named=True) if fits else found
    others: Mapping[str, Sequence[str | None]] = {}
    if isinstance(subgraphs, SubgraphSet):
        names, rows = None if subgraphs.names is None else list(subgraphs.names), subgraphs.nodes
        others = subgraphs.columns
    elif is_list_of_sets(subgraphs) and all(one.names is not None for one in subgraphs):
        names = [name for one in subgraphs for name in one.names or ()]
    elif hasattr(subgraphs, "index") and hasattr(subgraphs, "iloc"):
        names = _index_names(subgraphs)
    elif isinstance(subgraphs, Mapping):
        names, rows = list(map(str, subgraphs)), subgraphs.values()
    if isinstance(rows, Ragged):
        lists = _written(rows, graph)
    elif isinstance(rows, Iterable):
        lists = []
        for row, nodes in enumerate(rows, 1):
            if isinstance(nodes, SubgraphSet):
                lists += _written(nodes.nodes, graph)
                continue
            if isinstance(nodes, str) or not isinstance(nodes, Iterable):
                what = f"a single node ({excerpt(str(nodes))}) is not a subgraph"
                hint = "a list of nodes is needed for each subgraph; write one subgraph as [[...]]"
                raise DataError(what, where=f"{_WHERE}: row {row}", hint=hint)
            lists.append([str(node) for node in nodes])
    else:
        hint = "accepted: lists of nodes, names with lists of nodes, a SubgraphSet, a data frame or a path"
        raise DataError(f"a {type(subgraphs).__name__}", where=_WHERE, hint=hint)
    lacking = absent_of(rows) if isinstance(rows, Ragged) else None
    texts, places, absent = encode_texts(lists, None if lacking is None else _written(lacking, graph))
    if not places.lengths.all():
        where = f"{_WHERE}: row {int(np.argmin(places.lengths)) + 1}"
        raise DataError("empty subgraph", where=where, hint="at least one node is needed")
    return Members(
        where=_WHERE,
        names=list(map(" ".join, lists)) if names is None else names,
        texts=texts,
        nodes=places,
        rows=range(1, len(lists) + 1),
        named=names is not None,
        others=others,
        times=subgraphs.times if isinstance(subgraphs, SubgraphSet) else None,
        absent=absent,
    )


def _written(rows: Ragged, graph: Graph) -> list[list[str]]:
    used, places = np.unique(rows.values, return_inverse=True)
    if len(used) and not 0 <= used[0] <= used[-1] < graph.num_nodes:
        what = f"node {used[0] if used[0] < 0 else used[-1]} is not in the graph"
        raise DataError(what, where=_WHERE, hint=f"ids run 0..{graph.num_nodes - 1}")
    names = graph.names
    texts = [str(node) if names is None else names.written(node) for node in used.tolist()]
    return [[texts[place] for place in row] for row in Ragged(places.ravel(), rows.offsets)]


def _index_names(value: Any) -> list[str] | None:
    """The names that the index of a pandas object gives its rows; None if it only numbers them, or there is none."""
    index = getattr(value, "index", None)
    if index is None or callable(index) or (getattr(index, "start", None), getattr(index, "step", None)) == (0, 1):
        return None
    return list(map(str, index))


def is_list_of_sets(value: Any) -> TypeGuard[Sequence[SubgraphSet]]:
    """Whether a value is a list of sets of subgraphs."""
    return isinstance(value, list | tuple) and bool(value) and all(isinstance(one, SubgraphSet) for one in value)


def is_table(value: Any) -> bool:
    """Whether a value is a data frame or a table of Arrow."""
    return hasattr(value, "column_names") or (hasattr(value, "columns") and hasattr(value, "shape"))
