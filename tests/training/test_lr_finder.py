"""The range test: what it takes from a curve, and that it leaves no trace."""

from __future__ import annotations

import copy
import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from subgnn.experiments.train import train
from subgnn.training import candidates, resume
from subgnn.training.candidates import set_up
from subgnn.training.devices import make_fabric
from subgnn.training.lr_finder import HIGHEST, LOWEST, diverged, find_rate, smooth, steepest_step
from subgnn.training.options import Callbacks
from subgnn.training.run_dir import RESULTS
from subgnn.training.steps import Fitting

from .examples import dataset, recipe
from .test_run import assert_equal_weights, weights


def with_finder(epochs: int = 4):
    found = recipe(epochs)
    return replace(found, training=replace(found.training, lr=0.5, lr_finder=True))


def test_the_mean_has_no_bias_to_its_start():
    assert smooth([2.0, 2.0, 2.0]) == pytest.approx([2, 2, 2])
    # (0.9 * 0.1 * 1 + 0.1 * 3) / (1 - 0.81)
    assert smooth([1.0, 3.0])[1] == pytest.approx(0.39 / 0.19)


def test_the_steepest_fall_of_a_step():
    curve = np.full(60, 2.0)
    curve[30:] = 1.0
    assert steepest_step(curve) in (29, 30)
    assert steepest_step(np.linspace(1, 2, 60)) is None
    assert steepest_step(np.ones(60)) is None
    assert steepest_step(np.linspace(2, 1, 15)) is None  # too short to tell


@pytest.mark.parametrize(
    ("losses", "stop"), [([1.0, 3.9], False), ([1.0, 4.1], True), ([1.0, float("nan")], True), ([0.0], False)]
)
def test_divergence(losses, stop):
    assert diverged(np.array(losses)) is stop


@pytest.mark.slow
def test_it_leaves_weights_and_random_state_as_they_were():
    settings = with_finder().training
    candidates, examples = set_up(dataset(), with_finder(), 0, torch.device("cpu"))
    model = candidates[0].network
    before, state = copy.deepcopy(model.state_dict()), torch.get_rng_state()
    fitting = Fitting(examples, settings, 0, make_fabric("cpu", "32-true"))
    rate = find_rate(model, fitting)
    assert_equal_weights(before, model.state_dict())
    assert torch.equal(state, torch.get_rng_state())
    assert all(p.grad is None for p in model.parameters())
    assert LOWEST < rate < HIGHEST
    assert rate == find_rate(model, fitting)


@pytest.mark.slow
def test_the_found_rate_is_used_written_and_kept_on_resume(tmp_path, monkeypatch):
    monkeypatch.setattr(resume, "SECONDS_BETWEEN_SAVES", 0.0)
    results = train(dataset(), with_finder(), tmp_path / "whole")
    assert results["lr"] != 0.5
    assert json.loads((tmp_path / "whole" / RESULTS).read_text())["lr"] == results["lr"]
    given = replace(with_finder().training, lr=results["lr"], lr_finder=False)
    train(dataset(), replace(with_finder(), training=given), tmp_path / "given")
    assert_equal_weights(weights(tmp_path / "whole"), weights(tmp_path / "given"))

    def interrupt(record):
        if record["epoch"] == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(dataset(), with_finder(), tmp_path / "cut", callbacks=Callbacks(on_epoch=interrupt))
    monkeypatch.setattr(candidates, "find_rate", None)  # not asked again
    again = train(dataset(), with_finder(), tmp_path / "cut", resume=True)
    assert again["lr"] == results["lr"]
    assert_equal_weights(weights(tmp_path / "whole"), weights(tmp_path / "cut"))
