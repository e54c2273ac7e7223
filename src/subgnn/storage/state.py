"""Nested tensors and plain values in one file: the state that resuming needs.

Tensors are the arrays of the file, named by their path (``optimizer.state.0.exp_avg``). The rest is its JSON content:
``{"tensor": name}``, ``{"tuple": [...]}`` and ``{"dict": [[key, value], ...]}`` stand for what JSON does not have.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from subgnn.storage.arrays import Arrays, Damaged, Format, encode_arrays, read_arrays, write_parts


def save_state(state: dict[str, Any], path: Path, kind: Format) -> None:
    """Write tensors, numbers, texts, lists, tuples and dictionaries, atomically."""
    arrays: Arrays = {}

    def encode(value: Any, name: str) -> Any:
        if isinstance(value, torch.Tensor):
            name = name if name not in arrays else f"{name}#{len(arrays)}"
            arrays[name] = value.detach().cpu().numpy()
            return {"tensor": name}
        if isinstance(value, dict):
            return {
                "dict": [[key, encode(inner, f"{name}.{key}" if name else str(key))] for key, inner in value.items()]
            }
        if isinstance(value, list | tuple):
            inner = [encode(one, f"{name}.{i}") for i, one in enumerate(value)]
            return inner if isinstance(value, list) else {"tuple": inner}
        return value

    content = encode(state, "")
    write_parts(path, encode_arrays(arrays, kind, content), overwrite=True)


def load_state(path: Path, kind: Format) -> dict[str, Any]:
    """Read a file that :func:`save_state` wrote.

    Raises:
        Damaged: if it is another file, or was changed since.
        DataError: if it cannot be read, or is of another version.
    """
    file = read_arrays(path, kind)

    def decode(value: Any) -> Any:
        if isinstance(value, list):
            return [decode(one) for one in value]
        if not isinstance(value, dict):
            return value
        ((what, inner),) = value.items()
        if what == "dict":
            return {key: decode(one) for key, one in inner}
        return tuple(decode(inner)) if what == "tuple" else torch.from_numpy(np.array(file.arrays[inner]))

    try:
        state = decode(file.content())
    except (LookupError, TypeError, ValueError):
        state = None
    if not isinstance(state, dict):
        raise Damaged(f"the {kind.noun} lacks a part, or has one of a wrong kind", where=str(path), hint=kind.again)
    return state
