"""The gradient of picked rows against that of plain indexing, on a CPU and, where there is one, on a GPU."""

from __future__ import annotations

import os

import pytest
import torch

from subgnn.models.subgnn import layer

DEVICES = ["cpu", *(["cuda"] if os.environ.get("SUBGNN_TEST_GPU") and torch.cuda.is_available() else [])]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("numbers", [0, 2**25])
@pytest.mark.parametrize("rows", [4, 9, 2**15])
def test_gradients_of_picked_rows_equal_those_of_plain_indexing(monkeypatch, rows, numbers, device):
    monkeypatch.setattr(layer, "DENSE_NUMBERS", numbers)
    own = torch.randint(0, min(rows, 9), (7, 5), generator=torch.Generator().manual_seed(0)).to(device)
    weights, grads = torch.linspace(-1, 2, 35).reshape(7, 5), torch.linspace(-3, 1, 14).reshape(7, 2)
    weights[::2, 1:4] = 0
    table = torch.linspace(0, 1, 2 * rows, device=device).reshape(rows, 2).requires_grad_()
    layer.weighted_bag(own, table, weights.to(device)).backward(grads.to(device))
    plain = table.detach().double().cpu().requires_grad_()
    (plain[own.cpu()] * weights.double()[:, :, None]).sum(1).backward(grads.double())
    torch.testing.assert_close(table.grad.cpu().double(), plain.grad, rtol=1e-5, atol=1e-6)
