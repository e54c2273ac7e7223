"""Nearest vectors, beside all pairs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from subgnn import nearest_vectors
from subgnn.errors import DataError, UserError
from subgnn.inference import search
from subgnn.inference.search import Nearest


def slow_distance(query, known, on_a_line, mean):
    """One distance, by its definition, in 64 bits."""
    q, k = np.asarray(query, float), np.asarray(known, float)
    if on_a_line:
        return float(np.sqrt(sum((a - b) ** 2 for a, b in zip(q, k, strict=True))))
    q, k = q - mean, k - mean
    lengths = np.sqrt(q @ q) * np.sqrt(k @ k)
    return float(1 - (q @ k / lengths if lengths else 0.0))


def assert_nearest(found, queries, known, on_a_line, top):
    """The distances are those of the pairs, in order, and no other vector is nearer."""
    present = [i for i, row in enumerate(known) if not np.isnan(row).any()]
    mean = np.mean([np.asarray(known[i], float) for i in present], axis=0) if present else 0
    for query, places, distances in zip(queries, *found, strict=True):
        every = {i: slow_distance(query, known[i], on_a_line, mean) for i in present}
        np.testing.assert_allclose(distances, [every[i] for i in places], atol=1e-6, rtol=1e-6)
        np.testing.assert_allclose(distances, sorted(every.values())[:top], atol=1e-6, rtol=1e-6)
        assert len(set(places.tolist())) == len(places) == min(top, len(present))


# Few values, so that vectors are equal, opposite or zero.
NUMBERS = st.sampled_from([-1.0, 0.0, 0.5, 1.0, 3.0])


@settings(max_examples=60)
@given(st.data(), st.integers(1, 4), st.integers(1, 9))
def test_all_pairs(data, width, top):
    vectors = st.lists(st.lists(NUMBERS, min_size=width, max_size=width), min_size=1, max_size=12)
    known, queries = np.array(data.draw(vectors), np.float32), np.array(data.draw(vectors), np.float32)
    missing = data.draw(st.sets(st.integers(0, len(known) - 1), max_size=3))
    known[list(missing), 0] = np.nan
    finder = Nearest(known)
    found = finder.find(queries, top)
    assert_nearest(found, queries, known, finder.on_a_line, top)
    ties = [(d, p) for row in zip(*found[::-1], strict=True) for d, p in [(row[0].tolist(), row[1].tolist())]]
    for distances, places in ties:
        pairs = list(zip(distances, places, strict=True))
        assert pairs == sorted(pairs)  # equal distances by place


def test_neither_memory_nor_other_queries_change_an_answer(monkeypatch):
    rng = np.random.default_rng(0)
    known, queries = rng.normal(size=(300, 7)), rng.normal(size=(40, 7))
    whole = Nearest(known)
    expected = whole.find(queries, 5)
    monkeypatch.setattr(search, "share", lambda _: 8 * 300 * 3)
    small = Nearest(known).find(queries, 5)
    for ours, theirs in zip(small, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    alone = [whole.find(queries[i : i + 1], 5) for i in range(40)]
    np.testing.assert_array_equal(np.concatenate([places for places, _ in alone]), expected[0])
    np.testing.assert_array_equal(np.concatenate([values for _, values in alone]), expected[1])


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_small_and_large_numbers(scale):
    rng = np.random.default_rng(1)
    known, queries = rng.normal(size=(50, 5)), rng.normal(size=(9, 5))
    plain = Nearest(known.astype(np.float32)).find(queries.astype(np.float32), 6)
    known, queries = ((scale * vectors).astype(np.float32) for vectors in (known, queries))
    scaled = Nearest(known).find(queries, 6)
    np.testing.assert_array_equal(plain[0], scaled[0])


def test_queries_without_a_vector_find_nothing():
    places, distances = nearest_vectors([[1.0, 0.0], [np.nan, 1.0]], [[0.0, 1.0], [1.0, 1.0]], top=5)
    assert places.tolist() == [[1, 0], [-1, -1]]
    assert np.isnan(distances[1]).all()
    assert nearest_vectors(np.eye(2), np.full((3, 2), np.nan))[0].shape == (2, 0)


@pytest.mark.parametrize(
    ("queries", "known", "options", "message"),
    [
        (np.eye(2), np.eye(3), {}, "queries: the vectors have 2 numbers, but the known ones have 3; use"),
        (np.eye(2), np.eye(2), {"top": 0}, "top: cannot find 0 neighbours; accepted: 1 or more"),
        (np.eye(2), [[np.inf, 1.0]], {}, "known vectors: row 0: a number is infinite in 32 bits"),
        ([[1e300, 1.0]], np.eye(2), {}, "queries: row 0: a number is infinite in 32 bits"),
        (np.zeros(2), np.eye(2), {}, r"queries: got an array of shape \(2,\) and type float64"),
        (np.eye(2), np.array([["a", "b"]]), {}, "known vectors: got an array of shape"),
    ],
)
def test_wrong_vectors_are_refused(queries, known, options, message):
    with pytest.raises((DataError, UserError), match=message):
        nearest_vectors(queries, known, **options)


@pytest.mark.parametrize(
    ("known", "on_a_line"),
    [
        ([[1.7, 0.1], [1.1, 0.7], [0.4, 1.4]], True),
        ([[0, 6.0], [0, 2.0], [0, -1.0]], True),
        ([[1.0], [2.0], [5.0]], True),
        ([[1.0, 0.0], [0.0, 2.0], [3.0, 3.0]], False),
        (np.eye(3), False),
    ],
)
def test_vectors_on_a_line_are_known_as_such(known, on_a_line):
    assert Nearest(np.array(known)).on_a_line == on_a_line
