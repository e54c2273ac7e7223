"""Edge lists as text, read in pieces, against Python's own splitting and float()."""

import math
import re
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from subgnn.data.dataset import Problems
from subgnn.data.formats import edge_list
from tests.kernels.graphs import many

LARGEST_ID = 2**31 - 2


def parse(text: bytes, cut: int = 0) -> tuple[list[tuple[int, int]], list[float], list[tuple[str, str]]]:
    """Edges, weights, and the line and message of each fault, of a text in two chunks."""
    problems = Problems()
    cut = text.rfind(b"\n", 0, cut) + 1
    chunks = [(part, 0) for part in (text[:cut], text[cut:])]
    with mock.patch.object(edge_list, "read_chunks", return_value=chunks):
        found = edge_list.read_edge_list(Path("x"), 0, problems)
    faults = [(error.where, error.what) for error in problems.errors]
    weights = [] if found.weights is None else found.weights.tolist()
    return list(zip(found.tails.tolist(), found.heads.tolist(), strict=True)), weights, faults


def fault_of_line(tokens: list[bytes], file_columns: int) -> str:
    """The first thing wrong with a line."""
    for token in tokens[:2]:
        if not re.fullmatch(rb"[0-9]+", token):
            return "is not an integer id"
        if int(token) > LARGEST_ID:
            return "is too large"
    if len(tokens) == 1:
        return "only one column"
    if len(tokens) > 3:
        return "more than three columns"
    if file_columns not in (0, len(tokens)):
        return "some have none"
    for token in tokens[2:]:
        try:
            weight = float(token.replace(b"_", b"x"))
        except ValueError:
            return "is not a number"
        if not math.isfinite(weight):
            return "is not finite"
        if abs(weight) > np.finfo(np.float32).max:
            return "is too large"
    return ""


def agrees(text: bytes, cut: int = 0) -> None:
    found_edges, found_weights, found_faults = parse(text, cut)
    edges, weights, faults = [], [], []
    file_columns = 0
    for number, line in enumerate(text.split(b"\n"), 1):
        tokens = re.findall(rb"[^ \t\r]+", line)
        if tokens and tokens[0][:1] not in (b"#", b"%"):
            if fault := fault_of_line(tokens, file_columns):
                faults.append((f"x:{number}", fault))
            else:
                file_columns = len(tokens)
                edges.append((int(tokens[0]), int(tokens[1])))
                weights.extend(map(float, tokens[2:]))
    assert [where for where, _ in found_faults] == [where for where, _ in faults]
    assert all(wanted in what for (_, what), (_, wanted) in zip(found_faults, faults, strict=True))
    if not faults:
        assert found_edges == edges
        assert found_weights == pytest.approx(weights, rel=1e-14, abs=1e-322)


ids = st.one_of(st.integers(0, 50), st.integers(LARGEST_ID - 2, LARGEST_ID)).map(lambda i: b"%d" % i)
bad_ids = st.sampled_from([*b"-1 +1 1.0 x 1x \xc3\xa9 0x1 True 2147483647".split(), b"9" * 30, b"9" * 30 + b"a"])
plain_weights = st.sampled_from(b"1 0.5 -2.25 +3 .5 7. 1e3 2.5E-4 -1e+2 0 00.10 0e400 0.0E+999 -0e310".split())
bad_weights = st.sampled_from(b"x 1e 1e+ 1.2.3 . - 1,5 --1 1e2.5 0x1 nan -inf 1e999 1e39 node i -name".split())
blanks = st.sampled_from([b" ", b"\t", b"  ", b" \t ", b"\t\t"])
line_ends = st.sampled_from([b"\n", b"\n", b"\r\n", b" \n", b"\n\n"])


@st.composite
def edge_texts(draw: st.DrawFn) -> bytes:
    """Lines of two or of three columns, with comments and blank lines, and perhaps with faults."""
    weighted, faults = draw(st.booleans()), draw(st.booleans())
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
@given(text=edge_texts(), cut=st.integers(0, 60))
def test_text_with_and_without_faults(text, cut):
    agrees(text, cut)


@many
@given(text=st.lists(st.sampled_from(list(b"0123 \t\r\n\n#%.e+-x\x00\xff")), max_size=60).map(bytes))
def test_any_bytes(text):
    agrees(text)


@many
@given(weight=st.floats(-1e38, 1e38), digits=st.integers(0, 30))
def test_any_weight_is_within_a_hair_of_float(weight, digits):
    for token in (repr(weight), f"{weight:.{digits}e}", f"{weight:.{digits}f}"):
        agrees(f"0 1 {token}".encode())
