"""The study of a hyper-parameter search in Optuna's storage, and the workers that run its trials.

A study is stored in a database: a SQLite file, or a server that several machines share. It records the inputs of the
search, and refuses to continue with others. The random numbers of a trial depend on the seed, the trial's number and
the parameter's name, so that workers never draw the same, and a continued study draws as if it had not been stopped.
Workers communicate only through the study, so they may be processes of one machine or of many.
"""

from __future__ import annotations

import os
import socket
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from subgnn.config.settings import Recipe
from subgnn.data.dataset import Dataset
from subgnn.errors import DataError, DataWarning, MissingExtra, UserError, excerpt, extra_package, warn
from subgnn.lab.tuning.search_space import Choices, Dimension, SearchSpace, draw_recipe
from subgnn.lab.tuning.trial import FOLDS, Splitting, max_epochs, run_trial
from subgnn.parallel.engine import Engine, Failure, Shared
from subgnn.parallel.progress import ignore
from subgnn.rng import stream_key

if TYPE_CHECKING:
    import optuna

Pruner = Literal["none", "median", "hyperband"]
STARTUP = 5
"""Trials that the median pruner needs before it prunes."""
HEARTBEAT, GRACE = 15, 90
"""Seconds between a worker's heartbeats, and without one until its trial is given up."""
INPUTS, ERROR, LOSS, WORKER = "inputs", "error", "loss", "worker"
_ATTEMPTS = 5
_LONGEST_MESSAGE = 300


def require_optuna() -> None:
    """Raise :class:`MissingExtra` if Optuna is not installed."""
    with extra_package("optuna", extra="tune", feature="tune"):
        import optuna  # noqa: F401


@contextmanager
def quiet_optuna() -> Iterator[None]:
    """Silence Optuna's log and its warnings of experimental features."""
    import optuna

    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            # Every trial repeats the warnings about the data; once is enough.
            warnings.simplefilter("once", DataWarning)
            yield
    finally:
        optuna.logging.set_verbosity(before)


def storage_url(given: str | None, out: Path) -> str:
    """The URL of a database, given as a URL or as the path of a SQLite file; by default ``study.db`` in the folder.

    Example:
        >>> storage_url("postgresql://me@host/db", Path("out")), storage_url(None, Path("out"))
        ('postgresql+psycopg://me@host/db', 'sqlite:///out/study.db')
    """
    scheme, sign, rest = (given or str(out / "study.db")).partition("://")
    if not sign:
        return f"sqlite:///{scheme}"
    return f"{'postgresql+psycopg' if scheme in ('postgres', 'postgresql') else scheme}://{rest}"


def without_password(url: str) -> str:
    """A database's URL with its password hidden."""
    from sqlalchemy.engine import make_url

    return make_url(url).render_as_string(hide_password=True)


def open_storage(url: str) -> optuna.storages.RDBStorage:
    """Connect to a database, and create the tables that are missing."""
    import optuna
    from sqlalchemy import exc
    from sqlalchemy.engine import make_url

    try:
        address = make_url(url)
        address.get_dialect()
    except (exc.ArgumentError, exc.NoSuchModuleError):
        hint = "accepted: the path of a SQLite file, or a URL such as postgresql://USER:PASSWORD@HOST/DATABASE"
        raise UserError(f"{excerpt(url)} is not a database", where="--storage", hint=hint) from None
    backend = address.get_backend_name()
    options = {"connect_args": {"timeout": 60}} if backend == "sqlite" else {"pool_pre_ping": True}
    for attempt in range(_ATTEMPTS):
        try:
            with quiet_optuna():
                return optuna.storages.RDBStorage(
                    url, engine_kwargs=options, heartbeat_interval=HEARTBEAT, grace_period=GRACE
                )
        except ImportError:
            if backend == "postgresql":
                raise MissingExtra("psycopg", extra="postgres", feature="a PostgreSQL storage") from None
            what = f"the driver of {address.drivername} is not installed"
            raise UserError(what, where="--storage", hint="install it, or use PostgreSQL or SQLite") from None
        except exc.SQLAlchemyError as error:
            # Two workers may create the tables at the same time; the second then finds them.
            if attempt + 1 == _ATTEMPTS or not (
                isinstance(error, exc.IntegrityError) or "already exists" in str(error)
            ):
                raise _unreachable(error, url) from None
            time.sleep(0.2 * (attempt + 1))
    raise AssertionError("the last attempt returns or raises")


@contextmanager
def failing_storage(url: str) -> Iterator[None]:
    """Turn errors of the database into one line with a hint."""
    import optuna
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (SQLAlchemyError, optuna.exceptions.StorageInternalError) as error:
        raise _unreachable(error, url) from error


def _unreachable(error: Exception, url: str) -> DataError:
    cause = getattr(error, "orig", None) or error.__cause__ or error
    words = " ".join(str(cause).split())[:200]
    hint = "is it running and writable? Finished trials are stored; run the same command again"
    return DataError(f"the study cannot be stored there ({words})", where=without_password(url), hint=hint)


def check_storage(engine: Engine, storage: str) -> None:
    """Refuse a SQLite file for workers of several machines: its locks work on one machine only."""
    machines = sorted(getattr(engine, "machines", ()))
    if storage.startswith("sqlite") and len(machines) > 1:
        few = machines if len(machines) <= 3 else [*machines[:3], "..."]
        what = f"a SQLite file cannot be shared by {len(machines)} machines ({', '.join(few)})"
        hint = "give a database that all can reach, such as --storage postgresql://USER:PASSWORD@HOST/DATABASE"
        raise UserError(what, where="--storage", hint=hint)


@dataclass(frozen=True, slots=True, eq=False)
class SearchTask:
    """The inputs of a search, as data that can be sent to another process or machine.

    Attributes:
        dataset: without its test subgraphs.
        inputs: what identifies the search, as plain data.
        first: parameters of the first trial; missing ones are drawn.
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
        """Open the study by its name, or create it."""
        import optuna

        storage = open_storage(self.storage)
        with quiet_optuna():
            study = optuna.create_study(
                storage=storage,
                study_name=self.study,
                direction="maximize",
                load_if_exists=True,
                sampler=_sampler(self.seed),
                pruner=_pruner(self.pruner, self.seeds * max(1, self.folds) * max_epochs(self.recipe)),
            )
            before = study.user_attrs.get(INPUTS)
            if before is None:
                study.set_user_attr(INPUTS, self.inputs)
                study.enqueue_trial(self.first, skip_if_exists=True)
                return study
        other = [key for key in self.inputs if before.get(key) != self.inputs[key]]
        if other:
            what = f"the study '{self.study}' belongs to a different search: {', '.join(other)} differ"
            raise DataError(what, where="--study", hint="choose a different --study")
        return study


def _sampler(seed: int) -> optuna.samplers.BaseSampler:
    """Tree-structured Parzen estimators, seeded by the trial's number and the parameter's name."""
    from optuna.samplers import TPESampler

    class NamedDraws(TPESampler):
        def sample_independent(self, study: Any, trial: Any, param_name: str, param_distribution: Any) -> Any:
            key = stream_key(seed, f"tune/{trial.number}/{param_name}") % 2**32
            sampler = TPESampler(seed=key, multivariate=False, constant_liar=True)
            return sampler.sample_independent(study, trial, param_name, param_distribution)

    return NamedDraws()


def _pruner(name: Pruner, steps: int) -> optuna.pruners.BasePruner:
    """The pruner for trials of at most this many epochs."""
    from optuna.pruners import HyperbandPruner, MedianPruner, NopPruner

    if name == "median":
        return MedianPruner(n_startup_trials=STARTUP, n_warmup_steps=steps // 10)
    return HyperbandPruner(max_resource=max(1, steps)) if name == "hyperband" else NopPruner()


def counted(trials: Sequence[optuna.trial.FrozenTrial]) -> list[optuna.trial.FrozenTrial]:
    """The trials that count towards the total: complete, pruned, failed with an error, or running.

    A trial that was interrupted, or whose worker is lost, has failed without an error, and is replaced by another.
    """
    return [t for t in trials if t.state.name in ("COMPLETE", "PRUNED", "RUNNING") or ERROR in t.user_attrs]


class TrialFailed(Exception):
    """A trial that failed because of its settings; the search continues."""


class _Surplus(Exception):
    """A trial beyond the total, begun while other workers began the last ones."""


def run_trials_here(task: SearchTask, after_trial: Callable[[], None] = ignore) -> int:
    """Run trials until the study has its total or the time is up; returns the number run here."""
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


def run_trials_on(engine: Engine, task: SearchTask, after_trial: Callable[[], None]) -> None:
    """Run the missing trials of the study, one per job.

    A trial whose machine is lost is run again by another worker, under a new number.
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
            text = f"a trial was lost: {result.message}; the others continue. Run the same command again to replace it"
            warn(text)
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
    low, high, log, step = dimension.low, dimension.high, dimension.log, dimension.step
    if isinstance(low, int):
        return trial.suggest_int(name, low, int(high), step=int(step or 1), log=log)
    return trial.suggest_float(name, low, high, step=step, log=log)
