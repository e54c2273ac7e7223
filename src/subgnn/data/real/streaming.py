"""Lines of source files, read one at a time: some unpack to many gigabytes, and no more than a line is held."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from subgnn.data.formats.text import open_gzip
from subgnn.errors import DataError, excerpt

MAX_LINE = 64 * 2**20
_BLOCK = 2**20


def numbered_lines(path: Path, *, max_line: int = MAX_LINE) -> Iterator[tuple[int, str]]:
    """Lines of a text file, plain or gzipped by its content, numbered from 1 and without their ends; blank ones pass.

    Args:
        max_line: bytes a line may have.

    Raises:
        DataError: for a file that cannot be read, a damaged gzip, a line too long or one that is not UTF-8.
    """
    with open_source(path) as file:
        number = 0
        while True:
            try:
                raw = file.readline(max_line + 1)
            except EOFError:
                hint = "was the download complete? fetch it again"
                raise DataError("the gzip file ends too early", where=str(path), hint=hint) from None
            except (gzip.BadGzipFile, zlib.error):
                raise DataError("a damaged gzip file", where=str(path), hint="fetch it again") from None
            if not raw:
                return
            number += 1
            if len(raw) > max_line:
                what = f"a line of more than {max_line:,} bytes"
                raise DataError(what, where=f"{path}:{number}", hint="is this the right file?")
            try:
                line = raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
            except UnicodeDecodeError as error:
                what = f"this is not UTF-8 text ({excerpt(raw[error.start : error.start + 4])})"
                raise DataError(what, where=f"{path}:{number}", hint="is this the right file?") from None
            if line and not line.isspace():
                yield number, line


def open_source(path: Path) -> BinaryIO:
    """A source file, unpacked on the way where it begins as gzip does."""
    try:
        with path.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
        return cast("BinaryIO", open_gzip(path)) if packed else path.open("rb")
    except FileNotFoundError:
        raise DataError("no such file", where=str(path), hint="check the path") from None
    except IsADirectoryError:
        raise DataError("this is a folder, not a file", where=str(path)) from None
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror})", where=str(path)) from None


def sha256_of(path: Path) -> str:
    """The hash of a file as it lies on disk."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()
