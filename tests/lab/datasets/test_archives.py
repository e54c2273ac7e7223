"""Orphanet's classification from ORPHApacket JSON, in folders and in archives that may mean harm."""

import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from subgnn.errors import DataError
from subgnn.lab.datasets import builder
from subgnn.lab.datasets.rare_diseases import Disorder, Orphanet, read_orphapackets
from tests.lab.datasets.packed import tar_of, zip_of
from tests.lab.datasets.samples import packet, write_packets

PACKETS = [
    packet("1", type="Category"),
    packet("2", parents=["1", "77"], omim=[("600", "E"), ("601", "NTBT")]),
    packet("3", parents=["2"], type="Clinical subtype", omim=[("602", "BTNT")], wrapped=True),
    packet("4"),
]


FILES = {f"json/ORPHApacket_{i}.json": json.dumps(p).encode() for i, p in enumerate(PACKETS)}
ARCHIVES = {f"x{i}": tar_of(FILES, mode=mode) for i, mode in enumerate(("w:xz", "w:gz", "w"))}
ARCHIVES["x.zip"] = zip_of({**FILES, "README.txt": b"no packet"})


def write(folder: Path, name: str) -> Path:
    """The packets as a folder, or as an archive."""
    if name == "folder":
        return write_packets(folder / "json", PACKETS)
    (folder / name).write_bytes(ARCHIVES[name])
    return folder / name


@pytest.mark.parametrize("name", ["folder", *ARCHIVES])
def test_folders_and_archives_say_the_same(tmp_path: Path, name: str) -> None:
    path = write(tmp_path, name)
    before = sorted(tmp_path.rglob("*"))
    found = read_orphapackets(path)
    assert sorted(tmp_path.rglob("*")) == before
    assert found.version == "1.3.42, extracted 2025-12-09 10:41:42"
    assert found.disorders["2"] == Disorder("2", "disorder 2", "Disease", ("1", "77"), (("600", "E"), ("601", "NTBT")))
    assert found.disorders["3"].omim == (("602", "BTNT"),)
    assert found.disorders["3"].type.endswith("subtype")
    assert found.disorders["1"].is_heading


def test_below_is_everything_under_an_entry_even_in_a_loop(tmp_path: Path) -> None:
    given = packet("5")
    given["Orphapacket"]["Parents"] = {"Parent": [{"ORPHAcode": "1", "Label": "above"}]}  # one parent, not in a list
    found = read_orphapackets(write_packets(tmp_path, [*PACKETS, given]))
    assert found.below("1") == {"1", "2", "3", "5"}
    loop = Orphanet({"1": Disorder("1", "a", "Disease", ("2",)), "2": Disorder("2", "b", "Disease", ("1",))})
    assert loop.below("1") == {"1", "2"}
    with pytest.raises(DataError, match="labels: no entry ORPHA:9"):
        found.below("9")


def changed(change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    given = packet("5", parents=["1"], omim=[("600", "E")])
    change(given["Orphapacket"])
    return given


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            changed(lambda e: e.pop("Label")),
            r"record 2 \(5.json\): Orphapacket: no field 'Label'; it has ORPHApacketId",
        ),
        (changed(lambda e: e.update(ORPHAcode=7)), "record 2 .*field 'ORPHAcode' is '7'; text is needed"),
        (changed(lambda e: e.update(DisorderType="x")), "record 2 .*DisorderType: a JSON str; an object is needed"),
        (changed(lambda e: e["Parents"][0]["Parent"][0].pop("ORPHAcode")), "record 2 .*Parents: no field 'ORPHAcode'"),
        (
            changed(lambda e: e["ExternalReferences"][0].pop("DisorderMappingRelation")),
            "record 2 .*ExternalReferences: no field 'DisorderMappingRelation'",
        ),
        (changed(lambda e: e.update(ORPHAcode="1")), "record 2 .*ORPHAcode 1 occurs twice"),
        ({"Orphanet": {}}, "record 2 .*no field 'Orphapacket'; it has Orphanet"),
        ("[" * 100_000, r"record 2 \(5.json\): this is not valid JSON"),
    ],
)
def test_wrong_fields_say_the_record(tmp_path: Path, wrong: Any, message: str) -> None:
    write_packets(tmp_path, [packet("1")]).joinpath("ORPHApacket_1.json").rename(tmp_path / "1.json")
    (tmp_path / "5.json").write_text(wrong if isinstance(wrong, str) else json.dumps(wrong))
    with pytest.raises(DataError, match=message):
        read_orphapackets(tmp_path)


def test_links_and_odd_names_write_nothing(tmp_path: Path) -> None:
    link, device = tarfile.TarInfo("link.json"), tarfile.TarInfo("device.json")
    link.type, link.linkname, device.type = tarfile.SYMTYPE, "/etc/passwd", tarfile.CHRTYPE
    path = tmp_path / "inside" / "x.tar.gz"
    path.parent.mkdir()
    path.write_bytes(tar_of({"../../escape.json": json.dumps(packet("1")).encode()}, link, device))
    assert set(read_orphapackets(path).disorders) == {"1"}
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["inside", "x.tar.gz"]


def test_sizes_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [write(tmp_path, name) for name in ("folder", *ARCHIVES)]
    monkeypatch.setattr(builder, "_MAX_FILE", 100)
    for path in paths:
        with pytest.raises(DataError, match="at most 100 are read"):
            read_orphapackets(path)
    monkeypatch.setattr(builder, "_MAX_FILE", 10_000)
    monkeypatch.setattr(builder, "_MAX_FILES", 3)
    for path in paths:
        with pytest.raises(DataError, match="more than 3 files"):
            read_orphapackets(path)


def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    whole = ARCHIVES["x0"]
    for name, content in (("a", b"no archive"), ("b", whole[: len(whole) // 2]), ("c", b"")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DataError, match=rf"{name}: .*(archive|cannot be read).*JSON files is accepted"):
            read_orphapackets(tmp_path / name)
    with pytest.raises(DataError, match="no such file or folder"):
        read_orphapackets(tmp_path / "none")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="it has no ORPHApacket JSON"):
        read_orphapackets(tmp_path / "empty")
