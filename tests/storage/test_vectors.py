"""Vectors written a chunk at a time are those written at once."""

import numpy as np
import pytest

from subgnn.errors import DataError
from subgnn.storage.arrays import read_npy, write_npy
from tests.data.samples import npy


def chunks(lengths, width=3):
    rng = np.random.default_rng(0)
    for length in lengths:
        yield rng.random((length, width)).astype(np.float32)


@pytest.mark.parametrize("lengths", [[5], [4, 1], [1, 1, 3]])
def test_chunks(tmp_path, lengths):
    wanted = np.concatenate(list(chunks(lengths)))
    write_npy(tmp_path / "v.npy", chunks(lengths))
    found = np.load(tmp_path / "v.npy", allow_pickle=False)
    assert found.dtype == np.float32
    assert np.array_equal(found, wanted)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=np.float32).reshape(2, 3),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.arange(6, dtype=">f4").reshape(3, 2),
        np.ones((2, 2), np.bool_),
        np.zeros((0, 3)),
        np.array(5, np.int64),
    ],
    ids=["plain", "Fortran", "big-endian", "bool", "empty", "scalar"],
)
def test_an_array_is_read_as_it_was_written(tmp_path, array):
    np.save(tmp_path / "x.npy", array)
    found = read_npy(tmp_path / "x.npy")
    assert (found.dtype, found.shape) == (array.dtype, array.shape)
    assert np.array_equal(found, array)


def with_npy_header(text, data=b"", *, version=1, length=None):
    head = text.encode()
    count = len(head) if length is None else length
    start = b"\x93NUMPY" + bytes([version, 0]) + count.to_bytes(2 if version == 1 else 4, "little")
    return start + head + data


def described(descr="'<f4'", order="False", shape="(2, 2)"):
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}"


BAD_NPY = {
    "empty": b"",
    "text": b"no array",
    "version 4": with_npy_header(described(), bytes(16), version=4),
    "header longer than the file": with_npy_header(described(), length=60_000),
    "header of gigabytes": with_npy_header(described(), version=2, length=2**32 - 1),
    "no Python": with_npy_header("{'descr': ", bytes(16)),
    "code": with_npy_header("__import__('os').abort()", bytes(16)),
    "deep": with_npy_header("(" * 9000, bytes(16)),
    "not UTF-8": with_npy_header("x", bytes(16)).replace(b"x", b"\xff"),
    "a key missing": with_npy_header("{'descr': '<f4', 'shape': (2, 2)}", bytes(16)),
    "objects": with_npy_header(described("'|O'"), bytes(32)),
    "a record": with_npy_header(described("[('a', '<f4')]"), bytes(16)),
    "arrays in cells": with_npy_header(described("'(9,)f4'"), bytes(32)),
    "unknown type": with_npy_header(described("'<q9'"), bytes(16)),
    "shape of a number": with_npy_header(described(shape="4"), bytes(16)),
    "negative shape": with_npy_header(described(shape="(-2, -2)"), bytes(16)),
    "overflowing shape": with_npy_header(described(shape=f"({2**62}, 4)"), bytes(16)),
    "too little": npy(np.ones((2, 2)))[:-1],
    "an archive": b"PK\x03\x04" + bytes(100),
    "a pickle": b"\x80\x04N.",
}


@pytest.mark.parametrize("content", BAD_NPY.values(), ids=BAD_NPY)
def test_a_bad_header_is_one_line(tmp_path, content):
    (tmp_path / "x.npy").write_bytes(content)
    with pytest.raises(DataError) as caught:
        read_npy(tmp_path / "x.npy")
    assert str(caught.value).startswith(f"{tmp_path / 'x.npy'}: ")
