"""The model that ranks nodes: what it learns, what it stores, and what it answers."""

from types import SimpleNamespace

import numpy as np
import pytest

from subgnn.channels import diffusion
from subgnn.data.graph import Graph
from subgnn.errors import DataError, DataWarning
from subgnn.inference import complete as module
from subgnn.inference.complete import GROUPS, NAMES, Completer, Ranker
from subgnn.ragged import Ragged
from subgnn.rng import stream
from subgnn.storage.cache import cache_entries

SIZE, COUNT = 8, 12
N = SIZE * COUNT


def communities(seed=0):
    """A ring of dense communities, each a known subgraph."""
    draws = stream(seed, "test/communities")
    edges = {
        (u, v)
        for c in range(COUNT)
        for u in range(c * SIZE, (c + 1) * SIZE)
        for v in range(u + 1, (c + 1) * SIZE)
        if draws.random() < 0.6
    }
    edges |= {(c * SIZE, ((c + 1) % COUNT) * SIZE) for c in range(COUNT)}
    graph = Graph.from_edges([u for u, _ in edges], [v for _, v in edges], num_nodes=N)
    return graph, Ragged.from_rows([np.arange(c * SIZE, (c + 1) * SIZE) for c in range(COUNT)])


@pytest.fixture(scope="module")
def fitted():
    graph, known = communities()
    return Completer.fit(graph, known.take(np.arange(COUNT - 3)))


def test_missing_members_come_first(fitted):
    for c in range(COUNT - 3, COUNT):  # communities that the model has not seen
        members = np.arange(c * SIZE, (c + 1) * SIZE)
        (found,) = fitted.complete(Ragged.from_rows([members[2:]]), top=2)
        assert sorted(found.nodes.tolist()) == members[:2].tolist()
        assert (found.probabilities > 0.3).all()


def test_scores_are_probabilities_that_sum_to_the_members_left_out(fitted):
    asked = Ragged.from_rows([np.arange(c * SIZE, (c + 1) * SIZE)[2:] for c in range(COUNT - 3)])
    found = list(fitted.complete(asked, top=N))
    assert all(((one.probabilities >= 0) & (one.probabilities <= 1)).all() for one in found)
    expected = sum(one.probabilities.sum() for one in found)
    assert expected == pytest.approx(2 * (COUNT - 3), rel=0.35)


def test_terms_add_up_to_the_log_odds(fitted):
    (found,) = fitted.complete(Ragged.from_rows([[0, 1, 2]]), top=5)
    odds = np.log(found.probabilities / (1 - found.probabilities))
    np.testing.assert_allclose(fitted.ranker.bias + found.contributions.sum(axis=1), odds, rtol=1e-6)
    names = list(GROUPS)
    assert found.reasons == [names[i] for i in np.argmax(found.contributions, axis=1)]
    assert found.contributions.shape == (5, len(GROUPS))


def test_every_node_outside_is_ranked_once_and_ties_go_by_row(fitted):
    (found,) = fitted.complete(Ragged.from_rows([[3, 4]]), top=10**6)
    assert sorted(found.nodes.tolist()) == [v for v in range(N) if v not in (3, 4)]
    assert (np.diff(found.probabilities) <= 0).all()
    blank = Completer(fitted.features, Ranker(np.zeros(len(NAMES)), np.zeros(len(NAMES)), 0.0))
    (found,) = blank.complete(Ragged.from_rows([[3, 4]]), top=4)
    assert found.nodes.tolist() == [0, 1, 2, 5]
    assert found.probabilities.tolist() == [0.5] * 4


def test_among(fitted):
    asked = Ragged.from_rows([[0, 1, 2], [40, 41]])
    every = list(fitted.complete(asked, top=N))
    few = np.array([1, 3, 40, 77])
    for whole, found in zip(every, fitted.complete(asked, top=N, among=few), strict=True):
        kept = np.isin(whole.nodes, few)
        assert found.nodes.tolist() == whole.nodes[kept].tolist()
        np.testing.assert_allclose(found.probabilities, whole.probabilities[kept])


def test_candidates_are_ranked_in_blocks(fitted, monkeypatch):
    asked = Ragged.from_rows([[0, 1, 2], [40, 41]])
    whole = list(fitted.complete(asked, top=11))
    monkeypatch.setattr(module, "_BLOCK", 7)
    for found, wanted in zip(fitted.complete(asked, top=11), whole, strict=True):
        assert found.nodes.tolist() == wanted.nodes.tolist()
        np.testing.assert_array_equal(found.contributions, wanted.contributions)


def test_an_answer_depends_on_its_subgraph_alone(fitted):
    sets = [[0, 1], [50, 51, 52], [90]]
    together = fitted.complete(Ragged.from_rows(sets), top=5)
    for nodes, found in zip(sets, together, strict=True):
        (alone,) = fitted.complete(Ragged.from_rows([nodes]), top=5)
        assert alone.nodes.tolist() == found.nodes.tolist()
        np.testing.assert_allclose(alone.probabilities, found.probabilities, rtol=1e-5)


def test_a_subgraph_that_is_the_whole_graph_has_no_candidates(fitted):
    (found,) = fitted.complete(Ragged.from_rows([np.arange(N)]), top=5)
    assert len(found.nodes) == 0
    assert found.reasons == []


def test_the_seed_decides(fitted, monkeypatch):
    monkeypatch.setenv("SUBGNN_CACHE_LIMIT", "0")
    graph, known = communities()
    known = known.take(np.arange(COUNT - 3))
    again = Completer.fit(graph, known).ranker
    np.testing.assert_array_equal(again.weights, fitted.ranker.weights)
    assert again.bias == fitted.ranker.bias
    assert not np.array_equal(Completer.fit(graph, known, seed=1).ranker.weights, again.weights)


def test_a_subgraph_and_its_group_take_no_part_in_their_own_features(monkeypatch):
    graph, known = communities()
    seen = []
    original = module.PairFeatures.table

    def table(self, query, nodes, **options):
        seen.append((query.nodes.tolist(), options["unused"].tolist()))
        return original(self, query, nodes, **options)

    monkeypatch.setattr(module.PairFeatures, "table", table)
    monkeypatch.setenv("SUBGNN_CACHE_LIMIT", "0")
    Completer.fit(graph, known, groups=np.arange(COUNT) // 2)
    assert len(seen) == COUNT
    for nodes, unused in seen:
        pair = nodes[0] // SIZE // 2
        assert unused == [2 * pair, 2 * pair + 1]


def test_a_large_graph_is_searched_near_the_subgraph(fitted, monkeypatch):
    asked = Ragged.from_rows([np.arange(2, SIZE)])
    (exact,) = fitted.complete(asked, top=2)
    monkeypatch.setattr(diffusion, "EXACT_NODES", 0)
    (found,) = fitted.complete(asked, top=2)
    assert found.nodes.tolist() == exact.nodes.tolist()
    assert module._fit(fitted.features, np.arange(COUNT - 3), 0).weights.any()


def test_the_model_is_stored_and_a_damaged_file_is_replaced(tmp_path, monkeypatch):
    monkeypatch.setenv("SUBGNN_CACHE", str(tmp_path))
    graph, known = communities(seed=5)
    first = Completer.fit(graph, known).ranker
    (path,) = [entry.path for entry in cache_entries()]
    before = path.read_bytes()
    again = Completer.fit(graph, known).ranker
    np.testing.assert_array_equal(again.weights, first.weights)
    np.testing.assert_array_equal(again.means, first.means)
    assert again.bias == first.bias
    path.write_bytes(before[:-1] + bytes([before[-1] ^ 1]))
    with pytest.warns(DataWarning, match="damaged and ignored"):
        Completer.fit(graph, known)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "arrays",
    [
        {"weights": np.zeros(3), "means": np.zeros(len(NAMES)), "bias": np.zeros(1)},
        {"weights": np.full(len(NAMES), np.nan), "means": np.zeros(len(NAMES)), "bias": np.zeros(1)},
        {"weights": np.zeros(len(NAMES), np.float32), "means": np.zeros(len(NAMES)), "bias": np.zeros(1)},
        {"weights": np.zeros(len(NAMES))},
    ],
)
def test_wrong_arrays_are_refused(arrays):
    with pytest.raises(DataError, match="not those of a completion model"):
        Ranker.read(SimpleNamespace(arrays=arrays, where="it"))


def test_known_subgraphs_of_one_node_are_refused():
    graph, _ = communities()
    with pytest.raises(DataError, match="no known subgraph has two or more nodes"):
        Completer.fit(graph, Ragged.from_rows([[1], [2]]))
