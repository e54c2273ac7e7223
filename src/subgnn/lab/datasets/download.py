"""Download the datasets that the paper's authors published.

A file is downloaded over HTTP: fetched again after a cut connection, limited in size, verified, and written atomically.
This is ours rather than pooch, which limits neither the size nor redirects, and does not check free space.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import shutil
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from subgnn.data.dataset import Dataset
from subgnn.data.describe import check
from subgnn.data.formats.folder import AUTHORS_SUBGRAPHS, CARD, EDGES
from subgnn.errors import DataError, UserError, choices, excerpt
from subgnn.lab.datasets.archives import Unpacked, unpack_dataset
from subgnn.lab.datasets.catalog import CATALOG
from subgnn.parallel.locks import locked_file
from subgnn.parallel.progress import ignore
from subgnn.storage.cache import cache_folder
from subgnn.storage.files import atomic_write, file_digest

Progress = Callable[[int, int | None], None]
TIMEOUT = 30.0
"""Seconds without data after which a connection counts as lost."""
MAX_BYTES = 64 * 2**30
"""A larger file is refused."""
ATTEMPTS, BACKOFF, LONGEST_WAIT = 5, 0.5, 10.0
"""Connections before giving up; seconds before the second, which double with each; and their limit."""
_BLOCK = 2**20
_HINTS = {404: "the file does not exist (any more): check the address", 403: "access is restricted"}


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
                notes.append(f"used the archive from an earlier download: {archive}")
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
        notes.append(f"{len(unpacked.left_out):,} other files in the archive were not unpacked ({shown})")
    entry = CATALOG[release.name]
    for what, found, paper in (
        ("nodes", dataset.graph.num_nodes, entry.num_nodes),
        ("edges", dataset.graph.num_edges, entry.num_edges),
        ("subgraphs", len(dataset.subgraphs), entry.num_subgraphs),
    ):
        if found != paper:
            notes.append(f"{found:,} {what}, but the paper has {paper:,}")
    return notes


class _CutError(Exception):
    """The transfer stopped; another attempt may succeed."""


def download(url: str, destination: Path, *, sha256: str | None = None, progress: Progress = ignore) -> str:
    """Download a file, and move it into place once it is complete and verified.

    Args:
        url: http or https.
        sha256: the expected checksum, where it is known.
        progress: called with the bytes so far and the bytes in all, None where the server does not state them.

    Returns:
        SHA-256 of the file.
    """
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        known = False
    if not known or not url.isascii() or not url.isprintable() or " " in url or "@" in parts.netloc:
        hint = "accepted: http://host/... and https://host/..."
        raise UserError(f"cannot fetch {excerpt(url)}", where="url", hint=hint)
    wanted = check_digest(sha256)
    try:
        destination.parent.mkdir(parents=True, exist_ok=True)
        with (
            locked_file(destination, doing="fetching this file"),
            atomic_write(destination, overwrite=True) as temporary,
        ):
            _fetch_all(url, temporary, progress)
            digest = file_digest(temporary)
            if wanted not in (None, digest):
                what = f"the file has the SHA-256 {digest}, not {wanted}; the download was removed"
                raise UserError(what, where=url, hint="fetch it again, or check which file the SHA-256 belongs to")
    except OSError as error:
        hint = "make room or choose another place, then run the same command again"
        raise UserError(f"cannot be written ({error.strerror or error})", where=str(destination), hint=hint) from error
    return digest


def check_digest(sha256: str | None) -> str | None:
    """A SHA-256 in lower case, checked."""
    if sha256 is None:
        return None
    digest = sha256.strip().lower()
    if len(digest) != 64 or any(c not in "0123456789abcdef" for c in digest):
        what = f"{excerpt(sha256)} is not a SHA-256"
        raise UserError(what, where="sha256", hint="64 hexadecimal digits are accepted")
    return digest


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows a few redirects, and none from https to anything else."""

    max_redirections = 5

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        here, there = urlsplit(req.full_url).scheme, urlsplit(newurl).scheme
        if there != "https" and there != here:
            raise UserError(f"the server redirects to {excerpt(newurl)}", where=req.full_url, hint="https is accepted")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _fetch_all(url: str, path: Path, progress: Progress) -> None:
    opener, reason = urllib.request.build_opener(_Redirects), ""  # proxies of the environment are used
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(min(BACKOFF * 2 ** (attempt - 1), LONGEST_WAIT))
        try:
            return _fetch(url, path, opener, progress)
        except urllib.error.URLError as error:
            reason = str(error.reason)
            if attempt == 0:
                hint = "is there a network here, and is a proxy needed (https_proxy)?"
                raise UserError(f"cannot be reached ({reason})", where=url, hint=hint) from None
        except _CutError as cut:
            reason = str(cut)
    what = f"gave up after {ATTEMPTS} attempts; the last one: {reason}"
    raise UserError(what, where=url, hint="try again later")


def _fetch(url: str, path: Path, opener: urllib.request.OpenerDirector, progress: Progress) -> None:
    """Download the file over one connection; its length is bounded by what the server announced and what is allowed."""
    request = urllib.request.Request(url, headers={"User-Agent": "subgnn", "Accept-Encoding": "identity"})
    with _answer(url, opener, request) as response, path.open("wb") as file:
        length = response.headers.get("Content-Length", "")
        total = int(length) if length.isascii() and length.isdigit() else None
        have = 0
        _check_room(url, path, total or 0, total or 0)
        while block := _block(response, _BLOCK if total is None else min(_BLOCK, total - have)):
            have += len(block)
            _check_room(url, path, have, len(block))
            file.write(block)
            progress(have, total)
    if total is not None and have < total:
        raise _CutError(f"the connection was cut at byte {have:,} of {total:,}")


def _check_room(url: str, path: Path, size: int, missing: int) -> None:
    """Refuse a file of more bytes than allowed, or than there is room for."""
    if size > MAX_BYTES:
        what = f"the file has at least {size:,} bytes, but at most {MAX_BYTES:,} are allowed"
        raise UserError(what, where=url, hint="is this the right address?")
    free = shutil.disk_usage(path.parent).free
    if missing > free:
        what = f"{missing:,} bytes are missing, but only {free:,} bytes of disk are free"
        raise UserError(what, where=str(path.parent), hint="make room, then run the same command again")


def _answer(url: str, opener: urllib.request.OpenerDirector, request: urllib.request.Request) -> Any:
    try:
        return opener.open(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code in (408, 429) or error.code >= 500:
            raise _CutError(f"the server answered {error.code}") from None
        what = f"the server answered {error.code} ({' '.join(str(error.reason).split())})"
        raise UserError(what, where=url, hint=_HINTS.get(error.code, "check the address")) from None
    except urllib.error.URLError:
        raise
    except (OSError, http.client.HTTPException) as error:
        raise _CutError(str(error) or type(error).__name__) from None


def _block(response: Any, size: int) -> bytes:
    """The next block, empty at the end."""
    try:
        return bytes(response.read1(size)) if size else b""
    except (OSError, http.client.HTTPException) as error:
        raise _CutError(str(error) or type(error).__name__) from None
