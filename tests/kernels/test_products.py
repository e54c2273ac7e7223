"""Inner products of dense and sparse rows."""

import numpy as np
import pytest
import scipy

from subgnn.kernels.products import Tiles, inner_products, sparse_products


@pytest.mark.parametrize(("count", "others", "width"), [(1, 1, 1), (5, 3, 7), (4, 9, 2500), (0, 2, 3)])
def test_products_are_those_of_numpy_and_functions_of_two_rows_alone(count, others, width):
    rng = np.random.default_rng(0)
    rows, known = (rng.random((size, width), np.float32) for size in (count, others))
    found = inner_products(Tiles.of(rows), Tiles.of(known))
    np.testing.assert_allclose(found, rows.astype(np.float64) @ known.T.astype(np.float64), rtol=1e-6)
    sparse = sparse_products(scipy.sparse.csr_array(rows), scipy.sparse.csr_array(known.T))
    np.testing.assert_allclose(sparse, found, rtol=1e-6)
    for i in range(count):
        for j in range(others):
            assert inner_products(Tiles.of(rows[i : i + 1]), Tiles.of(known[j:]))[0, 0] == found[i, j]
