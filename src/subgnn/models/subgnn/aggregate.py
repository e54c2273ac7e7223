"""AGG_C over subchannels and AGG_L over layers (paper, section 4.1): side by side, sum, mean, or the last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from subgnn.config.settings import ChannelSettings, ModelSettings
from subgnn.errors import UserError

Combination = Literal["concat", "sum", "mean", "last"]


def combine(parts: Sequence[Tensor], how: Combination) -> Tensor:
    """Parts laid side by side, or added or averaged element by element, or the last of them.

    Shapes:
        parts: (C, width) each; of one width unless they are laid side by side.
    """
    if how == "concat":
        return torch.cat(list(parts), dim=1)
    if how == "last":
        return parts[-1]
    stacked = torch.stack(list(parts))
    return stacked.sum(dim=0) if how == "sum" else stacked.mean(dim=0)


def subchannel_width(channel: ChannelSettings, settings: ModelSettings, dim: int) -> int:
    """How many numbers one layer of a subchannel gives: its state h (d), one number an anchor (n_A), or both."""
    hidden = channel.kind == "neighborhood" or settings.output != "property"
    property_aware = channel.kind != "neighborhood" and settings.output != "hidden"
    return (dim if hidden else 0) + (channel.num_anchors if property_aware else 0)


def layer_width(channels: Sequence[ChannelSettings], settings: ModelSettings, dim: int) -> int:
    """The width of a layer's output, AGG_C over its subchannels.

    Raises:
        UserError: where subchannels of unequal widths are to be added or averaged.
    """
    widths = [subchannel_width(channel, settings, dim) for channel in channels]
    if settings.channel_aggregation == "concat" or not widths:
        return sum(widths)
    if len(set(widths)) > 1:
        named = ", ".join(f"{c.name} {width}" for c, width in zip(channels, widths, strict=True))
        raise UserError(
            f"'{settings.channel_aggregation}' of subchannels whose outputs differ in width ({named})",
            where="model.channel_aggregation",
            hint='set model.output="hidden", which makes every width embeddings.dim; or give all the same num_anchors'
            ' (neighborhood has the width embeddings.dim); or set model.channel_aggregation="concat"',
        )
    return widths[0]


def layers_width(channels: Sequence[ChannelSettings], settings: ModelSettings, dim: int, *, layers: int) -> int:
    """The width of AGG_L over layers."""
    return layer_width(channels, settings, dim) * (layers if settings.layer_aggregation == "concat" else min(layers, 1))
