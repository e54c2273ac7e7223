"""Pages stay small: large subgraphs are thinned out, and rare classes are gathered."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from subgnn import Graph
from subgnn.reports.answers import agreement
from subgnn.reports.findings import find
from subgnn.reports.subgraph_drawing import draw_subgraph
from subgnn.rng import stream
from subgnn.training.run import train
from tests.training.examples import dataset, recipe

from .reading import read


def test_a_large_dense_subgraph_is_thinned_out_and_says_so():
    tails, heads = np.triu_indices(400, 1)
    graph = Graph.from_edges(tails, heads)
    drawn = draw_subgraph(graph, np.arange(300), stream(0, "test"), name="large")
    assert len(drawn) < 40_000
    assert "300 nodes, 1 component, 100 border nodes; 200 of the nodes are drawn; 60 of the border" in drawn
    assert len(read(drawn).all("circle")) == 260


def test_one_node_without_a_border_is_drawn():
    graph = Graph.from_edges([0], [1], num_nodes=3)
    drawn = read(draw_subgraph(graph, np.array([2]), stream(0, "test"), name="alone"))
    assert drawn.one("circle").text == "node 2, component 1 of 1"
    assert drawn.one("p").text == "1 node, 1 component, 0 border nodes"


@pytest.mark.parametrize("task", ["multi-class", "multi-label"])
def test_many_classes_are_gathered(tmp_path, task):
    data = dataset(task)
    train(data, recipe(1), tmp_path / "run", report=False)
    found = find(tmp_path / "run", data)
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
    table = read(agreement(many)).one("table")
    rows = table.one("tbody").children
    if task == "multi-class":
        assert [row.children[0].text for row in rows][-1] == "49 others"
        assert len(rows) == 12
        assert sum(int(td.pieces[0]) for row in rows for td in row.all("td")[:-1]) == n
    else:
        assert len(rows) == 40
        assert "The 40 most frequent of 60 labels." in read(agreement(many)).text
