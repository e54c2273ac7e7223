"""Vectors written a chunk at a time are those written at once."""

from __future__ import annotations

import numpy as np
import pytest
from pyarrow import parquet

from subgnn.data.formats.vectors import write_npy, write_parquet


def chunks(lengths, width=3):
    rng = np.random.default_rng(0)
    for length in lengths:
        vectors = rng.random((length, width)).astype(np.float32)
        yield [f"{length}-{i}" for i in range(length)], vectors


@pytest.mark.parametrize("lengths", [[5], [4, 1], [1, 1, 3]])
def test_chunks(tmp_path, lengths):
    wanted = np.concatenate([vectors for _, vectors in chunks(lengths)])
    texts = [text for some, _ in chunks(lengths) for text in some]
    assert write_npy(tmp_path / "v.npy", chunks(lengths)) == (5, 3)
    found = np.load(tmp_path / "v.npy", allow_pickle=False)
    assert found.dtype == np.float32
    assert np.array_equal(found, wanted)
    assert write_parquet(tmp_path / "v.parquet", chunks(lengths)) == (5, 3)
    table = parquet.read_table(tmp_path / "v.parquet")
    assert table["subgraph"].to_pylist() == texts
    assert np.array_equal(np.array(table["vector"].to_pylist(), np.float32), wanted)


def test_nothing(tmp_path):
    assert write_npy(tmp_path / "v.npy", iter(())) == (0, 0)
    assert write_parquet(tmp_path / "v.parquet", iter(())) == (0, 0)
