"""Colours of 1-WL against nested tuples, and WLKS against scikit-learn on kernels that count pairs of nodes."""

from collections import Counter
from itertools import product

import networkx as nx
import numpy as np
import pytest
from scipy import sparse
from sklearn.svm import SVC

from subgnn import Dataset, Graph, Ragged, SubgraphSet
from subgnn.api.train_recipe import train
from subgnn.inference.predictor import Predictor
from subgnn.models.checkpoint import load_checkpoint
from subgnn.models.peers import wlks
from subgnn.models.peers.wlks import Fit, graph_colours, machine_scores, subgraph_colours, table_of, table_rows
from subgnn.training.fit import set_up
from subgnn.training.run_dir import CHECKPOINT
from tests.models.examples import recipe, training_data, two_triangles
from tests.models.subgnn.examples import random_graph, random_subgraphs
from tests.training.examples import dataset


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


@pytest.mark.parametrize("at_once", [7, 2**20])
@pytest.mark.parametrize("seed", range(3))
def test_colours_are_those_of_nested_tuples(seed, at_once, monkeypatch):
    monkeypatch.setattr(wlks, "_AT_ONCE", at_once)
    graph, nodes = random_graph(seed), random_subgraphs(seed)
    whole, tables = as_networkx(graph), [{}, {}]
    for rounds, colours in enumerate(graph_colours(graph, 3), 1):
        wanted = nested(whole, rounds)
        assert same_partition(colours.tolist(), [wanted[v] for v in range(graph.num_nodes)])
    found = subgraph_colours(graph, nodes, tables)
    assert [table_of(table_rows(table)) for table in tables] == tables
    for rounds, colours in enumerate(found, 1):
        wanted = []
        for row in nodes:
            inside = nested(whole.subgraph(row.tolist()), rounds)
            wanted += [inside[v] for v in row.tolist()]
        assert same_partition(colours.tolist(), wanted)


def test_what_the_tables_do_not_have_gets_numbers_beyond_them():
    tables = [{}]
    subgraph_colours(two_triangles(), Ragged.from_rows([[0, 1]]), tables)
    (found,) = subgraph_colours(two_triangles(), Ragged.from_rows([[3, 4], [3, 4, 5]]), tables)
    assert found.tolist() == [0, 0, 1, 1, 1]


def settings(**chosen):
    values = {"rounds": [2], "mix": [0.7], "normalize": "rows", "inverse_penalty": [2.0], "cumulative": "false"}
    return [f"wlks.{name}={value}" for name, value in (values | chosen).items()]


def naive_kernel(data: Dataset, *, rounds, mix, normalize) -> np.ndarray:
    """K of all pairs, by counters of nested tuples."""
    whole = as_networkx(data.graph)
    total = np.zeros((len(data.subgraphs),) * 2)
    for i, share in product(rounds, (mix, None)):
        of_graph = nested(whole, i)
        counts = []
        for row in data.subgraphs.nodes:
            colours = nested(whole.subgraph(row.tolist()), i) if share is None else of_graph
            counts.append(Counter(colours[v] for v in row.tolist()))
        kernel = np.array([[sum(a[c] * b[c] for c in a) for b in counts] for a in counts], float)
        if normalize == "rows":
            length = np.sqrt(np.diag(kernel))
            kernel = kernel / np.outer(length, length)
        total += (1 - mix if share is None else share) * kernel
    return total


@pytest.mark.parametrize("chosen", [{}, {"normalize": "none"}, {"cumulative": "true"}, {"mix": [1.0]}, {"mix": [0.0]}])
def test_it_is_the_machine_of_the_naive_kernel(chosen):
    data = dataset()
    candidates, examples = set_up(training_data(data.graph, data.subgraphs), recipe("wlks", *settings(**chosen)))
    network = candidates[0].network
    network.solve(examples)
    kernel = naive_kernel(
        data,
        rounds=(1, 2) if "cumulative" in chosen else (2,),
        mix=chosen.get("mix", [0.7])[0],
        normalize=chosen.get("normalize", "rows"),
    )
    train, targets = examples.train, data.subgraphs.targets
    machine = SVC(kernel="precomputed", C=2.0, decision_function_shape="ovo")
    machine.fit(kernel[np.ix_(train, train)], targets[train])
    every = np.arange(len(data.subgraphs))
    found = network.embed(examples.inputs.batch(every))
    # Of two classes libsvm decides for the first above 0, we for the second.
    np.testing.assert_allclose(found, -machine.decision_function(kernel[:, train]), rtol=1e-3, atol=1e-3)


def test_scores_are_votes_and_of_equal_votes_the_sum_decides():
    #                 0/1   0/2   1/2: 0 beats 1, 2 beats 0, 1 beats 2; 2 wins by most
    scores = machine_scores(np.array([[-1.0, 3.0, -1.5], [-1.0, -1.0, 2.0]]), "multi-class", 3)
    assert scores[0].argmax() == 2
    assert np.round(scores[0]).tolist() == [1, 1, 1]
    assert scores[1].argsort()[::-1].tolist() == [0, 2, 1]
    assert machine_scores(np.array([[0.5]]), "binary", 2).tolist() == [[-0.25, 0.25]]


def test_a_class_that_training_lacks_is_never_predicted():
    rows = sparse.csr_array(np.random.default_rng(0).random((20, 5)))
    targets = np.arange(20) % 2 * 2  # classes 0 and 2 of 0..3
    weight, bias, _ = Fit("multi-class", 4, 1.0)(rows, (rows @ rows.T).toarray(), targets)
    assert set(machine_scores(rows @ weight + bias, "multi-class", 4).argmax(axis=1)) <= {0, 2}


@pytest.mark.filterwarnings("ignore:.*the same nodes")
def test_colours_that_training_has_not_seen_match_nothing(tmp_path):
    pairs = [[2 * i, 2 * i + 1] for i in range(8)]
    edges = np.array([*pairs, [16, 17], [17, 18], [16, 18]])
    subgraphs = SubgraphSet.from_lists(
        [*pairs, *([2 * i] for i in range(8))] * 2,
        num_nodes=19,
        labels=(["pair"] * 8 + ["single"] * 8) * 2,
        splits=["train"] * 16 + ["val"] * 16,
    )
    data = Dataset("pairs", Graph.from_edges(*edges.T), subgraphs)
    train(data, recipe("wlks", *settings(mix=[0.0])), tmp_path / "run")
    predictor = Predictor(tmp_path / "run" / CHECKPOINT, data.graph)
    found = predictor.embeddings(Ragged.from_rows([[16, 17, 18], [16, 17]]))
    np.testing.assert_allclose(found[0], load_checkpoint(tmp_path / "run" / CHECKPOINT).weights["bias"])
    assert predictor.outputs(Ragged.from_rows([[16, 17], [18]])).argmax(axis=1).tolist() == [0, 1]
    # Unseen colours count in the length of a histogram.
    beside = predictor.embeddings(Ragged.from_rows([[0, 1, 16, 17, 18]]))[0]
    np.testing.assert_allclose(beside - found[0], (found[1] - found[0]) * 2 / np.sqrt(2**2 + 3**2), rtol=1e-4)


def test_many_subgraphs_are_fitted_without_a_matrix(monkeypatch):
    data = dataset()
    outputs = []
    for largest in (wlks._LARGEST_MATRIX, 5):
        monkeypatch.setattr(wlks, "_LARGEST_MATRIX", largest)
        candidates, examples = set_up(training_data(data.graph, data.subgraphs), recipe("wlks", *settings()))
        candidates[0].network.solve(examples)
        outputs.append(candidates[0].network.embed(examples.inputs.batch(examples.train)))
    np.testing.assert_allclose(*outputs, atol=0.1)
