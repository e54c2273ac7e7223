"""Anchors that are not heard: what is answered when the similarities to one of them are 0."""

from __future__ import annotations

import torch
from torch import Tensor

from subgnn.explain.heard import Anchor, Heard

_AT_ONCE = 4_000_000  # similarities of all versions that are asked about together
_MOST = 400_000_000  # similarities of all versions of a subgraph, beyond which its anchors are not silenced


def too_many(heard: Heard, count: int) -> bool:
    """Whether silencing that many anchors in turn is too much work."""
    return count * _numbers(heard) > _MOST


def _numbers(heard: Heard) -> int:
    return sum(gamma.numel() for layer in heard.gammas for gamma in layer) + heard.initial.numel()


@torch.no_grad()
def outputs_without(heard: Heard, anchors: list[Anchor]) -> Tensor:
    """Outputs with each anchor silenced: no component hears it, in its layer and channel.

    Shapes:
        returns: (anchors, outputs).
    """
    step = max(1, _AT_ONCE // max(1, _numbers(heard)))
    parts = [_some(heard, anchors[begin : begin + step]) for begin in range(0, len(anchors), step)]
    return torch.cat(parts)


def _some(heard: Heard, anchors: list[Anchor]) -> Tensor:
    b = len(anchors)
    gammas = [[gamma.repeat(b, 1, 1) for gamma in layer] for layer in heard.gammas]
    for i, anchor in enumerate(anchors):
        silent = gammas[anchor.layer][anchor.channel][i]
        silent[torch.from_numpy(anchor.components), torch.from_numpy(anchor.slots)] = 0.0
    component, subgraph = heard.stats
    stats = (
        None if component is None else component.repeat(b, 1, 1),
        None if subgraph is None else subgraph.repeat(b, 1),
    )
    return heard.outputs(heard.initial.repeat(b, 1, 1), gammas, stats)
