"""What is drawn, beside networkx."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from subgnn import Graph
from subgnn.serve.drawing import draw
from subgnn.serve.nodes import NodeIndex
from tests.serve.examples import served

RANDOM = nx.gnp_random_graph(60, 0.08, seed=3)
GRAPH = Graph.from_edges(*zip(*RANDOM.edges, strict=True), num_nodes=60)


@pytest.mark.parametrize("most", [0, 7, 200])
def test_nodes_components_border_and_edges(most):
    nodes = np.array([0, 1, 2, 17, 18, 40], np.int32)
    found = draw(GRAPH, NodeIndex(GRAPH), nodes, most=most)
    border = set().union(*(RANDOM.neighbors(int(node)) for node in nodes)) - set(nodes.tolist())
    drawn = {node["id"]: node for node in found.nodes}
    outside = [node for node in found.nodes if node["kind"] == "border"]
    assert {i for i, node in drawn.items() if node["kind"] == "inside"} == set(nodes.tolist())
    assert {node["id"] for node in outside} <= border
    assert len(outside) == min(most, len(border))
    assert found.num_border == len(border)
    assert found.left_out == {"inside": 0, "border": len(border) - len(outside)}

    inside = RANDOM.subgraph(nodes.tolist())
    components = {frozenset(part) for part in nx.connected_components(inside)}
    by_component: dict[int, set[int]] = {}
    for i, node in drawn.items():
        if node["kind"] == "inside":
            by_component.setdefault(node["component"], set()).add(i)
    assert {frozenset(part) for part in by_component.values()} == components
    assert found.num_components == len(components)

    expected = {(min(e), max(e)) for e in RANDOM.subgraph(list(drawn)).edges}
    assert {(edge["source"], edge["target"]) for edge in found.edges} == expected
    assert found.num_inside_edges == inside.number_of_edges()
    for node in outside:
        assert node["links"] == len(set(RANDOM.neighbors(node["id"])) & set(nodes.tolist()))
    fewest = min((node["links"] for node in outside), default=len(nodes))
    left = border - {node["id"] for node in outside}
    assert all(len(set(RANDOM.neighbors(v)) & set(nodes.tolist())) <= fewest for v in left)


def test_anchors_are_those_of_the_run():
    run = served()
    found = run.draw(np.array([0, 1, 9], np.int32), most=100)
    marked = {node["id"]: node["channels"] for node in found["nodes"] if node["channels"]}
    prepared = run.predictor.measured(run.training.nodes.take([0]), draws=1).prepared[0]
    assert any("neighborhood/border" in channels for channels in marked.values())
    assert all(marked[node] for node in marked)
    shared = prepared.frame.shared[0][1].nodes  # position/border
    assert {node for node, channels in marked.items() if "position/border" in channels} <= set(shared.tolist())
