"""Parse edge lists from bytes: ``u v`` or ``u v weight`` on each line.

Blank lines and lines that begin with ``#`` or ``%`` are ignored. A bad line does not stop the parser: its number, place
and kind are recorded, up to a limit, so that a checker can list them all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from subgnn.kernels.arrays import Array, compiled, frozen

MAX_FAULTS = 100

ONE_COLUMN, TOO_MANY_COLUMNS, OTHER_COLUMNS, NOT_AN_ID, ID_TOO_LARGE, NOT_A_WEIGHT, WEIGHT_NOT_FINITE = range(1, 8)

_NEWLINE, _SPACE, _TAB, _RETURN = np.uint8(10), np.uint8(32), np.uint8(9), np.uint8(13)
_HASH, _PERCENT, _ZERO, _NINE = np.uint8(35), np.uint8(37), np.uint8(48), np.uint8(57)
_PLUS, _MINUS, _POINT, _E, _e = np.uint8(43), np.uint8(45), np.uint8(46), np.uint8(69), np.uint8(101)
_NAN, _INF, _INFINITY = (np.frombuffer(word, np.uint8) for word in (b"nan", b"inf", b"infinity"))
_LARGEST_ID = 2**31 - 2


@dataclass(frozen=True, slots=True, eq=False)
class ParsedEdges:
    """The edges of a text (weights are empty without a third column), and its faulty lines.

    faults has at most :data:`MAX_FAULTS` rows: line from 1, byte where the fault is, kind. ``columns`` is how many the
    edges have, 0 if there are none; ``num_lines`` counts the ends of lines.
    """

    tails: Array
    heads: Array
    weights: Array
    faults: Array
    num_faults: int
    columns: int
    num_lines: int


@compiled
def _blank(byte: np.uint8) -> bool:
    return byte == _SPACE or byte == _TAB or byte == _RETURN


@compiled
def _count_lines(text: Array) -> int:
    lines = 0
    for i in range(len(text)):
        lines += text[i] == _NEWLINE
    return lines + 1


@compiled
def _parse_id(text: Array, begin: int, end: int) -> int:
    value: Any = 0
    for i in range(begin, end):
        if text[i] < _ZERO or text[i] > _NINE:
            return -NOT_AN_ID
        value = value * 10 + np.int64(text[i] - _ZERO)
        if value > _LARGEST_ID:
            # A fault of another kind if a later byte is not a digit.
            for j in range(i + 1, end):
                if text[j] < _ZERO or text[j] > _NINE:
                    return -NOT_AN_ID
            return -ID_TOO_LARGE
    return value


@compiled
def _is_word(text: Array, begin: int, end: int, word: Array) -> bool:
    if end - begin != len(word):
        return False
    for i in range(len(word)):
        if text[begin + i] | 32 != word[i]:
            return False
    return True


@compiled
def _parse_weight(text: Array, begin: int, end: int) -> float:
    """A decimal number, or NaN if it is not one; the words nan and inf are infinite here."""
    i = begin
    negative = text[i] == _MINUS
    if text[i] == _MINUS or text[i] == _PLUS:
        i += 1
    if _is_word(text, i, end, _NAN) or _is_word(text, i, end, _INF) or _is_word(text, i, end, _INFINITY):
        return np.inf
    mantissa: Any = 0
    digits, exponent = 0, 0
    seen_point = False
    while i < end and (text[i] == _POINT or _ZERO <= text[i] <= _NINE):
        if text[i] == _POINT:
            if seen_point:
                return np.nan
            seen_point = True
        else:
            digits += 1
            if mantissa < 100000000000000000:
                mantissa = mantissa * 10 + np.int64(text[i] - _ZERO)
                exponent -= seen_point
            else:
                exponent += not seen_point
        i += 1
    if digits == 0:
        return np.nan
    if i < end and (text[i] == _E or text[i] == _e):
        i += 1
        sign = 1
        if i < end and (text[i] == _MINUS or text[i] == _PLUS):
            sign = -1 if text[i] == _MINUS else 1
            i += 1
        if i == end:
            return np.nan
        power: Any = 0
        while i < end and _ZERO <= text[i] <= _NINE:
            power = min(power * 10 + np.int64(text[i] - _ZERO), 100000)
            i += 1
        exponent += sign * power
    if i < end:
        return np.nan
    if mantissa == 0:
        return -0.0 if negative else 0.0
    value = np.float64(mantissa)
    # Powers of ten up to 22 are exact, so the usual weight is rounded once.
    if exponent < 0:
        value = value / 10.0 ** min(-exponent, 300)
        if exponent < -300:
            value = value / 10.0 ** min(-exponent - 300, 300)
    elif exponent > 0:
        value = value * 10.0 ** min(exponent, 400)
    return -value if negative else value


@compiled
def _parse(
    text: Array, file_columns: int, tails: Array, heads: Array, weights: Array, faults: Array
) -> tuple[int, int, int]:
    """Returns the number of edges, of faults, and of columns (0 for a file without edges)."""
    size = len(text)
    edges, num_faults = 0, 0
    line, i = 0, 0
    begin, end = np.zeros(4, np.int64), np.zeros(4, np.int64)
    while i < size:
        line += 1
        columns = 0
        comment = False
        while i < size and text[i] != _NEWLINE:
            if _blank(text[i]):
                i += 1
                continue
            if columns == 0 and (text[i] == _HASH or text[i] == _PERCENT):
                comment = True
                while i < size and text[i] != _NEWLINE:
                    i += 1
                break
            start = i
            while i < size and text[i] != _NEWLINE and not _blank(text[i]):
                i += 1
            if columns < len(begin):
                begin[columns], end[columns] = start, i
            columns += 1
        i += 1
        if comment or columns == 0:
            continue
        kind, place = 0, begin[0]
        tail, head, weight = 0, 0, 0.0
        tail = _parse_id(text, begin[0], end[0])
        if tail < 0:
            kind = -tail
        elif columns == 1:
            kind = ONE_COLUMN
        else:
            head = _parse_id(text, begin[1], end[1])
            if head < 0:
                kind, place = -head, begin[1]
            elif columns > 3:
                kind, place = TOO_MANY_COLUMNS, begin[3]
            elif file_columns not in (0, columns):
                kind = OTHER_COLUMNS
            elif columns == 3:
                weight = _parse_weight(text, begin[2], end[2])
                if not np.isfinite(weight):
                    kind, place = (NOT_A_WEIGHT if np.isnan(weight) else WEIGHT_NOT_FINITE), begin[2]
        if kind:
            if num_faults < len(faults):
                faults[num_faults, 0], faults[num_faults, 1], faults[num_faults, 2] = line, place, kind
            num_faults += 1
            continue
        if file_columns == 0:
            file_columns = columns
        tails[edges], heads[edges] = tail, head
        if columns == 3:
            weights[edges] = weight
        edges += 1
    return edges, num_faults, file_columns


def parse_edges(text: Array, columns: int = 0) -> ParsedEdges:
    r"""Parse the bytes of an edge list, or whole lines of it; earlier edges had ``columns`` columns (0 if none)."""
    text = frozen(text, np.uint8)
    lines = _count_lines(text)
    tails, heads = np.empty(lines, np.int32), np.empty(lines, np.int32)
    # The operating system gives memory to pages that are written to: a file without weights costs nothing here.
    weights = np.empty(lines, np.float64)
    faults = np.zeros((MAX_FAULTS, 3), np.int64)
    edges, num_faults, columns = _parse(text, columns, tails, heads, weights, faults)
    return ParsedEdges(
        tails=tails[:edges],
        heads=heads[:edges],
        weights=weights[:edges] if columns == 3 else weights[:0],
        faults=faults[: min(num_faults, MAX_FAULTS)],
        num_faults=num_faults,
        columns=columns,
        num_lines=lines - 1,
    )
