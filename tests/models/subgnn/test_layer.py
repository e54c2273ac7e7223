"""Widths and READOUT on numbers that can be added by hand."""

from __future__ import annotations

import pytest
import torch

from subgnn.models.subgnn.layer import Readout, spread_rows

Z = torch.tensor([[1.0, -2.0], [3.0, -6.0], [-5.0, 0.5]], dtype=torch.float64)
OWNER = torch.tensor([1, 1, 0])


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


@pytest.mark.parametrize("block", [1, 2, 3, 64])
@pytest.mark.parametrize("rows", [4, 9, 2**15])
def test_gradients_of_picked_rows_equal_a_dense_product(rows, block):
    own = torch.randint(0, min(rows, 9), (7, 5), generator=torch.Generator().manual_seed(0))
    weights, grads = torch.linspace(-1, 2, 35).reshape(7, 5), torch.linspace(-3, 1, 14).reshape(7, 2)
    dense = torch.zeros(rows, 7).index_put((own, torch.arange(7)[:, None]), weights, accumulate=True)
    torch.testing.assert_close(spread_rows(own, weights, grads, rows, block=block), dense @ grads)
