"""What every baseline does alike: it learns, repeats, is saved and loaded, goes on, and answers for new subgraphs."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from subgnn import Dataset, Graph, Ragged, SubgraphSet
from subgnn.api.train_recipe import train
from subgnn.config.settings import ModelSettings
from subgnn.data.formats.folder import write_folder
from subgnn.errors import DataError, UserError
from subgnn.inference.open import evaluate_split
from subgnn.inference.predictor import Predictor
from subgnn.models.checkpoint import load_checkpoint
from subgnn.models.peers import message_passing
from subgnn.models.recipes import find_recipe
from subgnn.models.registry import MODELS, names_where
from subgnn.training import run as run_module
from subgnn.training.options import Callbacks
from subgnn.training.run_dir import CHECKPOINT, METRICS
from tests.models.examples import INDUCTIVE, NAMES, TRANSDUCTIVE, recipe, training_data
from tests.training.examples import dataset


def shapes_and_homes() -> Dataset:
    """Twenty subgraphs that nodes and shape both tell apart: triangles at the low ids, paths at the high ones."""
    triangles = [(3 * i, 3 * i + 1, 3 * i + 2) for i in range(10)]
    paths = [(30 + 3 * i, 31 + 3 * i, 32 + 3 * i) for i in range(10)]
    edges = [pair for a, b, c in triangles for pair in ((a, b), (b, c), (a, c))]
    edges += [pair for a, b, c in paths for pair in ((a, b), (b, c))]
    edges += [(i, i + 3) for i in range(27)] + [(i, i + 3) for i in range(30, 57)]
    subgraphs = SubgraphSet.from_lists(
        [*triangles, *paths] * 2,
        num_nodes=60,
        labels=(["triangle"] * 10 + ["path"] * 10) * 2,
        splits=["train"] * 20 + ["val"] * 20,
    )
    return Dataset("shapes", Graph.from_edges(*zip(*edges, strict=True)), subgraphs)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Each baseline trained once on the same data."""
    folder, data, done = tmp_path_factory.mktemp("baselines"), dataset(), {}

    def get(name):
        if name not in done:
            done[name] = train(data, recipe(name), folder / name, seed=4)
        return folder / name, data, done[name]

    return get


def test_an_unknown_model_is_refused_with_the_nearest_name(tmp_path):
    wrong = replace(find_recipe("avg"), method="bag-1hops")
    with pytest.raises(UserError, match=r"recipe: method is 'bag-1hops'; accepted: .*did you mean 'bag-1hop'"):
        train(dataset(), wrong, tmp_path / "run")
    wrong = replace(find_recipe("subgnn"), model=ModelSettings(baseline="topologies"))
    with pytest.raises(UserError, match=r"model.baseline is 'topologies'; accepted: .*did you mean 'topology'"):
        train(dataset(), wrong, tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.filterwarnings("ignore:.* the same nodes as one in another split")
@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NAMES if name != "constant"])
def test_it_overfits_twenty_subgraphs(tmp_path, name):
    fast = ("training.epochs=80", "model.dropout=0.0", "training.patience=30")
    results = train(shapes_and_homes(), recipe(name, *fast), tmp_path / "run")
    assert results.val["micro_f1"] == 1.0  # validation repeats the training subgraphs


@pytest.mark.quick(3)
@pytest.mark.parametrize("task", ["binary", "multi-label", "regression"])
@pytest.mark.parametrize("name", NAMES)
def test_every_task_is_scored(tmp_path, name, task):
    data = dataset(task)
    results = train(data, recipe(name), tmp_path / "run")
    expected = {"mae", "rmse", "r2"} if task == "regression" else {"micro_f1", "macro_f1", "accuracy", "auroc"}
    expected |= {"auprc"} if task in ("binary", "multi-label") else set()
    assert set(results.test) == expected
    found = Predictor(tmp_path / "run" / CHECKPOINT, data.graph).probabilities(data.subgraphs.nodes)
    assert found.shape == (30, 1 if task == "regression" else data.subgraphs.num_classes)
    assert np.isfinite(found).all()


@pytest.mark.quick(2)
@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_outputs_bit_for_bit(trained, tmp_path, name):
    folder, data, _ = trained(name)
    train(data, recipe(name), tmp_path / "again", seed=4)
    a, b = (Predictor(f / CHECKPOINT, data.graph).outputs(data.subgraphs.nodes) for f in (folder, tmp_path / "again"))
    np.testing.assert_array_equal(a, b)
    assert a.std() > 0


@pytest.mark.parametrize("name", NAMES)
def test_what_is_loaded_scores_what_training_said(trained, tmp_path, name):
    folder, data, results = trained(name)
    write_folder(data, tmp_path / "data")
    for split in ("val", "test"):
        again = evaluate_split(folder, split, tmp_path / "data").scores(split)
        kept = {k: v for k, v in results.scores(split).items() if k != "loss"}
        assert again == pytest.approx(kept, abs=1e-6, nan_ok=True)


@pytest.mark.parametrize("name", INDUCTIVE)
def test_a_new_subgraph_is_predicted_by_itself_alone(trained, name):
    folder, data, _ = trained(name)
    predictor = Predictor(folder / CHECKPOINT, data.graph)
    new = Ragged.from_rows([[0, 1, 2], [9], list(range(24))])
    together = predictor.outputs(new)
    assert together.shape == (3, 3)
    for row in range(3):
        np.testing.assert_allclose(predictor.outputs(new.take([row])), together[[row]], rtol=1e-4, atol=1e-5)
    assert len(predictor.embeddings(new)) == 3


@pytest.mark.filterwarnings("ignore:6 subgraphs in val and test:subgnn.errors.DataWarning")
@pytest.mark.parametrize("name", ["avg", "gc", "bag", "bag-1hop", "glass", "ssnp"])
def test_a_node_that_no_subgraph_had_is_no_obstacle(tmp_path, name):
    data = dataset()
    few = replace(data, subgraphs=data.subgraphs.take(np.flatnonzero((np.arange(30) % 3 == 0) | (np.arange(30) > 20))))
    unseen = sorted(set(range(24)) - set(few.subgraphs.nodes.values.tolist()))
    graph = Graph.from_edges(*data.graph.edges()[:2], num_nodes=26)  # 24 and 25 are on their own
    train(Dataset("few", graph, few.subgraphs), recipe(name), tmp_path / "run")
    found = Predictor(tmp_path / "run" / CHECKPOINT, graph).outputs(Ragged.from_rows([[24, 25], [*unseen, 24]]))
    assert np.isfinite(found).all()


ON_A_GPU = [(name, ()) for name in INDUCTIVE] + [
    ("glass", ("message_passing.pool=max",)),
    ("ssnp", ("message_passing.views=3", "message_passing.inputs=constant")),
    ("s2n", ("s2n.convolution=gcnii", "s2n.sub_layers=2", "s2n.weighted=true")),
]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("block", [7, 2**17])
@pytest.mark.parametrize(("name", "settings"), ON_A_GPU)
def test_a_model_of_a_gpu_predicts_the_same_on_a_cpu(tmp_path, monkeypatch, name, settings, block):
    monkeypatch.setattr(message_passing, "BLOCK", block)  # 7: arrays inside a layer in several pieces
    data, run = dataset(), tmp_path / "run"
    train(data, recipe(name, *settings), run, device="cuda")
    on_each = [Predictor(run / CHECKPOINT, data.graph, device=device) for device in ("cpu", "cuda")]
    found, expected = (predictor.outputs(data.subgraphs.nodes) for predictor in on_each)
    np.testing.assert_allclose(found, expected, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("name", TRANSDUCTIVE)
def test_a_new_subgraph_is_refused_where_the_method_has_no_vector_for_it(trained, name):
    folder, data, _ = trained(name)
    predictor = Predictor(folder / CHECKPOINT, data.graph)
    known = data.subgraphs.nodes.take([7, 29])
    assert predictor.outputs(known).shape == (2, 3)
    with pytest.raises(DataError) as caught:
        predictor.outputs(Ragged.from_rows([known[0], [0, 9]]))
    assert str(caught.value).startswith(f"subgraph 1: {name} cannot predict new subgraphs, and 0-9 is none of the")
    assert "train again" in str(caught.value)


def test_frozen_embeddings_stay_and_trainable_ones_move(tmp_path):
    data, start = dataset(), MODELS["avg"].start
    for name, trainable in (("frozen", "false"), ("trainable", "true")):
        settings = recipe("avg", "baseline.tune_embeddings=false", f"embeddings.trainable={trainable}")
        results = train(data, settings, tmp_path / name)
        assert results.embeddings == name
        before = start(training_data(data.graph, data.subgraphs), settings)["table"]
        after = load_checkpoint(tmp_path / name / CHECKPOINT).weights["table"]
        assert torch.equal(before, after) == (name == "frozen")


@pytest.mark.quick(1)
@pytest.mark.parametrize(
    ("name", "stop"), [("avg", 1), ("avg", 4), ("topology", 1), ("topology", 4), ("glass", 2), ("ssnp", 2)]
)
def test_a_run_that_goes_on_equals_one_that_was_not_interrupted(tmp_path, monkeypatch, name, stop):
    monkeypatch.setattr(run_module, "SECONDS_BETWEEN_SAVES", 0.0)
    data, settings, seen = dataset(), recipe(name), []
    whole = train(data, settings, tmp_path / "whole")

    def interrupt(record):
        seen.append(record)
        if len(seen) == stop:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(data, settings, tmp_path / "cut", callbacks=Callbacks(on_epoch=interrupt))
    cut = train(data, settings, tmp_path / "cut", resume=True)
    assert cut.candidates == whole.candidates
    assert (tmp_path / "whole" / METRICS).read_text() == (tmp_path / "cut" / METRICS).read_text()
    a, b = (load_checkpoint(tmp_path / f / CHECKPOINT).weights for f in ("whole", "cut"))
    assert all(np.array_equal(a[k], b[k]) for k in a)


@pytest.mark.parametrize("name", NAMES)
def test_what_needs_edges_says_so(tmp_path, name):
    data = dataset()
    bare = replace(data, graph=Graph.from_edges([], [], num_nodes=24))
    if MODELS[name].needs_edges:
        without = ", ".join(names_where("needs_edges", value=False))
        said = f"{name} needs edges, but the graph has none; without: {without}$"
        with pytest.raises(DataError, match=said):
            train(bare, recipe(name), tmp_path / "run")
    else:
        assert train(bare, recipe(name), tmp_path / "run").test
