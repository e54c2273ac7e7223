"""The gradient of picked rows against a dense product."""

from __future__ import annotations

import pytest
import torch

from subgnn.models.subgnn.layer import spread_rows


@pytest.mark.parametrize("block", [1, 2, 3, 64])
@pytest.mark.parametrize("rows", [4, 9, 2**15])
def test_gradients_of_picked_rows_equal_a_dense_product(rows, block):
    own = torch.randint(0, min(rows, 9), (7, 5), generator=torch.Generator().manual_seed(0))
    weights, grads = torch.linspace(-1, 2, 35).reshape(7, 5), torch.linspace(-3, 1, 14).reshape(7, 2)
    dense = torch.zeros(rows, 7).index_put((own, torch.arange(7)[:, None]), weights, accumulate=True)
    torch.testing.assert_close(spread_rows(own, weights, grads, rows, block=block), dense @ grads)
