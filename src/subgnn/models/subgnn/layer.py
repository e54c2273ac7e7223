"""The parts of the network (paper, section 4.1): layers of subchannels, their aggregation, readout and normalisation.

A layer of a subchannel never builds its messages. For component c and anchors i = 1..n_A with vectors a_i and
similarities gamma_ci:

    m_ci = gamma_ci a_i                         message
    g_c  = sum over i of m_ci                   AGG_M
    h_c <- relu(W [g_c ; h_c])                  order-invariant state, normalised where the settings ask for it
    z_ci = relu(q . m_ci + b)                   property-aware output, one number per anchor

As m_ci is a number times a vector, the sum over anchors is a matrix product gamma A (shared anchors) or a weighted
embedding bag (own anchors), and q . m_ci is gamma_ci (q . a_i). The paper reads the state off the neighborhood channel,
and the property-aware output off the others. AGG_C over subchannels and AGG_L over layers lay vectors side by side.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

DENSE_NUMBERS = 2**25
"""The largest matrix of weights by which a GPU computes the gradient of picked rows; torch's own takes longer."""


class BatchNorm(nn.BatchNorm1d):
    """Batch normalisation of rows (n, d), those of a subgraph or, as in the authors' code, the states of components.

    Mean and variance are those of rows that are ``present`` (n,), without those that only fill a batch up to a fixed
    shape. In training, a batch of one row has no variance: the running statistics are used and not changed. ``total``
    adds up a sum over the ranks that share the batch.

    *Differs from the authors' code:* there, components that pad a batch count too.
    """

    total: Callable[[Tensor], Tensor] | None = None

    def forward(self, h: Tensor, present: Tensor | None = None) -> Tensor:
        if not self.training or (present is None and self.total is None and len(h) > 1):
            return super().forward(h)
        total = self.total or (lambda value: value)
        values = h.to(self.weight.dtype)
        counted = values.new_ones(len(h), 1) if present is None else present[:, None].to(values.dtype)
        running_mean, running_var = cast(Tensor, self.running_mean), cast(Tensor, self.running_var)
        # No branch on the count: a captured step must not wait for the device.
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
    """Messages from anchors to components, for one subchannel and layer; with ``state`` it gives h, without z."""

    def __init__(self, dim: int, *, state: bool, norm: bool = False) -> None:
        super().__init__()
        self.update = nn.Linear(2 * dim, dim, bias=False) if state else None
        self.norm = BatchNorm(dim) if state and norm else None
        self.score = None if state else nn.Linear(dim, 1)
        if self.score is not None:
            # With a bias of 1 every anchor has a gradient; with 0, relu would cut off those with q . a_i < 0.
            nn.init.ones_(self.score.bias)

    def aggregate(self, gamma: Tensor, anchors: Tensor, own: Tensor | None) -> Tensor:
        """G of each component (C, d).

        Shapes:
            gamma: (C, n_A). anchors: (n_A, d), or the table (T, d) where ``own`` (C, n_A) picks from it.
        """
        return gamma @ anchors if own is None else weighted_bag(own, anchors, gamma)

    def forward(
        self, gamma: Tensor, anchors: Tensor, own: Tensor | None, h: Tensor, present: Tensor | None = None
    ) -> Tensor | None:
        """The next state (C, d), or None if it is not computed; ``present`` as for :class:`BatchNorm`."""
        if self.update is None:
            return None
        state = torch.relu(self.update(torch.cat([self.aggregate(gamma, anchors, own), h], dim=1)))
        return state if self.norm is None else self.norm(state, present)


@dataclass(frozen=True, slots=True, eq=False)
class ChannelInput:
    """A subchannel's similarities and anchors in one layer, as :meth:`SubchannelLayer.aggregate` takes them."""

    subchannel: SubchannelLayer
    gamma: Tensor
    anchors: Tensor
    own: Tensor | None


def property_outputs(inputs: Sequence[ChannelInput]) -> list[Tensor | None]:
    """Property-aware outputs (C, n_A) of subchannels and layers, or None where they are not computed.

    All with equally many shared anchors are computed at once: operations are so small that a GPU spends its time on
    starting them.
    """
    found: list[Tensor | None] = [None] * len(inputs)
    shared: dict[int, list[int]] = {}
    for i, one in enumerate(inputs):
        score = one.subchannel.score
        if score is not None and one.own is None:
            shared.setdefault(one.gamma.shape[1], []).append(i)
        elif score is not None and one.own is not None:
            along = one.anchors @ score.weight.view(-1)  # q . a_i, once for each anchor
            if along.device.type == "cpu":
                picked = along.index_select(0, one.own.flatten()).view_as(one.own)
            else:  # plain indexing has a gradient that adds up in no fixed order
                picked = functional.embedding(one.own, along[:, None]).squeeze(-1)
            found[i] = torch.relu(one.gamma * picked + score.bias)
    for places in shared.values():
        scores = [cast(nn.Linear, inputs[i].subchannel.score) for i in places]
        q, b = torch.cat([score.weight for score in scores]), torch.cat([score.bias for score in scores])
        along = torch.bmm(torch.stack([inputs[i].anchors for i in places]), q[:, :, None])  # (k, n_A, 1)
        z = torch.relu(torch.stack([inputs[i].gamma for i in places]) * along.transpose(1, 2) + b[:, None, None])
        for i, output in zip(places, z, strict=True):
            found[i] = output
    return found


def weighted_bag(own: Tensor, table: Tensor, weights: Tensor) -> Tensor:
    """Add up picked rows: out_c = sum over i of weights_ci table[own_ci].

    Shapes:
        own, weights: (C, n). table: (T, d). returns: (C, d).
    """
    learned = torch.is_grad_enabled() and table.requires_grad
    plain = table.dtype == weights.dtype == torch.float32
    plain &= table.device.type == "cpu" or len(own) * len(table) <= DENSE_NUMBERS
    if learned and plain and not weights.requires_grad:
        bag: Tensor = _WeightedBag.apply(own, table, weights)  # type: ignore[no-untyped-call]
        return bag
    return functional.embedding_bag(own, table, per_sample_weights=weights, mode="sum")


class _WeightedBag(torch.autograd.Function):
    """:func:`weighted_bag` with fixed weights; torch's own gradient takes longer."""

    @staticmethod
    def forward(ctx: Any, own: Tensor, table: Tensor, weights: Tensor) -> Tensor:
        ctx.save_for_backward(own, weights)
        ctx.rows = len(table)
        return functional.embedding_bag(own, table, per_sample_weights=weights, mode="sum")

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        own, weights = ctx.saved_tensors
        if own.device.type != "cpu":
            dense = weights.new_zeros(len(own), ctx.rows).scatter_add_(1, own, weights)  # (C, T)
            return None, dense.T @ grads[0], None
        from scipy.sparse import csc_array

        used = weights.numpy() != 0  # bags are filled up with weights of 0
        ends = np.append(0, np.cumsum(used.sum(axis=1)))
        # Column c is component c.
        spread = csc_array((weights.numpy()[used], own.numpy()[used], ends), shape=(ctx.rows, len(own)))
        return None, torch.from_numpy(spread @ grads[0].numpy()), None


def segment_reduce(values: Tensor, owner: Tensor, count: int, how: str) -> Tensor:
    """The sum, mean or max (count, d) of the rows (rows, d) of each owner (rows,), which has at least one."""
    reduce = {"sum": "sum", "mean": "mean", "max": "amax"}[how]
    out = values.new_zeros(count, values.shape[1])
    if how == "sum" and values.device.type == "cpu":
        return out.index_add(0, owner, values)
    # The zeros that are there do not change a sum, and leaving them out takes longer than adding up.
    return out.scatter_reduce(0, owner[:, None].expand_as(values), values, reduce, include_self=how == "sum")
