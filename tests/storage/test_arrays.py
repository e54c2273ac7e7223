"""The codec of arrays and states: what is written comes back, other tools read it, and any changed byte is noticed."""

import json
import math

import numpy as np
import pytest
import torch

from subgnn.errors import DataError
from subgnn.storage.arrays import (
    TYPES,
    Damaged,
    Format,
    encode_arrays,
    load_state,
    read_arrays,
    save_state,
    write_parts,
)

KIND = Format(name="test", version=3, noun="test file", make="write one", again="write it again")
ARRAYS = {name: np.arange(6).reshape(2, 3).astype(kind) for name, kind in TYPES.items()}
ARRAYS |= {"number": np.array(2.5), "empty": np.empty((0, 4), np.int32), "turned": np.arange(6.0).reshape(2, 3).T}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "x.safetensors"
    write_parts(path, encode_arrays(ARRAYS, KIND, {"a": [1, None]}, {"key": "of the test"}))
    return path


@pytest.mark.parametrize("mapped", [None, "r", "c"])
def test_what_was_written_comes_back(path, mapped):
    file = read_arrays(path, KIND, mapped=mapped)
    assert file.content() == {"a": [1, None]}
    assert file.metadata["key"] == "of the test"
    assert file.arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(file.arrays[name], array, strict=True)
        assert file.arrays[name].flags.aligned


@pytest.mark.slow
def test_every_changed_byte_is_noticed(path):
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        with pytest.raises(DataError, match=r"x\.safetensors: "):
            read_arrays(path, KIND)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other"}, "this is not a subgnn test file; write one"),
        ({"version": "4"}, "a test file of version 4; this release reads version 3; write it again"),
        ({"version": "1"}, "a test file of version 1; this release reads version 3; write it again"),
    ],
)
def test_another_kind_or_version_is_refused(path, change, message):
    whole = path.read_bytes()
    length = int.from_bytes(whole[:8], "little")
    header = json.loads(whole[8 : 8 + length])
    header["__metadata__"].update(change)
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + whole[8 + length :])
    with pytest.raises(DataError, match=message):
        read_arrays(path, KIND)


def test_content_that_is_not_json_is_refused(tmp_path):
    write_parts(tmp_path / "x", encode_arrays({}, KIND, metadata={"content": "{"}))
    with pytest.raises(DataError, match="the test file is incomplete or malformed; write it again"):
        read_arrays(tmp_path / "x", KIND).content()


STATE_KIND = Format(name="test", noun="test state", make="write one", again="write it again")
WEIGHTS = {"table": torch.randn(3, 4).T, "empty": torch.zeros(0, 2), "count": torch.tensor(3), "on": torch.ones(2) > 0}
STATE = {
    "model": WEIGHTS,
    "model.table": torch.arange(4.0),  # the same path as the table of the model
    "optimizer": {"state": {0: {"step": torch.tensor(1.0)}}, "param_groups": [{"lr": 0.1, "betas": (0.9, 0.999)}]},
    "best": (-math.inf, 1 / 3),
    "nothing": [None, True, "text \ud800", {}],
}


def assert_same(a, b):
    assert type(a) is type(b)
    if isinstance(a, torch.Tensor):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        assert torch.equal(a, b)
    elif isinstance(a, dict):
        assert list(a) == list(b)
        for key in a:
            assert_same(a[key], b[key])
    elif isinstance(a, (list, tuple)):
        for one, other in zip(a, b, strict=True):
            assert_same(one, other)
    else:
        assert a == b


def test_a_state_comes_back(tmp_path):
    save_state(STATE, tmp_path / "a", STATE_KIND)
    found = load_state(tmp_path / "a", STATE_KIND)
    assert_same(found, STATE)
    found["model"]["table"] += 1  # it may be trained on


@pytest.mark.parametrize(
    "content",
    [{"tensor": "other"}, {"tensor": ["x"]}, {"dict": [[[], 1]]}, {"dict": 3}, {"a": 1, "b": 2}, {}, [1], None],
)
def test_a_state_of_another_kind_is_refused(tmp_path, content):
    write_parts(tmp_path / "a", encode_arrays({"x": torch.zeros(2).numpy()}, STATE_KIND, {"dict": [["a", content]]}))
    if content in ([1], None):
        write_parts(tmp_path / "a", encode_arrays({}, STATE_KIND, content or 0), overwrite=True)
    with pytest.raises(Damaged, match="the test state is incomplete or malformed; write it again"):
        load_state(tmp_path / "a", STATE_KIND)
