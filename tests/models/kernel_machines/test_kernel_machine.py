"""Kernel machines on views, against dense linear algebra and scikit-learn."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import special
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression

from subgnn import Ragged
from subgnn.api.train_recipe import train
from subgnn.channels.topology import subgraph_statistics
from subgnn.errors import DataWarning, UserError
from subgnn.inference.predictor import Predictor
from subgnn.models.examples import Examples, outputs_of
from subgnn.models.kernel_machines import kernel_machine, newton, rows, shared, views
from subgnn.models.recipes import check_recipe, find_recipe
from subgnn.models.registry import MODELS
from subgnn.parallel.memory import memory_limit
from subgnn.task import Standard
from subgnn.training.run_dir import CHECKPOINT
from tests.channels.test_diffusion import dense_ratios, dense_walk
from tests.models.examples import recipe, training_data
from tests.training.examples import dataset


def dense_view(data, view, damping=0.6):
    """Unit rows of a view, less the mean of the training split."""
    ratios = dense_ratios(data.graph, data.subgraphs.nodes, damping)
    bag = views.bag_of_nodes(data.subgraphs.nodes, data.graph.num_nodes)
    rows = {
        "lift": lambda: np.log1p(ratios),
        "root": lambda: np.sqrt(ratios * dense_walk(data.graph)[1]),
        "bag": bag.toarray,
        "one-hop": lambda: views.spread_one_hop(bag, data.graph).toarray(),
    }[view]()
    rows = rows - rows[data.subgraphs.indices("train")].mean(axis=0)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def solved(data, *settings, seed=0):
    """Outputs of a fitted machine for all subgraphs, and the examples."""
    chosen = recipe("diffusion", *settings)
    found = MODELS["diffusion"].set_up(training_data(data.graph, data.subgraphs, seed), chosen)
    candidate = found.candidates[0]
    examples = Examples.of(data.subgraphs, found.source, candidate.checkpoint.spec.standards, candidate.recipe.training)
    candidate.network.solve(examples)
    return outputs_of(candidate.network, examples.inputs, np.arange(len(data.subgraphs)), 7).numpy(), examples


def with_task(data, task):
    rng = np.random.default_rng(0)
    n = len(data.subgraphs)
    targets = rng.random(n) if task == "regression" else rng.integers(0, 2, (n, 3)).astype(np.uint8)
    classes = () if task == "regression" else ("a", "b", "c")
    return replace(data, subgraphs=replace(data.subgraphs, task=task, targets=targets, classes=classes))


@pytest.mark.parametrize(
    ("names", "kernel"),
    [
        (["lift"], "linear"),
        (["bag", "lift"], "gaussian"),
        (["root", "one-hop"], "linear"),
        (["lift", "topology"], "gaussian"),
    ],
)
def test_values_are_those_of_kernel_ridge_regression(names, kernel):
    data = with_task(dataset(), "regression")
    quoted = ", ".join(f'"{name}"' for name in names)
    outputs, examples = solved(
        data, f"diffusion.views=[{quoted}]", f"diffusion.kernel={kernel}", "diffusion.damping=0.6"
    )
    compared = [dense_view(data, name) for name in names if name != "topology"]
    cosine = np.mean([rows @ rows.T for rows in compared], axis=0)
    known, y = examples.train, examples.targets.numpy()[examples.train].astype(float)
    if "topology" in names:
        table = subgraph_statistics(data.graph, data.subgraphs.nodes)
        table = np.clip(Standard.of(table[known])(table), -4, 4).astype(float)
        cosine -= 0.003 * ((table[:, None] - table[None]) ** 2).sum(axis=2)
    whole = np.exp(cosine - 1) if kernel == "gaussian" else cosine
    model = KernelRidge(alpha=0.1, kernel="precomputed").fit(whole[np.ix_(known, known)], np.stack([y, 0 * y + 1], 1))
    fitted, ones = model.dual_coef_.T
    bias = fitted.sum() / ones.sum()  # a bias without a penalty: the weights sum to 0
    np.testing.assert_allclose(outputs[:, 0], whole[:, known] @ (fitted - bias * ones) + bias, atol=2e-3)


@pytest.mark.parametrize("way", ["exact", "push"])
def test_a_linear_logistic_machine_answers_as_scikit_learn_on_the_dense_rows(tmp_path, way):
    data = dataset()
    chosen = ("diffusion.kernel=linear", "diffusion.loss=logistic", "diffusion.damping=0.6")
    push = (f"diffusion.algorithm={way}", "diffusion.push_edges=1000000000")
    train(data, recipe("diffusion", *chosen, *push), tmp_path / "run")
    found = Predictor(tmp_path / "run" / CHECKPOINT, data.graph).probabilities(data.subgraphs.nodes)
    rows, known = dense_view(data, "lift"), data.subgraphs.indices("train")
    model = LogisticRegression(C=10.0, max_iter=5000, tol=1e-8).fit(rows[known], data.subgraphs.targets[known])
    np.testing.assert_allclose(found, model.predict_proba(rows), atol=5e-3)


def test_a_run_that_is_opened_gives_the_outputs_of_training(tmp_path):
    data, views = dataset(), 'diffusion.views=["bag", "lift", "topology"]'
    train(data, recipe("diffusion", views), tmp_path / "run")
    found = Predictor(tmp_path / "run" / CHECKPOINT, data.graph).probabilities(data.subgraphs.nodes)
    outputs, _ = solved(data, views)
    expected = np.exp(outputs - outputs.max(axis=1, keepdims=True))
    np.testing.assert_allclose(found, expected / expected.sum(axis=1, keepdims=True), atol=1e-4)


def test_statistics_are_compared_alike_however_many_subgraphs_there_are():
    rng = np.random.default_rng(0)
    tables = rng.normal(size=(40, 18)), rng.normal(size=(300, 18))
    settings = views.DiffusionSettings(views=("bag", "topology"))
    standard = Standard.of(tables[1])
    kernel = kernel_machine.Reference(settings, np.zeros((1, 300)), np.ones((1, 300)), standard)
    whole = kernel([np.zeros((40, 300))], [np.ones(40)], tables)
    each = [kernel([np.zeros((1, 300))], [np.ones(1)], (row[None], tables[1])) for row in tables[0]]
    np.testing.assert_allclose(whole, np.concatenate(each), rtol=1e-11)


def test_more_training_subgraphs_than_landmarks(monkeypatch):
    data = dataset()
    whole, examples = solved(data, "diffusion.inverse_penalty=1.0")
    monkeypatch.setattr(kernel_machine, "_LANDMARKS", len(examples.train) - 1)
    monkeypatch.setattr(rows, "PRODUCT_ROWS", 1)
    some, _ = solved(data, "diffusion.inverse_penalty=1.0")
    np.testing.assert_allclose(special.softmax(some, axis=1), special.softmax(whole, axis=1), atol=0.1)
    assert not np.array_equal(some, whole)
    monkeypatch.setattr(newton, "ROWS_AT_A_TIME", 3)
    in_blocks, _ = solved(data, "diffusion.inverse_penalty=1.0")
    np.testing.assert_allclose(in_blocks, some, rtol=1e-6, atol=1e-6)
    monkeypatch.setattr(kernel_machine, "_LARGEST_KERNEL", 3 * len(examples.train))
    fewest, fewer = solved(data, "diffusion.inverse_penalty=1.0")[0], kernel_machine._num_landmarks(len(examples.train))
    assert fewer == 3
    assert not np.array_equal(fewest, some)


def test_diffusions_and_products_are_computed_once_for_many_splits_and_views(monkeypatch):
    data, calls = dataset(), []
    for name in ("_diffuse", "multiply_all"):
        compute = getattr(rows, name)
        monkeypatch.setattr(rows, name, lambda *a, of=compute, **k: calls.append(of.__name__) or of(*a, **k))
    monkeypatch.setattr(rows, "SHARED", shared.SharedArrays())
    monkeypatch.setattr(rows, "_FEW_NUMBERS", 0)
    for turn in range(3):
        split = replace(data.subgraphs, splits=np.roll(data.subgraphs.splits, turn))
        for name in ("diffusion", "diffusion-root", "profiles"):
            MODELS[find_recipe(name).method].set_up(training_data(data.graph, split), find_recipe(name))
    assert calls == ["_diffuse", "multiply_all", "multiply_all"]


def test_exact_diffusions_beyond_the_memory_are_refused():
    graph = replace(dataset().graph, offsets=np.zeros(10**7, np.int64))
    sets = Ragged.from_lengths(np.zeros(25, np.int32), np.ones(25, np.int64))
    with memory_limit("1GB"), pytest.raises(UserError, match=r"take 1\.0 GB"):
        _ = rows.view_of(graph, sets, "lift", views.DiffusionSettings(algorithm="exact")).values


@pytest.mark.parametrize("given", ["[]", '["lift", "lift"]', '["lifts"]', '["topology"]'])
def test_views_that_do_not_exist_are_refused(given):
    with pytest.raises(UserError, match=r"diffusion\.views"):
        check_recipe(recipe("diffusion", f"diffusion.views={given}"), dataset().graph)


@pytest.mark.parametrize("way", ["exact", "push"])
def test_diffusions_of_the_training_subgraphs_are_stored(tmp_path, monkeypatch, way):
    data, diffused = dataset(), []
    train(data, recipe("diffusion", f"diffusion.algorithm={way}"), tmp_path / "run")
    monkeypatch.setenv("SUBGNN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(rows, "_FEW_NUMBERS", 0)
    compute = rows._diffuse
    monkeypatch.setattr(rows, "_diffuse", lambda *a, **k: diffused.append(len(a[1])) or compute(*a, **k))

    def outputs(*, cache: bool = True):
        diffused.clear()
        monkeypatch.setattr(rows, "SHARED", shared.SharedArrays())
        found = Predictor(tmp_path / "run" / CHECKPOINT, data.graph, cache=cache).outputs(data.subgraphs.nodes)
        return found, list(diffused)

    known, asked = len(data.subgraphs.indices("train")), len(data.subgraphs)
    wanted, computed = outputs(cache=False)
    assert sorted(computed) == [known, asked]
    assert not (tmp_path / "cache").exists()
    for computed in ([known, asked], [asked]):
        found = outputs()
        assert sorted(found[1]) == computed
        np.testing.assert_array_equal(found[0], wanted)
    (stored,) = (tmp_path / "cache" / "diffusions").iterdir()
    stored.write_bytes(stored.read_bytes()[:-1] + b"x")
    with pytest.warns(DataWarning, match="damaged and ignored"):
        found, computed = outputs()
    assert sorted(computed) == [known, asked]
    np.testing.assert_array_equal(found, wanted)
    monkeypatch.setenv("SUBGNN_CACHE_LIMIT", "0")
    assert sorted(outputs()[1]) == [known, asked]
