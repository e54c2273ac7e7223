"""Downloads of files and datasets, from a server on this machine that misbehaves in every way a server can."""

from __future__ import annotations

import errno
import hashlib
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from subgnn.data.formats import read_dataset
from subgnn.errors import UserError
from subgnn.lab.datasets import download as fetch
from subgnn.lab.datasets.download import RELEASES, download, download_dataset, find_release
from tests.lab.datasets.packed import EDGES, SUBGRAPHS, dataset_files, tar_of, zip_of
from tests.lab.datasets.server import BODY, Server, hang, serve, status

pytestmark = pytest.mark.usefixtures("own_cache")


def _sha(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


@pytest.mark.parametrize("pack", [zip_of, tar_of])
@pytest.mark.parametrize("folder", ["", "ppi_bp/", "SubGNN_data/PPI-BP/", "whatever/"])
def test_one_dataset_is_unpacked_wherever_it_lies(
    server: Server, tmp_path: Path, pack: Callable[[dict[str, bytes]], bytes], folder: str
) -> None:
    body = pack({**dataset_files(folder), f"{folder}gin_embeddings.pth": b"not ours", "readme": b"hello"})
    url = server.put("/data", serve(body))
    found = download_dataset("PPI_BP", tmp_path / "out", url=url, sha256=_sha(body))
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["dataset.json", "edge_list.txt", "subgraphs.pth"]
    assert (tmp_path / "out" / "subgraphs.pth").read_bytes() == SUBGRAPHS
    assert found.dataset.name == "ppi-bp"
    assert found.sha256 == _sha(body)
    assert any("2 other files in the archive were not unpacked" in note for note in found.notes)
    assert any("4 nodes, but the paper has 17,080" in note for note in found.notes)
    assert read_dataset(tmp_path / "out").subgraphs.task == "binary"
    assert found.archive is None
    assert list((tmp_path / "cache" / "downloads").iterdir()) == []


def test_of_several_datasets_the_named_one_is_taken_and_the_archive_kept(server: Server, tmp_path: Path) -> None:
    other = {"hpo_metab/edge_list.txt": EDGES + b"0 3\n", "hpo_metab/subgraphs.pth": SUBGRAPHS}
    url = server.put("/data", serve(zip_of({"/": b"", **dataset_files("ppi_bp/"), **other})))
    first = download_dataset("ppi-bp", tmp_path / "ppi", url=url)
    second = download_dataset("hpo-metab", tmp_path / "metab", url=url)
    assert len(server.headers) == 1
    assert first.archive == second.archive
    assert (first.dataset.graph.num_edges, second.dataset.graph.num_edges) == (3, 4)
    assert any("earlier download" in note for note in second.notes)
    with pytest.raises(UserError, match=r"none of them is em_user"):
        download_dataset("em-user", tmp_path / "em", url=url)


def test_force_replaces_the_folder_and_fetches_again(server: Server, tmp_path: Path) -> None:
    url = server.put("/data", serve(zip_of(dataset_files(""))))
    download_dataset("ppi-bp", tmp_path / "out", url=url)
    with pytest.raises(UserError, match="exists already"):
        download_dataset("ppi-bp", tmp_path / "out", url=url)
    assert len(server.headers) == 1
    server.put("/data", serve(zip_of({**dataset_files(""), "edge_list.txt": b"0 3\n"})))
    download_dataset("ppi-bp", tmp_path / "out", url=url, overwrite=True)
    assert read_dataset(tmp_path / "out").graph.num_edges == 1


def test_every_error_tells_the_way_by_hand_and_leaves_no_folder(server: Server, tmp_path: Path) -> None:
    page = b"<!DOCTYPE html><html>log in</html>"
    broken = zip_of({"edge_list.txt": b"0 x\n", "subgraphs.pth": SUBGRAPHS})
    for body, what in (
        (page, "begins with '<!DOCTYPE"),
        (broken, "cannot be read: edge_list.txt:1"),
        (b"", "not a .z"),
    ):
        with pytest.raises(UserError, match=what) as caught:
            download_dataset("ppi-bp", tmp_path / "out", url=server.put("/data", serve(body)), overwrite=True)
        assert "by hand: open https://github.com/mims-harvard/SubGNN" in str(caught.value)
        assert "edge_list.txt and subgraphs.pth is read as it is" in str(caught.value)
        assert sorted(p.name for p in tmp_path.iterdir()) == ["cache"]


def test_unknown_names_list_the_choices() -> None:
    with pytest.raises(UserError, match="did you mean 'ppi-bp'"):
        find_release("ppi-pb")
    with pytest.raises(UserError, match="generate density"):
        find_release("density")
    assert find_release("EM_USER") is RELEASES["em-user"]


def test_an_archive_of_another_dataset_is_not_taken_for_this_one(server: Server, tmp_path: Path) -> None:
    url = server.put("/data", serve(zip_of(dataset_files("hpo_neuro/"))))
    with pytest.raises(UserError, match=r"it holds 'hpo_neuro', but none of them is ppi_bp"):
        download_dataset("ppi-bp", tmp_path / "out", url=url)


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "BACKOFF", 0.0)


def _closed_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def test_fetches_a_file_and_reports_progress(server: Server, tmp_path: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    target = tmp_path / "new" / "file.bin"
    digest = download(server.put("/f", serve(BODY)), target, progress=lambda *s: seen.append(s))
    assert target.read_bytes() == BODY
    assert digest == _sha(BODY)
    assert seen[-1] == (len(BODY), len(BODY))
    assert [have for have, _ in seen] == sorted(have for have, _ in seen)
    assert sorted(p.name for p in target.parent.iterdir()) == ["file.bin"]


@pytest.mark.parametrize(
    ("answers", "body"),
    [
        ([serve(BODY, cut=1000), serve(BODY[::-1])], BODY[::-1]),
        ([status(503), status(429), serve(BODY)], BODY),
        ([serve(BODY, length=False)], BODY),
        ([serve(b"")], b""),
    ],
    ids=["cut", "busy", "unknown length", "empty"],
)
def test_the_file_that_the_server_has_now_arrives(server: Server, tmp_path: Path, answers, body: bytes) -> None:
    assert download(server.put("/f", *answers), tmp_path / "f") == _sha(body)
    assert (tmp_path / "f").read_bytes() == body


def test_a_wrong_checksum_leaves_nothing_and_says_so(server: Server, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="removed") as caught:
        download(server.put("/f", serve(BODY)), tmp_path / "f", sha256="0" * 64)
    assert _sha(BODY) in str(caught.value)
    assert [p.name for p in tmp_path.iterdir() if p.name != "cache"] == []


@pytest.mark.parametrize("digest", ["", "abc", "z" * 64])
def test_a_checksum_that_is_none_is_refused_before_anything_is_fetched(tmp_path: Path, digest: str) -> None:
    with pytest.raises(UserError, match="is not a SHA-256"):
        download("http://127.0.0.1:1/f", tmp_path / "f", sha256=digest)


def test_404_is_told_at_once(server: Server, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"/missing: the server answered 404 .*check the address"):
        download(server.put("/f", serve(BODY)) + "/missing", tmp_path / "f")
    assert len(server.headers) == 1


def test_a_silent_server_is_given_up(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "ATTEMPTS", 2)
    monkeypatch.setattr(fetch, "TIMEOUT", 0.05)
    url = server.put("/f", hang())
    with pytest.raises(UserError, match=r"gave up after 2 attempts.*timed out"):
        download(url, tmp_path / "f")


def test_no_network_is_told_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with pytest.raises(UserError, match=r"cannot be reached .*refused.*network"):
        download(f"http://127.0.0.1:{_closed_port()}/f", tmp_path / "f")


@pytest.mark.parametrize("location", ["file:///etc/passwd", "ftp://127.0.0.1/x", "data:,hello"])
def test_a_redirect_to_another_scheme_is_refused(server: Server, tmp_path: Path, location: str) -> None:
    with pytest.raises(UserError, match=r"redirect|Redirection"):
        download(server.put("/f", status(302, Location=location)), tmp_path / "f")
    assert not (tmp_path / "f").exists()


def test_a_ring_of_redirects_ends(server: Server, tmp_path: Path) -> None:
    url = server.put("/f", serve(BODY))
    server.put("/f", status(302, Location=url))
    with pytest.raises(UserError, match="302"):
        download(url, tmp_path / "f")
    assert len(server.headers) <= 10


@pytest.mark.parametrize(
    "url",
    ["", "ftp://h/x", "file:///etc/passwd", "http://", "http://h:x/", "http://a b/", "http://u:p@h/", "http://ü/"],
)
def test_what_is_no_http_address_is_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(UserError, match="cannot fetch"):
        download(url, tmp_path / "f")


@pytest.mark.parametrize("length", [True, False])
def test_a_file_larger_than_allowed_is_refused(
    server: Server, tmp_path: Path, length: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "MAX_BYTES", 1000)
    with pytest.raises(UserError, match="1,000 are allowed"):
        download(server.put("/f", serve(BODY, length=length)), tmp_path / "f")
    assert [p.name for p in tmp_path.iterdir() if p.name != "cache"] == []


def test_too_little_room_is_told_before_it_runs_out(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(fetch.shutil, "disk_usage", lambda _: usage._replace(free=17))
    with pytest.raises(UserError, match=r"300,000 bytes are missing, but only 17 bytes of disk are free; make room"):
        download(server.put("/f", serve(BODY)), tmp_path / "f")


def test_a_full_disk_says_what_to_do(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot be written"):
        download(server.put("/f", serve(BODY)), tmp_path / "file" / "f")

    def fail(_: Path) -> str:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(fetch, "file_digest", fail)
    with pytest.raises(UserError, match=r"No space left on device.*make room"):
        download(server.put("/f", serve(BODY)), tmp_path / "f")


def test_a_redirect_is_followed(server: Server, tmp_path: Path) -> None:
    there = server.put("/there", serve(BODY))
    download(server.put("/f", status(302, Location=there)), tmp_path / "f")
    assert (tmp_path / "f").read_bytes() == BODY
