"""Edge lists as text against Python's own splitting and float()."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from subgnn.kernels.text import (
    ID_TOO_LARGE,
    MAX_FAULTS,
    NOT_A_WEIGHT,
    NOT_AN_ID,
    ONE_COLUMN,
    OTHER_COLUMNS,
    TOO_MANY_COLUMNS,
    WEIGHT_NOT_FINITE,
    ParsedEdges,
    parse_edges,
)
from tests.kernels.graphs import many

LARGEST_ID = 2**31 - 2


def parse(text: bytes) -> ParsedEdges:
    return parse_edges(np.frombuffer(text, np.uint8))


def fault_of_id(token: bytes) -> int:
    if not re.fullmatch(rb"[0-9]+", token):
        return NOT_AN_ID
    return ID_TOO_LARGE if int(token) > LARGEST_ID else 0


def fault_of_weight(token: bytes) -> int:
    try:
        return 0 if math.isfinite(float(token)) else WEIGHT_NOT_FINITE
    except ValueError:
        return NOT_A_WEIGHT


def fault_of_line(tokens: list[re.Match[bytes]], file_columns: int) -> tuple[int, int] | None:
    """The byte and kind of the first thing wrong with a line."""
    for token in tokens[:2]:
        if kind := fault_of_id(token[0]):
            return token.start(), kind
    if len(tokens) == 1:
        return tokens[0].start(), ONE_COLUMN
    if len(tokens) > 3:
        return tokens[3].start(), TOO_MANY_COLUMNS
    if file_columns not in (0, len(tokens)):
        return tokens[0].start(), OTHER_COLUMNS
    if len(tokens) == 3 and (kind := fault_of_weight(tokens[2][0])):
        return tokens[2].start(), kind
    return None


def oracle(text: bytes) -> tuple[list[tuple[int, int]], list[float], list[tuple[int, int, int]]]:
    """Edges, weights and faults, a line at a time."""
    edges, weights, faults = [], [], []
    file_columns = begin = 0
    for number, line in enumerate(text.split(b"\n"), 1):
        tokens = list(re.finditer(rb"[^ \t\r]+", line))
        if tokens and tokens[0][0][:1] not in (b"#", b"%"):
            fault = fault_of_line(tokens, file_columns)
            if fault:
                faults.append((number, begin + fault[0], fault[1]))
            else:
                file_columns = len(tokens)
                edges.append((int(tokens[0][0]), int(tokens[1][0])))
                weights.extend(float(token[0]) for token in tokens[2:])
        begin += len(line) + 1
    return edges, weights, faults


def agrees(text: bytes) -> None:
    found, (edges, weights, faults) = parse(text), oracle(text)
    assert list(zip(found.tails.tolist(), found.heads.tolist(), strict=True)) == edges
    assert found.weights.tolist() == weights
    assert [tuple(fault) for fault in found.faults.tolist()] == faults[:MAX_FAULTS]
    assert found.num_faults == len(faults)


ids = st.one_of(st.integers(0, 50), st.integers(LARGEST_ID - 2, LARGEST_ID)).map(lambda i: b"%d" % i)
bad_ids = st.sampled_from([*b"-1 +1 1.0 x 1x \xc3\xa9 0x1 2147483647".split(), b"9" * 30, b"9" * 30 + b"a"])
plain_weights = st.sampled_from(b"1 0.5 -2.25 +3 .5 7. 1e3 2.5E-4 -1e+2 0 00.10 0e400 0.0E+999 -0e310".split())
bad_weights = st.sampled_from(b"x 1e 1e+ 1.2.3 . - 1,5 --1 1e2.5 0x1 nan -inf 1e999 node i -name nano infer".split())
blanks = st.sampled_from([b" ", b"\t", b"  ", b" \t ", b"\t\t"])
line_ends = st.sampled_from([b"\n", b"\n", b"\r\n", b" \n", b"\n\n"])


@st.composite
def edge_texts(draw: st.DrawFn, *, faults: bool) -> bytes:
    """Lines of two or of three columns, with comments and blank lines, and faults where they are wanted."""
    weighted = draw(st.booleans())
    id_tokens = st.one_of(*[ids] * 9, bad_ids) if faults else ids
    weights = st.one_of(*[plain_weights] * 3, bad_weights) if faults else plain_weights
    text = b""
    for _ in range(draw(st.integers(0, 12))):
        columns = draw(st.sampled_from([1, 2, 2, 3, 3, 4])) if faults else 2 + weighted
        tokens = [draw(weights if i == 2 else id_tokens) for i in range(columns)]
        line = draw(st.sampled_from([b"", b"", b" ", b"\t"])) + tokens[0]
        for token in tokens[1:]:
            line += draw(blanks) + token
        comment = draw(st.sampled_from([b"", b"", b"", b"# 1 2", b"%x y", b"  # late"]))
        text += (comment and comment + draw(line_ends)) + line + draw(line_ends)
    return text if draw(st.booleans()) else text.rstrip(b"\r\n")


@many
@given(text=edge_texts(faults=True))
def test_text_with_faults_of_every_kind(text):
    agrees(text)


@many
@given(text=st.lists(st.sampled_from(list(b"0123 \t\r\n\n#%.e+-x\x00\xff")), max_size=60).map(bytes))
def test_any_bytes(text):
    agrees(text)


@many
@given(digits=st.integers(-(10**15) + 1, 10**15 - 1), exponent=st.integers(-22, 22), upper=st.booleans())
def test_a_weight_of_fifteen_digits_is_rounded_as_float_does(digits, exponent, upper):
    token = f"{digits}{'E' if upper else 'e'}{exponent:+d}"
    assert parse(f"0 1 {token}".encode()).weights.tolist() == [float(token)]


@many
@given(weight=st.floats(allow_nan=False, allow_infinity=False), digits=st.integers(0, 30))
def test_any_weight_is_within_a_hair_of_float(weight, digits):
    for token in (repr(weight), f"{weight:.{digits}e}", f"{weight:.{digits}f}"):
        if abs(float(token)) < 1.79e308:
            found = parse(f"0 1 {token}".encode()).weights.tolist()
            assert found == pytest.approx([float(token)], rel=1e-14, abs=1e-322), token
