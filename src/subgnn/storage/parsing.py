"""TOML and JSON, within bounds of size and nesting.

Parsers recurse into nested values and are slow on keys of many parts: a file of a few hundred kilobytes could end in a
RecursionError, or take minutes. The bounds are far above the needs of settings, cards and results.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from subgnn.errors import DataError, UserError
from subgnn.storage.files import atomic_write

MAX_TOML = 2**20
MAX_JSON = 64 * 2**20
MAX_DEPTH = 32
_TOKENS = re.compile(
    r'''"""(?:[^"\\]|\\.|"(?!""))*+"""|'{3}[\s\S]*?'{3}'''  # text of several lines
    r"""|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+'|#[^\n]*+"""  # text, comments
    r"""|[\[{]|[]}]|[.,=\n]|[^\s"'#\[\]{}.,=]++""",
    re.DOTALL,
)


def read_bounded(path: Path, limit: int) -> bytes:
    """The content of a file of at most ``limit`` bytes.

    Raises:
        DataError: if it is larger, or cannot be read.
    """
    try:
        with path.open("rb") as file:
            content = file.read(limit + 1)
    except FileNotFoundError:
        raise DataError("no such file", where=str(path), hint="check the path") from None
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror})", where=str(path)) from None
    if len(content) > limit:
        raise DataError(f"more than {limit:,} bytes", where=str(path), hint="is this the right file?")
    return content


def parse_toml(text: str, where: str) -> dict[str, Any]:
    """The content of TOML text.

    Raises:
        UserError: if it is not valid TOML, or nested too deep.
    """
    if _toml_depth(text) > MAX_DEPTH:
        what = f"tables, lists or dotted keys are nested more than {MAX_DEPTH} deep"
        raise UserError(what, where=where, hint="is this the right file?")
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise UserError(f"this is not valid TOML ({error})", where=where) from None


def _toml_depth(text: str) -> int:
    """The largest number of open brackets, or of dots in a key."""
    deepest = brackets = dots = 0
    before = ""
    for found in _TOKENS.finditer(text):
        token = found[0]
        if token in "[{":
            brackets += 1
        elif token in "]}":
            brackets = max(0, brackets - 1)
        # Between two dots of a key is one part of it.
        dots = dots + 1 if token == "." else dots if before == "." else 0
        before = token
        deepest = max(deepest, brackets, dots)
    return deepest


def parse_json(
    text: str | bytes,
    where: str,
    hint: str,
    *,
    what: str = "this is not valid JSON",
    numbers: Callable[[str], Any] | None = None,
) -> Any:
    """The value of JSON text.

    Args:
        numbers: makes the value of a number from its text; by default an int or a float.

    Raises:
        DataError: if it is not valid JSON, or nested too deep.
    """
    try:
        plain = text.decode("utf-8-sig") if isinstance(text, bytes) else text
        value = json.loads(plain, parse_int=numbers, parse_float=numbers)
    except (ValueError, RecursionError):
        raise DataError(what, where=where, hint=hint) from None
    level, depth = [value], 0
    while level := [item for item in level if isinstance(item, dict | list)]:
        depth += 1
        if depth > MAX_DEPTH:
            raise DataError(f"nested more than {MAX_DEPTH} deep", where=where, hint=hint)
        level = [inner for item in level for inner in (item.values() if isinstance(item, dict) else item)]
    return value


def finite(value: Any) -> Any:
    """The same value with None for numbers that JSON does not have: infinite and undefined ones.

    Example:
        >>> finite({"auroc": float("nan"), "epochs": [1, 2.5]})
        {'auroc': None, 'epochs': [1, 2.5]}
    """
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def read_json(path: Path, hint: str) -> Any:
    """The value of a JSON file."""
    return parse_json(read_bounded(path, MAX_JSON), str(path), hint, what="this is not valid JSON, or damaged")


def write_json(value: Any, path: Path, *, overwrite: bool = True) -> None:
    """Write JSON, atomically."""
    with atomic_write(path, overwrite=overwrite) as temporary:
        text = json.dumps(value, indent=2, ensure_ascii=False) + "\n"
        # Halves of characters, which paths may have, are escaped as JSON does.
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace")


def json_digest(value: Any) -> str:
    """The SHA-256 of a value as JSON, whatever the order of keys."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
