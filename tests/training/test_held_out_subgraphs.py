"""Test subgraphs have no part in training: without them a run has the same weights and gives the same answers."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from subgnn import Dataset, Graph, SubgraphSet
from subgnn.api.train_recipe import train
from subgnn.config.recipes import recipe_names
from subgnn.embeddings.sources import node_vectors
from subgnn.inference.predictor import Predictor
from subgnn.models.checkpoint import load_checkpoint
from subgnn.models.examples import outputs_of
from subgnn.models.recipes import find_recipe
from subgnn.models.tensor_model import PaperBaselineSettings
from subgnn.training import fit as fits
from subgnn.training.run_dir import CHECKPOINT

pytestmark = pytest.mark.slow

TRANSDUCTIVE = {"mn-gin", "mn-gat", "s2v-n", "s2v-s", "s2v-ns"}
INDUCTIVE = sorted(set(recipe_names()) - TRANSDUCTIVE - {"auto"})
SMALL = (
    "embeddings.source=random",
    "embeddings.dim=8",
    "model.head=[8, 8]",
    "training.epochs=3",
    "training.batch_size=8",
    "training.lr=1e-2",
    "training.weight_decay=0.1",
    "prepare.patch_length=2",
    "prepare.walks=1",
    "prepare.walk_length=2",
)
CLIQUES, SIZE = 300, 8
OWN = 20  # the first clique that a test subgraph may have to itself


def dataset(*, directed: bool = False, edge_types: bool = False) -> Dataset:
    """Node sets of a ring of cliques; those of test stand between the others and have nodes that no other has."""
    rng = np.random.default_rng(0)
    edges = [(c * SIZE + i, c * SIZE + j) for c in range(CLIQUES) for i in range(SIZE) for j in range(i)]
    edges += [(c * SIZE, ((c + 1) % CLIQUES) * SIZE + 1) for c in range(CLIQUES)]
    nodes, labels, splits = [], [], []
    for i in range(36):
        split = ("train", "test", "train", "val")[i % 4]
        home = i % 3
        inside = home * SIZE + rng.choice(SIZE, 3, replace=False)
        away = {"train": 4, "val": 8, "test": OWN + 2 * i}[split] * SIZE + rng.choice(SIZE, 4, replace=False)
        nodes.append(np.append(inside, away))
        labels.append(f"clique{home}")
        splits.append(split)
    features = rng.normal(size=(CLIQUES * SIZE, 3)) * [1, 10, 0.1] + np.arange(CLIQUES * SIZE)[:, None]
    tails, heads = np.array(edges).T
    kinds = None if not edge_types else np.where(tails // SIZE == heads // SIZE, "inside", "between")
    graph = Graph.from_edges(tails, heads, features=features, directed=directed, types=kinds)
    subgraphs = SubgraphSet.from_lists(nodes, num_nodes=graph.num_nodes, labels=labels, splits=splits)
    return Dataset("cliques", graph, subgraphs)


def without_test(data: Dataset) -> Dataset:
    kept = np.flatnonzero(data.subgraphs.splits != 2)
    return replace(data, subgraphs=data.subgraphs.take(kept))


def by_node(checkpoint) -> tuple[np.ndarray, dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    """The nodes of the table, its rows for each network, and all weights that are no rows of nodes.

    A table of unnamed nodes has a row for every node of the graph.
    """
    weights = dict(checkpoint.weights)
    nodes = np.asarray(weights.pop("nodes")) if "nodes" in weights else checkpoint.spec.table_nodes
    tables = {name: weights.pop(name) for name in list(weights) if name.rpartition(".")[2] == "table"}
    unnamed = not len(nodes) and bool(tables)
    return np.arange(len(next(iter(tables.values())))) if unnamed else nodes, tables, weights


def assert_same_run(one, other) -> None:
    (nodes, tables, weights), (fewer, tables_2, weights_2) = by_node(one), by_node(other)
    assert weights.keys() == weights_2.keys()
    for name, value in weights.items():
        np.testing.assert_allclose(value, weights_2[name], atol=1e-5, rtol=1e-4, err_msg=name)
    # Where frozen vectors are many, a checkpoint has none.
    assert np.isin(fewer, nodes).all() or not tables
    for name, table in tables.items():
        common = table[np.searchsorted(nodes, fewer)]
        np.testing.assert_allclose(common, tables_2[name], atol=1e-5, rtol=1e-4, err_msg=name)


def train_noting_outputs(data: Dataset, recipe, out, monkeypatch) -> np.ndarray:
    """Train; the outputs of the selected network for all subgraphs, as training computes them for its scores."""
    noted = []
    judged_outputs = fits.judged_outputs

    def noting(model, examples, rows, batch_size):
        noted.append(outputs_of(model, examples.inputs, np.arange(len(examples.inputs)), 256))
        return judged_outputs(model, examples, rows, batch_size)

    with monkeypatch.context() as patched:
        patched.setattr(fits, "judged_outputs", noting)
        train(data, recipe, out, report=False, cache=False, device="cpu")
    return noted[0] if noted else np.empty(0)


def check(recipe, tmp_path, monkeypatch) -> None:
    """Train with and without the test subgraphs, and compare weights and answers."""
    data = dataset(directed=recipe.name == "diffusion-directed", edge_types=recipe.name == "diffusion-types")
    outputs = train_noting_outputs(data, recipe, tmp_path / "with", monkeypatch)
    train(without_test(data), recipe, tmp_path / "without", report=False, cache=False, device="cpu")
    whole, fewer = (load_checkpoint(tmp_path / name / CHECKPOINT) for name in ("with", "without"))
    assert whole.spec.recipe() == fewer.spec.recipe()
    assert_same_run(whole, fewer)
    predicted = [Predictor(checkpoint, data.graph).outputs(data.subgraphs.nodes) for checkpoint in (whole, fewer)]
    np.testing.assert_allclose(predicted[0], predicted[1], atol=1e-4)
    # A network that corrects a baseline has cross-fitted scores of training subgraphs in training alone.
    asked = data.subgraphs.splits != 0 if whole.parts else slice(None)
    np.testing.assert_allclose(outputs[asked], predicted[1][asked], atol=1e-4)


@pytest.mark.parametrize("name", INDUCTIVE)
def test_training_is_the_same_without_test_subgraphs(name, tmp_path, monkeypatch):
    recipe = find_recipe(name, SMALL)
    if recipe.of(PaperBaselineSettings).tune_embeddings:
        recipe = find_recipe(name, [*SMALL, "baseline.tune_embeddings=false", "embeddings.trainable=true"])
    check(recipe, tmp_path, monkeypatch)


@pytest.mark.parametrize(
    "settings",
    [
        # Not normalised: else the gradient of the map's bias is 0 but for rounding, which Adam enlarges.
        ["embeddings.features=beside", "embeddings.trainable=true", "model.norm=none"],
        ["embeddings.features=instead", "model.norm=none"],
        ["embeddings.trainable=true", "model.trainable_components=true", "training.clip=0.5"],
        ["embeddings.trainable=true", "training.class_weights=true"],
        ["embeddings.trainable=true", "training.members=2", "model.topology=true"],
    ],
)
def test_options_change_nothing_of_that(settings, tmp_path, monkeypatch):
    check(find_recipe("subgnn", [*SMALL, *settings]), tmp_path, monkeypatch)


@pytest.mark.parametrize("limit", ["all", "between"])
@pytest.mark.parametrize("trainable", ["true", "false"])
def test_large_tables_are_no_exception(limit, trainable, tmp_path, monkeypatch):
    # Without test subgraphs about 50 nodes are touched, with them about 120.
    between = 80 * 8 * (1 if trainable == "true" else 4)
    monkeypatch.setattr("subgnn.models.subgnn.build.LARGE", {"all": 0, "between": between}[limit])
    check(find_recipe("neighborhood", [*SMALL, f"embeddings.trainable={trainable}"]), tmp_path, monkeypatch)


@pytest.mark.parametrize("name", ["neighborhood", "avg", "gc"])
def test_vectors_that_training_does_not_look_up_stay_where_they_started(name, tmp_path):
    data = dataset()
    recipe = find_recipe(name, [*SMALL, "embeddings.trainable=true", "baseline.tune_embeddings=false"])
    train(data, recipe, tmp_path / "run", report=False, cache=False, device="cpu")
    checkpoint = load_checkpoint(tmp_path / "run" / CHECKPOINT)
    nodes, tables, _ = by_node(checkpoint)
    start = node_vectors(recipe.embeddings, nodes, num_nodes=data.graph.num_nodes, seed=0)
    moved = nodes[(tables["table"].numpy() != start).any(axis=1)]
    assert len(moved) > 8
    assert (nodes >= OWN * SIZE).sum() > 30
    assert moved.max() < OWN * SIZE


@pytest.mark.parametrize("name", sorted(TRANSDUCTIVE))
def test_transductive_methods_see_test_nodes_and_nothing_else(name, tmp_path, monkeypatch):
    """Vectors of subgraphs are made for all of them at once; what follows is learned from the training split."""
    data, subgraphs = dataset(), dataset().subgraphs
    recipe = find_recipe(name, [*SMALL, "baseline.tune_embeddings=false", "embeddings.trainable=true"])
    outputs = train_noting_outputs(data, recipe, tmp_path / "run", monkeypatch)
    checkpoint = load_checkpoint(tmp_path / "run" / CHECKPOINT)
    predicted = Predictor(checkpoint, data.graph).outputs(subgraphs.nodes)
    np.testing.assert_allclose(outputs, predicted, atol=1e-5)

    targets = np.array(subgraphs.targets)
    targets[subgraphs.indices("test")] = (targets[subgraphs.indices("test")] + 1) % 3
    other = replace(data, subgraphs=replace(subgraphs, targets=targets))
    train(other, recipe, tmp_path / "other", report=False, cache=False, device="cpu")
    relabelled = load_checkpoint(tmp_path / "other" / CHECKPOINT).weights
    for key, value in checkpoint.weights.items():
        assert np.array_equal(value, relabelled[key]), key

    start = replace(recipe, embeddings=replace(recipe.embeddings, trainable=False))
    train(data, start, tmp_path / "start", report=False, cache=False, device="cpu")
    frozen = load_checkpoint(tmp_path / "start" / CHECKPOINT).weights["table"]
    held_out = {bytes(subgraphs.nodes[i]) for split in ("val", "test") for i in subgraphs.indices(split)}
    trained = {bytes(subgraphs.nodes[i]) for i in subgraphs.indices("train")}
    order = list(dict.fromkeys(bytes(row) for row in subgraphs.nodes))
    rest = [i for i, key in enumerate(order) if key in held_out - trained]
    assert torch.equal(checkpoint.weights["table"][rest], frozen[rest])
    assert not torch.equal(checkpoint.weights["table"], frozen)
