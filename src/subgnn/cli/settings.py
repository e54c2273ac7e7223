"""Settings typed as ``KEY=VALUE``."""

from __future__ import annotations

from subgnn.errors import DataError, excerpt


def read_pairs(pairs: list[str]) -> dict[str, str]:
    """KEY=VALUE texts as a mapping."""
    out = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not (key and equals and value):
            raise DataError(f"{excerpt(pair)} is no setting", where="--set", hint="KEY=VALUE is accepted")
        out[key.strip().replace("-", "_")] = value.strip()
    return out
