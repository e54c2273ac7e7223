"""Subgraphs that are measured on the graph as it was at their own times, so that none sees the future."""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
import scipy
from numpy.typing import NDArray

from subgnn.data.graph import Graph
from subgnn.data.subgraphs import NodeSets, SubgraphSet, absent_of
from subgnn.ragged import Ragged

_ENTRIES = 2 * 10**10  # entries of all snapshots together: about two minutes for a view of one hop
T = TypeVar("T")


def as_rows(nodes: Ragged, times: NDArray[Any] | None, step: float = 0.0) -> Ragged:
    """Rows with times, rounded down to a step unless it is 0; plain rows without times."""
    if times is None:
        return nodes
    rounded = times.astype(np.float64)
    rounded = np.floor(rounded / step) * step if step else rounded
    return NodeSets(nodes.values, nodes.offsets, rounded, absent_of(nodes))


def timed(subgraphs: SubgraphSet, step: float = 0.0) -> SubgraphSet:
    """The subgraphs, each measured as of its own time."""
    return replace(subgraphs, nodes=as_rows(subgraphs.nodes, subgraphs.times, step))


def times_of(nodes: Ragged) -> NDArray[Any] | None:
    """The times as of which subgraphs are measured; None if the whole graph is seen."""
    return nodes.times if isinstance(nodes, NodeSets) else None


def snapshot_step(graph: Graph, times: NDArray[Any]) -> float:
    """The step to which times are rounded: 0 where the graph at each of them is affordable."""
    most = max(1, _ENTRIES // max(1, len(graph.neighbors)))
    return float(np.ptp(times)) / most if len(np.unique(times)) > most else 0.0


_until = lru_cache(maxsize=16)(Graph.until)


def at_own_times(
    graph: Graph, nodes: Ragged, compute: Callable[[Graph, Ragged], T], join: Callable[[list[T], NDArray[np.int64]], T]
) -> T:
    """Compute something of subgraphs, each on the graph at its time; ``join`` puts parts into the given order."""
    times = times_of(nodes)
    if times is None or graph.times is None or not len(times):
        return compute(graph, nodes if times is None else Ragged(nodes.values, nodes.offsets))
    order = np.argsort(times, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(times[order])) + 1)
    found = [compute(_until(graph, float(times[rows[0]])), Ragged.take(nodes, rows)) for rows in parts]
    return found[0] if len(found) == 1 else join(found, np.argsort(order, kind="stable"))


def join_lists(parts: list[list[T]], order: NDArray[np.int64]) -> list[T]:
    """Lists one after the other, with their items in the given order."""
    found = [item for part in parts for item in part]
    return [found[i] for i in order]


def join_rows(parts: list[Any], order: NDArray[np.int64]) -> Any:
    """Matrices, sparse or dense, one above the other, with their rows in the given order."""
    if scipy.sparse.issparse(parts[0]):
        return scipy.sparse.vstack(parts, format="csr")[order]
    return np.concatenate(parts)[order]
