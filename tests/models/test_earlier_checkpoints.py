"""Checkpoints in the format of torch.save, of earlier releases: read, or refused before they take memory."""

from __future__ import annotations

import json
import pickle
import resource
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

from subgnn import DataError, Ragged
from subgnn.inference.predictor import Predictor
from subgnn.models.checkpoint import load_checkpoint
from subgnn.storage.torch_file import Damaged, load, save
from tests.training.examples import dataset

ROWS = Ragged.from_rows([[0, 1, 2, 10, 11, 20], [3, 9]])


def answer(path):
    return Predictor(path, dataset().graph).outputs(ROWS)


EARLIER = Path(__file__).parents[1] / "files" / "earlier"


@pytest.fixture
def old():
    """A checkpoint of version 4, in the format of torch.save."""
    return EARLIER / "correcting" / "checkpoint.pt"


def test_a_checkpoint_without_a_checksum_is_of_an_earlier_release(old, tmp_path):
    content = load(old)
    del content["checksum"]
    torch.save(content | {"version": 3}, tmp_path / "old.pt")
    np.testing.assert_array_equal(answer(tmp_path / "old.pt"), answer(old))
    torch.save(content, tmp_path / "new.pt")
    with pytest.raises(Damaged, match="its checksum is missing"):
        load_checkpoint(tmp_path / "new.pt")


def test_a_checkpoint_of_version_2_knows_of_no_baseline_to_correct(tmp_path):
    content = load(EARLIER / "subgnn" / "checkpoint.pt")
    assert content.pop("baseline") is None
    del content["checksum"]
    settings = json.loads(content["recipe"])
    del settings["model"]["baseline"]
    torch.save(content | {"version": 2, "recipe": json.dumps(settings)}, tmp_path / "old.pt")
    np.testing.assert_array_equal(answer(tmp_path / "old.pt"), answer(EARLIER / "subgnn" / "checkpoint.pt"))


def test_a_checkpoint_of_version_1_is_refused(old, tmp_path):
    save(load(old) | {"version": 1}, tmp_path / "old.pt")
    with pytest.raises(DataError, match="a checkpoint of version 1; this release reads version 2, 3, 4; train again"):
        load_checkpoint(tmp_path / "old.pt")


@pytest.mark.parametrize(
    "change", [lambda c: c.pop("shared"), lambda c: c.update(weights=[]), lambda c: c.update(recipe="[")]
)
def test_an_earlier_checkpoint_that_lacks_a_part_is_refused(change, old, tmp_path):
    content = load(old)
    change(content)
    save(content, tmp_path / "old.pt")
    with pytest.raises(DataError, match="the checkpoint lacks a part, or has one of a wrong kind"):
        load_checkpoint(tmp_path / "old.pt")


def test_any_change_of_an_earlier_checkpoint_is_noticed(old, tmp_path):
    def values(content, path=()):
        inner = content.items() if isinstance(content, dict) else enumerate(content)
        for key, value in inner:
            if isinstance(value, (dict, list)):
                yield from values(value, (*path, key))
            else:
                yield (*path, key)

    for *keys, last in values(load(old)):
        content = torch.load(old, weights_only=True)
        parent = content
        for key in keys:
            parent = parent[key]
        value = parent[last]
        if isinstance(value, torch.Tensor):
            if not value.numel():
                continue
            value.view(-1).view(torch.uint8)[value.nbytes // 2] ^= 4
        else:
            parent[last] = {int: 7, str: f"{value} "}.get(type(value), "") if value != 7 else 8
        torch.save(content, tmp_path / "other.pt")
        with pytest.raises(DataError):
            load_checkpoint(tmp_path / "other.pt")


def rewritten(path, out, change, **options):
    """The archive with other records."""
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(out, "w", **options) as copy:
        for record in archive.infolist():
            copy.writestr(record.filename, change(record.filename, archive.read(record)))
    return out


def peak_of(action):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    action()
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024


def packed_zeros(path, out):
    return rewritten(
        path, out, lambda name, data: bytes(2 * 10**8) if name.endswith("data/0") else data,
        compression=zipfile.ZIP_DEFLATED,
    )  # fmt: skip


def one_number_shown_often(path, out):
    content = load(path)
    content["weights"]["table"] = torch.zeros(1).expand(10**9)
    save_as_it_is(content, out)
    return out


def save_as_it_is(content, out):
    content.pop("checksum", None)
    torch.save(content | {"version": 3}, out)


def shared_storage(path, out):
    content = load(path)
    table = torch.zeros(10**6)
    content["weights"] |= {f"w{i}": table for i in range(1000)}
    save_as_it_is(content, out)
    return out


def references_to_references(path, out):
    content = load(path)
    nested: list = [0]
    for _ in range(60):
        nested = [nested, nested]
    content["classes"] = nested
    save_as_it_is(content, out)
    return out


def many_small_values(path, out):
    content = load(path)
    content["classes"] = [[] for _ in range(600_000)]
    save_as_it_is(content, out)
    return out


def other_constructors(path, out):
    class Bytes:
        def __reduce__(self):
            return bytearray, (10**9,)

    content = load(path)
    content["classes"] = [Bytes()]
    save_as_it_is(content, out)
    return out


def sparse(path, out):
    content = load(path)
    content["weights"]["table"] = torch.sparse_coo_tensor([[0]], [1.0], (10**9,))
    save_as_it_is(content, out)
    return out


@pytest.mark.quick(2)
@pytest.mark.parametrize(
    "make",
    [
        packed_zeros,
        one_number_shown_often,
        shared_storage,
        references_to_references,
        many_small_values,
        other_constructors,
        sparse,
    ],
)
def test_memory_is_bounded_by_the_size_of_the_file(make, old, tmp_path):
    path = make(old, tmp_path / "bomb.pt")

    def refuse():
        with pytest.raises(Damaged):
            load_checkpoint(path)

    assert peak_of(refuse) < 10**8 + 8 * path.stat().st_size


def test_code_is_not_run(tmp_path):
    class Code:
        def __reduce__(self):
            return (tmp_path / "done").touch, ()

    torch.save({"format": "subgnn-run", "weights": Code()}, tmp_path / "code.pt")
    with pytest.raises(Damaged):
        load_checkpoint(tmp_path / "code.pt")
    (tmp_path / "plain.pkl").write_bytes(pickle.dumps(Code()))
    with pytest.raises(DataError, match="this is not a subgnn checkpoint"):
        load_checkpoint(tmp_path / "plain.pkl")
    assert not (tmp_path / "done").exists()
