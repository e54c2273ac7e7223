"""Hops to near anchors, against networkx, whatever may be looked at."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from subgnn.kernels.nearby_distances import UNBOUNDED, near_hops
from tests.kernels.graphs import SmallGraph, graphs_with_sets, many, ragged


def pairs_of(graph: SmallGraph, sets: list[list[int]], anchors: list[list[int]]) -> list[int | None]:
    """Hops for each set, anchor and member; None where there is no path."""
    hops = dict(nx.all_pairs_shortest_path_length(graph.networkx))
    return [hops[u].get(a) for nodes, row in zip(sets, anchors, strict=True) for a in row for u in nodes]


@many
@given(
    case=graphs_with_sets(), cutoff=st.integers(2, 5), cap=st.sampled_from([1, 2, 4, 9, 1000]), seed=st.integers(0, 9)
)
def test_settled_hops_are_exact_and_others_bounds(case, cutoff, cap, seed):
    graph, sets = case
    n, rng = graph.networkx.number_of_nodes(), np.random.default_rng(seed)
    anchors = [rng.integers(0, n, rng.integers(0, 5)).tolist() for _ in sets]
    hops, unsettled = near_hops(*graph.csr, ragged(sets), ragged(anchors), cutoff=cutoff, cap=cap)
    wanted = pairs_of(graph, sets, anchors)
    assert len(hops) == len(unsettled) == len(wanted)
    for found, left, true in zip(hops.tolist(), unsettled.tolist(), wanted, strict=True):
        if not left:
            assert found == (-1 if true is None else true)
        else:
            assert found == UNBOUNDED or (true is not None and found >= true)
            # With room to look around, only what is beyond the cut-off stays open.
            assert cap < 1000 or true is None or true > cutoff


@many
@given(case=graphs_with_sets())
def test_anchors_at_the_border_of_a_small_component_are_settled_by_rows(case):
    graph, sets = case
    compact = [s for s in sets if s and nx.is_connected(graph.networkx.subgraph(s))]
    compact = [s for s in compact if nx.diameter(graph.networkx.subgraph(s)) <= 2]
    border = [sorted({v for u in s for v in graph.networkx[u]} - set(s)) for s in compact]
    hops, unsettled = near_hops(*graph.csr, ragged(compact), ragged(border), cutoff=2, cap=1000)
    assert not unsettled.any()
    assert hops.tolist() == pairs_of(graph, compact, border)


@pytest.mark.parametrize(("from_hub", "cap"), [(False, 20), (True, 20), (False, 3)])
def test_a_hub_costs_no_more_than_its_row_is_looked_up(from_hub, cap):
    # Hub 0 has leaves 1..100; the path 100 - 101 - 102 - 103 hangs on the last one.
    edges = [(0, leaf) for leaf in range(1, 101)] + [(100, 101), (101, 102), (102, 103)]
    graph = SmallGraph(104, tuple(edges))
    ends = ([[0]], [[103]]) if from_hub else ([[103]], [[0]])
    hops, unsettled = near_hops(*graph.csr, *(ragged(end) for end in ends), cutoff=9, cap=cap)
    # Three edges are not enough to get from 103 to the hub's row, and the hub's own row is longer than any cap here.
    if cap == 3:
        assert unsettled.tolist() == [True]
    else:
        assert (hops.tolist(), unsettled.tolist()) == ([4], [False])
