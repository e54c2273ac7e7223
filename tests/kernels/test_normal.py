"""Random vectors of nodes against the normal distribution."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest

from subgnn.kernels.draws import normal_rows, open_stream, uniform_unit
from tests.kernels.chance import LEAST_P
from tests.kernels.graphs import many

nodes = st.lists(st.integers(0, 2**31 - 2), max_size=8)


def box_muller(key: int, node: int, dim: int) -> list[float]:
    """The vector of one node, two numbers at a time."""
    state, out = open_stream(np.uint64(key), node), []
    while len(out) < dim:
        radius = math.sqrt(-2.0 * math.log(1.0 - uniform_unit(state)))
        angle = 2.0 * math.pi * uniform_unit(state)
        out += [radius * math.cos(angle), radius * math.sin(angle)]
    return out[:dim]


@many
@given(key=st.integers(0, 2**64 - 1), nodes=nodes, dim=st.integers(0, 9))
def test_rows_are_those_of_each_node_alone(key: int, nodes: list[int], dim: int) -> None:
    found = normal_rows(key, np.array(nodes, np.int64), dim)
    assert found.dtype == np.float32
    assert found.shape == (len(nodes), dim)
    for node, row in zip(nodes, found, strict=True):
        assert row.tolist() == pytest.approx(box_muller(key, node, dim), rel=1e-6, abs=1e-6)
        assert row.tobytes() == normal_rows(key, np.array([node]), dim)[0].tobytes()


def test_numbers_are_normal_and_columns_and_rows_independent() -> None:
    found = normal_rows(3, np.arange(20_000), 6).astype(np.float64)
    for column in found.T:
        assert kstest(column, "norm").pvalue > LEAST_P
    correlations = np.corrcoef(found.T) - np.eye(6)
    assert np.abs(correlations).max() < 4.5 / math.sqrt(20_000)
    assert abs(np.corrcoef(found[:-1, 0], found[1:, 0])[0, 1]) < 4.5 / math.sqrt(20_000)


def test_another_key_gives_other_rows() -> None:
    first, second = (normal_rows(key, np.arange(100), 4) for key in (0, 1))
    assert not (first == second).any()
