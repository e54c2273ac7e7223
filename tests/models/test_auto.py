"""A portfolio as one model: outputs and vectors by hand, in any batch and order; damaged files are refused."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import special

from subgnn import DataError, Ragged, UserError
from subgnn.config.settings import AutoSettings, CandidateSettings
from subgnn.inference.predictor import Predictor
from subgnn.models.checkpoint import pack, save_checkpoint, unpack
from subgnn.models.recipes import check_recipe, find_recipe
from tests.models.portfolios import SHARES, named_dataset, opened, portfolio, trained

TASKS = ("multi-class", "binary", "multi-label", "regression")
ROWS = Ragged.from_rows([[0, 1, 2, 10, 11, 20], [3, 9], [23]])


@pytest.mark.quick(1)
@pytest.mark.parametrize("task", TASKS)
def test_outputs_by_hand(task):
    data, predictor = opened(task)
    scores = [predictor.part(name).probabilities(ROWS).astype(float) for name in SHARES]
    mean = sum(share * one for share, one in zip(SHARES.values(), scores, strict=True))
    found = predictor.probabilities(ROWS)
    if task == "regression":
        np.testing.assert_allclose(found, mean, rtol=1e-4, atol=1e-5)
        train = np.asarray(data.subgraphs.targets)[data.subgraphs.indices("train")]
        np.testing.assert_allclose(predictor.outputs(ROWS), (mean - train.mean()) / train.std(), atol=1e-4)
    elif task == "multi-label":
        scale, offset = (predictor.checkpoint.weights[name] for name in ("scale", "offset"))
        np.testing.assert_allclose(found, special.expit(scale * special.logit(mean) + offset), atol=1e-5)
    else:
        offset = predictor.checkpoint.weights["offset"]
        np.testing.assert_allclose(found, special.softmax(1.5 * np.log(mean) + offset, axis=1), atol=1e-5)


@pytest.mark.quick(1)
@pytest.mark.parametrize("task", TASKS)
def test_what_is_saved_answers_as_before(task, tmp_path):
    data, before = opened(task)
    save_checkpoint(before.checkpoint, tmp_path / "it")
    after = Predictor(tmp_path / "it", data.graph)
    assert list(after.checkpoint.parts) == list(SHARES)
    assert list(after.checkpoint.parts["channels"].parts) == ["baseline"]
    np.testing.assert_array_equal(before.outputs(ROWS), after.outputs(ROWS))
    np.testing.assert_array_equal(before.embeddings(ROWS), after.embeddings(ROWS))
    np.testing.assert_array_equal(before.thresholds, after.thresholds)


def test_a_subgraph_has_one_output_in_any_batch():
    data, predictor = opened()
    rows = data.subgraphs.nodes
    whole, vectors = predictor.outputs(rows), predictor.embeddings(rows)
    order = np.random.default_rng(0).permutation(len(rows))
    np.testing.assert_allclose(predictor.outputs(rows.take(order)), whole[order], atol=1e-5)
    for row in range(0, len(rows), 7):
        np.testing.assert_allclose(predictor.outputs(rows.take([row]))[0], whole[row], atol=1e-5)
        np.testing.assert_allclose(predictor.embeddings(rows.take([row]))[0], vectors[row], atol=1e-5)


def weights(**changes):
    def change(checkpoint):
        return replace(checkpoint, weights=checkpoint.weights | changes)

    return change


def parts(**changes):
    def change(checkpoint):
        made = {**checkpoint.parts, **changes}
        return replace(checkpoint, parts={name: part for name, part in made.items() if part is not None})

    return change


def inside(checkpoint):
    """A node that is not in the graph, in a part of a part."""
    channels = checkpoint.parts["channels"]
    bag = channels.parts["baseline"]
    wrong = replace(bag, weights=bag.weights | {"columns": np.full_like(bag.weights["columns"], 99)})
    return parts(channels=replace(channels, parts={"baseline": wrong}))(checkpoint)


DAMAGED = {
    "weights of members": (weights(member_weights=np.array([0.5, 0.5, 0.5], np.float32)), "do not sum to 1"),
    "a weight of 0": (weights(member_weights=np.array([0.5, 0.5, 0.0], np.float32)), "are not above 0"),
    "another number": (weights(member_weights=np.array([0.5, 0.5], np.float32)), r"'member_weights' is float32 \(2,\)"),
    "not finite": (weights(scale=np.array([float("nan")], np.float32)), "'scale' are not finite"),
    "scale": (weights(scale=np.array([0.0], np.float32)), "scale is not above 0"),
    "offsets of labels": (weights(offset=np.zeros(3, np.float32)), r"'offset' is float32 \(3,\), not float32 \(1,\)"),
    "thresholds of classes": (weights(thresholds=np.full(1, 0.5, np.float32)), "'thresholds' is unknown"),
    "no members": (lambda c: replace(c, parts={}), "consist of other models, but holds none"),
    "another task": (
        lambda c: parts(bag=trained("binary", "bag"))(c),
        "'bag' has a different task or different classes",
    ),
    "a part of a part": (inside, "columns of its bag are not in order"),
    "a portfolio inside": (
        lambda c: parts(bag=portfolio(shares={"bag": 1.0}))(c),
        "'bag' is a model of the kind auto, which is not accepted",
    ),
}


@pytest.mark.parametrize(("change", "message"), DAMAGED.values(), ids=DAMAGED)
def test_what_does_not_hold_together_is_refused(change, message, tmp_path):
    save_checkpoint(change(portfolio()), tmp_path / "it")
    with pytest.raises(DataError, match=message) as caught:
        Predictor(tmp_path / "it", named_dataset().graph)
    assert "train again" in str(caught.value)


def test_parts_are_nested_three_deep_at_most(tmp_path):
    deep = portfolio()
    for _ in range(3):
        deep = replace(deep, parts={"bag": deep})
    arrays, content = pack(deep)
    with pytest.raises(DataError, match="parts are nested 3 deep"):
        unpack(arrays, content, where="it", noun="the checkpoint", again="train again")


def candidates(*recipes: str):
    listed = tuple(CandidateSettings(name=name, recipe=name) for name in recipes)
    return replace(find_recipe("auto"), auto=AutoSettings(candidates=listed))


def test_a_portfolio_needs_candidates_that_can_be_members():
    graph = named_dataset().graph
    check_recipe(find_recipe("auto"), graph)
    with pytest.raises(UserError, match=r"auto\.candidates is empty"):
        check_recipe(candidates(), graph)
    with pytest.raises(
        UserError, match="the method of the candidate 'mn-gin' is mn-gin; accepted: methods that predict"
    ):
        check_recipe(candidates("bag", "mn-gin"), graph)
