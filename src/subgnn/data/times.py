"""Times of edges and subgraphs: numbers of any unit, or dates in ISO 8601, which become seconds since 1970 in UTC."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.errors import DataError, excerpt

ACCEPTED = "a number, or a date as 2024-03-01 or 2024-03-01T12:30:00+01:00"
_DATES = (631_152_000, 4_102_444_800)  # the years 1990 to 2099 in seconds
_LARGEST = 2**62  # of a time that is a whole number of 64 bits


def parse_time(text: str, where: str = "time") -> int | float:
    """A time: a number, or a date, which is in UTC unless it says otherwise.

    Raises:
        DataError: for any other text.

    Example:
        >>> parse_time("12"), parse_time("0.5"), parse_time("1970-01-02"), parse_time("1970-01-01T01:00:00+01:00")
        (12, 0.5, 86400, 0)
    """
    try:
        if text.strip().lstrip("+-").isdecimal():
            if len(text) > 20 or abs(int(text)) >= _LARGEST:
                raise DataError(f"the time {excerpt(text)}", where=where, hint="accepted: whole numbers below 2^62")
            return int(text)
        seconds = float(text) if "_" not in text else float("nan")
    except ValueError:
        try:
            date = datetime.fromisoformat(text.strip())
        except ValueError:
            seconds = float("nan")
        else:
            seconds = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
            seconds = int(seconds) if seconds.is_integer() else seconds
    if not np.isfinite(seconds):
        raise DataError(f"{excerpt(text)} is not a time", where=where, hint=f"accepted: {ACCEPTED}")
    return seconds


def parse_times(texts: Sequence[str]) -> NDArray[Any]:
    """Times of many texts: int64 where all are whole numbers or dates of whole seconds, else float64.

    Raises:
        DataError: for the first text that is not a time, or that is a number among dates or a date among numbers;
            ``where`` is its place, from 0.
    """
    known: dict[str, int | float] = {}
    for i, text in enumerate(texts):
        if text in known:
            continue
        known[text] = parse_time(text, str(i))
        if _kind(text) != _kind(texts[0]):
            what = f"{excerpt(text)} is {_kind(text)}, and {excerpt(texts[0])} before it {_kind(texts[0])}"
            raise DataError(what, where=str(i), hint="times of one column must be all numbers or all dates")
    whole = all(isinstance(time, int) for time in known.values())
    return np.array([known[text] for text in texts], np.int64 if whole else np.float64)


def _kind(time: str) -> str:
    try:
        float(time)
    except ValueError:
        return "a date"
    return "a number"


def check_times(times: Any, count: int, where: str = "times") -> NDArray[Any]:
    """Times as int64 where all are whole numbers, else as float64, all finite; dates as seconds since 1970.

    Args:
        times: numbers, dates of numpy, or texts of either.
    """
    array = np.asarray(times)
    if array.dtype.kind == "U" and array.ndim == 1:
        try:
            array = parse_times(array.tolist())
        except DataError as error:
            raise DataError(error.what, where=f"{where}: row {error.where}", hint=error.hint) from None
    if array.dtype.kind == "M":
        whole = array.astype("datetime64[s]")
        array = np.where(np.isnat(array), np.nan, array.astype("datetime64[us]").astype(np.int64) / 1e6)
        array = array if np.isnan(array).any() or (whole != times).any() else whole.astype(np.int64)
    if array.dtype.kind not in "fiu" or array.shape != (count,):
        what = f"times of type {array.dtype} and shape {array.shape}"
        raise DataError(what, where=where, hint=f"{count} numbers or dates are needed")
    if array.dtype.kind == "u" and int(array.max(initial=0)) >= 2**63:
        row = int(array.argmax())
        raise DataError(f"time {array[row]} at row {row}", where=where, hint="whole numbers are accepted below 2^63")
    array = array.astype(np.float64 if array.dtype.kind == "f" else np.int64, copy=False)
    bad = np.flatnonzero(~np.isfinite(array))
    if len(bad):
        raise DataError(f"time {array[bad[0]]} at row {bad[0]}", where=where, hint="times must be finite")
    return array


def time_text(time: float) -> str:
    """A time for messages: the number, with the date where it is likely to count seconds since 1970.

    Example:
        >>> time_text(12), time_text(0.5), time_text(1709251200), time_text(1709251201)
        ('12', '0.5', '1709251200 (2024-03-01)', '1709251201 (2024-03-01T00:00:01)')
    """
    number = time.item() if isinstance(time, np.generic) else time
    if not _DATES[0] <= number < _DATES[1]:
        return repr(number)
    date = datetime.fromtimestamp(number, UTC).replace(tzinfo=None)
    return f"{number!r} ({date.isoformat().removesuffix('T00:00:00')})"
