"""Shares of a batch: together they are the batch."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from subgnn.models.subgnn.layer import StateNorm
from subgnn.task import task_of
from subgnn.training.devices import GlobalDropout, global_modules, part_of_loss, share_of, use_global_batch


@given(total=st.integers(1, 50), size=st.integers(1, 8))
def test_shares_are_the_batch_in_its_order(total, size):
    shares = [share_of(total, rank, size) for rank in range(size)]
    if total < size:
        assert all(share.whole for share in shares)
        return
    assert [i for share in shares for i in range(share.begin, share.end)] == list(range(total))
    lengths = [share.end - share.begin for share in shares]
    assert max(lengths) - min(lengths) <= 1
    assert shares[0].whole == (size == 1)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("task", ["multi-class", "multi-label", "regression"])
@pytest.mark.parametrize(("total", "size"), [(7, 2), (9, 4), (2, 3), (6, 1)])
def test_parts_of_the_loss_add_up_to_it_and_so_do_gradients(task, weighted, total, size):
    torch.manual_seed(0)
    outputs = torch.randn(total, 1 if task == "regression" else 3, dtype=torch.float64, requires_grad=True)
    targets = {
        "multi-class": torch.randint(0, 3, (total,)),
        "multi-label": torch.randint(0, 2, (total, 3)),
        "regression": torch.randn(total, dtype=torch.float64),
    }[task]
    weights = torch.tensor([0.5, 2.0, 7.0], dtype=torch.float64) if weighted and task != "regression" else None
    expected = task_of(task).loss(outputs, targets, weights)
    (gradient,) = torch.autograd.grad(expected, outputs)
    found = torch.zeros((), dtype=torch.float64)
    for rank in range(size):
        share = share_of(total, rank, size)
        own = slice(share.begin, share.end)
        part = part_of_loss(share, targets, task=task, weights=weights, size=size)
        found = found + task_of(task).loss(outputs[own], targets[own], weights) * part
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(torch.autograd.grad(found, outputs)[0], gradient)


def test_dropout_of_shares_is_that_of_the_batch():
    x = torch.randn(7, 5)
    whole, ours = nn.Dropout(0.4), GlobalDropout(0.4)
    parts = []
    for rank in range(3):
        ours.share = share_of(7, rank, 3)
        torch.manual_seed(3)
        parts.append(ours(x[ours.share.begin : ours.share.end]))
        after = torch.rand(1)  # the numbers drawn after it are the same, too
    torch.manual_seed(3)
    torch.testing.assert_close(torch.cat(parts), whole(x))
    assert torch.equal(torch.rand(1), after)


def test_a_model_that_follows_computes_the_same_alone():
    model = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Sequential(StateNorm(6), nn.Dropout(0.5)))
    x = torch.randn(5, 4)
    torch.manual_seed(0)
    expected, names = model(x), list(model.state_dict())
    use_global_batch(model)
    torch.manual_seed(0)
    torch.testing.assert_close(model(x), expected)
    assert list(model.state_dict()) == names
    assert len(global_modules(model)) == 3
