"""Read text files, plain or gzipped, whole, in chunks or by lines; those that unpack to far too much are refused."""

import encodings
import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from encodings.aliases import aliases
from pathlib import Path
from typing import IO, Any, cast

from subgnn.errors import DataError, excerpt
from subgnn.storage.files import read_errors

MAX_RATIO = 100
MAX_LINE = 2**30
_FREE = 64 * 2**20
_BLOCK = 2**20
_GZIP = b"\x1f\x8b"
_ENCODINGS = (
    *("utf_8", "utf_8_sig", "utf_16", "utf_16_le", "utf_16_be", "latin_1", "iso8859_2", "iso8859_15", "mac_roman"),
    *("cp437", "cp850", "cp1250", "cp1251", "cp1252", "cp1253", "cp1254", "cp1255", "cp1256", "koi8_r"),
    *("shift_jis", "cp932", "euc_jp", "gbk", "gb18030", "big5", "euc_kr", "cp949"),
)


def check_unpacked_size(path: Path, unpacked: int) -> None:
    """Refuse a compressed file that unpacks to too many bytes; text of graphs has three to twenty times its size."""
    limit = _FREE + MAX_RATIO * path.stat().st_size
    if unpacked > limit:
        what = f"it unpacks to more than {limit:,} bytes, {_FREE >> 20} MiB and {MAX_RATIO} times its size"
        raise DataError(what, where=str(path), hint="unpack it by hand if you trust it")


class _Unpacked(gzip.GzipFile):
    """A gzip file that raises :class:`DataError` once it has unpacked to too many bytes."""

    def __init__(self, raw: IO[bytes], path: Path) -> None:
        super().__init__(fileobj=raw)
        self.myfileobj = cast(Any, raw)  # which is then closed with this
        self._path = path

    def readinto(self, buffer: Any) -> int:
        got = super().readinto(buffer)
        check_unpacked_size(self._path, self.tell())
        return got


def open_unpacked(path: Path, raw: IO[bytes] | None = None) -> IO[bytes]:
    """Open a file, or one that is open already, unpacked and checked by :func:`check_unpacked_size` if gzipped."""
    raw = path.open("rb") if raw is None else raw
    begin = raw.read(2)
    raw.seek(0)
    if begin != _GZIP and path.suffix != ".gz":
        return raw
    if not begin:
        raw.close()
        raise EOFError
    return cast("IO[bytes]", io.BufferedReader(_Unpacked(raw, path), _BLOCK))


@contextmanager
def _read_errors(path: Path) -> Iterator[None]:
    where = str(path)
    with read_errors(path):
        try:
            yield
        except EOFError:
            hint = "was the download complete? fetch it again"
            raise DataError("the gzip file ends too early", where=where, hint=hint) from None
        except (gzip.BadGzipFile, zlib.error):
            hint = "fetch it again, or remove .gz from its name"
            raise DataError("this is not a gzip file, or it is damaged", where=where, hint=hint) from None


def find_file(folder: Path, *names: str) -> Path | None:
    """The first of ``names`` that is in the folder, as it is or with .gz."""
    candidates = (folder / (name + suffix) for name in names for suffix in ("", ".gz"))
    return next((path for path in candidates if path.is_file()), None)


def read_bytes(path: Path) -> bytes:
    """The unpacked content of a file."""
    with _read_errors(path), open_unpacked(path) as file:
        return b"".join(iter(lambda: file.read(_BLOCK), b""))


def read_chunks(path: Path, size: int) -> Iterator[tuple[bytes, int]]:
    """The unpacked content in chunks of about ``size`` bytes that end where lines do, and the bytes read from disk."""
    with _read_errors(path), path.open("rb") as raw:
        file, rest = open_unpacked(path, raw), b""
        while block := file.read(size):
            whole = block.rfind(b"\n") + 1
            if whole:
                yield rest + block[:whole], raw.tell()
                rest = b""
            rest += block[whole:]
        if rest:
            yield rest, raw.tell()


def text_encoding(name: str | None) -> str | None:
    """The encoding of a text file, one of Python's that are accepted, as requests may name any; None for UTF-8."""
    if name is None:
        return None
    plain = encodings.normalize_encoding(name).lower()
    plain = aliases.get(plain, plain)
    if plain not in _ENCODINGS:
        hint = f"accepted: {', '.join(one.replace('_', '-') for one in _ENCODINGS)}"
        raise DataError(f"{excerpt(name)} is not an encoding of text files", where="--encoding", hint=hint)
    return None if plain in ("utf_8", "utf_8_sig") else plain


def read_lines(path: Path, *, max_line: int = MAX_LINE, encoding: str | None = None) -> Iterator[tuple[int, str]]:
    """Lines that are not blank, without their ends, with their numbers from 1; one line is in memory at a time."""
    with _read_errors(path), open_unpacked(path) as file:
        text = None if encoding is None else io.TextIOWrapper(file, encoding, newline="\n")
        number = 0
        try:
            while raw := (file if text is None else text).readline(max_line + 1):
                number += 1
                if len(raw) > max_line:
                    what = f"the line has more than {max_line:,} bytes"
                    raise DataError(what, where=f"{path}:{number}", hint="is this the right file?")
                line = raw if isinstance(raw, str) else raw.decode("utf-8-sig" if number == 1 else "utf-8")
                if line.strip():
                    yield number, line.rstrip("\r\n")
        except UnicodeError as error:
            bad = f" ({excerpt(error.object[error.start :][:4])})" if isinstance(error, UnicodeDecodeError) else ""
            where = f"{path}:{number}" if encoding is None else str(path)  # other encodings are decoded in blocks
            what = f"this is not {encoding or 'UTF-8'} text{bad}"
            raise DataError(what, where=where, hint="save the file as UTF-8") from None
