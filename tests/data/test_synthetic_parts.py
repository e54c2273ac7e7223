"""What the recipes are made of, on graphs small enough to check by hand."""

import networkx as nx
import numpy as np
import pytest

from subgnn.data.graph import Graph
from subgnn.data.synthetic.coreness import DegreeBlocks, draw_core_graph, duplication_divergence
from subgnn.data.synthetic.cut_ratio import add_border_edges, planting_nodes
from subgnn.data.synthetic.density import MAX_TRIES, TOLERANCE, bfs_subgraphs, set_densities
from subgnn.data.synthetic.graphs import barabasi_albert, end_to_end, plant
from subgnn.kernels.induced import core_numbers, induced_graph, shapes
from subgnn.ragged import Ragged
from subgnn.rng import stream


def rng(name: str = "test") -> np.random.Generator:
    return stream(0, name)


def edges_of(graph: Graph) -> set[tuple[int, int]]:
    tails, heads, _ = graph.edges()
    return set(zip(tails.tolist(), heads.tolist(), strict=True))


def as_networkx(graph: Graph) -> nx.Graph:
    out = nx.Graph()
    out.add_nodes_from(range(graph.num_nodes))
    out.add_edges_from(edges_of(graph))
    return out


@pytest.mark.parametrize(("num_nodes", "m"), [(2, 1), (40, 1), (200, 5), (7, 6)])
def test_a_barabasi_albert_graph_has_m_edges_a_new_node(num_nodes: int, m: int) -> None:
    graph = barabasi_albert(num_nodes, m, rng())
    assert graph.num_nodes == num_nodes
    assert graph.num_edges == m * (num_nodes - m)
    assert nx.is_connected(as_networkx(graph))
    older = [sum(u < v for u in graph.neighbors_of(v).tolist()) for v in range(m + 1, num_nodes)]
    assert older == [m] * (num_nodes - m - 1)


def test_a_duplication_divergence_graph_is_connected_and_bipartite() -> None:
    for retention in (0.1, 0.5, 0.9):
        graph = duplication_divergence(300, retention, rng())
        assert graph.num_nodes == 300
        assert nx.is_connected(as_networkx(graph))
        # A copy is never joined to its original, so the two sides of the first edge never mix.
        assert nx.is_bipartite(as_networkx(graph))


def plain_search(graph: Graph, start: int, size: int, max_depth: int) -> list[int]:
    """A breadth-first search by a queue; older neighbours first, by id modulo 32, then newer ones by id."""
    found, depth = [start], {start: 0}
    for node in found:  # grows while it is read
        near = graph.neighbors_of(node).tolist()
        for u in sorted((u for u in near if u < node), key=lambda u: u % 32) + [u for u in near if u > node]:
            if u not in depth and depth[node] < max_depth:
                depth[u] = depth[node] + 1
                found.append(u)
    return found[:size]


def test_the_first_nodes_of_a_breadth_first_search_are_taken_in_its_order() -> None:
    for num_nodes, m, size, depth in [(400, 5, 20, 3), (400, 1, 30, 2), (60, 2, 9, 1), (30, 3, 29, 5)]:
        graph = barabasi_albert(num_nodes, m, rng())
        rows = [row.tolist() for row in bfs_subgraphs(graph, 40, size=size, max_depth=depth, rng=rng())]
        assert rows == [plain_search(graph, row[0], size, depth) for row in rows]
        assert len({row[0] for row in rows}) > 15
        assert (size, depth) == (20, 3) or min(map(len, rows)) < size or size == 29


def test_each_subgraph_in_turn_is_near_its_target_or_had_a_hundred_tries() -> None:
    graph = barabasi_albert(120, 4, rng())
    found = bfs_subgraphs(graph, 30, size=16, max_depth=3, rng=rng())
    subgraphs = Ragged.from_rows([np.sort(row) for row in found])
    targets = rng().choice([0.0, 0.05, 0.25, 0.45, 0.95, 1.0], size=30)
    done, missed = graph, 0
    for s in range(30):
        first = Ragged.from_rows([subgraphs[i] for i in range(s + 1)])
        # The draws of a subgraph are its own, so the first s subgraphs get the same edges as before.
        edited, tries = set_densities(graph, first, targets[: s + 1], rng())
        nodes = subgraphs[s].tolist()
        changed = edges_of(edited) ^ edges_of(done)
        assert {u for pair in changed for u in pair} <= set(nodes)
        near = abs(nx.density(as_networkx(edited).subgraph(nodes)) - targets[s]) < TOLERANCE
        assert near or tries[s] == MAX_TRIES
        assert len(changed) <= tries[s] <= MAX_TRIES
        missed += not near
        done = edited
    assert 0 < missed < 15
    final = shapes(*done.csr, subgraphs).density
    assert (np.abs(final - targets) >= TOLERANCE).sum() > missed  # later subgraphs changed earlier ones


def test_border_edges_are_added_exactly_and_nothing_inside_moves() -> None:
    graph = barabasi_albert(200, 4, rng())
    sites = planting_nodes(graph, 12, size=6, max_uses=3, max_degree=200, rng=rng())
    subgraphs = Ragged.from_rows(np.sort(sites, axis=1))
    before = shapes(*graph.csr, subgraphs)
    missing = np.arange(12) * 7
    grown = add_border_edges(graph, subgraphs, missing, rng())
    after = shapes(*grown.csr, subgraphs)
    assert (after.cut_edges - before.cut_edges).tolist() == missing.tolist()
    assert after.density.tolist() == before.density.tolist()
    assert edges_of(graph) <= edges_of(grown)


def test_a_core_piece_gives_its_site_the_sum_of_core_numbers_it_says() -> None:
    graph = duplication_divergence(200, 0.6, rng())
    blocks = DegreeBlocks(graph, 12, rng(), mixing=0.3)
    found = 0
    for block in range(len(blocks)):
        site = blocks.nodes(block)
        if site is None:
            continue
        assert int(site[1]) in graph.neighbors_of(int(site[0]))
        blocks.used[block] = True
        tails, heads, core_sum = draw_core_graph(graph, site, retention=0.7, sums=(18, 30), rng=rng(str(block)))
        planted = plant(graph, end_to_end([(12, tails, heads)]), site)
        cores = core_numbers(*induced_graph(*planted.csr, Ragged.from_rows([np.sort(site)])))
        assert cores.sum() == core_sum
        assert 18 <= core_sum <= 30
        found += 1
    assert found > len(blocks) // 2
