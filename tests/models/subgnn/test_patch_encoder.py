"""LSTMs on walks of unequal length equal torch's: the compiled one, and those of a GPU.

The kernels of a GPU run on one, or on a CPU in Triton's interpreter (TRITON_INTERPRET=1).
"""

from __future__ import annotations

import os
from importlib.util import find_spec

import numba
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.utils.rnn import PackedSequence

from subgnn import Ragged
from subgnn.models.subgnn import patch_encoder
from subgnn.models.subgnn.patch_encoder import (
    KernelLayer,
    PatchEncoder,
    Walks,
    gpu_states,
    kernel_totals,
    lstm_totals,
    single_precision,
)

DIM = 5
UNEQUAL = [3, 1, 7, 0, 2, 7, 5, 1, 1, 4, 6, 6, 2, 3, 3, 1, 5, 2, 2, 4]
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"))]

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
KERNEL_DEVICE = "cpu" if INTERPRETED else "cuda"
runs_kernels = pytest.mark.skipif(
    not find_spec("triton") or not (INTERPRETED or torch.cuda.is_available()), reason="needs Triton and a GPU"
)


def walks_of(lengths: list[int], per_patch: int = 1, nodes: int = 9) -> Walks:
    values = np.random.default_rng(len(lengths)).integers(0, nodes, sum(lengths))
    return Walks(Ragged.from_lengths(values, np.array(lengths)), per_patch)


def with_gradients(states, lstm: torch.nn.LSTM, table: torch.Tensor, walks: Walks) -> list[torch.Tensor]:
    table = table.detach().requires_grad_()
    lstm.zero_grad()
    with single_precision():
        found = states(lstm, table, walks)
        weights = torch.linspace(0, 3, found.numel(), dtype=torch.float64).cos().reshape(found.shape).to(found)
        (found * weights).sum().backward()
    return [found.detach(), table.grad, *(p.grad.clone() for p in lstm.parameters())]


def torch_states(lstm: torch.nn.LSTM, table: torch.Tensor, walks: Walks) -> torch.Tensor:
    return lstm(PackedSequence(table[walks.nodes][walks.places], torch.tensor(walks.sizes)))[0].data


def torch_totals(lstm: torch.nn.LSTM, table: torch.Tensor, walks: Walks) -> torch.Tensor:
    states = torch_states(lstm, table, walks)
    return states.new_zeros(walks.num_patches, states.shape[1]).index_add(0, walks.owner, states)


@settings(derandomize=True)
@given(st.lists(st.integers(0, 6), min_size=1, max_size=9).filter(any), st.integers(1, 2), st.sampled_from([1, 2]))
def test_compiled_totals_and_gradients_equal_torch_in_double_precision(lengths, layers, threads):
    check_compiled(lengths, DIM, layers, threads)


@pytest.mark.parametrize(("d", "layers"), [(1, 1), (32, 3), (40, 2)])
@pytest.mark.parametrize("lengths", [600 * [3], [i % 7 for i in range(500)], 1200 * [1] + 8 * [6], 19 * [0] + [3]])
def test_compiled_totals_of_many_walks_equal_torch(lengths, d, layers):
    check_compiled(lengths, d, layers)


def check_compiled(lengths: list[int], d: int, layers: int, threads: int = 1) -> None:
    before = numba.get_num_threads()
    numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))
    try:
        torch.manual_seed(0)
        lstm, walks = torch.nn.LSTM(d, d, num_layers=layers, bidirectional=True), walks_of(lengths)
        table = torch.linspace(-2, 2, 9 * d).sin().reshape(9, d)
        with torch.no_grad():
            without = lstm_totals(lstm, table, walks)
        ours = with_gradients(lstm_totals, lstm, table, walks)
        theirs = with_gradients(torch_totals, lstm.double(), table.double(), walks)
    finally:
        numba.set_num_threads(before)
    assert torch.equal(without, ours[0])
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a.double(), b, rtol=1e-5, atol=4e-6 * max(1, float(b.abs().max())))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("d", "layers"), [(1, 1), (5, 2), (32, 3)])
@pytest.mark.parametrize("lengths", [UNEQUAL, [1], [0, 3], 17 * [3]])
def test_states_and_gradients_of_a_gpu_equal_torch(lengths, d, layers, device):
    torch.manual_seed(0)
    lstm = torch.nn.LSTM(d, d, num_layers=layers, bidirectional=True)
    walks, table = walks_of(lengths, nodes=11), torch.randn(11, d)
    theirs = with_gradients(torch_states, lstm.double(), table.double(), walks)
    ours = with_gradients(gpu_states, lstm.float().to(device), table.to(device), walks.to(device))
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a.cpu().double(), b, rtol=1e-5, atol=4e-6 * float(b.abs().max()))


@runs_kernels
@pytest.mark.parametrize("launch", [(16, 8, "ieee"), (16, 8, "tf32x3"), (32, 4, "tf32x3")])
@pytest.mark.parametrize(("d", "layers", "per_patch"), [(1, 1, 1), (5, 2, 4), (32, 3, 2), (64, 2, 5)])
@pytest.mark.parametrize("lengths", [UNEQUAL, 20 * [10], 19 * [0] + [3]])
def test_kernels_of_a_gpu_equal_torch_in_double_precision(monkeypatch, lengths, d, layers, per_patch, launch):
    monkeypatch.setattr(patch_encoder, "LAUNCH", launch)
    torch.manual_seed(0)
    lstm = torch.nn.LSTM(d, d, num_layers=layers, bidirectional=True)
    walks, table = walks_of(lengths, per_patch, nodes=11), torch.randn(11, d)
    theirs = with_gradients(torch_totals, lstm.double(), table.double(), walks)
    by_kernels = lambda lstm, table, walks: kernel_totals(lstm, table[walks.nodes], walks, layer=KernelLayer)  # noqa: E731
    ours = with_gradients(by_kernels, lstm.float().to(KERNEL_DEVICE), table.to(KERNEL_DEVICE), walks.to(KERNEL_DEVICE))
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a.cpu().double(), b, rtol=1e-5, atol=4e-6 * float(b.abs().max()))
    with torch.no_grad():
        again = by_kernels(lstm, table.to(KERNEL_DEVICE), walks)
    assert torch.equal(again, ours[0])
    lstm.bias_ih_l0.grad.zero_()
    assert lstm.bias_hh_l0.grad.abs().sum() > 0  # no memory is shared


def test_a_second_gradient_is_refused_and_not_wrong():
    total = lstm_totals(torch.nn.LSTM(DIM, DIM, bidirectional=True), torch.randn(9, DIM), walks_of([3, 2])).sum()
    total.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="computed once"):
        total.backward()


def test_large_inputs_saturate_and_stay_finite():
    torch.manual_seed(0)
    lstm, walks, table = torch.nn.LSTM(DIM, DIM, bidirectional=True), walks_of([4, 3]), 1e4 * torch.randn(9, DIM)
    ours = lstm_totals(lstm, table, walks)
    theirs = torch_totals(lstm.double(), table.double(), walks)
    torch.testing.assert_close(ours.double(), theirs, rtol=1e-5, atol=1e-6)


def test_patches_are_sums_over_their_walks():
    torch.manual_seed(0)
    encoder = PatchEncoder(DIM).eval()
    rows = [[1, 2, 3], [4], [], [5, 6], [7, 8], [1, 1, 1, 1]]
    table = torch.randn(9, DIM)
    together = encoder(table, Walks(Ragged.from_rows([np.array(r, np.int64) for r in rows]), 2))
    for patch in range(3):
        walks = [encoder.lstm(table[row])[0].sum(dim=0) for row in rows[2 * patch : 2 * patch + 2] if row]
        torch.testing.assert_close(together[patch], encoder.project(sum(walks)), rtol=1e-5, atol=1e-6)


def test_walks_by_hand():
    # Two walks a patch; longest first: [9, 7, 9], then [7, 3] and [4, 9]; the empty one is left out.
    walks = Walks(Ragged.from_rows([[7, 3], [], [9, 7, 9], [4, 9]]), 2)
    assert (walks.num_patches, walks.sizes) == (2, [3, 3, 1])
    assert walks.nodes[walks.places].tolist() == [9, 7, 4, 7, 3, 9, 9]
    assert walks.owner.tolist() == [1, 0, 1, 1, 0, 1, 1]
    assert walks.by_node.tolist() == [4, 2, 1, 3, 0, 5, 6]
    assert walks.node_starts.tolist() == [0, 1, 2, 4]
