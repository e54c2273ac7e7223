"""Views of subgraphs: rows of numbers that simple models are fitted to.

======== ==================================================================================
name     the row of a subgraph S
======== ==================================================================================
bag      B: 1 for each node of S
one-hop  B D^-1/2 A D^-1/2: the bag spread one hop; with weights of edges if ``diffusion.weighted``
walk     p_S: where a random walk from S ends (its diffusion), with weights of edges
root     sqrt(p_S), whose inner products are Hellinger's affinities
lift     l_S = log(1 + p_S / pi): how much more often it ends at a node than chance
topology 18 statistics of S and its border (:func:`~subgnn.channels.topology.subgraph_statistics`)
======== ==================================================================================

All but the last have a number for each node of the graph. Of a directed graph, walk, root, lift and one-hop exist in
two more forms: ``lift-out`` is that of walks along the edges, and ``lift-in`` that of walks against them. Of edges with
types, ``lift:binds`` is the view ``lift`` of the graph of the edges of the type ``binds``, and ``lift:*`` stands for
those of all types; the same four views have these forms, also along edges and against them (``lift-out:binds``).

``absent lift`` is the view ``lift`` of the absent nodes of a subgraph, those that were looked for and not found, with
zeros if there are none; all views but topology have this form.

A view is a function of the graph and the nodes of a subgraph alone, so it is computed once for many splits. What
depends on the split, such as subtracting the mean of the training subgraphs, is up to the model.

Bags are sparse. A diffusion (:mod:`subgnn.channels.diffusion`) has a value at every node; by local push, at those with
the largest lifts. ``kernel_machines/rows.py`` computes views.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
import scipy
from numpy.typing import NDArray

from subgnn.channels.diffusion import magnitudes, walks_of
from subgnn.config.files import Count, Damping, Probability, Size
from subgnn.config.settings import MethodSettings
from subgnn.data.graph import Graph
from subgnn.data.subgraphs import absent_of, absent_rows, with_absent
from subgnn.errors import UserError, choices, excerpt
from subgnn.ragged import Ragged

DIFFUSED = ("walk", "root", "lift")
TOPOLOGY = "topology"
WAYS = ("out", "in")
VIEWS = ("bag", "one-hop", *DIFFUSED, TOPOLOGY)
OVER_EDGES = ("one-hop", *DIFFUSED)
"""Views that also exist along and against the edges of a directed graph, and for each edge type."""
ALL_TYPES = "*"
ABSENT = "absent "
EXACT_NUMBERS = 2**28
"""Pairs of a subgraph and a node up to which ``diffusion.algorithm = "auto"`` is exact; their numbers take 1 GiB."""
_DAMPINGS = (0.3, 0.6)
_INVERSE_PENALTIES = {"squared": (1.0, 3.0, 10.0, 30.0), "logistic": (1.0, 10.0, 100.0, 1_000.0)}


@dataclass(frozen=True, slots=True)
class DiffusionSettings(MethodSettings):
    """Settings of models of random walks (diffusion, profiles, unsupervised); docs/settings.md explains each.

    0 of inverse_penalty and damping tries several values and selects the best on validation. algorithm says how
    diffusions are computed: exact, at all nodes, or push, which follows at most push_edges edges and keeps the
    push_nodes nodes with the largest lifts. weighted and directed are for one-hop and topology alone. absent is the
    weight of views of absent nodes, beside 1 of the others; 0 leaves them out.
    """

    section: ClassVar[str] = "diffusion"
    views: tuple[str, ...] = ("lift",)
    kernel: Literal["linear", "gaussian"] = "gaussian"
    loss: Literal["squared", "logistic"] = "squared"
    inverse_penalty: float = 0.0
    damping: Damping = 0.6
    algorithm: Literal["auto", "exact", "push"] = "auto"
    push_edges: Count = 1_000_000
    push_nodes: Size = 2_000
    weighted: bool = False
    directed: bool = False
    absent: Probability = 0.5

    def resolved(self, graph: Graph, nodes: Ragged) -> Self:
        """The settings with nothing but the damping and the penalty left open, for some subgraphs of a graph."""
        return self.expanded(graph).with_algorithm(graph, nodes).with_absent_views(nodes)

    def expanded(self, graph: Graph) -> Self:
        """The settings with the types of a graph in place of ``*`` in views.

        Example:
            >>> graph = Graph.from_edges([0, 1], [1, 2], types=["binds", "inhibits"])
            >>> DiffusionSettings(views=("bag", "lift:*")).expanded(graph).views
            ('bag', 'lift:binds', 'lift:inhibits')
        """
        found: list[str] = []
        for view in self.views:
            name, _, of_type = view.partition(":")
            found += [f"{name}:{one}" for one in graph.types] if of_type == ALL_TYPES else [view]
        return replace(self, views=tuple(dict.fromkeys(found)))

    def with_algorithm(self, graph: Graph, nodes: Ragged) -> Self:
        """The settings with diffusions exact or by local push, as the size of the data says; each type counts."""
        if self.algorithm != "auto":
            return self
        walks = max(1, sum(":" in view for view in self.views))
        small = walks * len(nodes) * graph.num_nodes <= EXACT_NUMBERS
        return replace(self, algorithm="exact" if small else "push")

    def with_absent_views(self, nodes: Ragged) -> Self:
        """The settings with a view of absent nodes beside each other one, if there are any and they have a weight."""
        if absent_of(nodes) is None or self.absent == 0 or any(view.startswith(ABSENT) for view in self.views):
            return self
        return replace(self, views=self.views + tuple(ABSENT + view for view in self.views if view != TOPOLOGY))

    def rows(self, nodes: Ragged) -> Ragged:
        """The rows of subgraphs, with absent nodes only if one of the views is of these."""
        return nodes if any(view.startswith(ABSENT) for view in self.views) else with_absent(nodes, None)

    @property
    def dampings(self) -> tuple[float, ...]:
        return _DAMPINGS if self.damping == 0 else (self.damping,)

    @property
    def inverse_penalties(self) -> tuple[float, ...]:
        """C of the regression: the one that is set, or those that are tried."""
        return _INVERSE_PENALTIES[self.loss] if self.inverse_penalty == 0 else (self.inverse_penalty,)

    @property
    def used(self) -> frozenset[str]:
        """Attributes of a graph that the views use."""
        found = {"absent"} if self.absent else set()
        for kind, way, of_type in map(split_view, self.views):
            weighted = kind in DIFFUSED or (self.weighted and kind in ("one-hop", TOPOLOGY))
            directed = bool(way) or (self.directed and kind == TOPOLOGY)
            given = {"weights": weighted, "direction": directed, "types": bool(of_type)}
            found |= {name for name, is_used in given.items() if is_used}
        return frozenset(found)


def split_view(view: str) -> tuple[str, str, str]:
    """The kind of a view, of absent nodes or not, the way it follows edges, and their type; both may be empty.

    Example:
        >>> split_view("lift-out:binds"), split_view("one-hop")
        (('lift', 'out', 'binds'), ('one-hop', '', ''))
    """
    name, _, of_type = view.removeprefix(ABSENT).partition(":")
    kind, _, way = name.rpartition("-")
    return (kind, way, of_type) if way in WAYS else (name, "", of_type)


def view_and_rows(view: str, nodes: Ragged) -> tuple[str, Ragged]:
    """A view without ``absent``, and the rows that it is of: the nodes of subgraphs or their absent nodes."""
    if view.startswith(ABSENT):
        return view.removeprefix(ABSENT), absent_rows(nodes)
    return view, with_absent(nodes, None)


def are_known(views: tuple[str, ...], graph: Graph) -> bool:
    """Whether all views exist, and none stands for several."""
    try:
        check_views(views, graph)
    except UserError:
        return False
    return not any(view.endswith(f":{ALL_TYPES}") for view in views)


def check_views(views: tuple[str, ...], graph: Graph, accepted: Sequence[str] = VIEWS) -> None:
    """Refuse views that do not exist or are listed twice, and statistics alone."""
    over_edges = [view for view in OVER_EDGES if view in accepted]
    for view in views:
        kind, way, of_type = split_view(view)
        plain = f"{kind}-{way}" if way else kind
        known = (*(over_edges if of_type else accepted), *(f"{view}-{way}" for view in over_edges for way in WAYS))
        if plain not in known or view == ABSENT + TOPOLOGY:
            raise UserError(f"diffusion.views has {excerpt(view)}", where="recipe", hint=choices(plain, known))
        if way and not (graph.directed or graph.oriented is not None):
            hint = f"accepted for an undirected graph: {', '.join(accepted)}; or read the edges with --directed"
            raise UserError(f"diffusion.views has {view}, but the graph is undirected", where="recipe", hint=hint)
        if of_type and not graph.types:
            what = f"diffusion.views has {excerpt(view)}, but the edges of the graph have no types"
            raise UserError(what, where="recipe", hint=f"leave ':{of_type}' out, or add a column of types to the edges")
        if of_type and of_type not in (ALL_TYPES, *graph.types):
            hint = choices(of_type, (ALL_TYPES, *graph.types))
            raise UserError(f"diffusion.views has {excerpt(view)}", where="recipe", hint=hint)
    if not set(views) - {TOPOLOGY} or len(set(views)) < len(views):
        alone = ", and not topology alone" if TOPOLOGY in accepted else ""
        hint = f"accepted: one or more of {', '.join(accepted)}, each once{alone}"
        raise UserError(f"diffusion.views is {list(views)}", where="recipe", hint=hint)


def bag_of_nodes(nodes: Ragged, num_nodes: int) -> scipy.sparse.csr_array:
    """B (n, N): 1 where a node is in a subgraph."""
    ones = np.ones(len(nodes.values))
    return scipy.sparse.csr_array((ones, nodes.values.astype(np.int32), nodes.offsets), shape=(len(nodes), num_nodes))


def spread_one_hop(
    bag: scipy.sparse.csr_array, graph: Graph, *, weighted: bool = False, way: str = ""
) -> scipy.sparse.csr_array:
    """B D^-1/2 A D^-1/2 (n, N); a node without neighbours spreads nothing.

    Args:
        graph: undirected.
        weighted: A has the magnitudes of weights, if there are any, and D their sums.
        way: ``out`` or ``in``: A has the edges along that way; D is that of A's rows on its left, of A's columns on
            its right.
    """
    weighted = weighted and graph.weights is not None
    walks = walks_of(graph, way) if way or weighted else None
    there, back = (walks.graph, walks.back) if walks is not None else (graph, graph)
    scale = _inverse_roots(there, weighted=weighted)
    scaled = scipy.sparse.csr_array((bag.data * scale[bag.indices], bag.indices, bag.indptr), shape=bag.shape)
    spread = times_adjacency(scaled, there, magnitudes(there) if weighted else None)
    return (spread * (scale if back is there else _inverse_roots(back, weighted=weighted))[None, :]).tocsr()


def times_adjacency(
    rows: scipy.sparse.csr_array, graph: Graph, values: NDArray[Any] | None = None
) -> scipy.sparse.csr_array:
    """Rows (n, N) times A, with 1 or the values of its entries; only rows of A are made whose nodes occur."""
    nodes, columns = np.unique(rows.indices, return_inverse=True)
    narrow = scipy.sparse.csr_array((rows.data, columns, rows.indptr), shape=(rows.shape[0], len(nodes)))
    near = Ragged(graph.neighbors, graph.offsets).take(nodes)
    given = np.ones(len(near.values)) if values is None else Ragged(values, graph.offsets).take(nodes).values
    return narrow @ scipy.sparse.csr_array((given, near.values, near.offsets), shape=(len(nodes), graph.num_nodes))


def scaled_rows(part: scipy.sparse.csr_array, to: float = 1.0) -> scipy.sparse.csr_array:
    """Rows of a given length, unless they are zero."""
    length = np.sqrt(part.multiply(part).sum(axis=1))
    scale = np.repeat(to / np.where(length > 0, length, 1.0), np.diff(part.indptr))
    return scipy.sparse.csr_array((part.data * scale, part.indices, part.indptr), shape=part.shape)


def _inverse_roots(graph: Graph, *, weighted: bool) -> NDArray[np.float64]:
    """d^-1/2 of the rows of a graph (N,), 0 where d is 0."""
    if weighted:
        rows = scipy.sparse.csr_array((magnitudes(graph), graph.neighbors, graph.offsets), shape=(graph.num_nodes,) * 2)
        sums = np.asarray(rows.sum(axis=1, dtype=np.float64))
        return np.asarray(np.divide(1, np.sqrt(sums), out=np.zeros(len(sums)), where=sums > 0))
    degrees = np.diff(graph.offsets)
    return np.where(degrees > 0, 1 / np.sqrt(np.maximum(degrees, 1)), 0.0)
