"""Records sorted within a bucket against Python's own sorting."""

from __future__ import annotations

import numpy as np
import pytest

from subgnn.kernels.build_csr import CELL, bucket_rows, distribute, record_edges

FLIPPED = 1 << 31


def oracle(records, first, num_rows):
    """Rows, weights of the first of equal entries, and pairs (row < neighbour) given from both ends."""
    rows = [{} for _ in range(num_rows)]
    flips = [{} for _ in range(num_rows)]
    for row, coded, weight in records.tolist():
        neighbor = coded & (FLIPPED - 1)
        rows[row - first].setdefault(neighbor, weight)
        flips[row - first].setdefault(neighbor, set()).add(coded >= FLIPPED)
    both = sum(len(f) == 2 and first + i < v for i, row in enumerate(flips) for v, f in row.items())
    return [sorted(row.items()) for row in rows], both


@pytest.mark.parametrize("num_nodes", [300, 70_000, 2**31 - 1])
@pytest.mark.parametrize("width", [2, 3])
def test_rows(num_nodes, width):
    rng = np.random.default_rng(num_nodes + width)
    first, num_rows = 120, 6
    # Row 121 is long enough for the other way of sorting, and row 123 is empty.
    rows = rng.choice([120, 121, 121, 121, 122, 124, 125], 2000)
    few = rng.integers(0, num_nodes, 200)
    neighbors = np.where(rng.random(2000) < 0.5, rng.choice(few, 2000), rng.integers(0, num_nodes, 2000))
    flips = FLIPPED * rng.integers(0, 2, 2000)
    weights = rng.normal(size=2000).astype(np.float32).view(np.uint32)
    records = np.stack([rows, neighbors + flips, weights], axis=1).astype(np.uint32)
    expected, both = oracle(records, first, num_rows)
    offsets, found, found_weights, mirrored = bucket_rows(records[:, :width], first, num_rows, num_nodes=num_nodes)
    assert mirrored == both > 0
    assert found.dtype == np.int32
    assert np.diff(offsets).tolist() == [len(row) for row in expected]
    assert found.tolist() == [v for row in expected for v, _ in row]
    assert found_weights.view(np.uint32).tolist() == ([w for row in expected for _, w in row] if width == 3 else [])


def test_a_bucket_without_records():
    offsets, neighbors, weights, mirrored = bucket_rows(np.empty((0, 3), np.uint32), 7, 3, num_nodes=10)
    assert offsets.tolist() == [0, 0, 0, 0]
    assert len(neighbors) == len(weights) == mirrored == 0


def test_records_are_counted_by_cell():
    leaving, entering = np.zeros(3, np.int64), np.zeros(3, np.int64)
    tails, heads = np.array([0, 5, CELL, 2 * CELL]), np.array([CELL, 5, 1, 2 * CELL + 1])
    records = record_edges(tails, heads, np.arange(4.0), leaving=leaving, entering=entering)
    assert records[:, :2].tolist() == [[0, CELL], [CELL, 1], [2 * CELL, 2 * CELL + 1]]
    assert records[:, 2].copy().view(np.float32).tolist() == [0.0, 2.0, 3.0]
    assert leaving.tolist() == [1, 1, 1]
    assert entering.tolist() == [1, 1, 1]


def test_records_go_to_the_buckets_of_both_ends_in_order():
    records = np.array([[0, CELL, 7], [CELL, 1, 8], [2, 0, 9]], np.uint32)
    buckets = np.array([1, 0], np.int32)
    out, offsets = distribute(records, buckets, 2, both=True)
    assert offsets.tolist() == [0, 2, 6]
    assert out.tolist() == [
        [CELL, FLIPPED, 7],
        [CELL, 1, 8],
        [0, CELL, 7],
        [1, CELL + FLIPPED, 8],
        [2, 0, 9],
        [0, 2 + FLIPPED, 9],
    ]
    out, offsets = distribute(records, buckets, 2, both=False)
    assert out.tolist() == [[CELL, 1, 8], [0, CELL, 7], [2, 0, 9]]
    assert offsets.tolist() == [0, 1, 3]
