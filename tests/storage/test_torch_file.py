"""Saved states: any change is noticed, no code is run, and memory is bounded by the size of the file."""

from __future__ import annotations

import pickle
import resource
import zipfile

import pytest
import torch

from subgnn.storage.torch_file import CHECKSUM, Damaged, load, save


@pytest.fixture
def saved(tmp_path):
    weights = {"table": torch.arange(12.0).reshape(3, 4), "empty": torch.zeros(0), "count": torch.tensor(3)}
    state = {"model": weights, "groups": [{"lr": 0.1, "rows": [1, 2]}], "best": (0.5, 1.0), "text": "a"}
    save(state, tmp_path / "a.pt")
    return tmp_path / "a.pt"


def test_any_change_is_noticed(saved, tmp_path):
    def places(content, path=()):
        inner = content.items() if isinstance(content, dict) else enumerate(content)
        for key, value in inner:
            if isinstance(value, (dict, list)):
                yield from places(value, (*path, key))
            else:
                yield (*path, key)

    changed = 0
    for *keys, last in places(load(saved)):
        content = torch.load(saved, weights_only=True)
        parent = content
        for key in keys:
            parent = parent[key]
        value = parent[last]
        if isinstance(value, torch.Tensor):
            if not value.numel():
                continue
            value.view(-1).view(torch.uint8)[value.nbytes // 2] ^= 4
        else:
            parent[last] = {int: 7, str: f"{value} "}.get(type(value), "")
        torch.save(content, tmp_path / "other.pt")
        with pytest.raises(Damaged, match="does not match its checksum"):
            load(tmp_path / "other.pt")
        changed += 1
    assert changed == 8


def test_a_state_without_a_checksum_is_refused(saved, tmp_path):
    content = load(saved)
    del content[CHECKSUM]
    torch.save(content, tmp_path / "other.pt")
    with pytest.raises(Damaged, match="does not match its checksum"):
        load(tmp_path / "other.pt")


def peak_of(action):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    action()
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024


def packed_zeros(path, out):
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(out, "w", compression=zipfile.ZIP_DEFLATED) as copy:
        for record in archive.infolist():
            zeros = record.filename.endswith("data/0")
            copy.writestr(record.filename, bytes(2 * 10**8) if zeros else archive.read(record))


def one_number_shown_often(path, out):
    torch.save(load(path) | {"model": torch.zeros(1).expand(10**9)}, out)


def shared_storage(path, out):
    table = torch.zeros(10**6)
    torch.save(load(path) | {"model": {f"w{i}": table for i in range(1000)}}, out)


def references_to_references(path, out):
    nested: list = [0]
    for _ in range(60):
        nested = [nested, nested]
    torch.save(load(path) | {"groups": nested}, out)


def many_small_values(path, out):
    torch.save(load(path) | {"groups": [[] for _ in range(600_000)]}, out)


def other_constructors(path, out):
    class Bytes:
        def __reduce__(self):
            return bytearray, (10**9,)

    torch.save(load(path) | {"groups": [Bytes()]}, out)


def sparse(path, out):
    torch.save(load(path) | {"model": torch.sparse_coo_tensor([[0]], [1.0], (10**9,), check_invariants=True)}, out)


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
def test_memory_is_bounded_by_the_size_of_the_file(make, saved, tmp_path):
    path = tmp_path / "bomb.pt"
    make(saved, path)

    def refuse():
        with pytest.raises(Damaged, match="a damaged one; train again"):  # before its checksum is computed
            load(path)

    assert peak_of(refuse) < 10**8 + 8 * path.stat().st_size


def test_code_is_not_run(tmp_path):
    class Code:
        def __reduce__(self):
            return (tmp_path / "done").touch, ()

    torch.save({"model": Code()}, tmp_path / "code.pt")
    (tmp_path / "plain.pkl").write_bytes(pickle.dumps(Code()))
    for name in ("code.pt", "plain.pkl"):
        with pytest.raises(Damaged):
            load(tmp_path / name)
    assert not (tmp_path / "done").exists()
