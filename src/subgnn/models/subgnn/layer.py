"""One layer of one subchannel (paper, section 4.1), without ever building its messages.

For component c and anchors i = 1..n_A with vectors a_i and similarities gamma_ci:

    m_ci = gamma_ci a_i                         message
    g_c  = AGG_M over i of m_ci                 sum, mean or max
    h_c <- relu(W [g_c ; h_c])                  order-invariant state, normalised where the settings ask for it
    z_ci = relu(q . m_ci + b)                   property-aware output, one number an anchor

As m_ci is a number times a vector, the sum over anchors is a matrix product gamma A (shared anchors) or a weighted
embedding bag (own anchors), and q . m_ci is gamma_ci (q . a_i). Only a maximum does not factor; it works in chunks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

_CHUNK = 4_000_000  # numbers in the largest block of messages a maximum may build

Aggregation = Literal["sum", "mean", "max"]


class StateNorm(nn.BatchNorm1d):
    """Batch normalisation of the states h over the components of a batch, as the paper's authors have it.

    Mean and variance are those of the components that belong to subgraphs: what only fills a batch up to a fixed shape
    does not count. In training, a batch of one component has no variance: the running statistics are used, and stay as
    they are. ``total`` adds up a sum over the ranks that share the batch.

    *Differs from the authors' code:* there, components that pad a batch count too.
    """

    total: Callable[[Tensor], Tensor] | None = None

    def forward(self, h: Tensor, present: Tensor | None = None) -> Tensor:
        """Normalised states.

        Args:
            present: which rows are components of subgraphs; None where all are.

        Shapes:
            h: (C, d). present: (C,). returns: (C, d).
        """
        if not self.training or (present is None and self.total is None and len(h) > 1):
            return super().forward(h)
        total = self.total or (lambda value: value)
        values = h.to(self.weight.dtype)
        counted = values.new_ones(len(h), 1) if present is None else present[:, None].to(values.dtype)
        running_mean, running_var = cast(Tensor, self.running_mean), cast(Tensor, self.running_var)
        # No branch on the count: a captured step must not wait for the device to know it.
        count = total(counted.sum())
        enough = count > 1
        mean = torch.where(enough, total((values * counted).sum(dim=0)) / count, running_mean)
        centred = values - mean
        variance = torch.where(enough, total((centred.square() * counted).sum(dim=0)) / count, running_var)
        with torch.no_grad():
            rate = enough.to(mean.dtype) * cast(float, self.momentum)
            running_mean.lerp_(mean, rate)
            running_var.lerp_(variance * count / (count - 1).clamp(min=1), rate)
            cast(Tensor, self.num_batches_tracked).add_(enough)
        return (centred * torch.rsqrt(variance + self.eps) * self.weight + self.bias).to(h.dtype)


class SubchannelLayer(nn.Module):
    """Messages from anchors to components, for one subchannel and layer.

    Args:
        dim: d.
        hidden: whether the state h is wanted: always for neighborhood, whose output it is; for position and structure
            the paper never reads it, so it is computed only where their output includes it.
        property_aware: whether z is wanted (position, structure).
        norm: whether the state h is normalised.
    """

    def __init__(
        self, dim: int, *, aggregation: Aggregation, hidden: bool, property_aware: bool, norm: bool = False
    ) -> None:
        super().__init__()
        self.aggregation = aggregation
        self.update = nn.Linear(2 * dim, dim, bias=False) if hidden else None
        self.norm = StateNorm(dim) if hidden and norm else None
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
        self, gamma: Tensor, anchors: Tensor, own: Tensor | None, h: Tensor, present: Tensor | None = None
    ) -> tuple[Tensor | None, Tensor | None]:
        """The state and the property-aware output, each where it is wanted.

        Args:
            present: which components are those of subgraphs; None where all are.

        Shapes:
            h: (C, d). present: (C,). returns: (C, d) and (C, n_A).
        """
        state = output = None
        if self.update is not None:
            g = self.aggregate(gamma, anchors, own)
            state = torch.relu(self.update(torch.cat([g, h], dim=1)))
            state = state if self.norm is None else self.norm(state, present)
        if self.score is not None:
            q, b = self.score.weight[0], self.score.bias
            along = anchors @ q  # q . a_i, once for each anchor
            # An embedding, as the gradient of plain indexing adds up in any order when there are threads.
            each = along if own is None else functional.embedding(own, along[:, None]).squeeze(-1)
            output = torch.relu(gamma * each + b)
        return state, output
