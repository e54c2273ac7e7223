"""Widths and READOUT on numbers that can be added by hand."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import embedding_bag

from subgnn.models.subgnn.layer import Readout, weighted_bag

Z = torch.tensor([[1.0, -2.0], [3.0, -6.0], [-5.0, 0.5]], dtype=torch.float64)
OWNER = torch.tensor([1, 1, 0])


@pytest.mark.parametrize(("how", "expected"), [("sum", [4, -8]), ("mean", [2, -4]), ("max", [3, -2])])
def test_components_become_subgraphs(how, expected):
    # A single component is taken as it is, below 0 too.
    assert Readout(how, 2)(Z, OWNER, 2).tolist() == [[-5, 0.5], expected]


@pytest.mark.parametrize("scale", [1.0, 1e6])
def test_attention_is_a_softmax_over_a_subgraphs_components(scale):
    torch.manual_seed(0)
    readout = Readout("attention", 2).double()
    with torch.no_grad():
        readout.attend[2].weight *= scale  # beyond what an exponential can hold
    found = readout(Z, OWNER, 2)
    first, _, last = readout.attend
    scores = torch.tanh(Z @ first.weight.T + first.bias) @ last.weight[0] + last.bias
    weights = torch.softmax(scores[:2], 0)
    torch.testing.assert_close(found[1], weights[0] * Z[0] + weights[1] * Z[1])
    torch.testing.assert_close(found[0], Z[2])
    assert first.out_features == last.in_features == 32
    found.sum().backward()
    assert first.weight.grad.isfinite().all()


def test_picked_rows_are_added_up_as_by_torch():
    generator = torch.Generator().manual_seed(0)
    own = torch.randint(0, 4, (6, 9), generator=generator)  # places repeat within a row; row 4 is not among them
    weights, grad = torch.rand(6, 9, generator=generator), torch.randn(6, 3, generator=generator)
    table = torch.randn(5, 3, generator=generator)
    ours, theirs = table.clone().requires_grad_(), table.clone().requires_grad_()
    found = weighted_bag(own, ours, weights)
    expected = embedding_bag(own, theirs, per_sample_weights=weights, mode="sum")
    found.backward(grad)
    expected.backward(grad)
    assert torch.equal(found, expected)
    torch.testing.assert_close(ours.grad, theirs.grad)
    assert weighted_bag(own[:0], ours, weights[:0]).shape == (0, 3)


def test_the_gradient_of_weights_is_kept():
    weights = torch.ones(1, 2, requires_grad=True)
    weighted_bag(torch.tensor([[0, 1]]), torch.tensor([[2.0], [3.0]], requires_grad=True), weights).sum().backward()
    assert weights.grad.tolist() == [[2, 3]]
