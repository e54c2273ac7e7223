"""Small searches: a space, and trainings that are only made up."""

from __future__ import annotations

import time
from typing import Any

from subgnn.lab.tuning import study as studies
from subgnn.lab.tuning.search_space import parse_space
from subgnn.lab.tuning.study import WORKER, SearchTask, run_trials_here
from subgnn.lab.tuning.trial import TrialResult
from subgnn.parallel.engine import Shared

SPACE = parse_space(
    {
        "training": {"lr": {"low": 1e-3, "high": 1e-1, "log": True}},
        "model": {"norm": {"choices": ["none", "batch"]}, "head": {"low": 4, "high": 16}},
        "channels": {"structure": {"use": {"choices": [True, False]}, "num_anchors": {"low": 1, "high": 3}}},
    },
    "test",
    name="few",
)


def made_up(dataset: Any, recipe: Any, *, on_step: Any = None, seeds: int = 1, **_: Any) -> TrialResult:
    """A training that takes no time: the score grows with the rate."""
    score = recipe.training.lr
    for step in range(recipe.training.epochs):
        if on_step is not None:
            on_step(step + 1, score)
    return TrialResult([score] * seeds, [1 - score] * seeds, [0] * seeds)


def run_together(task: Shared[SearchTask]) -> int:
    """A trial that takes until two workers have begun one."""
    study = task.get().open()

    def wait_for_both(*given: Any, **options: Any) -> TrialResult:
        until = time.monotonic() + 600
        while len({t.user_attrs.get(WORKER) for t in study.get_trials()} - {None}) < 2:
            assert time.monotonic() < until, "the other worker did not come"
            time.sleep(0.05)
        return made_up(*given, **options)

    studies.run_trial = wait_for_both  # type: ignore[assignment]
    return run_trials_here(task.get())
