"""Unpacking: what an archive may not do, and what a damaged one does."""

from __future__ import annotations

import gzip
import io
import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from subgnn.errors import DataError
from subgnn.lab.datasets import archives
from subgnn.lab.datasets.archives import unpack_dataset
from tests.lab.datasets.packed import EDGES, SUBGRAPHS, dataset_files, tar_of, zip_of


def _refused(tmp_path: Path, body: bytes, match: str, **options: int) -> None:
    archive, folder = tmp_path / "archive", tmp_path / "into"
    archive.write_bytes(body)
    folder.mkdir()
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(DataError, match=match):
        unpack_dataset(archive, folder, wanted="ppi_bp", **options)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    "name", ["../evil", "ppi_bp/../../edge_list.txt", "/etc/edge_list.txt", "..\\evil", "C:\\edge_list.txt", "//x/y"]
)
@pytest.mark.parametrize("pack", [zip_of, tar_of])
def test_a_path_that_leads_elsewhere_is_refused(
    tmp_path: Path, pack: Callable[[dict[str, bytes]], bytes], name: str
) -> None:
    _refused(tmp_path, pack({**dataset_files("ppi_bp/"), name: b"x"}), "leads out of the folder")


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_a_link_or_device_in_a_tar_is_refused(tmp_path: Path, kind: bytes) -> None:
    info = tarfile.TarInfo("ppi_bp/nodes.tsv")
    info.type, info.linkname = kind, "/etc/passwd"
    _refused(tmp_path, tar_of(dataset_files("ppi_bp/"), info), "is a link or a device")


def test_a_link_in_a_zip_is_refused(tmp_path: Path) -> None:
    out = io.BytesIO(zip_of(dataset_files("")))
    with zipfile.ZipFile(out, "a") as packed:
        info = zipfile.ZipInfo("nodes.tsv")
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        packed.writestr(info, "/etc/passwd")
    _refused(tmp_path, out.getvalue(), "is a link or a device")


@pytest.mark.parametrize("pack", [zip_of, tar_of])
def test_a_bomb_is_refused_by_what_it_declares(tmp_path: Path, pack: Callable[[dict[str, bytes]], bytes]) -> None:
    body = pack({"edge_list.txt": bytes(5_000_000), "subgraphs.pth": SUBGRAPHS})
    assert len(body) < 10_000
    _refused(tmp_path, body, "more than 1,000,000 bytes", max_bytes=1_000_000)


def test_a_zip_that_declares_less_than_it_holds_does_not_get_through(tmp_path: Path) -> None:
    body = bytearray(zip_of({"edge_list.txt": bytes(5_000_000), "subgraphs.pth": SUBGRAPHS}))
    small, large = (1000).to_bytes(4, "little"), (5_000_000).to_bytes(4, "little")
    (tmp_path / "archive").write_bytes(bytes(body).replace(large, small))
    (tmp_path / "into").mkdir()
    with pytest.raises(DataError, match="damaged"):
        unpack_dataset(tmp_path / "archive", tmp_path / "into", wanted="ppi_bp", max_bytes=1_000_000)
    assert sum(p.stat().st_size for p in (tmp_path / "into").iterdir()) <= 1000


def test_a_tar_with_a_header_of_gigabytes_is_not_read_into_memory(tmp_path: Path) -> None:
    info = tarfile.TarInfo("././@LongLink")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, 4 * 2**30
    _refused(tmp_path, gzip.compress(info.tobuf() + bytes(2**20)), "header is too large")


def test_too_many_files_and_no_dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").mkdir()
    _refused(tmp_path / "a", zip_of({"edge_list.txt": EDGES, "x/subgraphs.pth": SUBGRAPHS}), "it contains no dataset")
    monkeypatch.setattr(archives, "_MAX_FILES", 3)
    _refused(tmp_path, zip_of({**dataset_files(""), "a": b"", "b": b""}), "more than 3 files")


def test_a_file_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    out = io.BytesIO(zip_of(dataset_files("")))
    with zipfile.ZipFile(out, "a") as packed, pytest.warns(UserWarning, match="Duplicate"):
        packed.writestr("edge_list.txt", b"5 6\n")
    _refused(tmp_path, out.getvalue(), "occurs twice")


@pytest.mark.parametrize("pack", [zip_of, tar_of])
def test_a_truncated_archive_is_damaged_not_a_crash(tmp_path: Path, pack: Callable[[dict[str, bytes]], bytes]) -> None:
    whole = pack({"edge_list.txt": np.random.default_rng(0).bytes(300_000), "subgraphs.pth": SUBGRAPHS})
    for end in (30, len(whole) // 2, len(whole) - 5):
        folder = tmp_path / str(end)
        folder.mkdir()
        (tmp_path / "archive").write_bytes(whole[:end])
        with pytest.raises(DataError):
            unpack_dataset(tmp_path / "archive", folder, wanted="ppi_bp")


def _bomb(size: int) -> bytes:
    return gzip.compress(b"0 1\n" * (size // 4))


@pytest.mark.parametrize("pack", [zip_of, tar_of])
def test_what_is_inside_a_compressed_file_counts(tmp_path: Path, pack: Callable[[dict[str, bytes]], bytes]) -> None:
    """A few kilobytes, whose inner file of some hundred unpacks to a hundred megabytes."""
    body = pack({"ppi_bp/edge_list.txt.gz": _bomb(100 * 2**20), "ppi_bp/subgraphs.pth": SUBGRAPHS})
    assert len(body) < 10_000
    _refused(tmp_path, body, "the files of the dataset unpack to more than")


def test_what_is_inside_a_compressed_file_counts_towards_the_bound(tmp_path: Path) -> None:
    body = zip_of({"edge_list.txt.gz": _bomb(2**20), "subgraphs.pth": SUBGRAPHS})
    _refused(tmp_path, body, "unpack to more than 1,000,000 bytes", max_bytes=1_000_000)
    (tmp_path / "again").mkdir()
    unpack_dataset(tmp_path / "archive", tmp_path / "again", wanted="ppi_bp", max_bytes=1_100_000)
    assert {p.name for p in (tmp_path / "again").iterdir()} == {"edge_list.txt.gz", "subgraphs.pth"}


@pytest.mark.parametrize("name", ["other", "edge_list.txt"])
def test_a_tar_that_unpacks_to_too_much_is_refused(tmp_path: Path, name: str) -> None:
    _refused(tmp_path, tar_of({**dataset_files("ppi_bp/"), name: bytes(100 * 2**20)}), "unpacks to more than")


def test_zeros_behind_a_tar_are_not_read_without_end(tmp_path: Path) -> None:
    body = gzip.decompress(tar_of(dataset_files("ppi_bp/"))) + bytes(100 * 2**20)
    _refused(tmp_path, gzip.compress(body), "unpacks to more than")
