"""Saved states: all of them comes back, bit for bit and of the same types, and a state that is not ours is refused."""

from __future__ import annotations

import math

import pytest
import torch

from subgnn.storage.arrays import Damaged, Format, encode_arrays, load_state, save_state, write_parts

KIND = Format(name="test", noun="test state", make="write one", again="write it again")
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
    save_state(STATE, tmp_path / "a", KIND)
    found = load_state(tmp_path / "a", KIND)
    assert_same(found, STATE)
    found["model"]["table"] += 1  # it may be trained on


@pytest.mark.parametrize(
    "content",
    [{"tensor": "other"}, {"tensor": ["x"]}, {"dict": [[[], 1]]}, {"dict": 3}, {"a": 1, "b": 2}, {}, [1], None],
)
def test_a_state_of_another_kind_is_refused(tmp_path, content):
    write_parts(tmp_path / "a", encode_arrays({"x": torch.zeros(2).numpy()}, KIND, {"dict": [["a", content]]}))
    if content in ([1], None):
        write_parts(tmp_path / "a", encode_arrays({}, KIND, content or 0), overwrite=True)
    with pytest.raises(Damaged, match="the test state lacks a part, or has one of a wrong kind; write it again"):
        load_state(tmp_path / "a", KIND)
