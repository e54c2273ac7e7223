"""Measuring in parts: equal, byte for byte, to measuring at once; bundles that workers do not find."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from subgnn import Dataset, Graph, SubgraphSet, write_bundle
from subgnn.errors import DataError, UserError
from subgnn.parallel.engine import LocalEngine
from subgnn.prepare import distributed
from subgnn.prepare.distributed import DistributedMeasuring, MappedGraph, place_graph
from subgnn.prepare.measure import Plan, prepare
from tests.models.subgnn.examples import ALL_CHANNELS, SMALL, random_graph, random_subgraphs
from tests.prepared_equal import assert_same


class Reversed(LocalEngine):
    """Ends jobs in the other order, and remembers them."""

    def __init__(self, slots=1):
        super().__init__()
        self.asked, self.jobs = slots, []

    @property
    def slots(self):
        return self.asked

    def map(self, function, jobs):
        self.jobs += jobs
        return super().map(function, list(reversed(jobs)))


def both(engine, graph, subgraphs, *, channels=ALL_CHANNELS, settings=SMALL, source=None):
    plan = Plan(channels, 2, settings, seed=3)
    measuring = DistributedMeasuring(engine, place_graph(engine, graph, source=source))
    return prepare(graph, subgraphs, plan), prepare(graph, subgraphs, plan, measuring=measuring)


@pytest.mark.quick(2)
@pytest.mark.parametrize("slots", [1, 2, 50])
@pytest.mark.parametrize("seed", range(3))
def test_parts_do_not_change_a_byte(monkeypatch, slots, seed):
    # So that the anchors of two layers meet in one word, and one layer is cut.
    monkeypatch.setattr(distributed, "WORD", 3)
    engine = Reversed(slots)
    assert_same(*both(engine, random_graph(seed, 40, 60), random_subgraphs(seed, 40, 20)))
    ranges = {what: [] for what in ("anchors", "subgraphs")}
    for job in engine.jobs:
        ranges["anchors" if job.channel else "subgraphs"].append((job.begin, job.end))
    assert ranges["anchors"] == [(0, 3), (3, 6), (6, 8)]
    bounds = [begin for begin, _ in ranges["subgraphs"]]
    assert [end for _, end in ranges["subgraphs"]] == [*bounds[1:], 20]
    assert (len(bounds) > 4) == (slots > 1)


@pytest.mark.slow
def test_settings_and_orientations():
    rng = np.random.default_rng(0)
    ends = np.unique(np.sort(rng.integers(0, 40, (90, 2))), axis=0)
    graph = Graph.from_edges(*ends[ends[:, 0] != ends[:, 1]].T, num_nodes=40, directed=True).undirected()
    for changes in (
        {"directed": True},
        {"own_hops": "bounded"},
        {"hops": 2},
        {"border_anchors": "heaviest"},
    ):
        assert_same(*both(Reversed(3), graph, random_subgraphs(2, 40, 9), settings=replace(SMALL, **changes)))


def test_no_subgraphs():
    assert_same(*both(Reversed(), random_graph(0), random_subgraphs(0).take([])))


def test_a_bundle_is_mapped_where_it_is_the_graph_itself(tmp_path):
    graph, nodes = random_graph(0), random_subgraphs(0)
    dataset = Dataset("d", graph, SubgraphSet.from_lists(list(nodes), num_nodes=12, labels=["a"] * len(nodes)))
    write_bundle(dataset, tmp_path / "d.subgnn")
    engine = LocalEngine()
    placed = place_graph(engine, graph, source=tmp_path / "d.subgnn")
    assert placed == MappedGraph(str(tmp_path / "d.subgnn"), graph.content_hash)
    assert isinstance(placed.get().neighbors.base, np.ndarray)
    assert_same(*both(engine, graph, nodes, source=tmp_path / "d.subgnn"))
    assert not isinstance(place_graph(engine, graph, source=tmp_path), MappedGraph)
    turned = Graph.from_edges([0], [1], directed=True).undirected()
    assert place_graph(engine, turned, source=tmp_path / "d.subgnn").get().oriented.directed


def test_a_bundle_that_is_not_there_or_another_one(tmp_path):
    graph = random_graph(0)
    with pytest.raises(
        DataError, match=r"d\.subgnn: there is no such file on .*; put the bundle at this path on every machine"
    ):
        MappedGraph(str(tmp_path / "d.subgnn"), graph.content_hash).get()
    write_bundle(Dataset("d", graph, SubgraphSet.from_lists([[0]], num_nodes=12)), tmp_path / "d.subgnn")
    with pytest.raises(DataError, match="holds a different graph"):
        MappedGraph(str(tmp_path / "d.subgnn"), "other").get()


def test_a_failure_is_told():
    class Gone:
        def get(self):
            raise DataError("gone", where="there")

    graph, subgraphs = random_graph(0), random_subgraphs(0)
    frame = prepare(graph, subgraphs, Plan(channels=ALL_CHANNELS, layers=1, settings=SMALL, seed=0)).frame
    with pytest.raises(UserError, match="there: gone"):
        DistributedMeasuring(LocalEngine(), Gone())(graph, subgraphs, frame)
