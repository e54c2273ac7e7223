"""Sizes of memory and files as people write them."""

from __future__ import annotations

import re

from subgnn.errors import UserError, excerpt

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?)\s*([KMGT]?B?)\s*", re.IGNORECASE)


def parse_size(text: str, where: str, *, hint: str = "") -> int:
    """A number of bytes.

    Raises:
        UserError: for what is no size; ``hint`` is added to what is accepted.

    Example:
        >>> parse_size("1.5 GB", "--memory")
        1500000000
    """
    found = _SIZE.fullmatch(text)
    unit = found[2].upper() if found else ""
    scale = _UNITS.get(unit, _UNITS.get(unit + "B"))
    if found is None or scale is None:
        accepted = "accepted: a number with KB, MB, GB or TB, as 5GB"
        raise UserError(f"{excerpt(text)} is no size", where=where, hint=f"{accepted}; {hint}" if hint else accepted)
    return int(float(found[1]) * scale)
