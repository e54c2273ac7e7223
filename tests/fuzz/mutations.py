"""Damage to a file: as disks, copies, editors and mistaken programs do it."""

import gzip
import io
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Damage = Callable[[bytes, np.random.Generator], bytes]

_PAGE = 64
WORDS = (
    b"NaN", b"-1", b"1e999", b"99999999999999999999", b"2147483648", b"0x10", b"\x00", b"\xff\xfe", b'"', b"\t", b"\n",
    b"", b"[" * 50, b"null", b"-", b"1_0", b" ", b"{}", b"true", b"\\u0000", "\u0663\u2028".encode(),
    "\U0001f600".encode(),
)  # fmt: skip


def flip(data: bytes, rng: np.random.Generator) -> bytes:
    out = bytearray(data)
    for _ in range(int(rng.integers(1, 5))):
        out[rng.integers(len(out))] ^= 1 << int(rng.integers(8))
    return bytes(out)


def overwrite(data: bytes, rng: np.random.Generator) -> bytes:
    out, width = bytearray(data), int(rng.choice([1, 2, 4, 8]))
    begin = int(rng.integers(len(out)))
    out[begin : begin + width] = [b"\xff" * width, bytes(width), rng.bytes(width)][rng.integers(3)]
    return bytes(out[: max(len(data), 1)])


def truncate(data: bytes, rng: np.random.Generator) -> bytes:
    return data[: rng.integers(len(data))]


def pad(data: bytes, rng: np.random.Generator) -> bytes:
    return data + [bytes(_PAGE), rng.bytes(_PAGE), data][rng.integers(3)]


def swap(data: bytes, rng: np.random.Generator) -> bytes:
    size = int(rng.integers(1, max(2, min(_PAGE, len(data) // 2))))
    a, b = (int(rng.integers(max(1, len(data) - size))) for _ in range(2))
    out = bytearray(data)
    out[a : a + size], out[b : b + size] = data[b : b + size], data[a : a + size]
    return bytes(out)


def zero(data: bytes, rng: np.random.Generator) -> bytes:
    begin, out = int(rng.integers(len(data))), bytearray(data)
    size = len(out[begin : begin + _PAGE])
    out[begin : begin + size] = bytes(size)
    return bytes(out)


def begin(data: bytes, rng: np.random.Generator) -> bytes:
    head = min(len(data), 256)
    return [flip, overwrite, swap][rng.integers(3)](data[:head], rng) + data[head:]


def edit_word(data: bytes, rng: np.random.Generator) -> bytes:
    places = [i for i in range(len(data)) if not data[i : i + 1].isalnum()]
    at = int(rng.choice(places)) + 1 if places else 0
    end = at
    while end < len(data) and (data[end : end + 1].isalnum() or data[end : end + 1] in b"._"):
        end += 1
    return data[:at] + WORDS[rng.integers(len(WORDS))] + data[end:]


def edit_lines(data: bytes, rng: np.random.Generator) -> bytes:
    lines = data.splitlines(keepends=True)
    if not lines:
        return data + b"\n"
    a, b = (int(rng.integers(len(lines))) for _ in range(2))
    way = rng.integers(3)
    if way == 0:
        lines.insert(b, lines[a])
    elif way == 1:
        del lines[a]
    else:
        lines[a], lines[b] = lines[b], lines[a]
    return b"".join(lines)


BINARY: tuple[Damage, ...] = (flip, flip, flip, overwrite, overwrite, truncate, pad, swap, zero, begin)
TEXT: tuple[Damage, ...] = (*(edit_word,) * 3, *(edit_lines,) * 2, flip, overwrite, truncate, pad, swap)


def any_of(ways: tuple[Damage, ...]) -> Damage:
    def damage(data: bytes, rng: np.random.Generator) -> bytes:
        return ways[rng.integers(len(ways))](data, rng) if data else b"\x00"

    return damage


binary, text = any_of(BINARY), any_of(TEXT)


def inside_gzip(data: bytes, rng: np.random.Generator) -> bytes:
    return binary(data, rng) if rng.integers(2) else gzip.compress(text(gzip.decompress(data), rng), mtime=0)


def inside_zip(data: bytes, rng: np.random.Generator) -> bytes:
    way = int(rng.integers(8))
    if way < 3:
        return binary(data, rng)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        records = [(record.filename, archive.read(record)) for record in archive.infolist()]
    # The first record of a file of tensors names all others.
    chosen = 0 if way == 3 else int(rng.integers(len(records)))
    name, content = records[chosen]
    if way < 6:
        records[chosen] = (name, binary(content, rng))
    elif way == 6:
        other = records[int(rng.integers(len(records)))]
        records[chosen] = [(name, other[1]), (name + "x", content)][rng.integers(2)]
    elif rng.integers(2):
        del records[chosen]
    packing = zipfile.ZIP_DEFLATED if rng.integers(8) == 0 else zipfile.ZIP_STORED
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", packing) as copy:
        for name, content in records:
            copy.writestr(name, content)
    return out.getvalue()


def inside_header(data: bytes, rng: np.random.Generator) -> bytes:
    if rng.integers(3) == 0:
        return binary(data, rng)
    length = int.from_bytes(data[:8], "little")
    header, arrays = data[8 : 8 + length], data[8 + length :]
    if rng.integers(2):
        return data[: 8 + length] + binary(arrays, rng)
    header = text(header, rng)
    return len(header).to_bytes(8, "little") + header + arrays


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of file: ``make`` writes a good one, and what it needs, into a folder, and gives its path.

    What ``read`` returns says what was read. A ``signed`` file carries a checksum of its content, so that none may be
    read that differs; of others, a damaged one may be read as another content.
    """

    make: Callable[[Path], Path]
    read: Callable[[Path], Any]
    damage: Damage = text
    signed: bool = False
