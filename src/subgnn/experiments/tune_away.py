"""Trials of a search by the workers of an engine: a job is one trial of the study, which all of them share."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace

from subgnn.errors import DataWarning, UserError
from subgnn.experiments.study import counted
from subgnn.experiments.worker import Work, work
from subgnn.parallel.engine import Engine, Failure, Shared


@dataclass(frozen=True, slots=True, eq=False)
class _Trial:
    """One trial; the dataset and all the rest is shared."""

    task: Shared[Work]


def check_reach(engine: Engine, storage: str) -> None:
    """Refuse a SQLite file for workers of several machines: its locks hold on one machine alone."""
    machines = sorted(getattr(engine, "machines", ()))
    if storage.startswith("sqlite") and len(machines) > 1:
        few = machines if len(machines) <= 3 else [*machines[:3], "..."]
        what = f"a SQLite file cannot be shared by {len(machines)} machines ({', '.join(few)})"
        hint = "give a database that all can reach, as --storage postgresql://USER:PASSWORD@HOST/DATABASE"
        raise UserError(what, where="--storage", hint=hint)


def run_trials(engine: Engine, task: Work, show: Callable[[], None]) -> None:
    """Run the trials that the study lacks.

    A trial whose machine is lost is run again by another worker, under a new number.

    Args:
        show: called after each trial.

    Raises:
        UserError: where a worker met one, for example a database it cannot reach.
    """
    study = task.open()
    missing = task.trials - len(counted(study.get_trials(deepcopy=False)))
    shared = engine.share(replace(task, most=1, threads=1))
    for _, result in engine.map(_run_trial, [_Trial(shared)] * max(0, missing)):
        if isinstance(result, Failure):
            if result.mistake:
                result.throw()
            warnings.warn(f"a trial is lost: {result.message}; the others went on", DataWarning, stacklevel=2)
        show()


def _run_trial(trial: _Trial) -> int:
    return work(trial.task.get())
