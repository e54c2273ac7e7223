"""The layout of subgraphs for pictures: nodes, roles, edges and places."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from subgnn.data.graph import Graph
from subgnn.data.layout import RING, border_links, lay_out, stress_layout


def test_a_drawing_by_hand() -> None:
    # 0 - 1   2, each with a neighbour of its own outside, and 5 is a neighbour of both pieces.
    graph = Graph.from_edges([0, 0, 2, 1, 2], [1, 3, 4, 5, 5])
    drawn = lay_out(graph, np.array([0, 1, 2]))
    assert drawn.nodes.tolist() == [0, 1, 2, 3, 4, 5]
    assert drawn.roles == ("inside",) * 3 + ("border",) * 3
    assert drawn.components.tolist() == [0, 0, 1, -1, -1, -1]
    assert drawn.links.tolist() == [0, 0, 0, 1, 1, 2]
    assert drawn.edges.tolist() == [[0, 1], [0, 3], [1, 5], [2, 4], [2, 5]]
    assert drawn.ends_outside.tolist() == [0, 1, 1, 1, 1]
    assert (drawn.size, drawn.num_components, drawn.num_border, drawn.num_inside_edges) == (3, 2, 3, 1)
    assert drawn.summary() == "3 nodes, 2 components, 3 border nodes"
    assert np.linalg.norm(drawn.positions[:3], axis=1).max() <= 1 + 1e-9
    assert_allclose(np.linalg.norm(drawn.positions[3:], axis=1), RING)


def test_the_same_subgraph_has_the_same_layout() -> None:
    ends = np.random.default_rng(0).integers(0, 40, (2, 90))
    graph = Graph.from_edges(*np.unique(np.sort(ends[:, ends[0] != ends[1]], axis=0), axis=1), num_nodes=40)
    one, two = (lay_out(graph, np.arange(15), max_border=5) for _ in range(2))
    assert_array_equal(one.positions, two.positions)
    assert one.nodes.tolist() == two.nodes.tolist()
    left = np.setdiff1d(border_links(graph, np.arange(15))[0], one.nodes)
    links = dict(zip(*map(np.ndarray.tolist, border_links(graph, np.arange(15))), strict=True))
    assert min(one.links[15:]) >= max(links[v] for v in left.tolist())


def test_a_path_is_laid_out_straight_and_pieces_apart() -> None:
    edges = np.array([[i, i + 1] for i in range(5)])
    at = stress_layout(6, edges)
    steps = np.linalg.norm(np.diff(at, axis=0), axis=1)
    assert_allclose(steps, steps.mean(), rtol=0.05)
    assert_allclose(np.linalg.norm(at[0] - at[5]), steps.sum(), rtol=0.02)
    apart = stress_layout(6, np.array([[0, 1], [1, 2], [0, 2], [3, 4], [4, 5], [3, 5]]))
    inside = np.linalg.norm(apart[:3] - apart[:3].mean(axis=0), axis=1).max()
    assert np.linalg.norm(apart[:3].mean(axis=0) - apart[3:].mean(axis=0)) > 2 * inside


@pytest.mark.parametrize("n", [0, 1, 2, 3, 25])
def test_every_graph_has_a_layout_in_the_unit_disk(n: int) -> None:
    complete = np.array([[i, j] for i in range(n) for j in range(i)], np.int64).reshape(-1, 2)
    for edges in (complete, np.empty((0, 2), np.int64)):
        at = stress_layout(n, edges)
        assert at.shape == (n, 2)
        assert np.isfinite(at).all()
        assert (np.linalg.norm(at, axis=1) <= 1 + 1e-9).all()
        if n > 1:
            apart = np.linalg.norm(at[:, None] - at[None], axis=2)[~np.eye(n, dtype=bool)]
            assert apart.min() > 0.05
