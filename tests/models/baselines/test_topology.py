"""The statistics, and trees on them."""

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest

from subgnn import Graph, Ragged
from subgnn.api.train_recipe import train
from subgnn.channels.topology import node_set_statistics, subgraph_statistics
from subgnn.inference.predictor import Predictor
from subgnn.models.baselines import topology
from subgnn.models.checkpoint import load_checkpoint
from subgnn.task import Standard
from subgnn.training.run_dir import CHECKPOINT
from tests.models.examples import recipe
from tests.models.subgnn.examples import random_graph, random_subgraphs
from tests.training.examples import dataset


def by_networkx(graph: Graph, nodes) -> list[float]:
    whole = nx.Graph(list(zip(*graph.edges()[:2], strict=True)))
    whole.add_nodes_from(range(graph.num_nodes))
    part, size = whole.subgraph(nodes.tolist()), len(nodes)
    inside = np.array([d for _, d in part.degree])
    border = np.array([whole.degree[v] - part.degree[v] for v in part])
    crossing = size * (graph.num_nodes - size)
    own, cores = np.array(list(nx.core_number(part).values())), nx.core_number(whole)
    in_whole = np.array([cores[v] for v in part])
    sizes = [len(c) for c in nx.connected_components(part)]
    return [
        np.log(size), nx.density(part), inside.mean(), np.log1p(inside.mean()), np.log1p(border.sum() / size),
        np.log1p(10_000 * border.sum() / crossing) if crossing else 0.0,
        own.mean(), np.mean(list(nx.clustering(part).values())),
        inside.std(), inside.max(), np.log1p(border.std()), np.log1p(border.max()), own.max(), own.std(),
        in_whole.mean(), in_whole.max(), len(sizes), max(sizes) / len(nodes),
    ]  # fmt: skip


@pytest.mark.parametrize("edges", [16, 30])
@pytest.mark.parametrize("seed", range(3))
def test_statistics_are_those_of_networkx(seed, edges):
    graph, rows = random_graph(seed, edges=edges), random_subgraphs(seed)
    found = subgraph_statistics(graph, rows)
    np.testing.assert_allclose(found, [by_networkx(graph, row) for row in rows], atol=1e-9)
    np.testing.assert_array_equal(found[:, :8], node_set_statistics(graph, rows))


def test_cores_of_a_graph_are_not_those_of_the_last_one():
    rows = Ragged.from_rows([[0, 1, 2, 3]])
    graphs = [replace(graph, known_hash=graph.content_hash) for graph in (random_graph(0), random_graph(1))]
    for graph in (*graphs, *graphs):
        plain = subgraph_statistics(replace(graph, known_hash=""), rows)
        np.testing.assert_array_equal(subgraph_statistics(graph, rows), plain)


@pytest.mark.parametrize("scale", [1e-300, 1e-170, 1e-3, 1.0, 1e170, 1e300])
def test_columns_are_standardised_whatever_their_scale(scale):
    values = scale * np.array([[1.0], [2.0], [6.0]])
    standard = Standard.of(values)
    spread = np.sqrt(14 / 3)
    np.testing.assert_allclose(standard.mean / scale, [3], rtol=1e-12)
    np.testing.assert_allclose(standard.deviation / scale, [spread], rtol=1e-12)
    found = standard(values)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found[:, 0], np.array([-2, -1, 3]) / spread, rtol=1e-6)


def test_a_column_that_does_not_vary_is_left_at_its_own_value():
    standard = Standard.of(np.full((3, 1), 0.1))  # whose mean is not quite .1
    assert standard.mean.tolist() == [0.1]
    assert standard.deviation.tolist() == [1.0]
    assert standard(np.array([[0.1], [0.6]])).tolist() == [[0.0], [0.5]]


@pytest.mark.quick(2)
@pytest.mark.parametrize("task", ["multi-class", "multi-label", "regression"])
@pytest.mark.parametrize("way", ["boosting", "forest"])
def test_trees_that_are_stored_and_grown_again_answer_alike(tmp_path, way, task):
    data = dataset(task)
    train(data, recipe("topology", f"topology.classifier={way}"), tmp_path / "run", seed=2)
    stored = load_checkpoint(tmp_path / "run" / CHECKPOINT)
    assert "trees.feature" in stored.weights
    table_alone = {name: value for name, value in stored.weights.items() if not name.startswith("trees.")}
    first, second = (
        Predictor(each, data.graph).outputs(data.subgraphs.nodes)
        for each in (stored, replace(stored, weights=table_alone))
    )
    np.testing.assert_array_equal(first, second)
    table = subgraph_statistics(data.graph, data.subgraphs.nodes.take(data.subgraphs.indices("train")))
    np.testing.assert_array_equal(stored.weights["features"], table)


@pytest.mark.slow
def test_trees_of_many_nodes_are_not_stored(tmp_path, monkeypatch):
    monkeypatch.setattr(topology, "_MAX_NODES", 5)
    data = dataset()
    train(data, recipe("topology", "topology.classifier=boosting"), tmp_path / "run")
    assert "trees.feature" not in load_checkpoint(tmp_path / "run" / CHECKPOINT).weights
    assert np.isfinite(Predictor(tmp_path / "run" / CHECKPOINT, data.graph).outputs(data.subgraphs.nodes)).all()
