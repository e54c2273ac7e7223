"""Checks of values where they enter: ids, weights, types, features and times, which are numbers or dates in UTC."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.data.strings import NodeNames, parse_number
from subgnn.errors import DataError, excerpt

MAX_NODES = 2**31 - 1

MAX_TYPES = 1000
"""The most types of edges: each has an adjacency of its own, with a place for every node."""


def plausible_nodes(evidence: int) -> int:
    """The most nodes that ids alone may imply: one line ``0 2000000000`` must not reserve sixteen gigabytes."""
    return min(MAX_NODES, 10_000_000 + 100 * evidence)


LARGEST_FEATURE = 1e30
"""The largest magnitude of a feature; networks compute in 32 bits, which end at 3e38."""


def check_features(features: Any, num_nodes: int, where: str = "features") -> NDArray[Any]:
    """Features as floats, one row for each node, all finite and no larger than :data:`LARGEST_FEATURE`."""
    array = np.asarray(features)
    if array.dtype.kind not in "fiub":
        raise DataError(f"the features have type {array.dtype}", where=where, hint="numbers are accepted")
    if array.ndim != 2:
        raise DataError(f"the features have shape {array.shape}", where=where, hint=f"accepted: ({num_nodes}, F)")
    if len(array) != num_nodes:
        what = f"{len(array)} rows, but the graph has {num_nodes} nodes"
        raise DataError(what, where=where, hint="one row for each node is needed")
    if array.dtype.kind != "f":
        array = array.astype(np.float32)
    elif not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    step = max(1, 2**22 // max(1, array.shape[1]))
    for begin in range(0, len(array), step):
        # NaN is not within bounds either; the bound has 64 bits, so that features of 16 bits are compared in these.
        bad = np.argwhere(~(np.abs(array[begin : begin + step]) <= np.float64(LARGEST_FEATURE)))
        if len(bad):
            row, column = int(bad[0][0]) + begin, int(bad[0][1])
            what = f"{array[row, column]} at row {row}, column {column}"
            hint = "features must be finite: fill or drop missing values"
            hint = f"accepted: up to {LARGEST_FEATURE:g}; scale it" if np.isfinite(array[row, column]) else hint
            raise DataError(what, where=where, hint=hint)
    return array


def check_node_ids(ids: Any, where: str) -> NDArray[np.int32]:
    """Ends of edges as int32, from 0 and below :data:`MAX_NODES`."""
    array = np.asarray(ids)
    if array.size == 0:
        return np.empty(0, np.int32)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        what = f"the ids have type {array.dtype} and shape {array.shape}"
        raise DataError(what, where=where, hint="a list of integers is accepted")
    low, high = int(array.min()), int(array.max())
    if low < 0 or high >= MAX_NODES:
        raise DataError(f"node {low if low < 0 else high}", where=where, hint=f"ids run from 0 to {MAX_NODES - 1}")
    return array.astype(np.int32, copy=False)


def check_weights(weights: Any, num_edges: int) -> NDArray[np.float32]:
    """Weights as float32, one for each edge, all finite."""
    array = np.asarray(weights)
    if array.dtype.kind not in "fiu" or array.shape != (num_edges,):
        what = f"the weights have type {array.dtype} and shape {array.shape}"
        raise DataError(what, where="weights", hint=f"{num_edges} numbers are needed")
    with np.errstate(over="ignore"):
        array = array.astype(np.float32, copy=False)
    bad = np.flatnonzero(~np.isfinite(array))
    if len(bad):
        raise DataError(f"weight {array[bad[0]]} of edge {bad[0]}", where="weights", hint="weights must be finite")
    return array


def check_types(types: Any, num_edges: int) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """The place of each edge's type among the names of types, which are sorted."""
    array = np.asarray(types)
    if array.shape != (num_edges,):
        raise DataError(f"the types have shape {array.shape}", where="types", hint=f"{num_edges} names are needed")
    names, codes = np.unique(array.astype(str), return_inverse=True)
    if len(names) > MAX_TYPES:
        what = f"{len(names):,} types of edges (such as {excerpt(str(names[0]))})"
        raise DataError(what, where="types", hint=f"at most {MAX_TYPES:,}; join the rare ones")
    if "" in names:
        raise DataError(f"edge {int(np.argmin(codes))} has no type", where="types", hint="give every edge one, or none")
    return codes, tuple(names.tolist())


def check_num_nodes(u: NDArray[Any], v: NDArray[Any], given: int | None, features: Any, names: NodeNames | None) -> int:
    """N: as given, or as many as ids, names or features need; ids and names must fit."""
    needed = 1 + max(int(u.max(initial=-1)), int(v.max(initial=-1)))
    if given is None:
        known = len(names) if names is not None else 0 if features is None else len(features)
        given = max(needed, known)
    if given < needed:
        raise DataError(f"node {needed - 1} in a graph of {given} nodes", where="edges", hint=f"ids run 0..{given - 1}")
    if given > MAX_NODES:
        raise DataError(f"{given} nodes", where="num_nodes", hint=f"at most {MAX_NODES} are supported")
    if names is not None and len(names) != given:
        raise DataError(f"{len(names)} names for {given} nodes", where="names", hint="one name for each node is needed")
    return given


ACCEPTED = "a number, or a date such as 2024-03-01 or 2024-03-01T12:30:00+01:00"
_DATES = (631_152_000, 4_102_444_800)  # the years 1990 to 2099 in seconds
_LARGEST = 2**62  # of a time that is a whole number of 64 bits


def parse_time(text: str, where: str = "time") -> int | float:
    """A time: a number, or a date, which is in UTC unless it says otherwise.

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


def parse_times(texts: Sequence[str], where: Callable[[int], str]) -> NDArray[Any]:
    """Times of many texts: int64 where all are whole, else float64; ``where`` names the place of a text, from 0."""
    known: dict[str, int | float] = {}
    kinds = list[str]()
    for i, text in enumerate(texts):
        if text in known:
            continue
        try:
            known[text] = parse_time(text)
        except DataError as error:
            raise DataError(error.what, where=where(i), hint=error.hint) from None
        kinds.append("a number" if parse_number(text.strip()) is not None else "a date")
        if kinds[-1] != kinds[0]:
            what = f"{excerpt(text)} is {kinds[-1]}, but {excerpt(texts[0])} before it is {kinds[0]}"
            raise DataError(what, where=where(i), hint="the times in a column must be all numbers or all dates")
    whole = all(isinstance(time, int) for time in known.values())
    return np.array([known[text] for text in texts], np.int64 if whole else np.float64)


def check_times(times: Any, count: int, where: str = "times") -> NDArray[Any]:
    """Times, which may be dates or texts, as int64 where all are whole numbers, else as float64, all finite."""
    array = np.asarray(times)
    if array.dtype.kind == "U" and array.ndim == 1:
        array = parse_times(array.tolist(), lambda row: f"{where}: row {row}")
    if array.dtype.kind == "M":
        whole = array.astype("datetime64[s]")
        array = np.where(np.isnat(array), np.nan, array.astype("datetime64[us]").astype(np.int64) / 1e6)
        array = array if np.isnan(array).any() or (whole != times).any() else whole.astype(np.int64)
    if array.dtype.kind not in "fiu" or array.shape != (count,):
        what = f"the times have type {array.dtype} and shape {array.shape}"
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
    """A time for messages: the number, and the date if it counts seconds since 1970, as ``1709251200 (2024-03-01)``."""
    if not _DATES[0] <= time < _DATES[1]:
        return repr(time)
    date = datetime.fromtimestamp(time, UTC).replace(tzinfo=None)
    return f"{time!r} ({date.isoformat().removesuffix('T00:00:00')})"
