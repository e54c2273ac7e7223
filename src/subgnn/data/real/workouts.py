"""Workout records of Endomondo, in the layout of the FitRec project: a record a line.

A record has ``userId``, ``gender``, ``id``, ``sport`` and, where it was tracked, ``longitude`` and ``latitude``, lists
of equal length along the route. A line is JSON, or the literal of a Python dict, as the public file has it; nothing in
it is ever run.
"""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from subgnn.data.real.streaming import numbered_lines
from subgnn.errors import DataError, choices, excerpt

GENDERS = ("female", "male")
UNKNOWN = "unknown"
_MAX_RECORD = 32 * 2**20
_MAX_LITERAL = 4 * 2**20
_ACCEPTED = "one JSON object or Python dict a line, with userId, gender, id and sport, is accepted"


@dataclass(frozen=True, slots=True)
class Workout:
    """One record; ``start`` is latitude and longitude where the route begins, None where there is no route."""

    record: int
    user: str
    gender: str
    id: str
    sport: str
    start: tuple[float, float] | None


def read_workouts(path: Path) -> Iterator[Workout]:
    """Workouts in the order of the file.

    Raises:
        DataError: for a line that is no record, or a record with a wrong or missing field, with its number.
    """
    for record, (_, line) in enumerate(numbered_lines(path, max_line=_MAX_RECORD), 1):
        where = f"{path}: record {record}"
        fields = _parse(line, where)
        gender = _text(fields, "gender", where).lower()
        if gender not in (*GENDERS, UNKNOWN):
            hint = choices(gender, (*GENDERS, UNKNOWN))
            raise DataError(f"field 'gender' is {excerpt(gender)}", where=where, hint=hint)
        yield Workout(
            record=record,
            user=_text(fields, "userId", where),
            gender=gender,
            id=_text(fields, "id", where),
            sport=_text(fields, "sport", where),
            start=_start(fields, where),
        )


def _parse(line: str, where: str) -> dict[str, Any]:
    text = line.strip()
    try:
        found = json.loads(_as_json(text))
    except (ValueError, RecursionError):
        found = _literal(text, where)
    if not isinstance(found, dict):
        raise DataError(f"a {type(found).__name__}, no record", where=where, hint=_ACCEPTED)
    return found


def _as_json(text: str) -> str:
    """A dict literal as JSON, where exchanging quotes is all it takes: a hundred times faster than a Python parser."""
    plain = text.startswith("{'") and '"' not in text and "\\" not in text
    return text.replace("'", '"') if plain else text


def _literal(text: str, where: str) -> Any:
    if len(text) > _MAX_LITERAL:
        what = f"no JSON, and too long for a Python literal ({len(text):,} characters)"
        raise DataError(what, where=where, hint=_ACCEPTED)
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        raise DataError(f"this is no record: {excerpt(text)}", where=where, hint=_ACCEPTED) from None


def _text(fields: dict[str, Any], key: str, where: str) -> str:
    """A field that is text or a whole number, as text."""
    if key not in fields:
        hint = f"it has {excerpt(', '.join(map(str, fields)))}"
        raise DataError(f"no field '{key}'", where=where, hint=hint)
    value = fields[key]
    if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
        what = f"field '{key}' is {excerpt(str(value))}"
        raise DataError(what, where=where, hint="text or a whole number is needed")
    return " ".join(str(value).split())


def _start(fields: dict[str, Any], where: str) -> tuple[float, float] | None:
    given = {key: fields[key] for key in ("latitude", "longitude") if fields.get(key) is not None}
    if not given:
        return None
    if len(given) < 2:
        what = f"field '{next(iter(given))}' stands alone"
        raise DataError(what, where=where, hint="a route has both latitude and longitude")
    for key, value in given.items():
        if not isinstance(value, list) or not value:
            raise DataError(f"field '{key}' is {excerpt(str(value))}", where=where, hint="a list of degrees is needed")
    if len(given["latitude"]) != len(given["longitude"]):
        what = f"{len(given['latitude'])} latitudes but {len(given['longitude'])} longitudes"
        raise DataError(what, where=where, hint="one of each at every point of the route")
    return _degrees(given["latitude"][0], "latitude", 90, where), _degrees(
        given["longitude"][0], "longitude", 180, where
    )


def _degrees(value: Any, key: str, most: int, where: str) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or abs(value) > most:
        what = f"field '{key}' begins with {excerpt(str(value))}"
        raise DataError(what, where=where, hint=f"-{most} to {most} degrees are accepted")
    return float(value)
