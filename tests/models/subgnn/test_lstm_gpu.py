"""The LSTM of a GPU, layer by layer, equals torch's; its operators run on a CPU as well."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn.utils.rnn import PackedSequence

from subgnn import Ragged
from subgnn.models.subgnn.patch_encoder import Walks, gpu_states, single_precision

UNEQUAL = [3, 1, 7, 0, 2, 7, 5, 1, 1, 4, 6, 6, 2, 3, 3, 1, 5, 2, 2, 4]
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"))]


def walks_of(lengths: list[int], nodes: int = 11) -> Walks:
    values = np.random.default_rng(len(lengths)).integers(0, nodes, sum(lengths))
    return Walks(Ragged.from_lengths(values, np.array(lengths)), 1)


def with_gradients(states, lstm: torch.nn.LSTM, table: torch.Tensor, walks: Walks) -> list[torch.Tensor]:
    table = table.detach().requires_grad_()
    lstm.zero_grad()
    with single_precision():
        found = states(lstm, table, walks)
        weights = torch.linspace(0, 3, found.numel(), dtype=torch.float64).cos().reshape(found.shape).to(found)
        (found * weights).sum().backward()
    return [found.detach(), table.grad, *(p.grad.clone() for p in lstm.parameters())]


def torch_states(lstm: torch.nn.LSTM, table: torch.Tensor, walks: Walks) -> torch.Tensor:
    found: torch.Tensor = lstm(PackedSequence(table[walks.nodes][walks.places], torch.tensor(walks.sizes)))[0].data
    return found


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("d", "layers"), [(1, 1), (5, 2), (20, 3), (32, 1), (64, 2)])
@pytest.mark.parametrize("lengths", [UNEQUAL, [1], [6], [0, 3], 17 * [3]])
def test_states_and_gradients_equal_torch(lengths, d, layers, device):
    torch.manual_seed(0)
    lstm = torch.nn.LSTM(d, d, num_layers=layers, bidirectional=True)
    walks, table = walks_of(lengths), torch.randn(11, d)
    theirs = with_gradients(torch_states, lstm.double(), table.double(), walks)
    ours = with_gradients(gpu_states, lstm.float().to(device), table.to(device), walks.to(device))
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a.cpu().double(), b, rtol=1e-5, atol=4e-6 * float(b.abs().max()))


def test_no_walk_at_all():
    assert gpu_states(torch.nn.LSTM(5, 5, bidirectional=True), torch.randn(9, 5), walks_of([0, 0])).shape == (0, 10)


def test_dropout_between_layers_in_training_alone():
    lstm, walks = torch.nn.LSTM(5, 5, num_layers=2, bidirectional=True, dropout=0.5), walks_of(UNEQUAL)
    table = torch.randn(11, 5)
    alike = [torch.equal(*(gpu_states(lstm.train(mode), table, walks) for _ in range(2))) for mode in (True, False)]
    assert alike == [False, True]


@pytest.mark.parametrize("before", [True, False])
def test_precision_is_as_before_afterwards(monkeypatch, before):
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", before)
    with single_precision():
        assert not torch.backends.cudnn.allow_tf32
    assert torch.backends.cudnn.allow_tf32 == before
