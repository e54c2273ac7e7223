"""Parts of a subgraph's vector put aside: z^(0), a channel, a subchannel, statistics.

The columns of z_S that hold the part, as the head receives them, become those of a reference: the mean over the
training split, as the page of a run has it (:mod:`subgnn.reports.contribution`), or 0 where there is none at hand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

KINDS = ("position", "neighborhood", "structure")


def groups(parts: Mapping[str, Sequence[slice]]) -> dict[tuple[str, str], list[slice]]:
    """What is put aside, by level and name: every part, and the two sides of a channel together.

    Example:
        >>> list(groups({"z0": [slice(0, 2)], "position/internal": [slice(2, 3)]}))
        [('part', 'z0'), ('channel', 'position'), ('subchannel', 'position/internal')]
    """
    found: dict[tuple[str, str], list[slice]] = {}
    for kind in ("", *KINDS):
        mine = {name: list(columns) for name, columns in parts.items() if _kind(name) == kind}
        if kind and mine:
            found["channel", kind] = [some for columns in mine.values() for some in columns]
        for name, columns in mine.items():
            found["subchannel" if kind else "part", name] = columns
    return found


def _kind(name: str) -> str:
    kind = name.partition("/")[0]
    return kind if kind in KINDS else ""


@torch.no_grad()
def outputs_without(
    head: nn.Module, columns: Sequence[Sequence[slice]], *, vectors: Tensor, reference: Tensor
) -> Tensor:
    """Outputs of every subgraph with each group of columns replaced.

    Shapes:
        vectors: (n, width). reference: (width,). returns: (n, groups, outputs).
    """
    replaced = vectors[:, None].repeat(1, len(columns), 1)  # (n, groups, width)
    for i, group in enumerate(columns):
        for some in group:
            replaced[:, i, some] = reference[some]
    outputs: Tensor = head(replaced.flatten(0, 1))
    return outputs.view(len(vectors), len(columns), -1)
