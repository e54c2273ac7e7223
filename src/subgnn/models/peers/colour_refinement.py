"""Colour refinement, the Weisfeiler-Lehman test of dimension one (1-WL), on a graph and on many subgraphs of it.

All nodes begin with one colour. In every round the new colour of a node stands for its signature: its own colour, and
the sorted colours of its neighbours with their repetitions. A table gives each signature a number; signatures are
compared as a whole, never by a hash of theirs alone, so that two nodes have one colour if and only if 1-WL cannot tell
them apart after as many rounds.

Colours of different subgraphs are compared by sharing the tables. In prediction tables are those of training: a
signature that training has not seen gets a number beyond them, which matches nothing there.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from subgnn.data.graph import Graph
from subgnn.models.baselines.induced_graphs import induced_graphs
from subgnn.ragged import Ragged

Colours = NDArray[np.int32]
Table = dict[bytes, int]
"""The colour of each signature, numbered from 0; a signature is its numbers as the bytes of an int32 array."""

_AT_ONCE = 2**20  # nodes of subgraphs with their surroundings that are refined together


def refine(offsets: NDArray[np.int64], neighbors: NDArray[np.integer], colours: Colours, table: Table) -> Colours:
    """The colours of the next round; signatures that the table does not have are added to it.

    Shapes:
        offsets: (n + 1,). neighbors: (entries,). colours, returns: (n,).

    Example:
        The ends of the path 0 - 1 - 2 have one neighbour, its middle two.

        >>> same = np.zeros(3, np.int32)
        >>> refine(np.array([0, 1, 3, 4]), np.array([1, 0, 2, 1]), same, {}).tolist()
        [0, 1, 0]
    """
    n = len(colours)
    width = int(colours.max(initial=0)) + 1
    owner = np.repeat(np.arange(n, dtype=np.int64), np.diff(offsets))
    in_order = np.sort(owner * width + colours[neighbors])  # by node, then by colour
    bounds = offsets + np.arange(n + 1)  # a signature is one longer than a row of neighbours
    signatures = np.empty(bounds[-1], np.int32)
    own = np.zeros(len(signatures), np.bool_)
    own[bounds[:-1]] = True
    signatures[own], signatures[~own] = colours, in_order % width
    text, ends = signatures.tobytes(), (4 * bounds).tolist()
    return np.fromiter((table.setdefault(text[ends[i] : ends[i + 1]], len(table)) for i in range(n)), np.int32, n)


def graph_colours(graph: Graph, rounds: int) -> list[Colours]:
    """The colours of all nodes of the graph after 1, 2, ... rounds.

    Shapes:
        returns: a list of (N,), one for each round.
    """
    found, colours = [], np.zeros(graph.num_nodes, np.int32)
    for _ in range(rounds):
        colours = refine(*graph.csr, colours, {})
        found.append(colours)
    return found


def subgraph_colours(graph: Graph, nodes: Ragged, tables: list[Table]) -> list[Colours]:
    """The colours of the nodes of subgraphs, each refined by itself; a table for each round, which are added to.

    Shapes:
        returns: a list of (total,), one for each round, in the order of ``nodes.values``.
    """
    found: list[list[Colours]] = [[np.empty(0, np.int32)] for _ in tables]
    for members in nodes.batches(_AT_ONCE) if tables else ():
        induced = induced_graphs(graph, members)
        colours = np.zeros(len(members.values), np.int32)
        for table, of_round in zip(tables, found, strict=True):
            colours = refine(induced.offsets, induced.neighbors, colours, table)
            of_round.append(colours)
    return [np.concatenate(of_round) for of_round in found]


def table_rows(table: Table) -> Ragged:
    """The signatures of a table in the order of their colours."""
    return Ragged.from_lengths(np.frombuffer(b"".join(table), np.int32), [len(key) // 4 for key in table])


def table_of(rows: Ragged) -> Table:
    """The table of signatures in the order of their colours.

    Example:
        >>> table = {np.array([0, 0, 0], np.int32).tobytes(): 0, np.array([1], np.int32).tobytes(): 1}
        >>> table_of(table_rows(table)) == table
        True
    """
    text, ends = np.ascontiguousarray(rows.values, np.int32).tobytes(), (4 * rows.offsets).tolist()
    return {text[ends[i] : ends[i + 1]]: i for i in range(len(rows))}
