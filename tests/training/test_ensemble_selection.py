"""The choice among candidates: greedy selection against a slow way, and rules that are compared honestly."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special
from sklearn.metrics import average_precision_score, f1_score, mean_squared_error, r2_score, roc_auc_score
from sklearn.metrics import log_loss as slow_log_loss

from subgnn.metrics.significance import standard_error
from subgnn.task import task_of
from subgnn.training.ensemble_selection import (
    PATIENCE,
    STEPS,
    Choice,
    OutOfFold,
    best,
    calibrate,
    choose,
    clearly_behind,
    ensemble,
    simplest,
)

TASKS = ("multi-class", "binary", "multi-label", "regression")


def example(task: str, *, m: int = 3, repeats: int = 2, n: int = 30, noise: float = 1.0, seed: int = 0) -> OutOfFold:
    """Candidates that know the targets, each with more noise than the one before."""
    rng = np.random.default_rng(seed)
    if task == "regression":
        targets = rng.normal(size=n)
        sizes = noise * (1 + np.arange(m))
        predictions = targets[:, None] + sizes[:, None, None, None] * rng.normal(size=(m, repeats, n, 1))
        return OutOfFold(predictions, targets, task, np.arange(n))
    outputs = 2 if task == "binary" else 3
    several = task == "multi-label"
    targets = (rng.random((n, outputs)) < 0.4 if several else rng.integers(0, outputs, n)).astype(float)
    known = targets if several else np.eye(outputs)[targets.astype(int)]
    logits = 2 * known + noise * (1 + np.arange(m))[:, None, None, None] * rng.normal(size=(m, repeats, n, outputs))
    chances = 1 / (1 + np.exp(1 - logits)) if several else np.exp(logits) / np.exp(logits).sum(axis=3, keepdims=True)
    return OutOfFold(chances, targets, task, np.arange(n))


def slow_score(predictions, targets, task) -> float:
    """The mean over repeats of scikit-learn's score; several labels at the best of all thresholds."""
    if task == "regression":
        return np.mean([r2_score(targets, one[:, 0]) for one in predictions])
    if task != "multi-label":
        return np.mean([(one.argmax(axis=1) == targets).mean() for one in predictions])
    whole = np.concatenate([targets] * len(predictions)).ravel()
    return max(f1_score(whole, (predictions > cut - 1e-9).ravel(), average="binary") for cut in np.unique(predictions))


@pytest.mark.parametrize("task", TASKS)
def test_scores(task):
    given = example(task)
    for one in given.predictions:
        assert given.terms(one).score == pytest.approx(slow_score(one, given.targets, task))
        assert math.isfinite(task_of(task).log_loss(one, given.targets))


def slow_ensemble(given: OutOfFold) -> list[float]:
    """Greedy selection over lists of candidates, every mean computed anew; the loss of each step while it falls."""

    def loss(members):
        mean = sum(given.predictions[i] for i in members) / len(members)
        if given.task == "regression":
            return np.mean([mean_squared_error(given.targets, one[:, 0]) for one in mean])
        flat = np.concatenate(list(mean))
        truth = np.concatenate([given.targets] * len(mean))
        if given.task == "multi-label":
            flat = np.stack([1 - flat.ravel(), flat.ravel()], axis=1)
        return slow_log_loss(truth.ravel(), flat, labels=range(flat.shape[1]))

    members: list[int] = []
    losses = []
    while len(members) < STEPS and len(losses) - int(np.argmin([*losses, np.inf])) <= PATIENCE:
        members = min(([*members, i] for i in range(len(given.predictions))), key=loss)
        losses.append(loss(members))
    return losses


@pytest.mark.quick(6)
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("seed", range(4))  # of which none has equal losses, where rounding decides
def test_greedy_selection_is_that_of_the_slow_way(task, seed):
    given = example(task, m=3, n=24, seed=seed)
    weights = ensemble(given)
    assert weights.sum() == pytest.approx(1)
    found, slow = task_of(task).log_loss(given.mixed(weights), given.targets), slow_ensemble(given)
    assert found == pytest.approx(min(slow), abs=1e-9)


def test_greedy_selection_finds_members_that_complement_each_other():
    targets = np.array([0.0, 1.0] * 20)
    right, half = np.eye(2)[targets.astype(int)], np.full((40, 2), 0.5)
    first, second = half.copy(), half.copy()
    first[:20], second[20:] = right[:20], right[20:]
    first[20:, 0], second[:20, 0] = 0.55, 0.55  # leans to the first class
    given = OutOfFold(np.stack([first, second, 1 - right])[:, None], targets, "binary", np.arange(40))
    weights = ensemble(given)
    assert weights[2] == 0
    assert weights[:2].min() > 0
    assert given.terms(given.mixed(weights)).score == 1
    assert choose(given, np.arange(40) % 5).rule == "ensemble"


def test_the_simplest_within_one_standard_error():
    given = example("multi-class", m=3, n=200, noise=0.2)
    worse = given.predictions[:1].copy()
    swapped = given.targets.copy()
    wrong = np.flatnonzero(np.arange(200) % 40 == 0)
    worse[:, :, wrong] = np.eye(3)[(swapped[wrong].astype(int) + 1) % 3]
    order = OutOfFold(np.concatenate([worse, given.predictions[:1]]), given.targets, "multi-class", given.units)
    terms = [order.terms(one) for one in order.predictions]
    assert terms[1].score - terms[0].score == pytest.approx(0.025, abs=0.01)
    near = terms[1].score - terms[0].score <= standard_error(terms[1])
    assert simplest(order).tolist() == ([1, 0] if near else [0, 1])
    assert best(order).tolist() == [0, 1]


def test_answers_for_equal_values_whose_score_is_undefined():
    given = example("regression")
    equal = replace(given, targets=np.full(len(given.targets), 5.0))
    assert [equal.score(one) for one in equal.predictions] == [0, 0, 0]
    assert simplest(equal).tolist() == [1, 0, 0]
    assert choose(equal, np.arange(len(equal.targets)) % 3).weights.sum() == 1


def test_noise_is_not_preferred_to_the_simplest():
    """Of candidates that all know nothing, the best is so by chance: rules are compared on parts they did not see."""
    rng = np.random.default_rng(0)
    chances = rng.dirichlet(np.ones(3), size=(6, 1, 300))
    given = OutOfFold(chances, rng.integers(0, 3, 300).astype(float), "multi-class", np.arange(300))
    choice = choose(given, np.arange(300) % 5)
    assert choice.scores["best"] < given.terms(given.mixed(best(given))).score


@pytest.mark.parametrize("task", TASKS)
def test_one_candidate_is_chosen_as_it_is(task):
    given = example(task, m=1)
    assert choose(given, np.arange(30) % 5).weights.tolist() == [1]


@pytest.mark.parametrize("task", TASKS)
def test_a_candidate_is_given_up_where_it_is_clearly_behind_and_of_no_use(task):
    given = example(task, m=2, n=80, noise=0.3)
    rows, rng = np.arange(0, 80, 2), np.random.default_rng(1)
    noise = given.predictions[0][:1, rng.permutation(80)]  # sure, and right by chance
    assert "where the best has" in clearly_behind(given, rows, noise[:, rows])
    assert clearly_behind(given, rows[:2], noise[:, rows[:2]]) == ""  # two subgraphs prove nothing
    for candidate in given.predictions:
        assert clearly_behind(given, rows, candidate[:1, rows]) == ""


def test_a_candidate_that_an_ensemble_uses_is_not_given_up():
    targets = np.zeros(100)
    right, unsure = [0.9, 0.1], [0.45, 0.55]
    strong = np.array([right] * 80 + [[0.01, 0.99]] * 20)[None]
    weak = np.array([unsure] * 60 + [right] * 40)[None]  # wrong more often, but not where the other is
    given = OutOfFold(strong[None], targets, "binary", np.arange(100))
    assert ensemble(OutOfFold(np.stack([strong, weak]), targets, "binary", np.arange(100)))[1] > 0
    assert clearly_behind(given, np.arange(100), weak) == ""


@pytest.mark.parametrize("task", ["binary", "multi-label"])
@pytest.mark.parametrize("metric", ["auprc", "recall@5", "auroc"])
def test_answers_are_selected_by_metrics_of_rankings(task, metric):
    given = replace(example(task, n=60, noise=0.7), metric=metric)
    scores = []
    for one in given.predictions:
        each = []
        for repeat in one:
            columns = [1] if task == "binary" and metric != "auroc" else range(repeat.shape[1])
            truth = given.targets if task == "multi-label" else np.eye(2)[given.targets.astype(int)]
            if task == "binary" and given.targets.mean() > 0.5 and metric != "auroc":
                columns = [0]
            slow = {
                "auprc": average_precision_score,
                "auroc": roc_auc_score,
                "recall@5": lambda true, found: true[np.argsort(-found)[:5]].sum() / true.sum(),
            }[metric]
            each.append(np.mean([slow(truth[:, c], repeat[:, c]) for c in columns]))
        scores.append(np.mean(each))
        assert given.score(one) == pytest.approx(scores[-1])
    assert best(given)[int(np.argmax(scores))] == 1
    samples = given.samples(given.predictions[0])
    assert abs(samples.mean() - scores[0]) < 4 * samples.std() + 0.05
    first = int(np.flatnonzero(simplest(given))[0])
    assert scores[first] >= max(scores) - 4 * samples.std() - 0.05
    parts = np.arange(60) % 5
    assert set(choose(given, parts).scores) == {"simplest", "best", "ensemble"}


def test_samples_are_of_the_mean_over_repeats():
    """One subgraph is ranked above the five positive ones in one repeat of four."""
    targets = np.arange(100) < 5
    scores = np.stack([targets * 0.5] * 4)
    scores[1, 50] = 0.9
    given = OutOfFold(np.stack([1 - scores, scores], axis=2)[None], targets.astype(float), "binary", np.arange(100))
    given = replace(given, metric="auprc")
    samples = given.samples(given.predictions[0])
    assert np.quantile(samples, 0.025) < given.score(given.predictions[0]) < np.quantile(samples, 0.975) == 1.0
    assert given.rarer_units == 5


def test_an_ensemble_of_one_is_called_the_best():
    assert Choice("ensemble", np.array([0.0, 1.0]), {}).rule == "best"
    assert Choice("ensemble", np.array([0.5, 0.5]), {}).rule == "ensemble"
    assert Choice("simplest", np.array([0.0, 1.0]), {}).rule == "simplest"


def test_of_rare_classes_the_answer_is_a_model_that_ranks_them():
    """Two that say nothing come first, one of them sure of itself; of the positives, the third finds about half."""
    rng = np.random.default_rng(0)
    targets = rng.permutation(np.arange(1500) < 30).astype(float)
    log_odds = np.stack([np.full(1500, -3.9), rng.normal(size=1500) - 4, rng.normal(size=1500) + 3 * targets - 4])
    chance = special.expit(log_odds)
    predictions = np.stack([1 - chance, chance], axis=2)[:, None]
    given = OutOfFold(predictions, targets, "binary", np.arange(1500), metric="auprc")
    assert simplest(given).tolist() == best(given).tolist() == [0, 0, 1]
    assert choose(given, np.arange(1500) % 5).weights[2] > 0.5


def test_the_share_of_a_rare_class_comes_out_right():
    """Of a model whose classes were weighted: on average it gives 2 % of the subgraphs a chance of one half."""
    rng = np.random.default_rng(0)
    targets = rng.permutation(np.arange(2000) < 40).astype(float)
    chance = special.expit(rng.normal(size=2000) + 2 * targets - 1)
    chances = np.stack([1 - chance, chance], axis=1)[None]
    found = calibrate(chances, targets, "binary")
    calibrated = special.softmax(found.apply(chances, "binary"), axis=2)
    assert calibrated[0, :, 1].mean() == pytest.approx(0.02, rel=0.05)
    assert (np.argsort(calibrated[0, :, 1]) == np.argsort(chance)).all()


def certain(n: int = 500, sharpen: float = 3.0, seed: int = 0):
    """Probabilities that are too certain: the true logits, times a factor."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(1, n, 3))
    chances = special.softmax(logits, axis=2)
    targets = (chances[0].cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1).astype(float)
    return special.softmax(sharpen * logits, axis=2), targets


def test_the_temperature_is_the_best_of_a_grid():
    chances, targets = certain()
    found = calibrate(chances, targets, "multi-class")
    assert found.scale[0] == pytest.approx(1 / 3, rel=0.3)
    logs = np.log(np.maximum(chances[0], 1e-6))

    def loss(scale):
        rows = special.log_softmax(scale * logs, axis=1)[np.arange(len(targets)), targets.astype(int)]
        return -rows.sum() + np.log(scale) ** 2

    grid = np.exp(np.linspace(-2.5, 2.5, 2001))
    assert found.scale[0] == pytest.approx(grid[np.argmin([loss(scale) for scale in grid])], rel=5e-3)
    assert (found.offset.tolist(), len(found.thresholds)) == ([0.0], 0)
    calibrated = special.softmax(found.apply(chances, "multi-class")[0], axis=1)
    confident = calibrated.max(axis=1)
    assert confident.mean() == pytest.approx((calibrated.argmax(axis=1) == targets).mean(), abs=0.05)


@pytest.mark.slow
def test_labels_have_a_scale_and_an_offset_each():
    rng = np.random.default_rng(1)
    log_odds = rng.normal(size=(2, 400, 2))
    truth = (special.expit(np.array([2.0, 0.5]) * log_odds[0] + [0.0, -1.0]) > rng.random((400, 2))).astype(float)
    log_odds[1] = log_odds[0]
    found = calibrate(special.expit(log_odds), truth, "multi-label")
    for label in range(2):
        x, y = log_odds[0, :, label], truth[:, label]
        scales, offsets = np.meshgrid(np.exp(np.linspace(-1.5, 1.5, 121)), np.linspace(-2, 2, 161), indexing="ij")
        z = scales[..., None] * x + offsets[..., None]
        losses = np.logaddexp(0, np.where(y > 0, -z, z)).sum(axis=2) + np.log(scales) ** 2 + offsets**2
        at = np.unravel_index(losses.argmin(), losses.shape)
        assert found.scale[label] == pytest.approx(scales[at], rel=0.03)
        assert found.offset[label] == pytest.approx(offsets[at], abs=0.03)
    assert len(set(found.thresholds)) == 1


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.integers(1, 3), st.integers(2, 12))
def test_the_threshold_is_the_best_of_all(seed, labels, n):
    rng = np.random.default_rng(seed)
    chances, truth = rng.integers(1, 10, (2, n, labels)) / 10, rng.integers(0, 2, (n, labels)).astype(float)
    whole = np.concatenate([truth, truth]).ravel()

    def score(cut):
        return f1_score(whole, (chances > cut).ravel(), zero_division=0)

    found = task_of("multi-label").best_threshold(chances, truth)
    assert 0 <= found < 1
    assert (
        score(found) == pytest.approx(max(score(cut) for cut in [0.05, *(np.unique(chances) + 0.05)]), abs=1e-9)
        or not truth.any()
    )


@pytest.mark.parametrize(("task", "targets"), [("multi-class", np.zeros(3)), ("multi-label", np.zeros((3, 2)))])
def test_few_subgraphs_change_little_and_nothing_becomes_infinite(task, targets):
    chances = np.array([[[1.0, 0.0]] * 3])
    found = calibrate(chances, targets, task)
    assert np.isfinite(found.apply(chances, task)).all()
    assert (found.scale > 0.04).all()
    assert (found.scale < 21).all()
