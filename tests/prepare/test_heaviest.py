"""The heaviest of borders as anchors: the same in every layer and draw, for new subgraphs, on disk and in a run."""

from dataclasses import replace

import numpy as np
import pytest

from subgnn import Graph, Ragged
from subgnn.kernels.borders import border_sets, heaviest_borders
from subgnn.prepare.measure import Plan, prepare
from tests.models.subgnn.examples import ALL_CHANNELS, SMALL, prepare_example, random_graph, random_subgraphs

HEAVY = replace(SMALL, border_anchors="heaviest")
BORDER = 3  # its place among all channels


def case():
    return random_graph(0), random_subgraphs(0)


@pytest.mark.parametrize("seed", range(6))
def test_anchors_and_similarities_are_those_of_the_kernel_in_every_layer(seed):
    settings = replace(HEAVY, hops=2)
    graph, found = prepare_example(seed, layers=3, settings=settings)
    components = found.components.nodes
    nodes, weights = heaviest_borders(*graph.csr, components, most=3, powers=(1.0, 0.25))
    present = border_sets(*graph.csr, components, hops=1).lengths > 0
    assert not present.all()  # one subgraph is the whole graph
    for layer in range(3):
        inputs = found.inputs[layer][BORDER]
        assert np.array_equal(inputs.own.nodes, nodes)
        assert np.array_equal(inputs.own.present, present)
        assert np.array_equal(inputs.similarity, weights)
        assert inputs.similarity.dtype == np.float32


def test_graphs_with_next_to_nothing_in_them():
    options = {"channels": ALL_CHANNELS[3:4], "layers": 1, "settings": HEAVY, "seed": 0}
    bare = prepare(Graph.from_edges([], [], num_nodes=3), Ragged.from_rows([[0, 2]]), Plan(**options))
    assert bare.inputs[0][0].own.present.tolist() == [False, False]
    assert bare.touched().tolist() == [0, 2]
    pair = prepare(Graph.from_edges([0], [1], num_nodes=3), Ragged.from_rows([[0, 2], [0, 1]]), Plan(**options))
    inputs = pair.inputs[0][0]
    assert inputs.own.present.tolist() == [True, False, False]
    assert inputs.own.nodes[0].tolist() == [1, 1, 1]
    assert inputs.similarity.tolist() == [[1, 0, 0], [0, 0, 0], [0, 0, 0]]
    assert len(prepare(*case(), Plan(**options)).extend(random_graph(0), Ragged.from_rows([])).components.nodes) == 0
