"""A run answers on a graph other than the one it was trained on, matched by the names of nodes."""

import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import subgnn
from subgnn.data.dataset import Dataset
from subgnn.data.graph import Graph
from subgnn.data.node_match import NodeMatch, matchable
from subgnn.data.strings import NodeNames
from subgnn.data.subgraphs import SubgraphSet
from subgnn.errors import DataError, DataWarning
from subgnn.inference.open import OpenedRun, evaluate_split, open_run, score
from subgnn.models.checkpoint import load_checkpoint, save_checkpoint
from subgnn.models.registry import MODELS
from subgnn.ragged import Ragged
from subgnn.training.run_dir import CHECKPOINT
from tests.pages import ROOT

NODES = 60
RECIPES = {
    "bag": {},
    "bag-1hop": {},
    "topology": {"topology.classifier": "boosting"},
    "enrichment": {},
    "profiles": {},
    "diffusion-topology": {},
    "wlks": {"wlks.rounds": [1], "wlks.mix": [0.5], "wlks.inverse_penalty": [0.64], "wlks.normalize": "rows"},
    "unsupervised": {},
    "avg": {"training.epochs": 2},
    "s2n": {"training.epochs": 2},
    "glass": {"training.epochs": 2, "embeddings.source": "random", "embeddings.dim": 8},
    "surroundings": {"training.epochs": 2, "embeddings.dim": 8},
    "auto": {"auto.only": ["bag", "diffusion"], "auto.repeats": 1},
}


def named(tails, heads, num_nodes: int = NODES) -> Graph:
    return Graph.from_edges(tails, heads, num_nodes=num_nodes, names=NodeNames.of(f"n{i}" for i in range(num_nodes)))


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    rng = np.random.default_rng(3)
    pairs = {tuple(sorted(pair)) for pair in rng.integers(0, NODES, (240, 2)).tolist() if pair[0] != pair[1]}
    graph = named(*np.array(sorted(pairs)).T)
    sets = [np.unique(rng.integers(0, 30, 6) + 30 * (i % 2)) for i in range(45)]
    splits = ["train"] * 25 + ["val"] * 10 + ["test"] * 10
    labels = ["low" if i % 2 else "high" for i in range(45)]
    subgraphs = SubgraphSet.from_lists(sets, labels=labels, splits=splits, num_nodes=NODES)
    return Dataset("two halves", graph, subgraphs)


@pytest.fixture(scope="module")
def run_of(dataset, tmp_path_factory):
    made = {}

    def train(recipe: str):
        if recipe not in made:
            out = tmp_path_factory.mktemp("runs") / recipe
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                subgnn.train(dataset, out, recipe=recipe, settings=RECIPES[recipe], report=False, progress=False)
            made[recipe] = out
        return made[recipe]

    return train


def renumbered(graph: Graph, order: np.ndarray) -> Graph:
    """The graph whose row i is row order[i] of this one."""
    place = np.argsort(order)
    tails, heads, _ = graph.edges()
    names = None if graph.names is None else NodeNames.of(graph.names[int(i)] for i in order)
    return Graph.from_edges(place[tails], place[heads], num_nodes=graph.num_nodes, names=names)


def by_name(graph: Graph, nodes: Ragged) -> list[list[str]]:
    return [[f"n{node}" for node in row] for row in nodes]


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.quick(7)
def test_the_same_graph_gives_the_same_answers(recipe, dataset, run_of):
    """Given as another graph, with nodes in another order, and with further nodes that no edge reaches."""
    run, nodes = run_of(recipe), dataset.subgraphs.nodes
    before = open_run(run).predictor.outputs(nodes)
    np.testing.assert_array_equal(open_run(run, graph=dataset.graph).predictor.outputs(nodes), before)
    tails, heads, _ = dataset.graph.edges()
    more = open_run(run, graph=named(tails, heads, NODES + 3))
    assert more.match is not None
    assert more.match.nodes == (NODES, 3, 0)
    if recipe not in ("glass", "topology", "enrichment", "diffusion-topology", "unsupervised"):  # which count all nodes
        np.testing.assert_allclose(more.predictor.outputs(nodes), before, rtol=2e-4, atol=2e-4)
    # Own anchors are drawn by the numbers of nodes, and trees may split elsewhere where statistics differ in rounding.
    if recipe in ("surroundings", "topology"):
        return
    other = open_run(run, graph=renumbered(dataset.graph, np.random.default_rng(1).permutation(NODES)))
    assert other.match is not None
    assert other.match.line.startswith(f"{NODES} nodes as in training, 0 new, 0 gone")
    rows = other.predictor.rows(by_name(dataset.graph, nodes))
    np.testing.assert_allclose(other.predictor.outputs(rows), before, rtol=2e-4, atol=2e-4)
    np.testing.assert_allclose(other.predictor.novelty(rows), open_run(run).predictor.novelty(nodes), atol=0.05)


@pytest.mark.parametrize("recipe", ["bag-1hop", "profiles", "diffusion-topology", "surroundings"])
def test_a_grown_graph_is_seen(recipe, dataset, run_of):
    """New nodes and edges change answers, gone nodes are told, and the run's own subgraphs can be scored there."""
    run, nodes = run_of(recipe), dataset.subgraphs.nodes
    tails, heads, _ = dataset.graph.edges()
    kept = (tails != 0) & (heads != 0)
    near = np.flatnonzero(np.arange(1, NODES) < 30) + 1
    grown = named(np.append(tails[kept], near), np.append(heads[kept], np.full(len(near), NODES)), NODES + 1)
    names = NodeNames.of(f"n{i}" for i in range(1, NODES + 1))
    fewer = Graph.from_edges(*(ends - 1 for ends in grown.edges()[:2]), num_nodes=NODES, names=names)
    opened = open_run(run, graph=fewer)
    assert opened.match is not None
    assert opened.match.nodes == (NODES - 1, 1, 1)
    assert opened.match.edges == (int(kept.sum()) + len(near), len(kept))
    assert any("gone" in line for line in opened.match.lines[1:])
    new_one = opened.predictor.rows([["n3", f"n{NODES}"]])
    assert np.isfinite(opened.predictor.outputs(new_one)).all()
    without = Ragged.from_rows([row[row > 0] - 1 for row in nodes])
    assert not np.allclose(opened.predictor.outputs(without), open_run(run).predictor.outputs(nodes), atol=1e-6)
    scores, _ = score(opened.predictor, opened.split("test", "run"))
    assert evaluate_split(run, "test", graph=None).test.keys() == scores.keys()


def test_new_nodes_have_the_mean_of_their_neighbours():
    old = Graph.from_edges([0, 1], [1, 2])
    new = Graph.from_edges([0, 1, 0, 2, 3, 4], [1, 2, 3, 3, 4, 5], num_nodes=7)
    match = NodeMatch.of(matchable(Dataset("path", old, SubgraphSet.from_lists([], num_nodes=3))), new)
    vectors = match.vectors(np.array([[1.0], [4.0], [7.0]], np.float32))
    assert vectors[:, 0].tolist() == [1, 4, 7, 4, 4, 4, 4]
    assert match.line == "3 nodes as in training, 4 new, 0 gone; 6 edges, 2 in training"


def test_names_that_are_empty_or_repeated_match_nothing():
    def graph(*names: str) -> Graph:
        return Graph.from_edges([0], [1], num_nodes=len(names), names=NodeNames.of(names))

    old = matchable(Dataset("named", graph("a", "b", "", "c", "d", "d"), SubgraphSet.from_lists([], num_nodes=6)))
    assert NodeMatch.of(old, graph("d", "c", "b", "", "b", "a")).places.tolist() == [5, -1, -1, 1, -1, -1]


def test_what_cannot_be_matched_is_refused(dataset, run_of, tmp_path):
    run, (tails, heads, _) = run_of("bag-1hop"), dataset.graph.edges()
    others = Graph.from_edges(tails, heads, names=NodeNames.of(f"x{i}" for i in range(NODES)))
    with pytest.raises(DataError, match="no node of this graph is in the graph that the run was trained on"):
        open_run(run, graph=others)
    with pytest.raises(DataError, match="the run's graph has names of nodes, but this one has none"):
        open_run(run, graph=Graph.from_edges(tails, heads))
    weighted = Graph.from_edges(tails, heads, weights=np.ones(len(tails)), names=dataset.graph.names)
    assert "edge weights: ignored, as the run's graph has none" in open_run(run, graph=weighted).match.lines
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    for path in run.iterdir():
        if path.is_file():
            (damaged / path.name).write_bytes(path.read_bytes())
    checkpoint = load_checkpoint(run / CHECKPOINT)
    nodes = checkpoint.weights["nodes"].copy()
    nodes[0] = -5
    save_checkpoint(replace(checkpoint, weights=checkpoint.weights | {"nodes": nodes}), damaged / CHECKPOINT)
    with pytest.raises(DataError, match="not in the graph"):
        open_run(damaged, graph=named(tails, heads, NODES + 1))
    (damaged / "trained_on.subgnn").write_bytes(b"nothing")
    with pytest.raises(DataError, match="train again"):
        open_run(damaged, graph=named(tails, heads, NODES + 1))


def test_a_model_says_what_it_does_on_another_graph():
    rows = [line for line in (ROOT / "docs" / "grow.md").read_text().splitlines() if line.startswith("| `")]
    for name, model in MODELS.items():
        (row,) = [row for row in rows if f"`{name}`" in row.split("|")[1]]
        assert row.split("|")[2].strip() == (model.on_new_graph or "cannot: train again on it")
    cannot = {name for name, model in MODELS.items() if not model.on_new_graph}
    assert cannot == {"mn-gin", "mn-gat", "s2v-n", "s2v-s", "s2v-ns"}


def test_exports_and_python_take_another_graph(dataset, run_of, tmp_path):
    run = run_of("profiles")
    tails, heads, _ = dataset.graph.edges()
    grown = named(np.append(tails, 5), np.append(heads, NODES), NODES + 1)
    edges = f"{len(tails) + 1} edges, {len(tails)} in training"
    with pytest.warns(DataWarning, match=f"60 nodes as in training, 1 new, 0 gone; {edges}"):
        opened = subgnn.load(run, graph=grown)
    expected = opened.predict([["n5", f"n{NODES}"]])
    for with_graph in (True, False):
        file = tmp_path / f"{with_graph}.safetensors"
        subgnn.load(run).export(file, with_graph=with_graph)
        with pytest.warns(DataWarning, match="1 new"):
            found = subgnn.load(file, graph=grown).predict([["n5", f"n{NODES}"]])
        np.testing.assert_allclose(found.iloc[0, 2:4].astype(float), expected.iloc[0, 2:4].astype(float), atol=1e-6)
    exported = tmp_path / "on the grown graph.safetensors"
    opened.export(exported)
    assert subgnn.load(exported).predict([["n5", f"n{NODES}"]]).equals(expected)


def test_a_split_without_subgraphs_has_no_score():
    subgraphs = SubgraphSet.from_lists([[0], [1]], num_nodes=2, labels=["a", "b"], splits=["train", "val"])
    opened = OpenedRun(SimpleNamespace(), SimpleNamespace(as_of=""), subgraphs, match=SimpleNamespace())
    assert opened.split("val", "run").names is None
    with pytest.raises(DataError, match=r"run: no subgraph in split 'test'; choose another split"):
        opened.split("test", "run")
