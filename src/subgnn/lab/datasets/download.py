"""Download the datasets that the paper's authors published.

A folder unpacked by hand is read as it is, by :func:`~subgnn.data.formats.read_dataset`.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from subgnn.data.dataset import Dataset
from subgnn.data.describe import check
from subgnn.data.formats.folder import AUTHORS_SUBGRAPHS, CARD, EDGES
from subgnn.errors import DataError, UserError, choices
from subgnn.lab.datasets.archives import Unpacked, unpack_dataset
from subgnn.lab.datasets.catalog import CATALOG
from subgnn.lab.datasets.fetch import Progress, check_digest, download
from subgnn.parallel.progress import ignore
from subgnn.storage.cache import cache_folder
from subgnn.storage.files import atomic_write, file_digest


@dataclass(frozen=True, slots=True)
class Release:
    """A dataset that the authors published: its address, and its folder in the archive.

    The four are folders of one archive, linked from ``page``; no checksum of it was published.
    """

    name: str
    folder: str
    page: str = "https://github.com/mims-harvard/SubGNN"
    url: str = "https://www.dropbox.com/sh/zv7gw2bqzqev9yn/AACR9iR4Ok7f9x1fIAiVCdj3a?dl=1"


RELEASES: dict[str, Release] = {
    name: Release(name, name.replace("-", "_")) for name in ("ppi-bp", "hpo-metab", "hpo-neuro", "em-user")
}


@dataclass(frozen=True, slots=True, eq=False)
class Downloaded:
    """A dataset that was downloaded, and its archive, which stays in the cache where it holds further datasets."""

    folder: Path
    dataset: Dataset
    url: str
    sha256: str
    archive: Path | None
    notes: tuple[str, ...]


def find_release(name: str) -> Release:
    """The release of a dataset of the paper; ``PPI-BP`` and ``ppi_bp`` are ``ppi-bp``."""
    known = name.lower().replace("_", "-")
    if known in RELEASES:
        return RELEASES[known]
    if known in CATALOG:
        hint = f"it is synthetic: subgnn data generate {known} --out DIR"
        raise UserError(f"'{known}' is not published as files", where="name", hint=hint)
    raise UserError(f"unknown dataset '{name}'", where="name", hint=choices(known, RELEASES))


def download_dataset(
    name: str,
    out: Path,
    *,
    url: str | None = None,
    sha256: str | None = None,
    progress: Progress = ignore,
    overwrite: bool = False,
) -> Downloaded:
    """Download the archive that holds a dataset, unpack the dataset into ``out`` and check it.

    Args:
        name: a key of :data:`RELEASES`.
        out: a folder that does not exist yet, or is empty; it is written atomically.
        url: another address of a .zip or .tar.gz.
        sha256: the expected checksum of the archive, where it is known.
        overwrite: replace ``out``, and download an archive that is in the cache again.
    """
    release = find_release(name)
    address = url or release.url
    wanted = check_digest(sha256)
    archive = cache_folder() / "downloads" / f"{hashlib.sha256(address.encode()).hexdigest()[:16]}.archive"
    notes: list[str] = []
    with atomic_write(out, overwrite=overwrite) as temporary:
        try:
            digest = "" if overwrite or not archive.is_file() else file_digest(archive)
            if digest and wanted in (None, digest):
                notes.append(f"used the archive downloaded before: {archive}")
            else:
                digest = download(address, archive, sha256=wanted, progress=progress)
            temporary.mkdir()
            unpacked = _unpack(archive, temporary, release, address, digest)
            dataset = _read(temporary, address, notes)
        except UserError as error:
            by_hand = f"by hand: open {release.page}, follow its link to the data and unpack {release.folder}"
            hint = f"{error.hint}; {by_hand}; a folder with {EDGES} and {AUTHORS_SUBGRAPHS} is read as it is"
            raise UserError(error.what, where=error.where, hint=hint) from error
    notes += _differences(unpacked, dataset, release)
    shared = len(unpacked.datasets) > 1
    if not shared:
        archive.unlink(missing_ok=True)
    return Downloaded(out, dataset, address, digest, archive if shared else None, tuple(notes))


def _unpack(archive: Path, folder: Path, release: Release, url: str, digest: str) -> Unpacked:
    """Unpack the dataset, and write a card unless it has one."""
    known = [other.folder for other in RELEASES.values() if other is not release]
    try:
        found = unpack_dataset(archive, folder, wanted=release.folder, known=known)
    except DataError as error:
        # Left in the cache, it would be used again the next time.
        archive.unlink(missing_ok=True)
        raise DataError(error.what, where=url, hint=error.hint) from None
    if not (folder / CARD).exists():
        card = {"name": release.name, "source": release.page, "url": url, "archive_sha256": digest}
        # The authors join several labels by '-'; in a folder with a card, labels are split only where it says so.
        several = CATALOG[release.name].task == "multi-label"
        card |= {"task": "multi-label", "label_separator": "-"} if several else {"task": "multi-class"}
        (folder / CARD).write_text(json.dumps(card, indent=2) + "\n", encoding="utf-8")
    return found


def _read(folder: Path, url: str, notes: list[str]) -> Dataset:
    problems, dataset = check(folder)
    notes += [str(problem).replace(f"{folder}/", "").replace(str(folder), "dataset") for problem in problems.warnings]
    if dataset is None:
        first = str(problems.errors[0]).replace(f"{folder}/", "")
        raise DataError(f"what was unpacked cannot be read: {first}", where=url, hint="is this the right archive?")
    return dataset


def _differences(unpacked: Unpacked, dataset: Dataset, release: Release) -> list[str]:
    notes = []
    if unpacked.left_out:
        shown = ", ".join(unpacked.left_out[:3]) + (", ..." if len(unpacked.left_out) > 3 else "")
        notes.append(f"{len(unpacked.left_out):,} other files of the archive were not unpacked ({shown})")
    entry = CATALOG[release.name]
    for what, found, paper in (
        ("nodes", dataset.graph.num_nodes, entry.num_nodes),
        ("edges", dataset.graph.num_edges, entry.num_edges),
        ("subgraphs", len(dataset.subgraphs), entry.num_subgraphs),
    ):
        if found != paper:
            notes.append(f"{found:,} {what}, where the paper has {paper:,}")
    return notes
