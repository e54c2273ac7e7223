"""Parts of every builder of a real dataset: its declaration, its result, and reading sources."""

import gzip
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import IO, Any, cast

from subgnn.config.files import read_toml
from subgnn.data.formats.text import read_lines
from subgnn.data.graph import Graph
from subgnn.data.subgraphs import SubgraphSet
from subgnn.errors import DataError, choices, excerpt

OnStep = Callable[[str], None]
Files = Mapping[str, Path]
Fractions = tuple[float, float, float]
"""The shares of train, val and test."""
source_lines = partial(read_lines, max_line=64 * 2**20)

_MAX_FILES = 100_000
_MAX_FILE = _MAX_HEADER = 16 * 2**20
_MAX_TOTAL = 4 * 2**30
_OPENERS = {b"\x1f\x8b": gzip.open, b"\xfd7": lzma.open}
ARCHIVES = "a folder, .tar.gz, .tar.xz or .zip of JSON files is accepted"

SOURCES = read_toml(Path(__file__).with_name("sources.toml"), "table of sources")


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """A dataset without its card."""

    graph: Graph
    subgraphs: SubgraphSet
    dropped: Mapping[str, int]  # how much was left out, by reason
    titles: Sequence[str] | None = None  # of subgraphs, for the second column of subgraph_names.tsv
    versions: Mapping[str, str] = field(default_factory=dict)  # of sources by key, as far as files state one
    files: Mapping[str, tuple[Path, ...]] = field(default_factory=dict)  # of sources by key, unless the given path


@dataclass(frozen=True, slots=True)
class Builder:
    """A real dataset that can be built."""

    name: str
    settings: Any  # the defaults: a dataclass with a field ``fractions``
    build: Callable[[Files, Any, int, OnStep], Draft]  # from files by key, settings and seed
    optional: tuple[str, ...] = ()  # keys of sources that may be missing

    @property
    def sources(self) -> dict[str, dict[str, str]]:
        """What each source is, where it is published, and its licence, by key."""
        return cast("dict[str, dict[str, str]]", SOURCES[self.name])


def is_dropped(counts: dict[str, int], reasons: Mapping[str, bool]) -> bool:
    """Whether a reason holds; the first that does is counted."""
    for reason in reasons:
        counts.setdefault(reason, 0)
    why = next((reason for reason, holds in reasons.items() if holds), None)
    if why is not None:
        counts[why] += 1
    return why is not None


def read_columns(path: Path, wanted: tuple[str, ...], *, hint: str = "") -> Iterator[dict[str, str]]:
    """Rows of a tab-separated table by the titles of its header, which is the first line that is not a comment."""
    titles: list[str] = []
    for number, line in source_lines(path):
        where, comment = f"{path}:{number}", line.startswith("#")
        cells = line.lstrip("#").split("\t")
        if titles and not comment:
            if len(cells) < len(titles):
                raise DataError(f"{len(cells)} columns", where=where, hint=f"the header has {len(titles)}")
            yield dict(zip(titles, cells, strict=False))
        elif not titles and set(wanted) <= set(cells):
            titles = cells
        elif not titles and not comment:
            missing = next(name for name in wanted if name not in cells)
            raise DataError(f"no column '{missing}'", where=where, hint=choices(missing, cells) + hint)
    if not titles:
        raise DataError("the file is empty", where=str(path), hint=f"a table with {', '.join(wanted)} is accepted")


def json_files(path: Path) -> Iterator[tuple[str, bytes]]:
    """Name and content of each JSON file of a folder or an archive, which is not unpacked to disk, within limits."""
    if not path.exists():
        raise DataError("no such file or folder", where=str(path), hint=ARCHIVES)
    total = 0
    for count, (name, content) in enumerate(_folder_files(path) if path.is_dir() else _archive_files(path), 1):
        total += len(content)
        if count > _MAX_FILES or total > _MAX_TOTAL:
            what = f"more than {_MAX_FILES:,} files or {_MAX_TOTAL:,} bytes"
            raise DataError(what, where=str(path), hint="is this the right archive?")
        yield name, content


def _folder_files(folder: Path) -> Iterator[tuple[str, bytes]]:
    for file in sorted(path for path in folder.rglob("*.json") if path.is_file()):
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
        with path.open("rb") as file:
            opener = cast("Callable[..., IO[bytes]]", _OPENERS.get(file.read(2), open))
        with (
            opener(path, "rb") as raw,
            tarfile.open(fileobj=cast("IO[bytes]", _LimitedTar(raw, str(path))), mode="r:") as tar,
        ):
            for member in tar:
                if member.isreg() and member.name.endswith(".json"):
                    _check_size(member.size, member.name, path)
                    content = tar.extractfile(member)
                    yield member.name, b"" if content is None else content.read(_MAX_FILE)
    except (tarfile.TarError, zipfile.BadZipFile, lzma.LZMAError, zlib.error, EOFError, NotImplementedError):
        raise DataError("this is not an archive, or it is damaged", where=str(path), hint=ARCHIVES) from None
    except (OSError, RuntimeError) as error:
        raise DataError(f"cannot be read ({error})", where=str(path), hint=ARCHIVES) from None


def _check_size(size: int, name: str, path: Path) -> None:
    if size > _MAX_FILE:
        raise DataError(f"{excerpt(name)} has {size:,} bytes", where=str(path), hint=f"at most {_MAX_FILE:,} are read")


class _LimitedTar:
    """The file that a tar archive is read from; at most :data:`_MAX_TOTAL` bytes of it are unpacked."""

    def __init__(self, file: IO[bytes], where: str) -> None:
        self._file, self._where, self.tell = file, where, file.tell

    def read(self, size: int = -1) -> bytes:
        """Read as from a file; tarfile reads a header as a whole, whatever its size."""
        if not 0 <= size <= _MAX_HEADER:
            raise DataError("a header is too large", where=self._where, hint=ARCHIVES)
        self._check(self.tell())
        return self._file.read(size)

    def seek(self, offset: int, whence: int = 0) -> int:
        self._check(offset)
        return self._file.seek(offset, whence)

    def _check(self, place: int) -> None:
        if place > _MAX_TOTAL:
            raise DataError(f"unpacks to more than {_MAX_TOTAL:,} bytes", where=self._where, hint=ARCHIVES)


_TAGS = ("data-version", "id", "name", "is_a", "relationship", "alt_id", "is_obsolete")


@dataclass(frozen=True, slots=True)
class Term:
    """One term; parents are ids, in the order of the file."""

    id: str
    name: str = ""
    is_a: tuple[str, ...] = ()
    part_of: tuple[str, ...] = ()
    alt_ids: tuple[str, ...] = ()
    obsolete: bool = False


@dataclass(frozen=True, slots=True)
class Ontology:
    """Terms by id, a directed acyclic graph that points at parents."""

    terms: dict[str, Term]
    version: str = ""

    def merged(self) -> dict[str, str]:
        """Alternative ids, each with the live term it now belongs to."""
        return {other: term.id for term in self.terms.values() if not term.obsolete for other in term.alt_ids}

    def parents(self, term_id: str, *, part_of: bool = True) -> tuple[str, ...]:
        """Live parents by ``is_a`` and, unless left out, ``part_of``; one that is in another file is skipped."""
        term = self.terms[term_id]
        given = (*term.is_a, *(term.part_of if part_of else ()))
        return tuple(dict.fromkeys(p for p in given if p in self.terms and not self.terms[p].obsolete))

    def ancestors(self, *, part_of: bool = True) -> dict[str, frozenset[str]]:
        parents = {id_: self.parents(id_, part_of=part_of) for id_, term in self.terms.items() if not term.obsolete}
        found: dict[str, frozenset[str]] = {}
        try:
            for term in TopologicalSorter(parents).static_order():
                found[term] = frozenset({term}).union(*(found[p] for p in parents[term]))
        except CycleError as error:
            what = f"term {error.args[1][0]} is above itself"
            raise DataError(what, where="ontology", hint="is the OBO file complete?") from None
        return found


def read_obo(path: Path) -> Ontology:
    """Read an ontology from an OBO file, plain or gzipped; of a tag that may occur once, the last value counts."""
    stanzas: list[tuple[int, dict[str, list[str]]]] = [(0, {})]  # of the header, and of each term, by its first line
    inside = True
    for number, line in source_lines(path):
        if line.startswith("["):
            inside = line.strip() == "[Term]"
            if inside:
                stanzas.append((number, {}))
            continue
        tag, _, rest = line.partition(":")
        if inside and tag in _TAGS:
            # A comment follows " ! ": the parent's name.
            value = rest if tag == "name" else rest.split(" ! ")[0]
            stanzas[-1][1].setdefault(tag, []).append(value.strip())
    terms: dict[str, Term] = {}
    for number, values in stanzas[1:]:
        last, where = {tag: found[-1] for tag, found in values.items()}, f"{path}:{number}"
        related = [value.partition(" ") for value in values.get("relationship", ())]
        term = Term(
            id=last.get("id", ""),
            name=last.get("name", ""),
            is_a=tuple(value.partition(" ")[0] for value in values.get("is_a", ())),
            part_of=tuple(to.strip().partition(" ")[0] for relation, _, to in related if relation == "part_of"),
            alt_ids=tuple(values.get("alt_id", ())),
            obsolete=last.get("is_obsolete") == "true",
        )
        if not term.id:
            raise DataError("a term without an id", where=where, hint="each [Term] has a line 'id: '")
        if term.id in terms:
            raise DataError(f"term {excerpt(term.id)} occurs twice", where=where, hint="each id is accepted once")
        terms[term.id] = term
    if not terms:
        hint = "an ontology in OBO is accepted, such as go-basic.obo"
        raise DataError("it has no [Term]", where=str(path), hint=hint)
    return Ontology(terms, stanzas[0][1].get("data-version", [""])[-1])
