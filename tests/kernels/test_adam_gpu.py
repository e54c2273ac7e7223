"""The optimizer's kernel equals torch's Adam."""

from __future__ import annotations

import pytest
import torch

from subgnn.kernels import adam_gpu
from subgnn.training import optimizer
from subgnn.training.optimizer import CapturableAdam
from tests.gpu import DEVICE, compile_only, compiles_kernels, interpreter, runs_kernels  # noqa: F401

pytestmark = pytest.mark.usefixtures("interpreter")


@runs_kernels
def test_steps_equal_adam(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optimizer, "_LARGE", 1000)
    torch.manual_seed(0)
    start, small = torch.randn(70, 30), torch.randn(3)
    found = []
    for dtype in (torch.float32, torch.float64):
        table, other = (torch.nn.Parameter(t.clone().to(DEVICE, dtype)) for t in (start, small))
        groups = [{"params": [other], "weight_decay": 0.1}, {"params": [table]}]
        if dtype == torch.float64:  # torch's own
            adam: torch.optim.Optimizer = torch.optim.Adam(groups, lr=0.02)
        else:
            adam = CapturableAdam(groups, lr=torch.tensor(0.02, device=DEVICE), capturable=DEVICE == "cuda")
        for step in range(5):
            adam.zero_grad()
            (table.sin().sum() * (step + 1) + other.square().sum()).backward()
            adam.step()
        found.append([table, other, *(adam.state[table][name] for name in ("step", "exp_avg", "exp_avg_sq"))])
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours.detach().cpu().double(), theirs.detach().cpu().double(), rtol=1e-5, atol=1e-6)


@compiles_kernels
def test_the_kernel_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    zero = torch.zeros(())
    tables = [torch.zeros(5, 3) for _ in range(4)]
    memory = compile_only(monkeypatch)
    adam_gpu.move(*tables[:2], (tables[2], tables[3]), steps=zero, rate=zero, betas=(0.9, 0.999), eps=1e-8)
    assert len(memory) == 1


def test_torch_moves_tables_without_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adam_gpu, "runs_on", lambda device: False)
    monkeypatch.setattr(optimizer, "_LARGE", 1)
    table = torch.nn.Parameter(torch.ones(2, 2))
    adam = CapturableAdam([table], lr=torch.tensor(0.1))
    table.sum().backward()
    adam.step()
    torch.testing.assert_close(table.detach(), torch.full((2, 2), 0.9))
