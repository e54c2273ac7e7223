"""Orphanet's rare diseases: read from ORPHApacket JSON, and labelled by their place in the classification.

Each entry has a code, a disorder type, its parents in the classification, and the OMIM entries it is mapped to with how
they relate: ``E`` exact, ``BTNT`` the ORPHA code is the broader of the two, ``NTBT`` the narrower.
"""

from __future__ import annotations

import gzip
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from subgnn.errors import DataError, excerpt
from subgnn.lab.datasets.builder import at_least
from subgnn.lab.datasets.hpo import HpoRelease, PhenotypeGraph
from subgnn.storage.files import parse_json

_MAX_FILES = 100_000
_MAX_FILE = 16 * 2**20
_MAX_HEADER = 16 * 2**20
_MAX_TOTAL = 4 * 2**30
_OPENERS: dict[bytes, Callable[..., IO[bytes]]] = {
    b"\x1f\x8b": cast("Callable[..., IO[bytes]]", gzip.open),
    b"\xfd7": cast("Callable[..., IO[bytes]]", lzma.open),
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
    def is_heading(self) -> bool:
        """Whether this is a heading of the classification, not a disorder."""
        return self.type in ("Category", "Clinical group")

    @property
    def is_subtype(self) -> bool:
        """Whether this is a form of its parent."""
        return self.type in ("Clinical subtype", "Etiological subtype", "Histopathological subtype")


@dataclass(frozen=True, slots=True)
class Orphanet:
    """Entries by code."""

    disorders: dict[str, Disorder]
    version: str = ""

    def below(self, root: str) -> set[str]:
        """Codes of everything under an entry, itself included."""
        if root not in self.disorders:
            raise DataError(f"no entry ORPHA:{root}", where="labels", hint="are ORPHApacket files missing?")
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
    """Read every entry of a folder of JSON files, or of an archive of them, which is not unpacked to disk."""
    disorders: dict[str, Disorder] = {}
    version = ""
    for number, (name, content) in enumerate(json_files(path), 1):
        where = f"{path}: record {number} ({name})"
        entry = _field(parse_json(content, where, _ACCEPTED), "Orphapacket", where)
        disorder = _disorder(entry, f"{where}: Orphapacket")
        if disorder.code in disorders:
            what = f"ORPHAcode {disorder.code} occurs twice"
            raise DataError(what, where=where, hint="each entry is accepted once")
        disorders[disorder.code] = disorder
        if not version:
            date, version = (str(entry.get(key, "")).strip() for key in ("creationDate", "version"))
            version = f"{version}, extracted {date}" if date else version
    if not disorders:
        raise DataError("it has no ORPHApacket JSON", where=str(path), hint=_ACCEPTED)
    return Orphanet(disorders, version)


def _disorder(entry: Any, where: str) -> Disorder:
    code, name = _text(entry, "ORPHAcode", where), _text(entry, "Label", where)
    type_ = _text(_field(entry, "DisorderType", where), "value", f"{where}: DisorderType")
    inside = f"{where}: ExternalReferences"
    omim = [
        (_text(one, "Reference", inside), _text(one, "DisorderMappingRelation", inside).split()[0])
        for one in _entries(entry, "ExternalReferences", "ExternalReference")
        if _text(one, "Source", inside) == "OMIM"
    ]
    parents = (_text(one, "ORPHAcode", f"{where}: Parents") for one in _entries(entry, "Parents", "Parent"))
    return Disorder(code, name, type_, tuple(parents), tuple(omim))


def _field(entry: Any, key: str, where: str) -> Any:
    """A field of a JSON object."""
    if not isinstance(entry, dict):
        raise DataError(f"a JSON {type(entry).__name__}", where=where, hint="an object is needed")
    if key not in entry:
        raise DataError(f"no field '{key}'", where=where, hint=f"it has {', '.join(list(entry)[:8]) or 'none'}")
    return entry[key]


def _text(entry: Any, key: str, where: str) -> str:
    found = _field(entry, key, where)
    if not isinstance(found, str) or not found.strip():
        raise DataError(f"field '{key}' is {excerpt(str(found))}", where=where, hint="text is needed")
    return found.strip()


def _entries(entry: dict[str, Any], key: str, wrapper: str) -> Iterator[Any]:
    """The objects of a field that may be missing, one object or a list, each perhaps wrapped in another."""
    given = entry.get(key)
    for item in given if isinstance(given, list) else [] if given is None else [given]:
        inner = item.get(wrapper, item) if isinstance(item, dict) else item
        yield from inner if isinstance(inner, list) else [inner]


def json_files(path: Path) -> Iterator[tuple[str, bytes]]:
    """Name and content of each JSON file, within limits."""
    if not path.exists():
        raise DataError("no such file or folder", where=str(path), hint=_ACCEPTED)
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
            magic = file.read(2)
        with (
            _OPENERS.get(magic, open)(path, "rb") as raw,
            tarfile.open(fileobj=cast("IO[bytes]", _LimitedTar(raw, _MAX_TOTAL, str(path))), mode="r:") as tar,
        ):
            for member in tar:
                if member.isreg() and member.name.endswith(".json"):
                    _check_size(member.size, member.name, path)
                    content = tar.extractfile(member)
                    yield member.name, b"" if content is None else content.read(_MAX_FILE)
    except (tarfile.TarError, zipfile.BadZipFile, lzma.LZMAError, zlib.error, EOFError, NotImplementedError):
        raise DataError("this is not an archive, or it is damaged", where=str(path), hint=_ACCEPTED) from None
    except (OSError, RuntimeError) as error:
        raise DataError(f"cannot be read ({error})", where=str(path), hint=_ACCEPTED) from None


class _LimitedTar:
    """The file that a tar archive is read from; at most ``limit`` bytes of it are unpacked."""

    def __init__(self, file: IO[bytes], limit: int, where: str) -> None:
        self._file, self._limit, self._where = file, limit, where

    def read(self, size: int = -1) -> bytes:
        """Read as from a file; tarfile reads a header as a whole, whatever its size."""
        if not 0 <= size <= _MAX_HEADER:
            raise DataError("a header is too large", where=self._where, hint=_ACCEPTED)
        self._check(self._file.tell())
        return self._file.read(size)

    def seek(self, offset: int, whence: int = 0) -> int:
        """Seek as in a file."""
        self._check(offset)
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        """The position in the file."""
        return self._file.tell()

    def _check(self, place: int) -> None:
        if place > self._limit:
            raise DataError(f"unpacks to more than {self._limit:,} bytes", where=self._where, hint=_ACCEPTED)


def _check_size(size: int, name: str, path: Path) -> None:
    if size > _MAX_FILE:
        what = f"{excerpt(name)} has {size:,} bytes"
        raise DataError(what, where=str(path), hint=f"an ORPHApacket has at most {_MAX_FILE:,}")


METABOLIC: dict[str, tuple[str, ...]] = {
    "Energy": ("79200",),
    "Amino_Acid": ("79062",),
    "Lysosomal": ("68366",),
    "Glycosylation": ("137",),
    "Lipid": ("309005",),
    "Carbohydrate": ("79161",),
}
# The paper's tenth class, Intellectual (183757), covers two thirds of all entries of recent releases.
NEUROLOGICAL: dict[str, tuple[str, ...]] = {
    "Epilepsy": ("183512",),
    "Neuromuscular": ("183497",),
    "Neurodegenerative": ("183500",),
    "Neurometabolic": ("68385",),
    "CNS_Malformation": ("183506",),
    "Peripheral_Neuropathy": ("98497",),
    "Genetic_Dementia": ("158124",),
    "Movement": ("183521",),
    "Ataxia": ("183518",),
}


@dataclass(frozen=True, slots=True)
class DiseaseSettings:
    """Which diseases become subgraphs, and what their labels are.

    Args:
        labels: the Orphanet entries whose descendants have each label.
        multi_label: keep all labels of a disease; otherwise one with several is dropped.
        mappings: how an OMIM entry may relate to the Orphanet entries whose labels it takes.
        min_phenotypes: phenotypes of a disease that are in the graph.
    """

    labels: Mapping[str, tuple[str, ...]]
    multi_label: bool
    mappings: tuple[str, ...] = ("E", "BTNT")
    min_phenotypes: int = 3

    def __post_init__(self) -> None:
        at_least(1, min_phenotypes=self.min_phenotypes)
        if len(self.labels) < 2:
            raise DataError(f"{len(self.labels)} labels", where="labels", hint="at least 2 are needed")


METAB = DiseaseSettings(labels=METABOLIC, multi_label=False)
NEURO = DiseaseSettings(labels=NEUROLOGICAL, multi_label=True)


@dataclass(frozen=True, slots=True)
class LabelledDisease:
    """A disease with its nodes and labels; ``group`` is the same for all forms of one disorder."""

    id: str
    name: str
    nodes: frozenset[int]
    labels: tuple[str, ...]
    group: str


def label_diseases(
    release: HpoRelease, orphanet: Orphanet, graph: PhenotypeGraph, settings: DiseaseSettings
) -> tuple[list[LabelledDisease], dict[str, int]]:
    """Diseases with enough phenotypes and a label, in the order of their ids, and how many were dropped, by reason.

    An ORPHA id has the labels of its entry, an OMIM id those of all entries it is mapped to. Headings of the
    classification (categories and clinical groups) are not disorders and give no labels. Of diseases with equal
    phenotypes the first is kept.
    """
    below = {label: set().union(*map(orphanet.below, roots)) for label, roots in settings.labels.items()}
    codes = disorder_codes(orphanet, settings.mappings)
    groups = disorder_groups(orphanet, codes)
    seen: set[frozenset[int]] = set()
    found = []
    reasons = ("not mapped to a disorder", "under no label", "under several labels", "with too few phenotypes")
    dropped = {f"diseases {why}": 0 for why in (*reasons, "with the phenotypes of another")}
    for id_, disease in sorted(release.diseases.items()):
        nodes, entries = graph.places(disease.phenotypes), codes.get(id_, ())
        labels = tuple(label for label, under in below.items() if not under.isdisjoint(entries))
        if not entries:
            dropped["diseases not mapped to a disorder"] += 1
        elif not labels:
            dropped["diseases under no label"] += 1
        elif len(labels) > 1 and not settings.multi_label:
            dropped["diseases under several labels"] += 1
        elif len(nodes) < settings.min_phenotypes:
            dropped["diseases with too few phenotypes"] += 1
        elif nodes in seen:
            dropped["diseases with the phenotypes of another"] += 1
        else:
            seen.add(nodes)
            found.append(LabelledDisease(id_, disease.name, nodes, labels, f"ORPHA:{groups[entries[0]]}"))
    return found, dropped


def disorder_codes(orphanet: Orphanet, mappings: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """The disorders that each ORPHA or OMIM id of an annotated disease stands for."""
    codes: dict[str, list[str]] = {}
    for code, disorder in orphanet.disorders.items():
        mapped = [f"OMIM:{reference}" for reference, relation in disorder.omim if relation in mappings]
        for id_ in [] if disorder.is_heading else [f"ORPHA:{code}", *mapped]:
            codes.setdefault(id_, []).append(code)
    return {id_: tuple(sorted(found)) for id_, found in codes.items()}


def disorder_groups(orphanet: Orphanet, codes: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """For each disorder, the smallest code of its group.

    A subtype is grouped with the disorder above it, and all disorders that one OMIM entry is mapped to with each other.
    """
    disorders = {code: disorder for code, disorder in orphanet.disorders.items() if not disorder.is_heading}
    known = sorted(disorders, key=lambda code: (len(code), code))
    place = {code: i for i, code in enumerate(known)}
    pairs = [(c, above) for c, d in disorders.items() if d.is_subtype for above in d.parents if above in disorders]
    pairs += [(together[0], other) for together in codes.values() for other in together[1:]]
    ends = np.array([(place[a], place[b]) for a, b in pairs], np.int64).reshape(-1, 2)
    links = coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(len(known), len(known)))
    group = connected_components(links, directed=False)[1]
    first = np.unique(group, return_index=True)[1]  # the smallest code comes first
    return {code: known[first[group[place[code]]]] for code in known}
