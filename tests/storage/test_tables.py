"""Tables that are written and read again by other libraries."""

import csv
import io
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from subgnn.storage.tables import Column, open_output, write_table

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5)
SEPARATING = st.sampled_from(['a"b', "a\tb", "a,b", "a\nb", "a\rb"])
ROWS = st.lists(st.tuples(TEXTS | SEPARATING, st.none() | st.integers(-9, 9)))
COLUMNS = [Column("a text"), Column("count", int), Column("p", float), Column("vector", float, 2)]


def written(form, parts, columns=COLUMNS):
    file = io.BytesIO()
    write_table(file, form, columns, parts)
    return file.getvalue()


def part(rows):
    """Columns of some rows, with numbers that follow from their places."""
    numbers = [i / 3 for i in range(len(rows))]
    vectors = np.array([[n, -n] for n in numbers], np.float32).reshape(-1, 2)
    return [[text for text, _ in rows], [count for _, count in rows], numbers, vectors]


@settings(max_examples=40)
@given(ROWS, ROWS)
def test_every_format_gives_the_same_rows(first, second):
    parts, rows = [part(first), part(second)], [*first, *second]
    numbers = [*part(first)[2], *part(second)[2]]
    lines = [json.loads(line) for line in written("jsonl", parts).splitlines()]
    assert [(line["a text"], line["count"]) for line in lines] == rows
    for line, p in zip(lines, numbers, strict=True):
        np.testing.assert_allclose([line["p"], *line["vector"]], [p, p, -p], rtol=1e-5)
    table = parquet.read_table(io.BytesIO(written("parquet", parts))).to_pydict()
    assert list(zip(table["a text"], table["count"], strict=True)) == rows
    np.testing.assert_array_equal(np.array(table["p"], np.float32), np.array(numbers, np.float32))
    np.testing.assert_allclose(np.reshape(table["vector"], (-1, 2))[:, 1], [-n for n in numbers], rtol=1e-6)
    for form, delimiter in (("csv", ","), ("tsv", "\t")):
        text = io.StringIO(written(form, parts).decode(), newline="")
        header, *cells = csv.reader(text, delimiter=delimiter)
        assert header == ["a text", "count", "p", "vector_0", "vector_1"]
        assert [row[:2] for row in cells] == [[text, "" if count is None else str(count)] for text, count in rows]
        np.testing.assert_allclose([float(row[4]) for row in cells], [-n for n in numbers], rtol=1e-5)


def test_numbers_that_are_missing_or_not_finite():
    columns, parts = [Column("p", float)], [[[None, math.nan, 1 / 3]]]
    assert written("csv", parts, columns) == b'p\n""\nnan\n0.333333\n'
    assert written("jsonl", parts, columns) == b'{"p": null}\n{"p": null}\n{"p": 0.333333}\n'


def test_a_file_is_written_whole_or_not_at_all(tmp_path, capsysbinary):
    out = tmp_path / "a.csv"
    with pytest.raises(ValueError, match="format code"), open_output(out) as file:
        write_table(file, "csv", [Column("p", float)], [[[0.5]], [["text"]]])
    assert not list(tmp_path.iterdir())
    for target in (out, type(out)("-")):
        with open_output(target) as file:
            file.write(b"done")
    assert out.read_bytes() == b"done"
    assert capsysbinary.readouterr().out == b"done"


FORMULAS = ["=1+1", "+cmd", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "\uff1d1+1", "-", "--1", "-1-2", "+1e", "-x"]
HARMLESS = ["", "a=1", "-1.5", "+2", "-1e-7", "-.5", "3.", "GENE-1", "#1", "'=1", "a\r=1", "a\n=1"]


@pytest.mark.parametrize(("form", "delimiter"), [("csv", ","), ("tsv", "\t")])
def test_no_cell_is_a_formula_for_a_spreadsheet(form, delimiter):
    file = io.BytesIO()
    columns = [Column("=a"), Column("-1 or so", float), Column("n", int)]
    texts = FORMULAS + HARMLESS
    parts = [[texts, [-0.5] * len(texts), [-3] * len(texts)]]
    write_table(file, form, columns, parts, excel_safe=True)
    header, *rows = csv.reader(io.StringIO(file.getvalue().decode(), newline=""), delimiter=delimiter)
    assert header == ["'=a", "'-1 or so", "n"]
    assert [row[0] for row in rows] == [f"'{text}" for text in FORMULAS] + HARMLESS
    assert {tuple(row[1:]) for row in rows} == {("-0.5", "-3")}
    file = io.BytesIO()
    write_table(file, form, columns, parts)
    _, *rows = csv.reader(io.StringIO(file.getvalue().decode(), newline=""), delimiter=delimiter)
    assert [row[0] for row in rows] == texts
