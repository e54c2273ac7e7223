"""Names of views of subgraphs (``views.py``): their kinds, ways along directed edges, types of edges."""

from __future__ import annotations

from collections.abc import Sequence

from subgnn.config.method_settings import BaselineSettings
from subgnn.data.graph import Graph
from subgnn.errors import UserError, choices, excerpt

DIFFUSED = ("walk", "root", "lift")
TOPOLOGY = "topology"
WAYS = ("out", "in")
VIEWS = ("bag", "one-hop", *DIFFUSED, TOPOLOGY)
"""Names of views."""
OVER_EDGES = ("one-hop", *DIFFUSED)
"""Views that there are along edges of a directed graph and against them, and for each type of edges, too."""
ALL_TYPES = "*"


def known_views(accepted: Sequence[str] = VIEWS, *, typed: bool = False) -> tuple[str, ...]:
    """Names of accepted views, also along edges and against them; with ``typed``, of those that each type has."""
    over_edges = [view for view in OVER_EDGES if view in accepted]
    return (*(over_edges if typed else accepted), *(f"{view}-{way}" for view in over_edges for way in WAYS))


def split_view(view: str) -> tuple[str, str, str]:
    """The kind of a view, the way that it follows edges, and their type; the last two are empty where they are open.

    Example:
        >>> split_view("lift-out:binds"), split_view("one-hop")
        (('lift', 'out', 'binds'), ('one-hop', '', ''))
    """
    name, _, of_type = view.partition(":")
    kind, _, way = name.rpartition("-")
    return (kind, way, of_type) if way in WAYS else (name, "", of_type)


def expand_views(views: tuple[str, ...], graph: Graph) -> tuple[str, ...]:
    """The views with the types of a graph in place of ``*``.

    Example:
        >>> expand_views(("bag", "lift:*"), Graph.from_edges([0, 1], [1, 2], types=["binds", "inhibits"]))
        ('bag', 'lift:binds', 'lift:inhibits')
    """
    found: list[str] = []
    for view in views:
        name, _, of_type = view.partition(":")
        found += [f"{name}:{one}" for one in graph.types] if of_type == ALL_TYPES else [view]
    return tuple(dict.fromkeys(found))


def used_by_view(view: str, settings: BaselineSettings) -> frozenset[str]:
    """What a view uses of a graph beside nodes and edges."""
    kind, way, of_type = split_view(view)
    used = {
        "weights": kind in DIFFUSED or (settings.weighted and kind in ("one-hop", TOPOLOGY)),
        "direction": bool(way) or (settings.directed and kind == TOPOLOGY),
        "types": bool(of_type),
    }
    return frozenset(name for name, is_used in used.items() if is_used)


def used_by_views(settings: BaselineSettings) -> frozenset[str]:
    """What the views that settings list use of a graph beside nodes and edges."""
    return frozenset().union(*(used_by_view(view, settings) for view in settings.views))


def are_known(views: tuple[str, ...], graph: Graph) -> bool:
    """Whether all views exist, none of them standing for several."""
    parts = [(split_view(view), view) for view in views]
    types, oriented = ("", *graph.types), graph.oriented is not None
    return all(
        of_type in types
        and (oriented or not way)
        and view.removesuffix(f":{of_type}") in known_views(typed=bool(of_type))
        for (_, way, of_type), view in parts
    )


def check_views(views: tuple[str, ...], graph: Graph, accepted: Sequence[str] = VIEWS) -> None:
    """Raise :class:`UserError` for views that do not exist, or are listed twice, and for statistics alone."""
    for view in views:
        kind, way, of_type = split_view(view)
        plain, known = f"{kind}-{way}" if way else kind, known_views(accepted, typed=bool(of_type))
        if plain not in known:
            raise UserError(f"baseline.views has {excerpt(view)}", where="recipe", hint=choices(plain, known))
        if way and not (graph.directed or graph.oriented is not None):
            hint = f"accepted for an undirected graph: {', '.join(accepted)}; or read the edges with --directed"
            raise UserError(f"baseline.views has {view}, and the graph is undirected", where="recipe", hint=hint)
        if of_type and not graph.types:
            what = f"baseline.views has {excerpt(view)}, and the edges of the graph have no types"
            raise UserError(what, where="recipe", hint=f"leave ':{of_type}' out, or give edges a column of types")
        if of_type and of_type not in (ALL_TYPES, *graph.types):
            hint = choices(of_type, (ALL_TYPES, *graph.types))
            raise UserError(f"baseline.views has {excerpt(view)}", where="recipe", hint=hint)
    if not set(views) - {TOPOLOGY} or len(set(views)) < len(views):
        alone = ", and not topology alone" if TOPOLOGY in accepted else ""
        hint = f"accepted: one or more of {', '.join(accepted)}, each once{alone}"
        raise UserError(f"baseline.views is {list(views)}", where="recipe", hint=hint)
