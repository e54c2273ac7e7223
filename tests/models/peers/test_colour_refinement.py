"""Colours of 1-WL against networkx-like refinement by tuples, in the graph, in subgraphs and in balls around them."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from subgnn import Graph, Ragged
from subgnn.models.peers.wlks import graph_colours, subgraph_colours, table_of, table_rows
from tests.models.examples import two_triangles
from tests.models.subgnn.examples import random_graph, random_subgraphs


def nested(graph: nx.Graph, rounds: int) -> dict[int, object]:
    """Colours as nested tuples: equal exactly where 1-WL cannot tell nodes apart."""
    colours: dict[int, object] = dict.fromkeys(graph, ())
    for _ in range(rounds):
        colours = {v: (colours[v], tuple(sorted((colours[u] for u in graph[v]), key=repr))) for v in graph}
    return colours


def as_networkx(graph: Graph) -> nx.Graph:
    found = nx.Graph()
    found.add_nodes_from(range(graph.num_nodes))
    found.add_edges_from(zip(*(ends.tolist() for ends in graph.edges()[:2]), strict=True))
    return found


def same_partition(found, wanted) -> bool:
    """Whether two lists of colours differ in names alone."""
    pairs = set(zip(found, wanted, strict=True))
    return len(pairs) == len(set(found)) == len(set(wanted))


@pytest.mark.parametrize("seed", range(4))
def test_colours_of_the_graph_are_those_of_nested_tuples(seed):
    graph = random_graph(seed)
    for rounds, colours in enumerate(graph_colours(graph, 3), 1):
        wanted = nested(as_networkx(graph), rounds)
        assert same_partition(colours.tolist(), [wanted[v] for v in range(graph.num_nodes)])


@pytest.mark.parametrize("seed", range(3))
def test_colours_of_subgraphs_are_those_of_nested_tuples(seed):
    graph, nodes = random_graph(seed), random_subgraphs(seed)
    whole = as_networkx(graph)
    found = subgraph_colours(graph, nodes, [{}, {}])
    for rounds, colours in enumerate(found, 1):
        wanted = []
        for row in nodes:
            inside = nested(whole.subgraph(row.tolist()), rounds)
            wanted += [inside[v] for v in row.tolist()]
        assert same_partition(colours.tolist(), wanted)


def test_many_subgraphs_are_refined_in_parts(monkeypatch):
    graph, nodes = random_graph(1), random_subgraphs(1)
    together = subgraph_colours(graph, nodes, [{}, {}])
    monkeypatch.setattr("subgnn.models.peers.wlks._AT_ONCE", 7)
    for a, b in zip(together, subgraph_colours(graph, nodes, [{}, {}]), strict=True):
        assert same_partition(a.tolist(), b.tolist())


def test_what_the_tables_do_not_have_gets_numbers_beyond_them():
    """An edge is known; of a triangle, every node has a colour that no edge has."""
    tables = [{}]
    subgraph_colours(two_triangles(), Ragged.from_rows([[0, 1]]), tables)
    (found,) = subgraph_colours(two_triangles(), Ragged.from_rows([[3, 4], [3, 4, 5]]), tables)
    assert found.tolist() == [0, 0, 1, 1, 1]


def test_a_table_is_the_same_after_it_was_stored():
    tables = [{}, {}]
    subgraph_colours(random_graph(0), random_subgraphs(0), tables)
    for table in tables:
        assert table_of(table_rows(table)) == table
    assert table_of(table_rows({})) == {}


def test_no_subgraphs_have_no_colours():
    (found,) = subgraph_colours(two_triangles(), Ragged(np.empty(0, np.int32), np.zeros(1, np.int64)), [{}])
    assert len(found) == 0
