"""A folder belongs to what was put into it: asked for again, the same goes on, and anything else is refused."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from subgnn.errors import DataError
from subgnn.training.run_dir import read_json, write_json

INPUTS = "inputs.json"


def claim_folder(out: Path, inputs: Mapping[str, Any], *, holds: str) -> bool:
    """Make the folder, or check that it was made for the same inputs; returns whether it is new.

    Args:
        inputs: what the result depends on, as JSON has it.
        holds: what to say of a folder that was made for others.

    Raises:
        DataError: where it was, or holds something else altogether.
    """
    if (out / INPUTS).is_file():
        before = read_json(out / INPUTS, "give another --out")
        other = [key for key in inputs if not isinstance(before, dict) or before.get(key) != inputs[key]]
        if other:
            raise DataError(f"{holds}: {', '.join(other)} differ", where=str(out), hint="give another --out")
        return False
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise DataError("exists already", where=str(out), hint="choose another --out")
    write_json(inputs, out / INPUTS)
    return True
