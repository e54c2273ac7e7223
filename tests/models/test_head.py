"""The classifier: three layers, dropout in training alone, and a start from a baseline's scores."""

from __future__ import annotations

import torch

from subgnn.models.head import Head


def test_three_linear_layers_with_relu_between():
    torch.manual_seed(0)
    head = Head(4, 3, hidden=(6, 5))
    z = torch.randn(7, 4)
    first, second, third = (layer for layer in head.layers if isinstance(layer, torch.nn.Linear))
    expected = third(torch.relu(second(torch.relu(first(z)))))
    torch.testing.assert_close(head(z), expected)
    assert [layer.out_features for layer in (first, second, third)] == [6, 5, 3]
    assert [layer.out_features for layer in Head(4, 3).layers if isinstance(layer, torch.nn.Linear)] == [64, 32, 3]


def test_dropout_follows_both_hidden_layers():
    rates = [layer.p for layer in Head(4, 3, dropout=0.3).layers if isinstance(layer, torch.nn.Dropout)]
    assert rates == [0.3, 0.3]
    assert [layer.p for layer in Head(4, 3).layers if isinstance(layer, torch.nn.Dropout)] == [0, 0]


def test_a_head_that_corrects_starts_at_the_baseline_and_adds_to_it():
    torch.manual_seed(0)
    head = Head(4, 3, corrects=True)
    z = torch.randn(7, 4 + 3)
    assert torch.equal(head(z), z[:, 4:])
    with torch.no_grad():
        head.layers[-1].weight.normal_()
    torch.testing.assert_close(head(z), z[:, 4:] + head.layers(z[:, :4]))
    assert not torch.equal(head(z), z[:, 4:])
