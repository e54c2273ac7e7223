"""A folder to a bundle in bounded memory: the same bytes, and the same words, as the reader that holds it all."""

import errno
import gzip
import json
import os
from pathlib import Path

import numpy as np
import pytest

from subgnn import DataError, read_dataset, write_bundle
from subgnn.data import edge_store
from subgnn.data.convert import convert
from subgnn.data.formats import edge_list
from subgnn.data.formats.bundle import read_bundle
from tests.cli.command import call
from tests.data.samples import NODES, tree, write_sample

TINY = 2**12


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch):
    monkeypatch.setattr(edge_list, "_SMALLEST_CHUNK", 64)


def random_text(seed: int, *, weighted: bool = False, edges: int = 600, nodes: int = 3000) -> str:
    """Edges with a hub, self loops, repeats in one orientation and in both, comments and blank lines."""
    rng = np.random.default_rng(seed)
    ends = rng.integers(0, nodes, (edges, 2))
    ends[rng.random(edges) < 0.2, 0] = 17
    ends = np.concatenate([ends, ends[:50], ends[:80, ::-1], np.repeat(ends[50:60], 2, axis=1)[:, :2]])
    ends = ends[rng.permutation(len(ends))]
    lines = [f"{u}\t{v}" + (f" {rng.normal():.5g}" if weighted else "") for u, v in ends]
    for at in rng.integers(0, len(lines), 20):
        lines.insert(int(at), ["# a comment", "", "  ", "% 1 2"][int(at) % 4])
    return "\n".join(lines) + ("\n" if seed % 2 else "")


def both_ways(folder: Path, out: Path, memory: int = TINY) -> tuple[bytes, bytes]:
    """The bundle by way of memory, and by way of the disk."""
    write_bundle(read_dataset(folder), out / "memory.subgnn", overwrite=True)
    convert(folder, out / "disk.subgnn", memory=memory, overwrite=True)
    read_bundle(out / "disk.subgnn", check="always")
    return (out / "memory.subgnn").read_bytes(), (out / "disk.subgnn").read_bytes()


@pytest.mark.filterwarnings("ignore::subgnn.errors.DataWarning")
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("memory", [TINY, 10**9])
def test_same_bytes(tmp_path, directed, weighted, memory):
    for seed in range(4):
        card = json.dumps({"directed": directed, "name": "x", **({"num_nodes": 5000} if seed == 3 else {})})
        files = {"edge_list.txt": random_text(seed, weighted=weighted), "dataset.json": card}
        folder = write_sample(tmp_path / str(seed), files)
        in_memory, on_disk = both_ways(folder, tmp_path, memory)
        assert in_memory == on_disk


@pytest.mark.filterwarnings("ignore::subgnn.errors.DataWarning")
def test_a_tiny_memory_makes_many_buckets_and_pieces(tmp_path, monkeypatch):
    seen = []
    original = edge_store.bucket_rows

    def spy(records, first, num_rows):
        seen.append((first, num_rows, len(records)))
        return original(records, first, num_rows)

    monkeypatch.setattr(edge_store, "bucket_rows", spy)
    folder = write_sample(tmp_path / "x", {"edge_list.txt": random_text(0)})
    convert(folder, tmp_path / "x.subgnn", memory=TINY)
    assert len(seen) > 8
    ends = [first + rows for first, rows, _ in seen]
    assert [first for first, _, _ in seen] == [0, *ends[:-1]]
    assert ends[-1] == read_dataset(tmp_path / "x.subgnn").graph.num_nodes


@pytest.mark.filterwarnings("ignore::subgnn.errors.DataWarning")
@pytest.mark.parametrize(
    "files",
    [
        {"edge_list.txt": "", "dataset.json": '{"num_nodes": 700}'},
        {"edge_list.txt": "# none\n"},
        {"edge_list.txt": "1 1\n4 4\n"},
        {"edge_list.txt": "1 1 0.5\n4 4 2\n"},
        {"edge_list.txt": "0 1\n1 2\n2 3\n3 4"},
        {"edge_list.txt": "0 4 1e-50\n4 0 7\n0 4 3\n1 2 -0.0\n"},
        {"edge_list.txt": None, "edge_list.txt.gz": gzip.compress(random_text(1).encode())},
        {
            "edge_list.txt": None,
            "edge_list.txt.gz": gzip.compress(random_text(3).encode()) + gzip.compress(random_text(1).encode()),
        },
        {"edge_list.txt": "\r\n0 1\r\n1 4\r\n" + "# " + "long " * 100 + "\n2 3\n"},
        {"nodes.tsv": NODES, "edge_list.txt": "# c\n0 1 0.5\n1 2 2\n" + "1 2 3\n" * 40},
        {"features.npy": None, "dataset.json": '{"id_base": 1, "num_nodes": 6}', "edge_list.txt": "1 5\n2 3\n6 1\n"},
    ],
    ids=[
        "no edges",
        "comments",
        "loops",
        "weighted loops",
        "no end",
        "weights",
        "gz",
        "two gz",
        "long",
        "names",
        "base",
    ],
)
def test_same_bytes_of_odd_files(tmp_path, files):
    if '"id_base"' in str(files):
        files = {**files, "subgraphs.tsv": "1-2\ta\ttrain\n3\tb\tval\n6\ta\ttest\n"}
    in_memory, on_disk = both_ways(write_sample(tmp_path / "x", files), tmp_path)
    assert in_memory == on_disk


FAULTY = {
    "token": "0 x\n",
    "negative": "0 -1\n",
    "one column": "3\n",
    "four columns": "1 2 3 4\n",
    "a weight": "0 1 2.5\n",
    "large id": "0 99999999999\n",
    "gap": "0 2000000000\n",
}


@pytest.mark.parametrize("place", [0, 37, 120])
@pytest.mark.parametrize("line", FAULTY.values(), ids=FAULTY)
def test_same_message_with_the_same_line(tmp_path, line, place):
    lines = [f"{i % 5} {(i + 1) % 5}\n" for i in range(121)]
    lines.insert(place, line)
    lines.append(line)
    folder = write_sample(tmp_path / "x", {"edge_list.txt": "".join(lines)})
    with pytest.raises(DataError) as in_memory:
        read_dataset(folder)
    with pytest.raises(DataError) as on_disk:
        convert(folder, tmp_path / "x.subgnn", memory=TINY)
    assert str(on_disk.value) == str(in_memory.value)
    assert f"edge_list.txt:{2 if line == FAULTY['a weight'] and not place else place + 1}: " in str(on_disk.value)
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))])
def test_nothing_is_left_behind(tmp_path, monkeypatch, error):
    folder = write_sample(tmp_path / "x")
    before = tree(tmp_path)

    def fail(*_, **__):
        raise error

    monkeypatch.setattr(edge_store, "bucket_rows", fail)
    called = call("data", "convert", folder, "--out", tmp_path / "new" / "x.subgnn")
    assert called.code == (130 if isinstance(error, KeyboardInterrupt) else 2)
    if isinstance(error, OSError):
        assert "x.subgnn: cannot be written (No space left on device); make room there" in called.error
    assert tree(tmp_path) == before
    assert not (tmp_path / "new").exists()
