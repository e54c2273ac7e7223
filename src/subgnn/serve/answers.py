"""Answers as JSON."""

from __future__ import annotations

import json
import math
from typing import Any


def encode(value: Any) -> bytes:
    r"""Plain values as ASCII JSON; numbers that JSON does not have become null.

    Example:
        >>> encode({"auroc": float("nan"), "name": "β"})
        b'{"auroc":null,"name":"\\u03b2"}'
    """
    try:
        text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    except ValueError:
        text = json.dumps(_finite(value), allow_nan=False, separators=(",", ":"))
    return text.encode("ascii")


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
