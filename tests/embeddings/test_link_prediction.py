"""The sparse product and its gradient, against the dense ones."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from subgnn.embeddings.link_prediction import Adjacency


@pytest.mark.parametrize("loops", [False, True])
def test_product_and_gradient_are_those_of_the_dense_matrix(loops):
    rng = np.random.default_rng(0)
    dense = np.where(rng.random((4, 7)) < 0.5, rng.normal(size=(4, 7)), 0).astype(np.float32)
    rows, columns = np.nonzero(dense)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=4))])
    own = rng.normal(size=4).astype(np.float32) if loops else None
    adjacency = Adjacency.of(
        offsets, columns.astype(np.int32), dense[rows, columns], num_columns=7, rows=slice(1, 5), loops=own
    )
    whole = torch.from_numpy(dense.copy())
    if own is not None:
        whole[torch.arange(4), torch.arange(1, 5)] += torch.from_numpy(own)
    x = torch.randn(7, 3, requires_grad=True)
    weights = torch.randn(4, 3)
    found = adjacency @ x
    assert torch.allclose(found, whole @ x, atol=1e-6)
    (gradient,) = torch.autograd.grad((found * weights).sum(), x)
    (expected,) = torch.autograd.grad(((whole @ x) * weights).sum(), x)
    assert torch.allclose(gradient, expected, atol=1e-6)
