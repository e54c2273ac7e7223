"""Checks that the settings of the recipes share."""

from __future__ import annotations

from subgnn.data.subgraphs import SPLITS
from subgnn.errors import DataError


def require(condition: bool, what: str, *, where: str, hint: str) -> None:
    """Raise :class:`DataError` unless the condition holds."""
    if not condition:
        raise DataError(what, where=where, hint=hint)


def check_subgraphs(num_subgraphs: int, bins: int) -> None:
    """Enough subgraphs for every class and every split."""
    least = max(bins, len(SPLITS))
    require(
        num_subgraphs >= least,
        f"{num_subgraphs} subgraphs for {bins} classes",
        where="num_subgraphs",
        hint=f"at least {least} are needed, one a class and one a split",
    )


def check_counts(num_nodes: int, num_subgraphs: int, subgraph_size: int, bins: int) -> None:
    """The four numbers that every binned recipe has."""
    require(bins >= 2, f"{bins} bins", where="bins", hint="at least 2 are needed to tell subgraphs apart")
    check_subgraphs(num_subgraphs, bins)
    require(
        2 <= subgraph_size < num_nodes,
        f"subgraphs of {subgraph_size} nodes in a graph of {num_nodes}",
        where="subgraph_size",
        hint=f"2 to {num_nodes - 1} is accepted",
    )


def check_range(low: float, high: float, *, where: str, least: float, most: float) -> None:
    """A range of targets within what the property can be."""
    require(
        least <= low < high <= most,
        f"targets from {low:g} to {high:g}",
        where=where,
        hint=f"a rising range within {least:g} to {most:g} is accepted",
    )
