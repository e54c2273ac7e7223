"""The study of a search in Optuna's storage, and its trials.

A study records the inputs of the search, and refuses to continue with others. Workers communicate only through the
storage, so they may be processes of one machine or of many.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from subgnn.config.settings import Recipe
from subgnn.data.dataset import Dataset
from subgnn.errors import DataError, DataWarning, MissingExtra, UserError, excerpt, extra_package
from subgnn.lab.tuning.search_space import SearchSpace, parameters, with_parameters
from subgnn.lab.tuning.trial import FOLDS, run_trial
from subgnn.parallel.engine import Failure
from subgnn.rng import stream_key

if TYPE_CHECKING:
    import optuna

HEARTBEAT, GRACE = 15, 90
"""Seconds between a worker's heartbeats, and without one until its trial is given up."""
INPUTS, ERROR, LOSS = "inputs", "error", "loss"
_LONGEST_MESSAGE = 300


class TrialFailed(Exception):
    """A trial that failed because of its settings; the search continues."""


@dataclass(frozen=True, slots=True, eq=False)
class Search:
    """A search as data that can be sent to another process or machine; its dataset has no test subgraphs."""

    dataset: Dataset
    recipe: Recipe
    space: SearchSpace
    storage: str
    study: str
    inputs: dict[str, Any]
    trials: int
    folds: int = FOLDS
    seed: int = 0
    device: str = "auto"
    cache: bool = True
    deadline: float | None = None

    def open(self) -> optuna.Study:
        """Open the study by its name, or create it with the recipe's own values as the first trial."""
        import optuna

        with quiet_optuna(self.storage):
            study = optuna.create_study(
                storage=_open_storage(self.storage),
                study_name=self.study,
                direction="maximize",
                load_if_exists=True,
                sampler=_sampler(self.seed),
                pruner=optuna.pruners.MedianPruner(),
            )
            before = study.user_attrs.get(INPUTS)
            if before is None:
                study.set_user_attr(INPUTS, self.inputs)
                study.enqueue_trial(self._first_values(), skip_if_exists=True)
        other = [key for key in self.inputs if before is not None and before.get(key) != self.inputs[key]]
        if other:
            what = f"the study '{self.study}' belongs to a different search: {', '.join(other)} differ"
            raise DataError(what, where="--study", hint="choose a different --study")
        return study

    def _first_values(self) -> dict[str, Any]:
        """The recipe's values, as far as they lie in the space."""
        found: dict[str, Any]
        found, current = parameters(self.space, self.recipe)

        def inside(value: Any, one: Any) -> bool:
            # For a number between two steps, Optuna itself draws another.
            return (
                value in one.choices if hasattr(one, "choices") else value is not None and one.low <= value <= one.high
            )

        return {name: value for name, value in current.items() if inside(value, found[name])}

    def run_trials(self, most: int = 0) -> int:
        """Run trials until the study has its total, the time is up or ``most`` are run here; returns their number."""
        import optuna

        ran = 0
        with quiet_optuna(self.storage):
            study = self.open()
            while (self.deadline is None or time.time() < self.deadline) and not 0 < most <= ran:
                optuna.storages.fail_stale_trials(study)
                if len(counted(study)) >= self.trials:
                    break
                study.optimize(self._objective, n_trials=1, catch=(TrialFailed,))
                ran += 1
        return ran

    def _objective(self, trial: optuna.Trial) -> float:
        import optuna

        def on_score(step: int, score: float) -> None:
            trial.report(score, step)
            if step < self.folds and trial.should_prune():
                raise optuna.TrialPruned

        try:
            found, _ = parameters(self.space, self.recipe)
            recipe = with_parameters(self.recipe, {name: _suggest(trial, name, one) for name, one in found.items()})
            options = {"folds": self.folds, "device": self.device, "cache": self.cache}
            result = run_trial(self.dataset, recipe, on_score=on_score, **options)  # type: ignore[arg-type]
        except optuna.TrialPruned:
            raise
        except Exception as error:
            message = Failure.of(error).message
            trial.set_user_attr(ERROR, message[:_LONGEST_MESSAGE])
            raise TrialFailed(message) from error
        trial.set_user_attr(LOSS, result.loss)
        trial.set_user_attr("scores", result.scores)
        return result.score


def _suggest(trial: optuna.Trial, name: str, one: Any) -> Any:
    """Draw a value of a distribution with the study's sampler."""
    if hasattr(one, "choices"):
        return trial.suggest_categorical(name, one.choices)
    if isinstance(one.low, int):
        return trial.suggest_int(name, one.low, one.high, step=one.step, log=one.log)
    return trial.suggest_float(name, one.low, one.high, step=one.step, log=one.log)


def _sampler(seed: int) -> optuna.samplers.BaseSampler:
    """Tree-structured Parzen estimators, seeded by the trial's number and the parameter's name.

    So workers never draw the same, and a continued study draws as if it had not been stopped.
    """
    from optuna.samplers import TPESampler

    class NamedDraws(TPESampler):
        def sample_independent(self, study: Any, trial: Any, param_name: str, param_distribution: Any) -> Any:
            key = stream_key(seed, f"tune/{trial.number}/{param_name}") % 2**32
            sampler = TPESampler(seed=key, multivariate=False, constant_liar=True)
            return sampler.sample_independent(study, trial, param_name, param_distribution)

    return NamedDraws()


def counted(study: optuna.Study) -> list[optuna.trial.FrozenTrial]:
    """The trials that count towards the total: complete, pruned, failed with an error, or running.

    A trial that was interrupted, or whose worker is lost, has failed without an error, and is replaced by another.
    """
    trials = study.get_trials(deepcopy=False)
    return [t for t in trials if t.state.name in ("COMPLETE", "PRUNED", "RUNNING") or ERROR in t.user_attrs]


@contextmanager
def quiet_optuna(url: str) -> Iterator[None]:
    """Silence Optuna's log and minor warnings, and turn errors of its database into one line with a hint."""
    import optuna
    from sqlalchemy.exc import SQLAlchemyError

    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            warnings.filterwarnings("ignore", "Fixed parameter .* is out of range")
            warnings.simplefilter("once", DataWarning)  # every trial repeats the warnings about the data
            yield
    except (SQLAlchemyError, optuna.exceptions.StorageInternalError) as error:
        cause = getattr(error, "orig", None) or error.__cause__ or error
        words = " ".join(str(cause).split())[:200]
        hint = "is it running and writable? Finished trials are stored; run the same command again"
        raise DataError(f"the study cannot be stored there ({words})", where=without_password(url), hint=hint) from None
    finally:
        optuna.logging.set_verbosity(before)


def storage_url(given: str | None, out: Path) -> str:
    """The URL of a database, given as a URL or as the path of a SQLite file; by default ``study.db`` in the folder."""
    scheme, sign, rest = (given or str(out / "study.db")).partition("://")
    if not sign:
        return f"sqlite:///{scheme}"
    return f"{'postgresql+psycopg' if scheme in ('postgres', 'postgresql') else scheme}://{rest}"


def without_password(url: str) -> str:
    """A database's URL with its password hidden."""
    from sqlalchemy.engine import make_url

    return make_url(url).render_as_string(hide_password=True)


def _open_storage(url: str) -> optuna.storages.RDBStorage:
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
    lite = address.get_backend_name() == "sqlite"
    options = {"connect_args": {"timeout": 60}} if lite else {"pool_pre_ping": True}
    try:
        return optuna.storages.RDBStorage(url, options, heartbeat_interval=HEARTBEAT, grace_period=GRACE)
    except ImportError:
        if address.get_backend_name() == "postgresql":
            raise MissingExtra("psycopg", extra="tune", feature="a PostgreSQL storage") from None
        what = f"the driver of {address.drivername} is not installed"
        raise UserError(what, where="--storage", hint="install it, or use PostgreSQL or SQLite") from None


def require_optuna() -> None:
    """Raise :class:`MissingExtra` if Optuna is not installed."""
    with extra_package("optuna", extra="tune", feature="tune"):
        import optuna  # noqa: F401
