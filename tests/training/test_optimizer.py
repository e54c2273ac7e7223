"""Adam by rows, against plain Adam and by hand."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from subgnn.training.steps import AdamByRows, clip_sparse, has_sparse_gradient


class Lookup(nn.Module):
    def __init__(self, *, sparse: bool) -> None:
        super().__init__()
        self.sparse = sparse
        self.table = nn.Parameter(torch.arange(12.0).reshape(4, 3) / 10)
        self.map = nn.Parameter(torch.tensor([1.0, -1.0, 0.5]))

    def forward(self, rows):
        return (functional.embedding(rows, self.table, sparse=self.sparse) @ self.map).square().sum()


def steps(sparse, batches, *, clip=0.0, **options):
    model = Lookup(sparse=sparse)
    optimizer = AdamByRows(model.parameters(), lr=0.1, **options)
    for rows in batches:
        optimizer.zero_grad()
        model(torch.tensor(rows)).backward()
        assert has_sparse_gradient(model) == sparse
        if clip and sparse:
            clip_sparse(model, clip)
        elif clip:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
    return model


def test_where_every_batch_touches_all_rows_it_is_plain_adam():
    batches = [[0, 1, 2, 3], [3, 2, 2, 1, 0], [1, 0, 3, 2]]
    ours, theirs = (steps(sparse, batches, clip=0.3) for sparse in (True, False))
    torch.testing.assert_close(ours.table, theirs.table)
    torch.testing.assert_close(ours.map, theirs.map)


def test_rows_that_are_not_looked_up_rest():
    model = steps(True, [[0, 1], [1], [1, 3]])
    untouched = Lookup(sparse=True).table
    assert torch.equal(model.table[2], untouched[2])
    assert not torch.equal(model.table[3], untouched[3])
    once = steps(True, [[0, 1]])
    assert torch.equal(model.table[0], once.table[0])


def test_its_state_can_be_kept():
    batches = [[0, 1], [1, 2], [2, 3]]
    whole = steps(True, batches)
    model = Lookup(sparse=True)
    optimizer = AdamByRows(model.parameters(), lr=0.1)
    for rows in batches:
        other = AdamByRows(model.parameters(), lr=0.1)
        other.load_state_dict(optimizer.state_dict())
        optimizer = other
        optimizer.zero_grad()
        model(torch.tensor(rows)).backward()
        optimizer.step()
    assert torch.equal(model.table, whole.table)
