"""One layer of one subchannel (paper, section 4.1), without ever building its messages.

For component c and anchors i = 1..n_A with vectors a_i and similarities gamma_ci:

    m_ci = gamma_ci a_i                         message
    g_c  = AGG_M over i of m_ci                 sum, mean or max
    h_c <- relu(W [g_c ; h_c])                  order-invariant state
    z_ci = relu(q . m_ci + b)                   property-aware output, one number an anchor

As m_ci is a number times a vector, the sum over anchors is a matrix product gamma A (shared anchors) or a weighted
embedding bag (own anchors), and q . m_ci is gamma_ci (q . a_i). Only a maximum does not factor; it works in chunks.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

_CHUNK = 4_000_000  # numbers in the largest block of messages a maximum may build

Aggregation = Literal["sum", "mean", "max"]


class SubchannelLayer(nn.Module):
    """Messages from anchors to components, for one subchannel and layer.

    Args:
        dim: d.
        hidden: whether the state h is wanted: always for neighborhood, whose output it is; for position and structure
            the paper never reads it, so it is computed only where their output includes it.
        property_aware: whether z is wanted (position, structure).
    """

    def __init__(self, dim: int, *, aggregation: Aggregation, hidden: bool, property_aware: bool) -> None:
        super().__init__()
        self.aggregation = aggregation
        self.update = nn.Linear(2 * dim, dim, bias=False) if hidden else None
        self.score = nn.Linear(dim, 1) if property_aware else None
        if self.score is not None:
            # From 1, no anchor starts silent: at 0, relu would cut off every anchor with q . a_i < 0.
            nn.init.ones_(self.score.bias)

    def aggregate(self, gamma: Tensor, anchors: Tensor, own: Tensor | None) -> Tensor:
        """G.

        Shapes:
            gamma: (C, n_A). anchors: (n_A, d), or the table (T, d) where ``own`` (C, n_A) picks from it.
            returns: (C, d).
        """
        if self.aggregation == "max":
            return self._largest(gamma, anchors, own)
        if own is None:
            total = gamma @ anchors
        else:
            total = functional.embedding_bag(own, anchors, per_sample_weights=gamma, mode="sum")
        return total / gamma.shape[1] if self.aggregation == "mean" else total

    def _largest(self, gamma: Tensor, anchors: Tensor, own: Tensor | None) -> Tensor:
        rows = max(1, _CHUNK // (gamma.shape[1] * anchors.shape[1]))
        parts = []
        for begin in range(0, len(gamma), rows):
            some = gamma[begin : begin + rows, :, None]
            vectors = anchors if own is None else functional.embedding(own[begin : begin + rows], anchors)
            parts.append((some * vectors).amax(dim=1))
        return torch.cat(parts) if parts else anchors.new_zeros(0, anchors.shape[1])

    def forward(
        self, gamma: Tensor, anchors: Tensor, own: Tensor | None, h: Tensor
    ) -> tuple[Tensor | None, Tensor | None]:
        """The state and the property-aware output, each where it is wanted.

        Shapes:
            h: (C, d). returns: (C, d) and (C, n_A).
        """
        state = output = None
        if self.update is not None:
            g = self.aggregate(gamma, anchors, own)
            state = torch.relu(self.update(torch.cat([g, h], dim=1)))
        if self.score is not None:
            q, b = self.score.weight[0], self.score.bias
            along = anchors @ q  # q . a_i, once for each anchor
            # An embedding, as the gradient of plain indexing adds up in any order when there are threads.
            each = along if own is None else functional.embedding(own, along[:, None]).squeeze(-1)
            output = torch.relu(gamma * each + b)
        return state, output
