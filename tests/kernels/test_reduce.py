"""Distances of components reduced to one number, against plain means and minima."""

from __future__ import annotations

from itertools import accumulate

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from subgnn.kernels.reduce import reduce_pairs, reduce_table
from subgnn.ragged import Ragged
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
    tables = [
        data.draw(st.lists(st.lists(hops, min_size=anchors, max_size=anchors), min_size=nodes, max_size=nodes))
        for nodes, anchors in shapes
    ]
    # A turned component has its distances by anchor, the others by node.
    turned = data.draw(st.lists(st.booleans(), min_size=len(shapes), max_size=len(shapes)))
    runs = [
        [[row[a] for row in table] for a in range(anchors)] if turn else table
        for table, (_, anchors), turn in zip(tables, shapes, turned, strict=True)
    ]
    flat = [run for table in runs for run in table]
    distance, fraction = reduce_pairs(
        np.array([d for run in flat for d in run], np.int32),
        Ragged.from_lengths(offsets([len(run) for run in flat])[:-1], [len(table) for table in runs]),
        sizes=np.array([nodes for nodes, _ in shapes], np.int64),
        anchors=offsets([anchors for _, anchors in shapes]),
        turned=np.array(turned, np.bool_),
        nearest=nearest,
    )
    wanted = [
        reduced([row[a] for row in table], nearest)
        for table, (_, anchors) in zip(tables, shapes, strict=True)
        for a in range(anchors)
    ]
    assert distance.tolist() == [d for d, _ in wanted]
    assert fraction.tolist() == [f for _, f in wanted]
