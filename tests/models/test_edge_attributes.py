"""Weights and direction of edges in views and statistics, against dense matrices; planted datasets that need them."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from examples.planted import generate_planted
from hypothesis import given, settings
from hypothesis import strategies as st

from subgnn import DataError, Graph, Ragged, UserError
from subgnn.api.train_recipe import train
from subgnn.channels.diffusion import diffuse, diffuse_nearby, walks_of
from subgnn.channels.topology import direction_statistics, num_statistics, subgraph_statistics, weight_statistics
from subgnn.data.dataset import Dataset
from subgnn.inference.predictor import Predictor
from subgnn.models.checkpoint import load_checkpoint
from subgnn.models.kernel_machines.views import bag_of_nodes, spread_one_hop
from subgnn.models.recipes import check_recipe, find_recipe, unused_data


@st.composite
def cases(draw) -> tuple[Graph, Ragged]:
    """A directed graph, undirected with its orientation beside it, possibly weighted; node sets."""
    n = draw(st.integers(2, 12))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    ends = rng.integers(0, n, (draw(st.integers(1, 40)), 2))
    ends = np.unique(ends[ends[:, 0] != ends[:, 1]], axis=0).reshape(-1, 2)
    weights = rng.choice([-2.0, 0.0, 0.5, 1.0, 3.0], len(ends)) if draw(st.booleans()) else None
    graph = Graph.from_edges(ends[:, 0], ends[:, 1], num_nodes=n, weights=weights, directed=True).undirected()
    rows = [np.sort(rng.choice(n, rng.integers(1, n + 1), replace=False)) for _ in range(3)]
    return graph, Ragged.from_rows([*rows, np.arange(n)])


def dense(graph: Graph, *, weighted: bool = True) -> np.ndarray:
    """The adjacency of out-edges, as magnitudes of weights."""
    found = np.zeros((graph.num_nodes, graph.num_nodes))
    for node in range(graph.num_nodes):
        row = slice(graph.offsets[node], graph.offsets[node + 1])
        given = np.ones(row.stop - row.start) if graph.weights is None or not weighted else np.abs(graph.weights[row])
        found[node, graph.neighbors[row]] = given
    return found


def dense_ends(adjacency: np.ndarray, start: np.ndarray, damping: float) -> np.ndarray:
    """(1 - a) s (I - a P)^-1, a node without out-edges having a loop."""
    out = adjacency.sum(axis=1)
    walk = np.where(out[:, None] > 0, adjacency / np.where(out > 0, out, 1)[:, None], np.eye(len(adjacency)))
    return (1 - damping) * start @ np.linalg.inv(np.eye(len(adjacency)) - damping * walk)


@pytest.mark.slow
@settings(max_examples=40)
@given(cases(), st.sampled_from([0.0, 0.3, 0.9]), st.sampled_from(["out", "in"]))
def test_diffusion_along_edges_and_against_them(case, damping, way):
    graph, sets = case
    n, adjacency = graph.num_nodes, dense(graph.oriented)
    adjacency = adjacency if way == "out" else adjacency.T
    start = np.zeros((len(sets), n))
    for i, row in enumerate(sets):
        start[i, row] = 1 / len(row)
    expected = dense_ends(adjacency, start, damping)
    chance = dense_ends(adjacency, np.full(n, 1 / n), damping)
    walks = walks_of(graph, way)
    np.testing.assert_allclose(walks.chance(damping), chance, atol=1e-6)
    np.testing.assert_allclose(diffuse(walks, sets, damping), expected / chance, rtol=1e-4, atol=1e-4)
    nodes, ratios = diffuse_nearby(walks, sets, damping, edges=10**6, most=n)
    for i, near in enumerate(nodes):
        found = np.zeros(n)
        found[near] = ratios[nodes.offsets[i] : nodes.offsets[i + 1]]
        np.testing.assert_allclose(found, expected[i] / chance, rtol=1e-3, atol=1e-3)


@settings(max_examples=30)
@given(cases(), st.booleans(), st.sampled_from(["", "out", "in"]))
def test_the_bag_spread_by_weights_and_direction(case, weighted, way):
    graph, sets = case
    adjacency = dense(graph if not way else graph.oriented, weighted=weighted)
    adjacency = adjacency.T if way == "in" else adjacency
    roots = [np.divide(1, np.sqrt(d), out=np.zeros(len(d)), where=d > 0) for d in (adjacency.sum(1), adjacency.sum(0))]
    bag = bag_of_nodes(sets, graph.num_nodes)
    expected = bag.toarray() @ (roots[0][:, None] * adjacency * roots[1])
    found = spread_one_hop(bag, graph, weighted=weighted, way=way).toarray()
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.slow
@settings(max_examples=40)
@given(cases())
def test_statistics_of_weights_and_of_direction(case):
    graph, sets = case
    weights, arrows = dense(graph), dense(graph.oriented, weighted=False)
    edges = dense(graph, weighted=False) > 0
    given_weights = graph.weights if graph.weights is not None and len(graph.weights) else np.ones(1)
    mean = np.abs(given_weights).mean()
    for i, row in enumerate(sets):
        rest = np.setdiff1d(np.arange(graph.num_nodes), row)
        inner, outer = np.ix_(row, row), np.ix_(row, rest)
        own, across = (weights[part][edges[part]] / (mean or 1) for part in (inner, outer))
        means = [part.mean() if len(part) else 0.0 for part in (own, across)]
        expected = [own.sum() / len(row), across.sum() / len(row), *means, own.std() if len(own) else 0.0]
        share = own.sum() / (own.sum() + across.sum()) if own.sum() else 0.0
        np.testing.assert_allclose(weight_statistics(graph, sets)[i], [*np.log1p(expected), share], atol=1e-6)
        inside, leave, enter = arrows[inner], arrows[outer].sum(), arrows[np.ix_(rest, row)].sum()
        out, into = inside.sum(axis=1), inside.sum(axis=0)
        expected = [
            np.log1p(leave / len(row)),
            np.log1p(enter / len(row)),
            (leave - enter) / (leave + enter) if leave + enter else 0.0,
            (inside * inside.T).sum() / inside.sum() if inside.sum() else 0.0,
            (into == 0).mean(),
            (out == 0).mean(),
            out.max(),
            into.max(),
            (out - into).std(),
        ]
        np.testing.assert_allclose(direction_statistics(graph, sets)[i], expected, atol=1e-9)
    for weighted, directed in ((False, False), (True, False), (True, True)):
        found = subgraph_statistics(graph, sets, weighted=weighted, directed=directed)
        assert found.shape[1] == num_statistics(weighted=weighted, directed=directed)


def test_an_undirected_graph_has_no_views_along_edges():
    graph = Graph.from_edges([0, 1], [1, 2])
    with pytest.raises(UserError, match="lift-out, but the graph is undirected"):
        check_recipe(find_recipe("diffusion-directed"), graph)
    check_recipe(find_recipe("diffusion-directed"), Graph.from_edges([0, 1], [1, 2], directed=True))


@cache
def planted(name: str) -> Dataset:
    return generate_planted(name, seed=0, num_subgraphs=120, subgraph_size=6, region_size=30)


PLANTED = {
    "weight-planted": (["diffusion"], ["bag-1hop", "bag.weighted=true", "bag.inverse_penalty=10"]),
    "direction-planted": (["diffusion-directed"], ["bag-1hop", "bag.directed=true", "bag.inverse_penalty=10"]),
}


@pytest.mark.quick(1)
@pytest.mark.parametrize("name", PLANTED)
def test_a_model_that_uses_the_attribute_is_nearly_perfect_and_another_guesses(name, tmp_path):
    data = planted(name)
    attribute = "weights" if name == "weight-planted" else "direction"
    assert data.graph.attributes == (attribute,)
    for i, (recipe, *overrides) in enumerate(PLANTED[name]):
        chosen = find_recipe(recipe, overrides)
        assert unused_data(chosen, data.graph) == []
        found = train(data, chosen, tmp_path / str(i), device="cpu", report=False)
        assert found.test["micro_f1"] >= 0.95
    blind = "diffusion" if name == "direction-planted" else "bag-1hop"
    for recipe in (blind, "topology"):
        chosen = find_recipe(recipe, ["topology.classifier=boosting", "bag.inverse_penalty=10"])
        assert len(unused_data(chosen, data.graph)) == 1
        found = train(data, chosen, tmp_path / recipe, device="cpu", report=False)
        assert found.test["micro_f1"] <= 0.75  # of 30 subgraphs: chance is .5, its deviation .09


def test_a_settled_checkpoint_with_views_along_edges_needs_the_direction(tmp_path):
    data = planted("direction-planted")
    train(data, find_recipe("diffusion-directed"), tmp_path / "run", device="cpu", report=False)
    checkpoint = load_checkpoint(tmp_path / "run" / "checkpoint.safetensors")
    with pytest.raises(DataError):
        Predictor(checkpoint, replace(data.graph.undirected(), oriented=None))


SMALL = ("training.epochs=1", "embeddings.dim=4", "embeddings.source=random", "prepare.patch_length=5")
BOOSTED = ("topology.classifier=boosting", "topology.weighted=true")
OPENED = [
    ("weight-planted", "topology", BOOSTED),
    ("direction-planted", "topology", (*BOOSTED, "topology.directed=true")),
    ("direction-planted", "diffusion-directed", ()),
]


@pytest.mark.parametrize(("name", "recipe", "settings"), OPENED)
def test_a_run_that_uses_the_attribute_opens_again_and_predicts_subgraphs_one_by_one(name, recipe, settings, tmp_path):
    data = planted(name)
    few = replace(data, subgraphs=data.subgraphs.take(np.arange(24)))
    chosen = find_recipe(recipe, [*SMALL, *settings])
    assert not any(text.startswith(("edge", "direction")) for text in unused_data(chosen, data.graph))
    train(few, chosen, tmp_path / "run", device="cpu", report=False)
    predictor = Predictor(load_checkpoint(tmp_path / "run" / "checkpoint.safetensors"), data.graph.undirected())
    rows = data.subgraphs.nodes.take(np.arange(4))
    one = np.concatenate([predictor.outputs(rows.take([i])) for i in range(4)])
    np.testing.assert_allclose(predictor.outputs(rows), one, atol=1e-4)


def test_statistics_are_the_same_in_pieces(monkeypatch):
    graph = planted("direction-planted").graph.undirected()
    rows = planted("direction-planted").subgraphs.nodes
    whole = weight_statistics(graph, rows), direction_statistics(graph, rows)
    monkeypatch.setattr("subgnn.channels.topology._ENTRIES_AT_ONCE", 100)
    np.testing.assert_array_equal(whole[0], weight_statistics(graph, rows))
    np.testing.assert_array_equal(whole[1], direction_statistics(graph, rows))
