import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

from subgnn import (
    DataError,
    DataWarning,
    Graph,
    NodeNames,
    from_networkx,
    from_pyg,
    from_scipy,
    to_networkx,
    to_pyg,
    to_scipy,
)

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


def test_networkx_weights_are_on_their_edges():
    theirs = to_networkx(sample(directed=True, weighted=True))
    assert dict(theirs.edges) == {(u, v): {"weight": w} for u, v, w in zip(TAILS, HEADS, WEIGHTS, strict=True)}


def test_networkx_names():
    graph = Graph.from_edges([0], [1], names=NodeNames.of(["a", "b"]))
    assert dict(to_networkx(graph).nodes(data="name")) == {0: "a", 1: "b"}


def test_networkx_nodes_are_numbered_in_their_order():
    theirs = nx.Graph([("c", "a"), ("a", ("x", 1))])
    graph = from_networkx(theirs)
    assert list(graph.names.primary) == ["c", "a", "('x', 1)"]
    assert [graph.neighbors_of(v).tolist() for v in range(3)] == [[1], [0, 2], [1]]


def test_networkx_numbers_out_of_order_are_names():
    graph = from_networkx(nx.Graph([(2, 0), (0, 1)]))
    assert list(graph.names.primary) == ["2", "0", "1"]
    assert graph.neighbors_of(0).tolist() == [1]


def test_networkx_multigraph():
    with pytest.warns(DataWarning, match="1 self loops and 1 repeated edges"):
        graph = from_networkx(nx.MultiGraph([(0, 1), (0, 1), (1, 1), (1, 2)]))
    assert graph.num_edges == 2


def test_networkx_edge_without_weight():
    theirs = nx.Graph()
    theirs.add_edge("a", "b", weight=1)
    theirs.add_edge("b", "c")
    with pytest.raises(DataError, match="edge b - c: no attribute 'weight'; give every edge a weight"):
        from_networkx(theirs, weight="weight")


def test_networkx_without_nodes():
    assert from_networkx(nx.Graph()).num_nodes == 0


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


@pytest.mark.parametrize("kind", [sp.coo_array, sp.csc_matrix, sp.lil_array, sp.dok_array, sp.bsr_array])
def test_scipy_kinds(kind):
    assert from_scipy(kind(to_scipy(sample()))).content_hash == sample().content_hash


def test_scipy_repeats_are_summed_and_zeros_no_edges():
    matrix = sp.coo_array(([1.0, 2, 0, 1, -1], ([0, 0, 1, 2, 2], [1, 1, 2, 0, 0])), shape=(3, 3))
    before = matrix.copy()
    graph = from_scipy(matrix, directed=True, weighted=True)
    assert [graph.neighbors_of(v).tolist() for v in range(3)] == [[1], [], []]
    assert graph.weights.tolist() == [3]
    np.testing.assert_array_equal(matrix.data, before.data)


def test_scipy_not_square():
    with pytest.raises(DataError, match=r"adjacency: a matrix of shape \(2, 3\); a square one is needed"):
        from_scipy(sp.coo_array((2, 3)))


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


def test_pyg_keeps_nodes_without_edges():
    data = to_pyg(Graph.from_edges([0], [1], num_nodes=4))
    assert (data.num_nodes, from_pyg(data).num_nodes) == (4, 4)
    assert data.get("edge_weight") is None
    assert data.x is None


def test_pyg_tensors_are_their_own():
    graph = sample(weighted=True, features=np.ones((5, 1)))
    data = to_pyg(graph)
    data.x.zero_()
    data.edge_weight.zero_()
    assert graph.features.min() == 1
    assert graph.weights.max() == 4
    made = from_pyg(Data(edge_index=torch.tensor([[0], [1]]), x=torch.ones(2, 1, requires_grad=True)))
    assert made.features.tolist() == [[1], [1]]


def test_a_graph_does_not_change_with_the_tensors_it_was_made_of():
    data = Data(edge_index=torch.tensor([[0], [1]]), x=torch.ones(2, 1))
    graph = from_pyg(data)
    before = graph.content_hash
    data.x.zero_()
    assert graph.compute_hash() == before


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (Data(), "Data: no edge_index; a homogeneous graph with edge_index is accepted"),
        (Data(edge_index=torch.tensor([[0.5], [1]])), "tails: ids of type float32"),
        (Data(edge_index=torch.tensor([[0], [5]]), num_nodes=2), "edges: node 5 in a graph of 2 nodes"),
        (Data(edge_index=torch.tensor([[0], [1]]), x=torch.ones(1, 1), num_nodes=2), "features: 1 rows, but"),
        (Data(edge_index=torch.tensor([[0], [1]]), edge_weight=torch.ones(3)), "weights: weights of type float32"),
    ],
)
def test_pyg_that_does_not_fit(data, message):
    with pytest.raises(DataError) as caught:
        from_pyg(data)
    assert str(caught.value).startswith(message)
