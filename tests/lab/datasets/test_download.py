"""Downloading a dataset, from a server on this machine."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from subgnn.data.formats import read_dataset
from subgnn.errors import UserError
from subgnn.lab.datasets.download import RELEASES, download_dataset, find_release
from tests.lab.datasets.packed import EDGES, SUBGRAPHS, dataset_files, tar_of, zip_of
from tests.lab.datasets.server import Server, serve

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
    assert any("2 other files of the archive were not unpacked" in note for note in found.notes)
    assert any("4 nodes, where the paper has 17,080" in note for note in found.notes)
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
    assert any("downloaded before" in note for note in second.notes)
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
    with pytest.raises(UserError, match=r"it holds 'hpo_neuro', and none of them is ppi_bp"):
        download_dataset("ppi-bp", tmp_path / "out", url=url)
