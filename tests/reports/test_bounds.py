"""Pages stay small: large subgraphs are thinned out, and rare classes are gathered."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from subgnn import Graph
from subgnn.api.train_recipe import train
from subgnn.data.layout import lay_out
from subgnn.reports.evaluation import evaluate_run
from subgnn.reports.predictions import confusion_values, drawing_values
from subgnn.reports.scores import class_charts, class_rows
from tests.training.examples import dataset, recipe

from .reading import drawn, read


def draw(graph: Graph, nodes: np.ndarray, name: str) -> str:
    return drawn("subgraph.html", "drawing", drawing_values(graph, lay_out(graph, nodes), name))


def test_a_large_dense_subgraph_is_thinned_out_and_says_so():
    tails, heads = np.triu_indices(400, 1)
    graph = Graph.from_edges(tails, heads)
    made = draw(graph, np.arange(300), "large")
    assert len(made) < 40_000
    assert "300 nodes, 1 component, 100 border nodes; 200 of the nodes are drawn; 60 of the border" in made
    assert len(read(made).all("circle")) == 260


def test_one_node_without_a_border_is_drawn():
    graph = Graph.from_edges([0], [1], num_nodes=3)
    made = read(draw(graph, np.array([2]), "alone"))
    assert made.one("circle").text == "node 2, component 1 of 1"
    assert made.one("p").text == "1 node, 1 component, 0 border nodes"


@pytest.mark.parametrize("task", ["multi-class", "multi-label"])
def test_many_classes_are_gathered(tmp_path, task):
    data = dataset(task)
    train(data, recipe(1), tmp_path / "run", report=False)
    found = evaluate_run(tmp_path / "run", data)
    count, n = 60, 200
    rng = np.random.default_rng(0)
    targets = rng.integers(0, count, n) if task == "multi-class" else rng.integers(0, 2, (n, count))
    classes = tuple(f"class_{i}" for i in range(count))
    many = replace(
        found,
        checkpoint=replace(found.checkpoint, spec=replace(found.checkpoint.spec, classes=classes)),
        outputs=torch.from_numpy(rng.normal(size=(n, count))),
        targets=torch.from_numpy(targets),
    )
    if task == "multi-class":
        found = confusion_values(many)
        assert found["names"][-1] == "49 others"
        assert (len(found["counts"]), found["shown"]) == (12, 11)
        assert np.sum(found["counts"]) == n
    assert len(class_rows(many)) == 40
    assert [len(chart.key) for chart in class_charts(many)] == [9, 8]
