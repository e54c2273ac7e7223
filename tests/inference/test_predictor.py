"""What a predictor keeps between calls changes no answer, and is made once."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from subgnn.data.graph import Graph
from subgnn.inference.predictor import Predictor
from subgnn.models.subgnn import fitted
from subgnn.ragged import Ragged
from tests.inference.explained import explained, run_of
from tests.training.examples import CHANNELS, dataset, recipe

SETS = Ragged.from_rows([[0, 1, 2], [5, 9, 20], [23]])


def plain(predictor: Predictor, method: str) -> np.ndarray:
    """The network's own answers, with nothing kept."""
    measured = predictor.measured(SETS)
    with torch.no_grad():
        return getattr(measured.networks[0].network, method)(measured.inputs.whole).numpy()


@pytest.mark.quick(2)
@pytest.mark.parametrize("options", [{}, {"layers": 2, "topology": True}, {"trainable_components": True}])
def test_kept_vectors_give_the_networks_own_answers(options):
    _, predictor = explained(**options)
    assert np.array_equal(predictor.outputs(SETS), plain(predictor, "forward"))
    assert np.array_equal(predictor.embeddings(SETS), plain(predictor, "embed"))


def counted(monkeypatch, target, name):
    """How often a function is called from here on."""
    calls = []
    original = getattr(target, name)
    monkeypatch.setattr(target, name, lambda *args, **kwargs: calls.append(1) or original(*args, **kwargs))
    return calls


def test_the_graph_is_hashed_and_the_network_built_once(monkeypatch):
    data, trained = explained()
    hashed, built = counted(monkeypatch, Graph, "compute_hash"), counted(monkeypatch, fitted, "OpenNetwork")
    predictor = Predictor(trained.checkpoint, data.graph)
    for i in range(len(SETS)):
        predictor.outputs(SETS.take([i]))
    assert len(hashed) == 1
    assert len(built) == 1


def test_a_table_that_may_not_be_kept_whole_grows_and_answers_the_same(monkeypatch):
    data, trained = explained()
    built = counted(monkeypatch, fitted, "OpenNetwork")
    predictor = Predictor(trained.checkpoint, data.graph, cached_numbers=0)
    answers = [predictor.outputs(SETS.take([i])) for i in range(len(SETS))]
    assert built
    np.testing.assert_allclose(np.concatenate(answers), trained.outputs(SETS), rtol=1e-5, atol=1e-6)


def test_a_directed_graph_is_known_in_either_form_and_hashed_once(monkeypatch):
    plain, settings = dataset(), recipe(1, channels=CHANNELS[:2])
    tails, heads, _ = plain.graph.edges()
    data = replace(plain, graph=Graph.from_edges(tails, heads, directed=True))
    trained = run_of(data, settings)
    hashed = counted(monkeypatch, Graph, "compute_hash")
    predictor = Predictor(trained.checkpoint, data.graph.undirected())
    assert np.array_equal(predictor.outputs(SETS), trained.outputs(SETS))
    assert len(hashed) == 2  # of both forms
    turned = Predictor(trained.checkpoint, data.graph.reverse())
    assert np.array_equal(turned.outputs(SETS), trained.outputs(SETS))
