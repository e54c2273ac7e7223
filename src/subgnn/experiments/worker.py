"""A worker of a search: it runs trials of a study until the study has enough of them.

Workers know of each other only by the study, so they may be processes of one machine or of many.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from subgnn.config.settings import Recipe
from subgnn.data.dataset import Dataset
from subgnn.errors import UserError
from subgnn.experiments.draw import draw
from subgnn.experiments.search_space import Choices, Dimension, SearchSpace
from subgnn.experiments.study import (
    ERROR,
    LOSS,
    WORKER,
    Pruner,
    counted,
    failing_storage,
    open_storage,
    open_study,
    quiet_optuna,
)
from subgnn.experiments.trial import Judged, Splitting, judge_recipe, longest

if TYPE_CHECKING:
    import optuna

_MESSAGE = 300


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """All that a worker needs, as data that can be sent to another process or machine.

    The dataset has no test subgraphs. trials is the total of the study; deadline, in seconds since 1970, is when no
    further trial is begun; threads is how many a worker may use, 0 for as many as there are; most is how many trials it
    runs, 0 for as many as it can.
    """

    dataset: Dataset
    recipe: Recipe
    space: SearchSpace
    storage: str
    study: str
    inputs: dict[str, Any]
    first: dict[str, Any]
    trials: int
    seeds: int = 1
    split: Splitting = "stored"
    pruner: Pruner = "median"
    seed: int = 0
    device: str = "auto"
    cache: bool = True
    deadline: float | None = None
    threads: int = 0
    most: int = 0

    def open(self) -> optuna.Study:
        """The study."""
        return open_study(
            open_storage(self.storage),
            self.study,
            inputs=self.inputs,
            first=self.first,
            seed=self.seed,
            pruner=self.pruner,
            steps=self.seeds * longest(self.recipe),
        )


class TrialFailed(Exception):
    """A trial that failed by itself; the study goes on."""


class _Surplus(Exception):
    """A trial begun while others began the last ones."""


def work(task: Work, after_trial: Callable[[], None] | None = None) -> int:
    """Run trials until the study has its total or the time is up; returns how many were run here.

    Raises:
        DataError: where the study's database fails.
        KeyboardInterrupt: after Ctrl-C; the trial under way does not count.
    """
    import optuna

    if task.threads:
        _use_threads(task.threads)
    ran = 0
    with failing_storage(task.storage), quiet_optuna():
        study = task.open()
        while not _time_is_up(task) and not 0 < task.most <= ran:
            optuna.storages.fail_stale_trials(study)
            if len(counted(study.get_trials(deepcopy=False))) >= task.trials:
                break
            try:
                study.optimize(_Objective(task, study), n_trials=1, catch=(TrialFailed,))
            except _Surplus:
                break
            ran += 1
            if after_trial is not None:
                after_trial()
    return ran


def _time_is_up(task: Work) -> bool:
    return task.deadline is not None and time.time() >= task.deadline


def _use_threads(count: int) -> None:
    import numba
    import torch

    torch.set_num_threads(count)
    numba.set_num_threads(min(count, numba.config.NUMBA_NUM_THREADS))


class _Objective:
    """What Optuna maximises."""

    def __init__(self, task: Work, study: optuna.Study) -> None:
        self._task, self._study = task, study

    def __call__(self, trial: optuna.Trial) -> float:
        """Draw a recipe, train it, and give its score; what else is known of it goes into the trial."""
        import optuna

        # Numbers are given out one by one, so exactly so many trials find fewer than the total before them.
        earlier = [t for t in self._study.get_trials(deepcopy=False) if t.number < trial.number]
        if len(counted(earlier)) >= self._task.trials:
            raise _Surplus
        trial.set_user_attr(WORKER, f"{socket.gethostname()}:{os.getpid()}")
        try:
            judged = self._judge(trial)
        except optuna.TrialPruned:
            raise
        except Exception as error:
            message = str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
            trial.set_user_attr(ERROR, " ".join(message.split())[:_MESSAGE])
            raise TrialFailed(message) from error
        trial.set_user_attr(LOSS, judged.loss)
        trial.set_user_attr("scores", judged.scores)
        trial.set_user_attr("selected_epochs", judged.selected)
        return judged.score

    def _judge(self, trial: optuna.Trial) -> Judged:
        import optuna

        def on_step(step: int, score: float) -> None:
            trial.report(score, step)
            if trial.should_prune():
                raise optuna.TrialPruned

        def suggest(name: str, dimension: Dimension, current: Any) -> Any:
            return suggest_value(trial, name, dimension)

        task = self._task
        recipe = draw(task.space, task.recipe, suggest)
        return judge_recipe(
            task.dataset,
            recipe,
            seeds=task.seeds,
            split=task.split,
            device=task.device,
            cache=task.cache,
            on_step=on_step,
        )


def suggest_value(trial: optuna.Trial, name: str, dimension: Dimension) -> Any:
    """A value of a dimension, drawn by the study's sampler."""
    if isinstance(dimension, Choices):
        return dimension.value(trial.suggest_categorical(name, dimension.labels))
    if dimension.whole:
        step = 1 if dimension.step is None else int(dimension.step)
        return trial.suggest_int(name, int(dimension.low), int(dimension.high), step=step, log=dimension.log)
    return trial.suggest_float(name, dimension.low, dimension.high, step=dimension.step, log=dimension.log)
