"""PLANT and STAPLE: two ways to put small graphs into a base graph (paper, appendix B, figure 5).

BFS, the third way to make subgraphs, adds nothing to the graph: see :func:`subgnn.data.synthetic.sites.bfs_subgraphs`.
"""

from __future__ import annotations

import numpy as np

from subgnn.data.graph import Graph
from subgnn.data.synthetic.edits import with_edges
from subgnn.data.synthetic.pieces import Pieces
from subgnn.data.synthetic.settings import require
from subgnn.kernels.arrays import Array


def plant(graph: Graph, pieces: Pieces, nodes: Array) -> Graph:
    """Lay pieces onto nodes of the graph: the union of node and edge sets.

    Where to plant is found by :func:`subgnn.data.synthetic.sites.planting_sites`.

    Args:
        graph: the base graph.
        pieces: the small graphs.
        nodes: for every node of the pieces, the node of the graph it becomes.

    Raises:
        DataError: where two nodes of a piece would become one.

    Example:
        A triangle on the path 0 - 1 - 2 - 3 shares two edges with it and adds one.

        >>> path = Graph.from_edges([0, 1, 2], [1, 2, 3])
        >>> plant(path, Pieces.of([(3, [0, 0, 1], [1, 2, 2])]), np.array([1, 2, 3])).num_edges
        4
    """
    nodes = np.asarray(nodes, np.int64)
    require(
        len(nodes) == pieces.num_nodes,
        f"{len(nodes)} places for {pieces.num_nodes} nodes",
        where="nodes",
        hint="one node of the graph for each node of the pieces is needed",
    )
    require(
        len(nodes) == 0 or (int(nodes.min()) >= 0 and int(nodes.max()) < graph.num_nodes),
        "a place outside the graph",
        where="nodes",
        hint=f"ids run 0..{graph.num_nodes - 1}",
    )
    piece = np.repeat(np.arange(len(pieces)), np.diff(pieces.offsets))
    places = np.sort(piece * graph.num_nodes + nodes)
    require(
        bool((np.diff(places) > 0).all()),
        "a piece with two nodes at one place",
        where="nodes",
        hint="its places must differ",
    )
    return with_edges(graph, nodes[pieces.tails], nodes[pieces.heads])


def staple(graph: Graph, pieces: Pieces, *, bases: Array, holds: Array) -> Graph:
    """Add pieces as new nodes, each tied to the graph by one edge.

    Node j of the pieces becomes node ``graph.num_nodes + j``.

    Args:
        graph: the base graph.
        pieces: the small graphs.
        bases: for each piece, the node it is stapled to: one of the graph, or one of an earlier piece under its new id.
        holds: for each piece, the node of its own that takes the staple, counted within the piece.

    Raises:
        DataError: for a staple that does not lead from a piece to what is there before it.

    Example:
        >>> g = staple(Graph.from_edges([0], [1]), Pieces.of([(2, [0], [1])]), bases=[1], holds=[0])
        >>> g.num_nodes, [a.tolist() for a in g.edges()[:2]]
        (4, [[0, 1, 2], [1, 2, 3]])
    """
    bases, holds = np.asarray(bases, np.int64), np.asarray(holds, np.int64)
    n = graph.num_nodes
    require(
        len(bases) == len(holds) == len(pieces),
        f"{len(bases)} bases and {len(holds)} holds for {len(pieces)} pieces",
        where="staples",
        hint="one of each a piece is needed",
    )
    require(
        bool(((bases >= 0) & (bases < n + pieces.offsets[:-1])).all()),
        "a staple to a node that is not there yet",
        where="bases",
        hint="nodes of the graph and of earlier pieces are accepted",
    )
    require(
        bool(((holds >= 0) & (holds < np.diff(pieces.offsets))).all()),
        "a staple beside its piece",
        where="holds",
        hint="nodes of a piece are counted from 0 within it",
    )
    tails = np.concatenate([n + pieces.tails, bases])
    heads = np.concatenate([n + pieces.heads, n + pieces.offsets[:-1] + holds])
    return with_edges(graph, tails, heads, num_nodes=n + pieces.num_nodes)
