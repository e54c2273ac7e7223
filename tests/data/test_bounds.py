"""Input that is bad by its size or its place: ten megabytes of noise, paths that cannot be, ids out of all bounds."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from subgnn.rng import stream
from tests.cli.command import call
from tests.data.samples import SUBGRAPHS, write_sample


@pytest.fixture(scope="module")
def ten_megabytes():
    return stream(0, "tests/ten megabytes").bytes(10_000_000)


@pytest.mark.parametrize("name", ["x.subgnn", "x", "x.subgraphs.tsv", "x.csv", "x.parquet", "x.csv.gz", "x.tsv"])
def test_ten_megabytes_of_random_bytes_as_one_file(tmp_path, ten_megabytes, name):
    path = tmp_path / name
    path.write_bytes(ten_megabytes)
    for arguments in (("describe", path), ("check", path), ("convert", path, "--out", tmp_path / "out")):
        called = call("data", *arguments)
        assert called.code == 2
        assert called.error.startswith(f"{path}")
        assert len(called.error) < 1000
    assert [p.name for p in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("verb", ["describe", "check"])
@pytest.mark.parametrize(
    "name",
    ["x" * 300, "y/" * 3000, os.fsdecode(b"\xff\xfe"), "", "a\nb"],
    ids=["long", "deep", "not UTF-8", "empty", "newline"],
)
def test_paths_that_cannot_be(tmp_path, monkeypatch, verb, name):
    monkeypatch.chdir(tmp_path)
    called = call("data", verb, name)
    assert called.code == 2
    assert len(called.err.splitlines()) == 1


BOUNDED_IN_A_CHILD = """
import resource, sys
from subgnn.cli.app import main

good, *bad = sys.argv[1:]
assert main(["data", "describe", good, "--json"]) == 0
now = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (now + 2**31, now + 2**31))
codes = {main(["data", verb, path]) for path in bad for verb in ("describe", "check")}
sys.exit(0 if codes == {2} else f"exit codes {codes}")
"""

HEADER = b"{'descr': '<f4', 'fortran_order': False, 'shape': (2000000000, 0), }".ljust(118)
GREEDY = {
    "ids": [
        {"edge_list.txt": "0 2000000000\n"},
        {"edge_list.txt": "", "subgraphs.tsv": SUBGRAPHS.replace("0-1", "0-2000000000")},
        {"nodes.tsv": "0\ta\n2000000000\tb\n"},
    ],
    "features without columns": [{"features.npy": b"\x93NUMPY\x01\x00\x76\x00" + HEADER}],
}


@pytest.mark.quick(1)
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
@pytest.mark.parametrize("files", GREEDY.values(), ids=GREEDY)
def test_a_short_file_cannot_ask_for_gigabytes(tmp_path, files):
    """In a process of its own, given two gigabytes more than it has."""
    folders = [write_sample(tmp_path / str(i), changed) for i, changed in enumerate([{}, *files])]
    done = subprocess.run(
        [sys.executable, "-c", BOUNDED_IN_A_CHILD, *folders], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-500:]
