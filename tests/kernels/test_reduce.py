"""Distances of components reduced to one number, against plain means and minima."""

from __future__ import annotations

from itertools import accumulate

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from subgnn.kernels.distances import Tally, reduce_table
from tests.kernels.graphs import many

hops = st.integers(-1, 40)


def reduced(distances: list[int], nearest: bool) -> tuple[float, float]:
    """Distance and fraction for the hops of a component's nodes to one anchor."""
    reaching = [d for d in distances if d >= 0]
    if not reaching:
        return 0.0, 0.0
    if nearest:
        return float(min(reaching)), 1.0
    return float(np.float32(sum(reaching) / len(reaching))), float(np.float32(len(reaching) / len(distances)))


def offsets(lengths: list[int]) -> np.ndarray:
    return np.array([0, *accumulate(lengths)], np.int64)


@many
@given(nearest=st.booleans(), data=st.data())
def test_shared_anchors(nearest: bool, data: st.DataObject) -> None:
    nodes, anchors = data.draw(st.integers(1, 12)), data.draw(st.integers(0, 5))
    row = st.lists(hops, min_size=anchors, max_size=anchors)
    table = np.array(data.draw(st.lists(row, min_size=nodes, max_size=nodes)), np.int32).reshape(nodes, anchors)
    components = data.draw(st.lists(st.lists(st.integers(0, nodes - 1), min_size=1, max_size=8), max_size=6))
    slots = np.array([slot for component in components for slot in component], np.int64)
    distance, fraction = reduce_table(table, slots, offsets([len(c) for c in components]), nearest=nearest)
    wanted = [[reduced(table[component, a].tolist(), nearest) for a in range(anchors)] for component in components]
    assert distance.tolist() == [[d for d, _ in row] for row in wanted]
    assert fraction.tolist() == [[f for _, f in row] for row in wanted]


@many
@given(nearest=st.booleans(), data=st.data())
def test_anchors_of_a_component_s_own(nearest: bool, data: st.DataObject) -> None:
    shapes = data.draw(st.lists(st.tuples(st.integers(1, 6), st.integers(0, 4)), max_size=6))
    runs = [data.draw(st.lists(hops, min_size=size, max_size=size)) for size, count in shapes for _ in range(count)]
    flat = np.array([d for run in runs for d in run], np.int32)
    later = np.array(data.draw(st.lists(st.booleans(), min_size=len(flat), max_size=len(flat))), np.bool_)
    sizes, counts = (np.array([shape[i] for shape in shapes], np.int64) for i in range(2))
    tally = Tally.zeros(len(runs))
    tally.add_runs(flat, later, sizes, counts, first=0)
    # What was left out of the runs comes pair by pair, in any order.
    slots = np.repeat(np.arange(len(runs)), [len(run) for run in runs])
    tally.add_pairs(flat[later][::-1], slots[later][::-1])
    distance, fraction = tally.measures(np.repeat(sizes, counts), nearest=nearest)
    wanted = [reduced(run, nearest) for run in runs]
    assert distance.tolist() == [d for d, _ in wanted]
    assert fraction.tolist() == [f for _, f in wanted]
