"""The classifier: three layers, dropout in training alone, and a start from a baseline's scores."""

from __future__ import annotations

import torch

from subgnn.models.tensor_model import Head


def test_three_linear_layers_with_relu_and_dropout_between():
    torch.manual_seed(0)
    head, z = Head(4, 3, hidden=(6, 5), dropout=0.3), torch.randn(7, 4)
    first, second, third = (layer for layer in head.layers if isinstance(layer, torch.nn.Linear))
    torch.testing.assert_close(head.eval()(z), third(torch.relu(second(torch.relu(first(z))))))
    assert [layer.out_features for layer in (first, second, third)] == [6, 5, 3]
    assert [layer.p for layer in head.layers if isinstance(layer, torch.nn.Dropout)] == [0.3, 0.3]


def test_a_head_that_corrects_starts_at_the_baseline_and_adds_to_it():
    torch.manual_seed(0)
    head, z = Head(4, 3, corrects=True), torch.randn(7, 4 + 3)
    assert torch.equal(head(z), z[:, 4:])
    with torch.no_grad():
        head.layers[-1].weight.normal_()
    torch.testing.assert_close(head(z), z[:, 4:] + head.layers(z[:, :4]))
