"""The gradient of picked rows against that of plain indexing, on a CPU and, where there is one, on a GPU.

The kernel of a GPU runs on one, or on a CPU in Triton's interpreter (TRITON_INTERPRET=1).
"""

from __future__ import annotations

import os
from importlib.util import find_spec

import pytest
import torch

from subgnn.models.subgnn import layer

DEVICES = ["cpu", *(["cuda"] if os.environ.get("SUBGNN_TEST_GPU") and torch.cuda.is_available() else [])]
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
KERNEL_DEVICE = "cpu" if INTERPRETED else "cuda"
runs_kernels = pytest.mark.skipif(
    not find_spec("triton") or not (INTERPRETED or "cuda" in DEVICES), reason="needs Triton and a GPU"
)


def picks(rows: int, device: str) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Places, weights, of which some are 0, and gradients of sums."""
    own = torch.randint(0, min(rows, 9), (7, 5), generator=torch.Generator().manual_seed(0))
    own[3, 2] = rows - 1
    weights = torch.linspace(-1, 2, 35).reshape(7, 5)
    weights[::2, 1:4] = 0
    return own.to(device), weights.to(device), torch.linspace(-3, 1, 14, device=device).reshape(7, 2)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("rows", [4, 9, 2**15 - 1, 2**15])
def test_gradients_of_picked_rows_equal_those_of_plain_indexing(rows, device):
    own, weights, grads = picks(rows, device)
    table = torch.linspace(0, 1, 2 * rows, device=device).reshape(rows, 2).requires_grad_()
    layer.weighted_bag(own, table, weights).backward(grads)
    plain = table.detach().double().cpu().requires_grad_()
    (plain[own.cpu()] * weights.cpu().double()[:, :, None]).sum(1).backward(grads.cpu().double())
    torch.testing.assert_close(table.grad.cpu().double(), plain.grad, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("device", DEVICES)
def test_gradients_of_components_equal_those_of_plain_indexing(device):
    places, starts = torch.tensor([4, 1, 1, 0, 8, 4], device=device), torch.tensor([0, 2, 2, 5], device=device)
    table = torch.linspace(0, 1, 18, device=device).reshape(9, 2).requires_grad_()
    grads = torch.linspace(-3, 1, 8, device=device).reshape(4, 2)
    layer.plain_bag(places, starts, table, "sum").backward(grads)
    expected = torch.zeros_like(table).index_add_(0, places, grads[torch.tensor([0, 0, 2, 2, 2, 3], device=device)])
    torch.testing.assert_close(table.grad, expected)


@runs_kernels
@pytest.mark.parametrize("rows", [4, 40])
@pytest.mark.parametrize("kind", ["own", "components", "weighted components"])
def test_the_kernel_of_picked_rows_equals_a_sum_in_double_precision(rows, kind):
    from subgnn.kernels.bags_gpu import add_up

    own, weights, grads = picks(rows, KERNEL_DEVICE)
    sources = torch.arange(7).repeat_interleave(5)
    starts = None if kind == "own" else torch.arange(0, 35, 5, device=KERNEL_DEVICE)
    given = weights if kind != "components" else torch.ones_like(weights)
    found = add_up(
        own if starts is None else own.flatten(), starts, grads, rows, weights=None if kind == "components" else weights
    )
    parts = given.cpu().flatten().double()[:, None] * grads.cpu().double()[sources]
    exact = torch.zeros(rows, 2, dtype=torch.float64).index_add_(0, own.cpu().flatten(), parts)
    torch.testing.assert_close(found.cpu().double(), exact, rtol=1e-5, atol=1e-6)
