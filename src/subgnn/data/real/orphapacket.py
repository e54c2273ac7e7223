"""Orphanet's rare diseases, from ORPHApacket JSON: a folder of files, or an archive of them that is never unpacked.

Each entry has a code, a disorder type, its parents in the classification, and the OMIM entries it is mapped to with how
they relate: ``E`` exact, ``BTNT`` the ORPHA code is the broader of the two, ``NTBT`` the narrower.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from subgnn.data.archives import BoundedTar
from subgnn.errors import DataError, excerpt
from subgnn.storage.parsing import parse_json

GROUP_TYPES = ("Category", "Clinical group")
SUBTYPE_TYPES = ("Clinical subtype", "Etiological subtype", "Histopathological subtype")
_MAX_FILES = 100_000
_MAX_FILE = 16 * 2**20
_MAX_TOTAL = 4 * 2**30
_OPENERS: dict[bytes, Callable[..., IO[bytes]]] = {
    b"\x1f\x8b": cast("Callable[..., IO[bytes]]", gzip.open),
    b"\xfd7": cast("Callable[..., IO[bytes]]", lzma.open),
    b"BZ": cast("Callable[..., IO[bytes]]", bz2.open),
}
_ACCEPTED = "a folder, .tar.gz, .tar.xz or .zip of ORPHApacket JSON files is accepted"


@dataclass(frozen=True, slots=True)
class Disorder:
    """An entry of Orphanet's classification; ``omim`` are (reference, relation)."""

    code: str
    name: str
    type: str
    parents: tuple[str, ...] = ()
    omim: tuple[tuple[str, str], ...] = ()

    @property
    def is_group(self) -> bool:
        """Whether this is a heading of the classification and no disorder itself."""
        return self.type in GROUP_TYPES

    @property
    def is_subtype(self) -> bool:
        """Whether this is a form of its parent."""
        return self.type in SUBTYPE_TYPES


@dataclass(frozen=True, slots=True)
class Orphanet:
    """Entries by code."""

    disorders: dict[str, Disorder]
    version: str = ""

    def below(self, root: str) -> set[str]:
        """Codes of everything under an entry, itself included.

        Raises:
            DataError: where there is no such entry.
        """
        if root not in self.disorders:
            raise DataError(f"no entry ORPHA:{root}", where="labels", hint="are the ORPHApacket files all there?")
        children: dict[str, list[str]] = {}
        for disorder in self.disorders.values():
            for parent in disorder.parents:
                children.setdefault(parent, []).append(disorder.code)
        found, ahead = {root}, [root]
        while ahead:
            for child in children.get(ahead.pop(), ()):
                if child not in found:
                    found.add(child)
                    ahead.append(child)
        return found


def read_orphapackets(path: Path) -> Orphanet:
    """Read every entry of a folder or archive.

    Raises:
        DataError: for an archive that is damaged or too large, or an entry with a wrong or missing field, with its
            number and file.
    """
    disorders: dict[str, Disorder] = {}
    version = ""
    for number, (name, content) in enumerate(_files(path), 1):
        where = f"{path}: record {number} ({name})"
        entry = _Fields(parse_json(content, where, _ACCEPTED), where).mapping("Orphapacket")
        disorder = _disorder(entry)
        if disorder.code in disorders:
            raise DataError(f"ORPHAcode {disorder.code} again", where=where, hint="each entry once")
        disorders[disorder.code] = disorder
        version = version or _version(entry)
    if not disorders:
        raise DataError("no ORPHApacket JSON in it", where=str(path), hint=_ACCEPTED)
    return Orphanet(disorders, version)


class _Fields:
    """A JSON object whose fields are asked for by name and type."""

    def __init__(self, value: Any, where: str) -> None:
        if not isinstance(value, dict):
            raise DataError(f"a JSON {type(value).__name__}", where=where, hint="an object is needed")
        self.value, self.where = value, where

    def text(self, key: str) -> str:
        found = self._get(key)
        if not isinstance(found, str) or not found.strip():
            what = f"field '{key}' is {excerpt(str(found))}"
            raise DataError(what, where=self.where, hint="text is needed")
        return found.strip()

    def mapping(self, key: str) -> _Fields:
        return _Fields(self._get(key), f"{self.where}: {key}")

    def entries(self, key: str, wrapper: str) -> Iterator[_Fields]:
        """The objects of a field that may be missing, one object or a list, each perhaps wrapped in another."""
        given = self.value.get(key)
        for item in given if isinstance(given, list) else [] if given is None else [given]:
            inner = item.get(wrapper, item) if isinstance(item, dict) else item
            for entry in inner if isinstance(inner, list) else [inner]:
                yield _Fields(entry, f"{self.where}: {key}")

    def _get(self, key: str) -> Any:
        if key not in self.value:
            hint = f"it has {', '.join(list(self.value)[:8]) or 'none'}"
            raise DataError(f"no field '{key}'", where=self.where, hint=hint)
        return self.value[key]


def _disorder(entry: _Fields) -> Disorder:
    omim = []
    for reference in entry.entries("ExternalReferences", "ExternalReference"):
        if reference.text("Source") == "OMIM":
            omim.append((reference.text("Reference"), reference.text("DisorderMappingRelation").split()[0]))
    return Disorder(
        code=entry.text("ORPHAcode"),
        name=entry.text("Label"),
        type=entry.mapping("DisorderType").text("value"),
        parents=tuple(parent.text("ORPHAcode") for parent in entry.entries("Parents", "Parent")),
        omim=tuple(omim),
    )


def _version(entry: _Fields) -> str:
    date, version = (str(entry.value.get(key, "")).strip() for key in ("creationDate", "version"))
    return f"{version}, extracted {date}" if date else version


def _files(path: Path) -> Iterator[tuple[str, bytes]]:
    """Name and content of each JSON file, within bounds; nothing is written anywhere."""
    if not path.exists():
        raise DataError("no such file or folder", where=str(path), hint=_ACCEPTED)
    total = 0
    source = _folder_files(path) if path.is_dir() else _archive_files(path)
    for count, (name, content) in enumerate(source, 1):
        total += len(content)
        if count > _MAX_FILES or total > _MAX_TOTAL:
            what = f"more than {_MAX_FILES:,} files or {_MAX_TOTAL:,} bytes"
            raise DataError(what, where=str(path), hint="is this the right archive?")
        yield name, content


def _folder_files(folder: Path) -> Iterator[tuple[str, bytes]]:
    for file in sorted(folder.rglob("*.json")):
        if file.is_file():
            _check_size(file.stat().st_size, file.name, folder)
            yield file.name, file.read_bytes()


def _archive_files(path: Path) -> Iterator[tuple[str, bytes]]:
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as packed:
                for info in packed.infolist():
                    if info.filename.endswith(".json"):
                        _check_size(info.file_size, info.filename, path)
                        yield info.filename, packed.read(info)
            return
        with (
            _OPENERS.get(_magic(path), open)(path, "rb") as raw,
            tarfile.open(fileobj=cast("IO[bytes]", BoundedTar(raw, _MAX_TOTAL, str(path))), mode="r:") as tar,
        ):
            for member in tar:
                if member.isreg() and member.name.endswith(".json"):
                    _check_size(member.size, member.name, path)
                    file = tar.extractfile(member)
                    yield member.name, b"" if file is None else file.read(_MAX_FILE)
    except (tarfile.TarError, zipfile.BadZipFile, lzma.LZMAError, zlib.error, EOFError, NotImplementedError):
        raise DataError("this is no archive, or a damaged one", where=str(path), hint=_ACCEPTED) from None
    except (OSError, RuntimeError) as error:
        raise DataError(f"cannot be read ({error})", where=str(path), hint=_ACCEPTED) from None


def _magic(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(2)


def _check_size(size: int, name: str, path: Path) -> None:
    if size > _MAX_FILE:
        what = f"{excerpt(name)} has {size:,} bytes"
        raise DataError(what, where=str(path), hint=f"an ORPHApacket has at most {_MAX_FILE:,}")
