"""Reuse an output folder only for identical inputs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from subgnn.errors import DataError
from subgnn.parallel.locks import LOCK, names_in
from subgnn.storage.parsing import read_json, write_json

INPUTS = "inputs.json"
_OURS = (LOCK, f".{INPUTS}.")
"""How the names of files begin that another process may have there while it claims the folder."""


def claim_folder(out: Path, inputs: Mapping[str, Any], *, holds: str) -> bool:
    """Make the folder, or check that it was made for the same inputs; returns whether it is new.

    Args:
        inputs: what the result depends on, as JSON.
        holds: the beginning of the message about a folder that was made for other inputs.

    Raises:
        DataError: for a folder that was made for other inputs, or holds something else.
    """
    if check_folder(out, inputs, holds=holds):
        return False
    try:
        write_json(inputs, out / INPUTS, overwrite=False)
    except DataError:
        # Another process has claimed it at the same time, for the same inputs or for others.
        if not check_folder(out, inputs, holds=holds):
            raise
        return False
    return True


def check_folder(out: Path, inputs: Mapping[str, Any], *, holds: str) -> bool:
    """Whether the folder was made for the same inputs; False for a new or empty one.

    Raises:
        DataError: as for :func:`claim_folder`.
    """
    names = names_in(out)
    if names is not None and INPUTS in names:
        before = read_json(out / INPUTS, "give another --out")
        other = [key for key in inputs if not isinstance(before, dict) or before.get(key) != inputs[key]]
        if other:
            raise DataError(f"{holds}: {', '.join(other)} differ", where=str(out), hint="give another --out")
        return True
    if names is None or not all(name.startswith(_OURS) for name in names):
        raise DataError("exists already", where=str(out), hint="choose another --out")
    return False
