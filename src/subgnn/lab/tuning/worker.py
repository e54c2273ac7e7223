"""Run the trials of a hyper-parameter search: here, or by the workers of an engine.

Workers communicate only through the study, so they may be processes of one machine or of many.
"""

from __future__ import annotations

import os
import socket
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from subgnn.config.settings import Recipe
from subgnn.data.dataset import Dataset
from subgnn.errors import DataWarning, UserError
from subgnn.lab.tuning.search_space import Choices, Dimension, SearchSpace, draw_recipe
from subgnn.lab.tuning.study import (
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
from subgnn.lab.tuning.trial import FOLDS, Splitting, max_epochs, run_trial
from subgnn.parallel.engine import Engine, Failure, Shared
from subgnn.parallel.progress import ignore

if TYPE_CHECKING:
    import optuna

_LONGEST_MESSAGE = 300


@dataclass(frozen=True, slots=True, eq=False)
class SearchTask:
    """The inputs of a search, as data that can be sent to another process or machine.

    Attributes:
        dataset: without its test subgraphs.
        trials: the total of the study.
        deadline: in seconds since 1970; no trial begins after it.
        most: trials that a worker runs, 0 for no limit.
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
    folds: int = FOLDS
    split: Splitting = "stored"
    pruner: Pruner = "median"
    seed: int = 0
    device: str = "auto"
    cache: bool = True
    deadline: float | None = None
    most: int = 0

    def open(self) -> optuna.Study:
        """Open the study."""
        return open_study(
            open_storage(self.storage),
            self.study,
            inputs=self.inputs,
            first=self.first,
            seed=self.seed,
            pruner=self.pruner,
            steps=self.seeds * max(1, self.folds) * max_epochs(self.recipe),
        )


class TrialFailed(Exception):
    """A trial that failed because of its settings; the search continues."""


class _Surplus(Exception):
    """A trial beyond the total, begun while other workers began the last ones."""


def run_trials_here(task: SearchTask, after_trial: Callable[[], None] = ignore) -> int:
    """Run trials until the study has its total or the time is up; returns the number run here.

    Raises:
        DataError: where the study's database fails.
        KeyboardInterrupt: after Ctrl-C; the unfinished trial does not count.
    """
    import optuna

    ran = 0
    with failing_storage(task.storage), quiet_optuna():
        study = task.open()
        while (task.deadline is None or time.time() < task.deadline) and not 0 < task.most <= ran:
            optuna.storages.fail_stale_trials(study)
            if len(counted(study.get_trials(deepcopy=False))) >= task.trials:
                break
            try:
                study.optimize(partial(_objective, task, study), n_trials=1, catch=(TrialFailed,))
            except _Surplus:
                break
            ran += 1
            after_trial()
    return ran


def check_storage(engine: Engine, storage: str) -> None:
    """Refuse a SQLite file for workers of several machines: its locks work on one machine only."""
    machines = sorted(getattr(engine, "machines", ()))
    if storage.startswith("sqlite") and len(machines) > 1:
        few = machines if len(machines) <= 3 else [*machines[:3], "..."]
        what = f"a SQLite file cannot be shared by {len(machines)} machines ({', '.join(few)})"
        hint = "give a database that all can reach, as --storage postgresql://USER:PASSWORD@HOST/DATABASE"
        raise UserError(what, where="--storage", hint=hint)


def run_trials_on(engine: Engine, task: SearchTask, after_trial: Callable[[], None]) -> None:
    """Run the missing trials of the study, one a job.

    A trial whose machine is lost is run again by another worker, under a new number.

    Raises:
        UserError: where a worker raised one, for example for a database it cannot reach.
    """
    import optuna

    study = task.open()
    optuna.storages.fail_stale_trials(study)
    missing = task.trials - len(counted(study.get_trials(deepcopy=False)))
    shared = engine.share(replace(task, most=1))
    for _, result in engine.map(_run_trial, [shared] * max(0, missing)):
        if isinstance(result, Failure):
            if result.error is not None:
                result.throw()
            text = f"a trial is lost: {result.message}; the others continue. The same command again makes up for it"
            warnings.warn(text, DataWarning, stacklevel=2)
        after_trial()


def _run_trial(task: Shared[SearchTask]) -> int:
    return run_trials_here(task.get())


def _objective(task: SearchTask, study: optuna.Study, trial: optuna.Trial) -> float:
    """Draw a recipe, train it and return its score, which Optuna maximises; loss and epochs go into the trial."""
    import optuna

    # Numbers are unique and consecutive, so exactly ``trials`` trials find fewer than the total before them.
    earlier = [t for t in study.get_trials(deepcopy=False) if t.number < trial.number]
    if len(counted(earlier)) >= task.trials:
        raise _Surplus

    def on_step(step: int, score: float) -> None:
        trial.report(score, step)
        if trial.should_prune():
            raise optuna.TrialPruned

    trial.set_user_attr(WORKER, f"{socket.gethostname()}:{os.getpid()}")
    try:
        result = run_trial(
            task.dataset,
            draw_recipe(task.space, task.recipe, lambda name, dimension, _: _suggest(trial, name, dimension)),
            seeds=task.seeds,
            folds=task.folds,
            split=task.split,
            device=task.device,
            cache=task.cache,
            on_step=on_step,
        )
    except optuna.TrialPruned:
        raise
    except Exception as error:
        message = Failure.of(error).message
        trial.set_user_attr(ERROR, message[:_LONGEST_MESSAGE])
        raise TrialFailed(message) from error
    trial.set_user_attr(LOSS, result.loss)
    trial.set_user_attr("scores", result.scores)
    trial.set_user_attr("selected_epochs", result.selected)
    return result.score


def _suggest(trial: optuna.Trial, name: str, dimension: Dimension) -> Any:
    """Draw a value of a dimension with the study's sampler."""
    if isinstance(dimension, Choices):
        return dimension.value(trial.suggest_categorical(name, dimension.labels))
    if dimension.whole:
        step = 1 if dimension.step is None else int(dimension.step)
        return trial.suggest_int(name, int(dimension.low), int(dimension.high), step=step, log=dimension.log)
    return trial.suggest_float(name, dimension.low, dimension.high, step=dimension.step, log=dimension.log)
