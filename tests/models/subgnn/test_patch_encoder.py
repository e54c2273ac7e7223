"""The compiled LSTM equals torch's, on walks of unequal length."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.utils.rnn import PackedSequence

from subgnn import Ragged
from subgnn.models.subgnn.patch_encoder import PatchEncoder, Picking, Walks, lstm_states

DIM = 5


def walks_of(lengths: list[int], per_patch: int = 1, nodes: int = 9) -> Walks:
    rng = np.random.default_rng(len(lengths))
    values = rng.integers(0, nodes, sum(lengths))
    return Walks(Ragged.from_lengths(values, np.array(lengths)), per_patch)


def states_and_gradients(lstm: torch.nn.LSTM, walks: Walks, dtype: torch.dtype) -> list[torch.Tensor]:
    lstm = lstm.to(dtype)
    lstm.zero_grad()
    table = torch.linspace(-2, 2, 9 * DIM).sin().reshape(9, DIM).to(dtype).requires_grad_()
    states = lstm_states(lstm, table, walks)
    weights = torch.linspace(0, 3, states.numel()).cos().reshape(states.shape).to(dtype)
    (states * weights).sum().backward()
    return [states.detach(), table.grad, *(p.grad.clone() for p in lstm.parameters())]


@pytest.mark.slow
@settings(derandomize=True)
@given(st.lists(st.integers(0, 6), min_size=1, max_size=9).filter(any), st.integers(1, 2), st.sampled_from([1, 2, 5]))
def test_states_and_gradients_equal_torch(lengths: list[int], layers: int, threads: int) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        torch.manual_seed(0)
        lstm = torch.nn.LSTM(DIM, DIM, num_layers=layers, bidirectional=True)
        walks = walks_of(lengths)
        ours = states_and_gradients(lstm, walks, torch.float32)
        theirs = states_and_gradients(lstm, walks, torch.float64)  # torch's own, in double precision
    finally:
        torch.set_num_threads(before)
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a.double(), b, rtol=1e-5, atol=2e-6)


def test_a_second_gradient_is_refused_and_not_wrong() -> None:
    states = lstm_states(torch.nn.LSTM(DIM, DIM, bidirectional=True), torch.randn(9, DIM), walks_of([3, 2])).sum()
    states.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="computed once"):
        states.backward()


def test_large_inputs_saturate_and_stay_finite() -> None:
    torch.manual_seed(0)
    lstm = torch.nn.LSTM(DIM, DIM, bidirectional=True)
    walks = walks_of([4, 3])
    table = 1e4 * torch.randn(9, DIM)
    ours = lstm_states(lstm, table, walks)
    theirs = lstm.double()(PackedSequence(table[walks.nodes].double()[walks.places], torch.tensor(walks.sizes)))[0].data
    torch.testing.assert_close(ours.double(), theirs, rtol=1e-5, atol=1e-6)


def test_dropout_acts_between_layers_in_training_only() -> None:
    torch.manual_seed(0)
    encoder = PatchEncoder(DIM, lstm_layers=2, dropout=0.5)
    walks, table = walks_of([3, 2, 3], 3), torch.randn(9, DIM)
    assert not torch.equal(encoder(table, walks), encoder(table, walks))
    encoder.eval()
    assert torch.equal(encoder(table, walks), encoder(table, walks))


def test_patches_are_sums_over_their_walks() -> None:
    torch.manual_seed(0)
    encoder = PatchEncoder(DIM).eval()
    rows = [[1, 2, 3], [4], [], [5, 6], [7, 8], [1, 1, 1, 1]]
    table = torch.randn(9, DIM)
    together = encoder(table, Walks(Ragged.from_rows([np.array(r, np.int64) for r in rows]), 2))
    for patch in range(3):
        total = torch.zeros(2 * DIM)
        for row in rows[2 * patch : 2 * patch + 2]:
            if row:
                total += encoder.lstm(table[row])[0].sum(dim=0)
        torch.testing.assert_close(together[patch], encoder.project(total), rtol=1e-5, atol=1e-6)


def test_no_walk_at_all() -> None:
    encoder = PatchEncoder(DIM)
    assert encoder(torch.randn(9, DIM), walks_of([0, 0], 2)).shape == (1, DIM)


def test_walks_by_hand():
    # Two walks a patch; longest first: [9, 7, 9], then [7, 3] and [4, 9]; the empty one is left out.
    walks = Walks(Ragged.from_rows([[7, 3], [], [9, 7, 9], [4, 9]]), 2)
    assert walks.num_patches == 2
    assert walks.sizes == [3, 3, 1]
    nodes = walks.nodes[walks.places].tolist()
    assert nodes == [9, 7, 4, 7, 3, 9, 9]
    assert walks.nodes.tolist() == [3, 4, 7, 9]
    assert walks.owner.tolist() == [1, 0, 1, 1, 0, 1, 1]
    assert set(walks.state_dict()) == {"nodes", "places", "owner"}
    assert walks.by_node.tolist() == [4, 2, 1, 3, 0, 5, 6]
    assert walks.node_starts.tolist() == [0, 1, 2, 4]


def test_steps_by_row():
    picking = Picking.of(np.array([2, 0, 2, 3]), 5)
    assert [array.tolist() for array in picking.by_row] == [[1, 0, 2, 3], [0, 1, 1, 3, 4, 4]]
    assert picking.rows.tolist() == [2, 0, 2, 3]
