"""The kernels of a GPU equal torch's LSTM: on a GPU, or in Triton's interpreter (TRITON_INTERPRET=1)."""

from __future__ import annotations

from functools import partial
from itertools import product

import numpy as np
import pytest
import torch
from torch.nn.utils.rnn import PackedSequence

from subgnn import Ragged
from subgnn.errors import DataWarning
from subgnn.kernels import lstm_gpu as kernels
from subgnn.kernels.lstm_gpu import Launch
from subgnn.models.subgnn.lstm_gpu import gpu_totals
from subgnn.models.subgnn.walks import Walks
from tests.gpu import DEVICE, compile_only, compiles_kernels, interpreter, runs_kernels  # noqa: F401

pytestmark = pytest.mark.usefixtures("interpreter")

UNEQUAL = [3, 1, 7, 0, 2, 7, 5, 1, 1, 4, 6, 6, 2, 3, 3, 1, 5, 2, 2, 4]  # more walks than a program has


def walks_of(lengths: list[int], per_patch: int = 1, nodes: int = 11) -> Walks:
    values = np.random.default_rng(len(lengths)).integers(0, nodes, sum(lengths))
    return Walks(Ragged.from_lengths(values, np.array(lengths)), per_patch)


def with_gradients(totals, lstm: torch.nn.LSTM, table: torch.Tensor, walks: Walks) -> list[torch.Tensor]:
    table = table.detach().requires_grad_()
    lstm.zero_grad()
    found = totals(lstm, table, walks)
    weights = torch.linspace(0, 3, found.numel(), dtype=torch.float64).cos().reshape(found.shape).to(found)
    (found * weights).sum().backward()
    return [found.detach(), table.grad, *(p.grad.clone() for p in lstm.parameters())]


def torch_totals(lstm: torch.nn.LSTM, table: torch.Tensor, walks: Walks) -> torch.Tensor:
    states = lstm(PackedSequence(table[walks.nodes][walks.places], torch.tensor(walks.sizes)))[0].data
    return states.new_zeros(walks.num_patches, states.shape[1]).index_add(0, walks.owner, states)


def assert_equal_torch(lengths: list[int], d: int, *, layers: int = 1, per_patch: int = 1) -> None:
    torch.manual_seed(0)
    lstm = torch.nn.LSTM(d, d, num_layers=layers, bidirectional=True)
    walks, table = walks_of(lengths, per_patch), torch.randn(11, d)
    theirs = with_gradients(torch_totals, lstm.double(), table.double(), walks)
    ours = with_gradients(gpu_totals, lstm.float().to(DEVICE), table.to(DEVICE), walks.to(DEVICE))
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a.cpu().double(), b, rtol=1e-5, atol=2e-6 * float(b.abs().max()))


@runs_kernels
@pytest.mark.parametrize("d", [1, 5, 16, 20, 32, 64])
def test_totals_and_gradients_equal_torch(d: int) -> None:
    assert_equal_torch(UNEQUAL, d)


@runs_kernels
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_layers_and_patches_of_several_walks(layers: int) -> None:
    assert_equal_torch(UNEQUAL, 5, layers=layers, per_patch=4)


@runs_kernels
@pytest.mark.parametrize("lengths", [[1], [6], [0, 3], 16 * [2], 17 * [3]])
def test_numbers_of_walks(lengths: list[int]) -> None:
    assert_equal_torch(lengths, 20, layers=2)


@runs_kernels
@pytest.mark.parametrize(
    "launch", [Launch(16, 4, "ieee"), Launch(32, 8, "ieee"), Launch(16, 8, "tf32x3"), Launch(64, 8, "tf32x3")]
)
def test_divisions_of_the_kernels(monkeypatch: pytest.MonkeyPatch, launch: Launch) -> None:
    for name in ("forward", "backward"):
        monkeypatch.setattr(kernels, name, partial(getattr(kernels, name), launch=launch))
    assert_equal_torch(UNEQUAL, 32, layers=2)


@runs_kernels
def test_no_walk_at_all() -> None:
    totals = gpu_totals(torch.nn.LSTM(5, 5, bidirectional=True), torch.randn(9, 5), walks_of([0, 0], 2))
    assert totals.tolist() == [[0.0] * 10]


@runs_kernels
def test_without_gradients_totals_are_the_same() -> None:
    torch.manual_seed(0)
    lstm, walks = torch.nn.LSTM(5, 5, bidirectional=True).to(DEVICE), walks_of(UNEQUAL).to(DEVICE)
    table = torch.randn(11, 5).to(DEVICE)
    with torch.no_grad():
        alone = gpu_totals(lstm, table, walks)
    assert torch.equal(alone, gpu_totals(lstm, table, walks))


@runs_kernels
def test_gradients_of_both_biases_do_not_share_memory() -> None:
    lstm, walks = torch.nn.LSTM(5, 5, bidirectional=True).to(DEVICE), walks_of(UNEQUAL).to(DEVICE)
    gpu_totals(lstm, torch.randn(11, 5).to(DEVICE), walks).sum().backward()
    lstm.bias_ih_l0.grad.zero_()
    assert lstm.bias_hh_l0.grad.abs().sum() > 0


@compiles_kernels
@pytest.mark.parametrize("precision", ["ieee", "tf32x3"])
@pytest.mark.parametrize("d", [5, 32, 64])
def test_every_variant_compiles_and_fits_an_h200(monkeypatch: pytest.MonkeyPatch, d: int, precision: str) -> None:
    first, launch = torch.zeros(1, dtype=torch.int64), Launch(precision=precision)
    layout = kernels.Layout(first, first + 1, first, per_patch=1)
    projected, weights = torch.zeros(1, 8 * d), torch.zeros(2, 4 * d, d)
    memory = compile_only(monkeypatch)
    for places, summed, keep in product((None, first), (False, True), (False, True)):
        how = {"places": places, "summed": summed, "keep": keep}
        states, kept = kernels.forward(projected, weights, layout, launch=launch, **how)
        kernels.backward(states, weights, layout, kept, summed=summed, launch=launch)
    assert len(memory) == 16
    assert max(memory) <= 227 << 10


def test_kernels_that_cannot_be_compiled_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_, **__) -> None:
        raise RuntimeError("no C compiler")

    monkeypatch.setattr(kernels, "AVAILABLE", True)
    monkeypatch.setattr(kernels, "forward", fail)
    kernels.runs_on.cache_clear()
    with pytest.warns(DataWarning, match="no C compiler"):
        assert not kernels.runs_on(torch.device("cpu"), 5)
    assert not kernels.runs_on(torch.device("cpu"), kernels.MAX_WIDTH + 1)
    kernels.runs_on.cache_clear()


def test_torch_computes_what_the_kernels_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "runs_on", lambda *_: False)
    torch.manual_seed(0)
    lstm, walks, table = torch.nn.LSTM(5, 5, num_layers=2, bidirectional=True), walks_of(UNEQUAL), torch.randn(11, 5)
    ours, theirs = (with_gradients(totals, lstm, table, walks) for totals in (gpu_totals, torch_totals))
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)
