"""Vectors without labels: against dense linear algebra, and under other numbers of nodes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from subgnn import Graph, Ragged, SubgraphSet
from subgnn.channels.topology import subgraph_statistics
from subgnn.errors import UserError
from subgnn.inference.open import fit_without_labels
from subgnn.models.kernel_machines import unsupervised
from subgnn.models.kernel_machines.unsupervised import fix_directions
from subgnn.models.recipes import check_recipe, find_recipe
from subgnn.task import Standard
from tests.channels.test_diffusion import dense_ratios, dense_walk
from tests.models.examples import two_triangles
from tests.training.examples import dataset

SMALL = ("vectors.width=40",)


def vectors(graph, sets, *options, fitted_to=None):
    """Vectors of sets, by a model that is fitted to them or to others."""
    found = fit_without_labels(graph, fitted_to or sets, find_recipe("unsupervised", [*SMALL, *options]))
    return found.predictor.embeddings(sets)


def dense_kernel(graph, sets):
    """The Gaussian kernel of unit rows of the lift and the root, less their means."""
    ratios = dense_ratios(graph, sets, 0.3)
    cosines = []
    for rows in (np.log1p(ratios), np.sqrt(ratios * dense_walk(graph)[1])):
        centred = rows - rows.mean(axis=0)
        centred /= np.maximum(np.linalg.norm(centred, axis=1, keepdims=True), 1e-12)
        cosines.append(centred @ centred.T)
    return np.exp(3 * (np.mean(cosines, axis=0) - 1))


def test_inner_products_are_those_of_the_centred_kernel_and_statistics_come_first():
    data = dataset()
    sets = data.subgraphs.nodes
    found = vectors(data.graph, sets, "vectors.width=256")
    kernel = dense_kernel(data.graph, sets)
    centred = kernel - kernel.mean(axis=0) - kernel.mean(axis=1, keepdims=True) + kernel.mean()
    np.testing.assert_allclose(found[:, 18:] @ found[:, 18:].T, centred, atol=1e-3)
    values = np.linalg.eigvalsh(centred)[::-1]  # of principal components, in falling order
    np.testing.assert_allclose((found[:, 18:24] ** 2).sum(axis=0), values[:6], rtol=1e-3)
    statistics = subgraph_statistics(data.graph, sets)
    np.testing.assert_allclose(found[:, :18], 0.05 * np.clip(Standard.of(statistics)(statistics), -4, 4), atol=1e-6)


def relabelled(graph, sets, order):
    """The same graph and sets with other numbers for nodes: node v becomes order[v]."""
    source, target, *_ = graph.edges()
    renamed = Graph.from_edges(order[source], order[target], num_nodes=graph.num_nodes)
    return renamed, Ragged.from_rows([np.sort(order[row]) for row in sets])


SYMMETRIC = {
    "cycle": ([(i, (i + 1) % 8) for i in range(8)], 8),
    "star": ([(0, i) for i in range(1, 8)], 8),
    "complete": ([(i, j) for i in range(6) for j in range(i)], 6),
    "two parts": ([(0, 1), (1, 2), (2, 0), (4, 5), (5, 6), (6, 4)], 8),
}


@pytest.mark.quick(3)
@pytest.mark.parametrize("kind", SYMMETRIC)
def test_vectors_are_the_same_under_other_numbers_of_nodes_where_eigenvalues_are_equal(kind):
    edges, count = SYMMETRIC[kind]
    graph = Graph.from_edges(*zip(*edges, strict=True), num_nodes=count)
    sets = Ragged.from_rows([sorted([i, (i + 1) % count]) for i in range(count)])
    order = np.random.default_rng(1).permutation(count)
    found, again = (vectors(*pair) for pair in ((graph, sets), relabelled(graph, sets, order)))
    np.testing.assert_allclose(again, found, atol=2e-3)
    assert np.abs(found).max() > 0.1


@st.composite
def graphs_with_sets(draw):
    """A random graph, sets of its nodes, and other numbers for the nodes."""
    count = draw(st.integers(4, 12))
    pairs = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)).filter(lambda pair: pair[0] != pair[1])
    edges = sorted({(min(pair), max(pair)) for pair in draw(st.lists(pairs, min_size=1, max_size=30))})
    sets = draw(st.lists(st.sets(st.integers(0, count - 1), min_size=1), min_size=1, max_size=8))
    graph = Graph.from_edges(*zip(*edges, strict=True), num_nodes=count)
    return graph, Ragged.from_rows([sorted(row) for row in sets]), np.array(draw(st.permutations(range(count))))


@pytest.mark.slow
@settings(max_examples=25)
@given(graphs_with_sets())
def test_distances_of_vectors_are_the_same_under_other_numbers_of_nodes(drawn):
    graph, sets, order = drawn
    found, again = (vectors(*pair) for pair in ((graph, sets), relabelled(graph, sets, order)))
    np.testing.assert_allclose(again @ again.T, found @ found.T, atol=1e-3)


def test_a_vector_depends_on_the_nodes_and_the_references_alone():
    data = dataset()
    known, new = data.subgraphs.nodes, Ragged.from_rows([[0, 1, 9], [23], list(range(24))])
    together = vectors(data.graph, new, fitted_to=known)
    for row in range(3):
        alone = vectors(data.graph, new.take([row]), fitted_to=known)
        np.testing.assert_allclose(alone[0], together[row], atol=1e-5)


def test_more_subgraphs_than_references_and_local_push(monkeypatch):
    data = dataset()
    options = ("diffusion.algorithm=push", "diffusion.push_edges=1000000")
    monkeypatch.setattr(unsupervised, "REFERENCES", 12)
    exact = vectors(data.graph, data.subgraphs.nodes)
    pushed = vectors(data.graph, data.subgraphs.nodes, *options)
    assert (np.abs(exact[:, 18:]).max(axis=0) > 0).sum() == 11  # the twelfth is the mean
    np.testing.assert_allclose(pushed @ pushed.T, exact @ exact.T, atol=5e-3)


def test_directions_span_the_same_spaces_whatever_basis_they_are_given_in():
    rng = np.random.default_rng(0)
    basis, _ = np.linalg.qr(rng.normal(size=(9, 9)))
    values = np.array([4.0, 4.0, 4.0, 2.0, 1.0, 1.0, 0.5, 0.0, 0.0])
    turn = np.eye(9)
    turn[:3, :3], turn[4:6, 4:6] = (np.linalg.qr(rng.normal(size=(k, k)))[0] for k in (3, 2))
    turn[3, 3] = -1
    kept, first = fix_directions(values, basis, 9)
    _, second = fix_directions(values, basis @ turn, 9)
    np.testing.assert_allclose(first, second, atol=1e-12)
    np.testing.assert_allclose(first.T @ first, np.eye(7), atol=1e-12)
    assert kept.tolist() == [4, 4, 4, 2, 1, 1, 0.5]
    assert fix_directions(values, basis, 5)[1].shape == (9, 4)  # the two equal ones stay out together
    assert fix_directions(np.zeros(3), np.eye(3), 3)[1].shape == (3, 0)


def test_settings_that_do_not_fit_are_refused():
    graph = two_triangles()
    with pytest.raises(UserError, match=r"vectors\.width is 18; accepted: a whole number from 19"):
        find_recipe("unsupervised", ["vectors.width=18"])
    with pytest.raises(UserError, match=r"diffusion\.views has 'topology'"):
        check_recipe(find_recipe("unsupervised", ['diffusion.views=["topology"]']), graph)
    with pytest.raises(UserError, match="the recipe bag learns its vectors from labels; accepted: unsupervised"):
        fit_without_labels(graph, Ragged.from_rows([[0]]), find_recipe("bag"))


def test_a_fit_computes_no_vectors_of_the_subgraphs(monkeypatch):
    monkeypatch.setattr(unsupervised.VectorSpace, "__call__", None)
    assert fit_without_labels(two_triangles(), Ragged.from_rows([[0, 1], [2]]), find_recipe("unsupervised"))


def test_one_subgraph_alone_has_a_vector_and_no_prediction():
    found = fit_without_labels(two_triangles(), Ragged.from_rows([[0, 1]]), find_recipe("unsupervised"))
    assert np.abs(found.predictor.embeddings(Ragged.from_rows([[0, 1]]))).max() == 0
    assert np.isfinite(found.predictor.embeddings(Ragged.from_rows([[2, 7]]))).all()
    with pytest.raises(UserError, match="fitted without labels"):
        found.predictor.probabilities(SubgraphSet.from_lists([[0]], num_nodes=8))
