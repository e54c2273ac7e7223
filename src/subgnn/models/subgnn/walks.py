"""Walks over patches, packed so that no step is padding.

Walks lie in order of falling length, and the nodes at step t of all walks that have one stand together
(:class:`torch.nn.utils.rnn.PackedSequence`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from subgnn.ragged import Ragged


@dataclass(frozen=True, slots=True, eq=False)
class Picking:
    """Which row each step stands on, and the steps of each row; ``by_row`` is None if step t stands on row t.

    Shapes:
        rows: (steps,) int64. by_row: the steps in order of their rows, (steps,) int64, and where each row's begin,
        (R + 1,) int64.
    """

    rows: NDArray[np.int64]
    by_row: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None

    @classmethod
    def of(cls, rows: NDArray[np.int64], count: int) -> Picking:
        """For steps on ``count`` rows."""
        offsets = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=count))])
        return cls(rows, (np.argsort(rows, kind="stable"), offsets.astype(np.int64)))


class Walks(nn.Module):
    """Walks as buffers, packed: all first steps, then all second steps, and so on; longer walks first.

    Args:
        rows: the walks of all patches, as places in the node table; empty ones are left out.
        per_patch: how many walks a patch has.

    Shapes:
        nodes: (R,) places in the table of the distinct nodes of all walks. places: (steps,) which of them each step
        stands on. back: (steps,) the step of the same walk that is as far from its end. owner: (steps,) the patch of
        each step. sizes: how many walks have a step t. by_node: (steps,) the steps in order of their nodes.
        node_starts: (R,) where those of each node begin.
    """

    nodes: Tensor
    places: Tensor
    back: Tensor
    owner: Tensor
    by_node: Tensor
    node_starts: Tensor

    def __init__(self, rows: Ragged, per_patch: int) -> None:
        super().__init__()
        self.num_patches = len(rows) // per_patch
        longest_first = np.argsort(-rows.lengths, kind="stable")
        lengths = rows.lengths[longest_first]
        self.sizes = [int((lengths > t).sum()) for t in range(int(lengths.max(initial=0)))]
        walks = [longest_first[:size] for size in self.sizes]
        steps = [rows.values[rows.offsets[walk] + t] for t, walk in enumerate(walks)]
        nodes, places = np.unique(_joined(steps), return_inverse=True)
        first = np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)
        # Step t of the w-th longest walk lies at first[t] + w.
        back = [first[lengths[:size] - 1 - t] + np.arange(size) for t, size in enumerate(self.sizes)]
        self.picking = Picking.of(places.astype(np.int64), len(nodes))
        self.register_buffer("nodes", torch.from_numpy(nodes.astype(np.int64)))
        self.register_buffer("places", torch.from_numpy(self.picking.rows))
        self.register_buffer("back", torch.from_numpy(_joined(back)))
        self.register_buffer("owner", torch.from_numpy(_joined(walks) // per_patch))
        by_node, first_of_node = self.picking.by_row or (np.empty(0, np.int64), np.zeros(1, np.int64))
        self.register_buffer("by_node", torch.from_numpy(by_node), persistent=False)
        self.register_buffer("node_starts", torch.from_numpy(first_of_node[:-1]), persistent=False)


def _joined(parts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.concatenate([np.empty(0, np.int64), *parts]).astype(np.int64)
