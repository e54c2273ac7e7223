"""Nodes as requests have them: by name, by row number where there are no names."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from subgnn.errors import excerpt
from subgnn.ragged import Ragged
from subgnn.serve.limits import Limits
from subgnn.serve.node_index import NodeIndex
from subgnn.serve.refusals import Refusal

_LISTED = 20


def resolve(index: NodeIndex, given: Sequence[int | str]) -> tuple[dict[int, str], list[str], list[str]]:
    """Nodes with what they were called; names of no node; names of several."""
    found: dict[int, str] = {}
    unknown: list[str] = []
    several: list[str] = []
    for item in given:
        node = index.find(item)
        if node is None:
            unknown.append(str(item))
        elif node < 0:
            several.append(str(item))
        else:
            found.setdefault(node, str(item))
    return found, unknown, several


def subgraphs_of(index: NodeIndex, given: Sequence[Sequence[int | str]]) -> Ragged:
    """Sorted node sets; a repeated node counts once.

    Raises:
        Refusal: 422, where a node is not known; it names up to twenty of them.
    """
    rows: list[NDArray[np.int32]] = []
    for place, nodes in enumerate(given):
        found, unknown, several = resolve(index, nodes)
        if unknown or several:
            raise _refusal(place, unknown, several)
        rows.append(np.array(sorted(found), np.int32))
    return Ragged.from_rows(rows)


def _refusal(place: int, unknown: list[str], several: list[str]) -> Refusal:
    bad = unknown + several
    shown = ", ".join(excerpt(name) for name in bad[:3]) + (", ..." if len(bad) > 3 else "")
    what = f"{len(bad)} {'node is' if len(bad) == 1 else 'nodes are'} not known"
    if not unknown:
        what = f"{len(bad)} {'name means' if len(bad) == 1 else 'names mean'} several nodes"
    hint = "names, where the graph has them; else row numbers, from 0. #12 is row 12 anywhere; /nodes finds names"
    if not unknown:
        hint = "give the row number of the one that is meant, as #12; /nodes finds it"
    return Refusal(422, f"subgraph {place}: {what}: {shown}", hint=hint, nodes=bad[:_LISTED])


def check_size(given: Sequence[Sequence[object]], limits: Limits, *, explained: bool = False) -> int:
    """How many nodes a request has.

    Raises:
        Refusal: 422, where it has more subgraphs or nodes than it may.
    """
    most = limits.explained if explained else limits.subgraphs
    if len(given) > most:
        raise Refusal(422, f"{len(given):,} subgraphs", hint=f"accepted: at most {most:,} in a request")
    total = sum(map(len, given))
    if total > limits.nodes:
        raise Refusal(422, f"{total:,} nodes", hint=f"accepted: at most {limits.nodes:,} in a request")
    return total
