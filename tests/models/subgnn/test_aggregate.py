"""AGG_C and AGG_L on numbers that can be added by hand."""

from __future__ import annotations

import pytest
import torch

from subgnn.config.settings import ChannelSettings, ModelSettings
from subgnn.models.subgnn.aggregate import combine, layers_width, subchannel_width

PARTS = [torch.tensor([[1.0, 2.0]]), torch.tensor([[5.0, -4.0]]), torch.tensor([[0.0, 8.0]])]


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("concat", [1, 2, 5, -4, 0, 8]),
        ("sum", [6, 6]),
        ("mean", [2, 2]),
        ("last", [0, 8]),
    ],
)
def test_combine(how, expected):
    assert combine(PARTS, how).tolist() == [expected]


@pytest.mark.parametrize(
    ("kind", "output", "width"),
    [
        ("position", "property", 3),
        ("position", "hidden", 7),
        ("structure", "both", 10),
        ("neighborhood", "property", 7),
        ("neighborhood", "both", 7),
    ],
)
def test_width_of_a_subchannel(kind, output, width):
    assert subchannel_width(ChannelSettings(kind, "border", 3), ModelSettings(output=output), 7) == width


@pytest.mark.parametrize(("how", "width"), [("concat", 20), ("last", 5), ("sum", 5), ("mean", 5)])
def test_width_over_layers(how, width):
    channel = ChannelSettings("position", "border", 5)
    assert layers_width([channel], ModelSettings(layer_aggregation=how), 7, layers=4) == width
