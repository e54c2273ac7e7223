import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from subgnn import DataError, DataWarning, Graph, NodeNames
from subgnn.data.values import MAX_NODES, check_features, plausible_nodes

PAIRS = st.tuples(st.integers(0, 6), st.integers(0, 6)).filter(lambda e: e[0] != e[1])
PAIRS = st.lists(PAIRS, max_size=15, unique=True)


def rows(graph):
    return [graph.neighbors_of(v).tolist() for v in range(graph.num_nodes)]


def entries(graph):
    """Every stored entry with its weight."""
    tails = np.repeat(np.arange(graph.num_nodes), np.diff(graph.offsets))
    return dict(zip(zip(tails.tolist(), graph.neighbors.tolist(), strict=True), graph.weights.tolist(), strict=True))


def test_undirected_graph_by_hand():
    graph = Graph.from_edges([3, 0, 0], [0, 2, 1])
    assert rows(graph) == [[1, 2, 3], [0], [0], [0]]
    assert (graph.num_nodes, graph.num_edges, graph.directed) == (4, 3, False)
    assert graph.density == 3 / 6
    assert graph.offsets.dtype == np.int64
    assert graph.neighbors.dtype == np.int32
    assert graph.weights is graph.features is graph.names is None


@given(PAIRS, st.booleans())
def test_rows_are_sorted_sets_of_neighbours(pairs, directed):
    if not directed:
        pairs = [(u, v) for u, v in pairs if u < v]
    graph = Graph.from_edges([u for u, _ in pairs], [v for _, v in pairs], num_nodes=7, directed=directed)
    expected = [set() for _ in range(7)]
    for u, v in pairs:
        expected[u].add(v)
        if not directed:
            expected[v].add(u)
    assert rows(graph) == [sorted(row) for row in expected]
    tails, heads, _ = graph.edges()
    assert sorted(zip(tails.tolist(), heads.tolist(), strict=True)) == sorted(pairs)


def test_loops_and_repeats_are_dropped_counted_and_warned_of():
    with pytest.warns(DataWarning, match=r"^dropped 2 self loops and 3 repeated edges$"):
        graph = Graph.from_edges([0, 1, 1, 0, 0, 1, 2], [1, 1, 2, 1, 1, 2, 2])
    assert rows(graph) == [[1], [0, 2], [1]]
    assert (graph.dropped.self_loops, graph.dropped.duplicates) == (2, 3)


def test_the_first_weight_is_kept_in_both_rows():
    with pytest.warns(DataWarning) as told:
        graph = Graph.from_edges([1, 0, 0, 1], [0, 1, 1, 2], weights=[5, 7, 9, 2])
    assert [str(warning.message) for warning in told] == [
        "dropped 1 repeated edge",
        "2 repeated edges have different weights; the first is kept ('0' - '1': 5, not 7); "
        "to join them, pass repeated='sum' (or mean, max, last, count)",
    ]
    assert graph.weights.dtype == np.float32
    assert entries(graph) == {(0, 1): 5, (1, 0): 5, (1, 2): 2, (2, 1): 2}


def test_reverse():
    graph = Graph.from_edges([0, 0, 2], [1, 2, 1], weights=[1, 2, 3], directed=True)
    back = graph.reverse()
    assert rows(back) == [[], [0, 2], [0]]
    assert entries(back) == {(1, 0): 1, (2, 0): 2, (1, 2): 3}
    assert back.directed
    assert back.content_hash != graph.content_hash
    assert back.reverse().content_hash == graph.content_hash
    undirected = Graph.from_edges([0], [1])
    assert undirected.reverse() is undirected


def test_undirected():
    graph = Graph.from_edges([0, 1, 1], [1, 0, 2], weights=[4, 5, 6], directed=True, features=[[1.0], [2], [3]])
    both = graph.undirected()
    assert not both.directed
    assert rows(both) == [[1], [0, 2], [1]]
    assert entries(both) == {(0, 1): 4, (1, 0): 4, (1, 2): 6, (2, 1): 6}
    assert both.features is graph.features
    assert both.undirected() is both


@pytest.mark.parametrize("directed", [False, True])
def test_a_graph_without_edges(directed):
    graph = Graph.from_edges([], [], num_nodes=3, directed=directed)
    assert (graph.num_nodes, graph.num_edges, graph.density) == (3, 0, 0.0)
    assert rows(graph) == [[], [], []]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0, 1], [1]), "edges: there are 2 tails but 1 heads"),
        (([0.5], [1]), "tails: the ids have type float64 and shape (1,); a list of integers is accepted"),
        (([0], ["b"]), "heads: the ids have type <U1 and shape (1,); a list of integers is accepted"),
        (([[0, 1]], [[1, 2]]), "tails: the ids have type int64 and shape (1, 2); a list of integers is accepted"),
        (([0, -3], [1, 1]), "tails: node -3; ids run from 0 to 2147483646"),
        (([0], [2**31 - 1]), "heads: node 2147483647; ids run from 0 to 2147483646"),
    ],
)
def test_bad_ends(arguments, message):
    with pytest.raises(DataError) as caught:
        Graph.from_edges(*arguments)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_nodes": 2}, "edges: node 2 in a graph of 2 nodes; ids run 0..1"),
        ({"num_nodes": 2**31}, "num_nodes: 2147483648 nodes; at most 2147483647 are supported"),
        ({"weights": [1.0]}, "weights: the weights have type float64 and shape (1,); 2 numbers are needed"),
        ({"weights": ["a", "b"]}, "weights: the weights have type <U1 and shape (2,); 2 numbers are needed"),
        ({"weights": [1.0, float("nan")]}, "weights: weight nan of edge 1; weights must be finite"),
        ({"weights": [1e39, 1.0]}, "weights: weight inf of edge 0; weights must be finite"),
        ({"names": NodeNames.of("ab")}, "names: 2 names for 3 nodes; one name for each node is needed"),
        (
            {"features": np.zeros((2, 2))},
            "features: 2 rows, but the graph has 3 nodes; one row for each node is needed",
        ),
        ({"features": np.zeros(3)}, "features: the features have shape (3,); accepted: (3, F)"),
        ({"features": [["a"], ["b"], ["c"]]}, "features: the features have type <U1; numbers are accepted"),
        (
            {"features": [[0.0, 1], [2, float("inf")], [3, 4]]},
            "features: inf at row 1, column 1; features must be finite: fill or drop missing values",
        ),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(DataError) as caught:
        Graph.from_edges([0, 1], [1, 2], **options)
    assert str(caught.value) == message


class TestHash:
    edges = ([0, 1, 2, 0], [1, 2, 3, 2])

    def test_order_and_orientation_do_not_matter(self):
        graph = Graph.from_edges(*self.edges)
        assert Graph.from_edges([2, 3, 1, 2], [0, 2, 0, 1]).content_hash == graph.content_hash
        both = Graph.from_edges(self.edges[0] + self.edges[1], self.edges[1] + self.edges[0])
        assert both.content_hash == graph.content_hash
        assert len(graph.content_hash) == 64

    def test_everything_a_model_sees_matters(self):
        ones, zeros = np.ones((4, 2)), np.zeros((4, 2))
        changed = zeros.copy()
        changed[3, 1] = 1e-6
        graphs = [
            Graph.from_edges(*self.edges),
            Graph.from_edges([0, 1, 2, 0], [1, 2, 3, 3]),
            Graph.from_edges(*self.edges, num_nodes=5),
            Graph.from_edges(*self.edges, directed=True),
            Graph.from_edges(*self.edges, weights=[1, 1, 1, 1]),
            Graph.from_edges(*self.edges, weights=[1, 1, 1, 2]),
            Graph.from_edges(*self.edges, features=ones),
            Graph.from_edges(*self.edges, features=zeros),
            Graph.from_edges(*self.edges, features=changed),
        ]
        assert len({graph.content_hash for graph in graphs}) == len(graphs)


def test_ids_alone_cannot_ask_for_gigabytes():
    assert plausible_nodes(0) == 10_000_000
    assert plausible_nodes(1_000_000) == 110_000_000
    assert plausible_nodes(10**9) == MAX_NODES


def test_a_missing_value_is_found_in_any_block_of_features(monkeypatch):
    features = np.zeros((2**21 + 3, 4), np.float16)
    features[-1, 2] = np.nan
    with pytest.raises(DataError, match="nan at row 2097154, column 2"):
        check_features(features, len(features))
