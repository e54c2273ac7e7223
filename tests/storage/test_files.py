"""Scratch folders; atomic writes and leftovers are tested with the locks they rest on."""

import errno

import pytest

from subgnn.errors import DataError
from subgnn.storage.files import scratch_folder


def test_scratch_folder_is_gone_afterwards(tmp_path):
    (tmp_path / "old").mkdir()
    for path in (tmp_path / "x", tmp_path / "old" / "x", tmp_path / "a" / "b" / "x"):
        with scratch_folder(path) as scratch:
            assert scratch.parent == path.parent
            (scratch / "inner").mkdir()
            (scratch / "inner" / "file").write_text("x")
    assert [path.name for path in tmp_path.iterdir()] == ["old"]


def test_scratch_folder_on_a_full_disk(tmp_path):
    with (
        pytest.raises(DataError, match=r"x: cannot be written \(No space left on device\); make room there"),
        scratch_folder(tmp_path / "x"),
    ):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert list(tmp_path.iterdir()) == []
