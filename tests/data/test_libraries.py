import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

from subgnn import DataError, Graph, from_networkx, from_pyg, from_scipy, to_networkx, to_pyg, to_scipy
from subgnn.data.formats.libraries import graph_from_object

TAILS, HEADS, WEIGHTS = [0, 1, 3, 0], [1, 2, 0, 2], [1.0, -0.5, 2.25, 4.0]


def sample(*, directed=False, weighted=False, features=None):
    weights = WEIGHTS if weighted else None
    return Graph.from_edges(TAILS, HEADS, num_nodes=5, weights=weights, directed=directed, features=features)


BOTH = pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
WAYS = pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])


@BOTH
@WAYS
def test_networkx_round_trip(directed, weighted):
    graph = sample(directed=directed, weighted=weighted)
    theirs = to_networkx(graph)
    assert theirs.is_directed() == directed
    assert sorted(theirs.nodes) == [0, 1, 2, 3, 4]
    assert theirs.number_of_edges() == 4
    back = from_networkx(theirs, weight="weight" if weighted else None)
    assert back.content_hash == graph.content_hash
    assert back.names is None


def test_networkx_weights_are_numbers_at_every_edge():
    theirs = nx.Graph([("b", "c")])
    theirs.add_edge("a", "b", weight=1)
    with pytest.raises(DataError, match="edge b - c: no attribute 'weight'; give every edge a weight"):
        from_networkx(theirs, weight="weight")
    theirs.add_edge("b", "c", weight="heavy")
    with pytest.raises(DataError, match="edges: the attribute 'weight' is not a number everywhere"):
        from_networkx(theirs, weight="weight")


@given(
    kind=st.sampled_from([nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph]),
    edges=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(1, 9)), max_size=12),
)
@pytest.mark.filterwarnings("ignore::subgnn.errors.DataWarning")
def test_networkx_edges_one_by_one(kind, edges):
    theirs = kind()
    for u, v, w in edges:
        theirs.add_edge(f"n{u}", f"n{v}", w=w)
    found = from_networkx(theirs, weight="w")
    nodes = list(theirs)
    listed = [(nodes.index(u), nodes.index(v), w) for u, v, w in theirs.edges(data="w")]
    tails, heads, weights = zip(*listed, strict=True) if listed else ((), (), ())
    expected = Graph.from_edges(
        tails, heads, num_nodes=len(nodes), weights=np.array(weights, float), directed=theirs.is_directed()
    )
    assert found.content_hash == expected.content_hash
    assert found.dropped == expected.dropped
    assert found.names is None if not nodes else list(found.names.primary) == nodes


@BOTH
@WAYS
def test_scipy_round_trip(directed, weighted):
    graph = sample(directed=directed, weighted=weighted)
    matrix = to_scipy(graph)
    expected = np.zeros((5, 5), np.float32)
    expected[TAILS, HEADS] = WEIGHTS if weighted else 1
    if not directed:
        expected = np.where(expected != 0, expected, expected.T)
    np.testing.assert_array_equal(matrix.toarray(), expected)
    assert from_scipy(matrix, directed=directed, weighted=weighted).content_hash == graph.content_hash


def test_scipy_repeats_are_summed_and_zeros_no_edges():
    matrix = sp.coo_array(([1.0, 2, 0, 1, -1], ([0, 0, 1, 2, 2], [1, 1, 2, 0, 0])), shape=(3, 3))
    before = matrix.copy()
    graph = from_scipy(matrix, directed=True, weighted=True)
    assert [graph.neighbors_of(v).tolist() for v in range(3)] == [[1], [], []]
    assert graph.weights.tolist() == [3]
    np.testing.assert_array_equal(matrix.data, before.data)


@BOTH
@WAYS
def test_pyg_round_trip(directed, weighted):
    features = np.arange(15, dtype=np.float32).reshape(5, 3)
    graph = sample(directed=directed, weighted=weighted, features=features)
    data = to_pyg(graph)
    assert data.num_nodes == 5
    assert data.edge_index.shape == (2, 4 if directed else 8)
    assert data.edge_index.dtype == torch.int64
    assert data.is_undirected() != directed
    assert from_pyg(data, directed=directed).content_hash == graph.content_hash


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (Data(), "Data: no edge_index; a homogeneous graph with edge_index is accepted"),
        (Data(edge_index=torch.tensor([[0.5], [1]])), "tails: the ids have type float32"),
        (Data(edge_index=torch.tensor([[0], [5]]), num_nodes=2), "edges: node 5 in a graph of 2 nodes"),
        (Data(edge_index=torch.tensor([[0], [1]]), x=torch.ones(1, 1), num_nodes=2), "features: 1 rows, but"),
        (
            Data(edge_index=torch.tensor([[0], [1]]), edge_weight=torch.ones(3)),
            "weights: the weights have type float32",
        ),
    ],
)
def test_pyg_that_does_not_fit(data, message):
    with pytest.raises(DataError) as caught:
        from_pyg(data)
    assert str(caught.value).startswith(message)


def test_an_object_whose_weights_are_left_out_is_told_of():
    graph, notes = sample(weighted=True), []
    for theirs in (to_networkx(graph), to_scipy(graph), to_pyg(graph), to_networkx(sample()), to_scipy(sample())):
        graph_from_object(theirs, notes.append)
    line = "the weights of edges are not used; {} keeps them on request"
    assert notes == [line.format(function) for function in ("from_networkx", "from_scipy")]
