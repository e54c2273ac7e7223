"""Match the nodes of a run's graph with those of another one, by name, or by row number where neither has names."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.data.dataset import Dataset
from subgnn.data.graph import ATTRIBUTES, Graph
from subgnn.data.strings import NodeNames
from subgnn.data.subgraphs import SubgraphSet
from subgnn.errors import DataError
from subgnn.ragged import Ragged

_WHERE = "--graph"
_EDGES, _ATTRIBUTES = "edges", "attributes"  # keys of the card


def matchable(dataset: Dataset) -> Dataset:
    """The subgraphs of a dataset, and as much of its graph as matching needs: its nodes with their names."""
    graph = dataset.graph
    names = graph.names and NodeNames({graph.names.primary_column: graph.names.primary})
    kept = Graph.from_edges([], [], num_nodes=graph.num_nodes, directed=graph.directed, names=names)
    card = {_EDGES: graph.num_edges, _ATTRIBUTES: list(graph.attributes)}
    return Dataset(dataset.name, kept, dataset.subgraphs, card)


@dataclass(frozen=True, slots=True, eq=False)
class NodeMatch:
    """The nodes of an old graph in a new one."""

    graph: Graph  # undirected
    places: NDArray[np.int64]  # the rows of old nodes, -1 if gone
    edges: tuple[int, int]  # how many there are now, and were in training
    notes: list[str] = field(default_factory=list)  # lines about what a model makes of the graph

    @classmethod
    def of(cls, old: Dataset, new: Graph) -> NodeMatch:
        """Match the graph of :func:`matchable` with another; refused if nothing matches, or if attributes are lost."""
        before = old.graph
        if (before.names is None) != (new.names is None):
            whose, other = ("the run's graph", "this one") if new.names is None else ("this graph", "the run's")
            hint = "give a graph whose nodes are written as in the run's own"
            raise DataError(f"{whose} has names of nodes, but {other} has none", where=_WHERE, hint=hint)
        attributes = old.card.get(_ATTRIBUTES, before.attributes)
        lost = [name for name in attributes if name not in (*new.attributes, "times")]
        if lost:
            words = ", ".join(ATTRIBUTES[name] for name in lost)
            hint = "give a graph that has them, read in the same way; subgnn data convert turns tables into a dataset"
            raise DataError(f"the run's graph has {words}, but this one has none", where=_WHERE, hint=hint)
        unused = [name for name in new.attributes if name not in (*attributes, "times")]
        words = ", ".join(ATTRIBUTES[name] for name in unused)
        notes = [f"{words}: ignored, as the run's graph has none"] if unused else []
        if "direction" in unused:
            new = replace(new.undirected(), oriented=None)
        if "types" in unused:
            new = replace(new, types=(), layers=())
        if unused:
            weights = None if "weights" in unused else new.weights
            features = None if "features" in unused else new.features
            new = replace(new, weights=weights, features=features, known_hash="")
        if before.names is None or new.names is None:
            rows = np.arange(before.num_nodes)
            places = np.where(rows < new.num_nodes, rows, -1)
        else:
            import pandas as pd

            # A name that is empty or repeated matches nothing.
            ours, theirs = (pd.Series(list(names.primary), dtype=object) for names in (before.names, new.names))
            ours, theirs = (one[~one.duplicated(keep=False) & (one != "")] for one in (ours, theirs))
            places, found = np.full(before.num_nodes, -1, np.int64), pd.Index(theirs).get_indexer(ours)
            places[ours.index[found >= 0]] = theirs.index[found[found >= 0]]
        if not (places >= 0).any():
            what = "no node of this graph is in the graph that the run was trained on"
            hint = "give the graph that the run was trained on, or one that has nodes in common with it"
            raise DataError(what, where=_WHERE, hint=hint)
        return cls(new.undirected(), places, (new.num_edges, int(old.card.get(_EDGES, before.num_edges))), notes)

    @property
    def num_old(self) -> int:
        return len(self.places)

    @property
    def nodes(self) -> tuple[int, int, int]:
        """Numbers of nodes: those of both graphs, new ones and gone ones."""
        same = int(np.count_nonzero(self.places >= 0))
        return same, self.graph.num_nodes - same, self.num_old - same

    @property
    def line(self) -> str:
        """How many nodes are the same, new and gone, and how many edges there are and were, in one line."""
        same, new, gone = self.nodes
        edges = "{:,} edges, {:,} in training".format(*self.edges)
        return f"{same:,} nodes as in training, {new:,} new, {gone:,} gone; {edges}"

    @property
    def lines(self) -> list[str]:
        return [self.line, *dict.fromkeys(self.notes)]

    def tell_gone(self, count: int, what: str) -> None:
        """Note that nodes which are needed are gone, unless there are none."""
        if count:
            self.notes.append(f"{what}: {count:,}")

    def rows(self, nodes: NDArray[Any]) -> NDArray[np.int64]:
        """The rows of old nodes, -1 for those that are gone; a ValueError for what is no node of the old graph."""
        if len(nodes) and not 0 <= int(nodes.min()) <= int(nodes.max()) < self.num_old:
            raise ValueError("it holds a node that is not in the graph")
        return np.asarray(self.places[nodes])

    def node_sets(self, nodes: Ragged) -> Ragged:
        """Sets of old nodes as sorted sets of new ones, without nodes that are gone; a set may be empty."""
        if nodes.offsets.ndim != 1 or nodes.values.ndim != 1 or not nodes.is_valid:
            raise ValueError("offsets do not describe the values")
        self.rows(nodes.values)  # all are old nodes
        return nodes.mapped(self.places)

    def subgraphs(self, subgraphs: SubgraphSet) -> SubgraphSet:
        """Subgraphs of the old graph in the new one; those that have lost all nodes are left out, which is noted."""
        nodes = self.node_sets(subgraphs.nodes)
        smaller, kept = int((nodes.lengths < subgraphs.nodes.lengths).sum()), np.flatnonzero(nodes.lengths > 0)
        self.tell_gone(smaller, "subgraphs of the run with nodes that are gone")
        self.tell_gone(len(nodes) - len(kept), "subgraphs of the run whose nodes are all gone, which are left out")
        return replace(subgraphs, nodes=nodes).take(kept)

    def vectors(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        """Vectors of all new nodes from those of all old ones (old nodes, d).

        The vector of a new node is the mean of its neighbours' vectors; of one whose neighbours are all new, that of
        neighbours which have got theirs so. A node that no path joins to an old one has the mean of all.
        """
        graph, kept = self.graph, self.places >= 0
        found, missing = np.zeros((graph.num_nodes, rows.shape[1]), np.float32), np.ones(graph.num_nodes, bool)
        found[self.places[kept]], missing[self.places[kept]] = rows[kept], False
        overall, near = rows[kept].mean(axis=0), Ragged(graph.neighbors, graph.offsets)
        while missing.any():
            waiting = np.flatnonzero(missing)
            around = near.take(waiting)
            usable = ~missing[around.values]
            owner, known = around.row_ids[usable], around.values[usable]
            counts = np.bincount(owner, minlength=len(waiting))
            reached = counts > 0
            if not reached.any():
                found[waiting] = overall
                break
            sums = np.zeros((len(waiting), rows.shape[1]), np.float64)
            np.add.at(sums, owner, found[known])
            found[waiting[reached]] = sums[reached] / counts[reached, None]
            missing[waiting[reached]] = False
        return found
