"""The study of a hyper-parameter search in Optuna's storage: its database, its inputs, and the trials that count.

A study is stored in a database: a SQLite file, or a server that several machines share. It records the inputs of the
search, and refuses to continue with others. The random numbers of a trial depend on the seed, the trial's number and
the parameter's name, so that workers never draw the same, and a continued study draws as if it had not been stopped.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from subgnn.errors import DataError, DataWarning, MissingExtra, UserError, excerpt, extra_package
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
    if given is None:
        return f"sqlite:///{out / 'study.db'}"
    scheme, sign, rest = given.partition("://")
    if not sign:
        return f"sqlite:///{given}"
    return f"postgresql+psycopg://{rest}" if scheme in ("postgres", "postgresql") else given


def without_password(url: str) -> str:
    """A database's URL with its password hidden."""
    from sqlalchemy.engine import make_url

    return make_url(url).render_as_string(hide_password=True)


def open_storage(url: str) -> optuna.storages.RDBStorage:
    """Connect to a database, and create the tables that are missing.

    Raises:
        UserError: if the URL is invalid, its driver is missing, or the database cannot be reached.
    """
    import optuna
    from sqlalchemy import exc
    from sqlalchemy.engine import make_url

    try:
        address = make_url(url)
        address.get_dialect()
    except (exc.ArgumentError, exc.NoSuchModuleError):
        hint = "accepted: the path of a SQLite file, or a URL as postgresql://USER:PASSWORD@HOST/DATABASE"
        raise UserError(f"{excerpt(url)} is not a database", where="--storage", hint=hint) from None
    lite = address.get_backend_name() == "sqlite"
    options = {"connect_args": {"timeout": 60}} if lite else {"pool_pre_ping": True}
    for attempt in range(_ATTEMPTS):
        try:
            with quiet_optuna():
                return optuna.storages.RDBStorage(
                    url, engine_kwargs=options, heartbeat_interval=HEARTBEAT, grace_period=GRACE
                )
        except ImportError:
            if address.get_backend_name() == "postgresql":
                raise MissingExtra("psycopg", extra="postgres", feature="a PostgreSQL storage") from None
            what = f"the driver of {address.drivername} is not installed"
            raise UserError(what, where="--storage", hint="install it, or use PostgreSQL or SQLite") from None
        except exc.SQLAlchemyError as error:
            # Two workers may create the tables at the same time; the second then finds them.
            if attempt + 1 < _ATTEMPTS and (isinstance(error, exc.IntegrityError) or "already exists" in str(error)):
                time.sleep(0.2 * (attempt + 1))
                continue
            raise _unreachable(error, url) from None
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
    hint = "is it running, and writable? Finished trials are stored: give the same command again"
    return DataError(f"the study cannot be stored there ({words})", where=without_password(url), hint=hint)


def open_study(
    storage: optuna.storages.RDBStorage,
    name: str,
    *,
    inputs: Mapping[str, Any],
    first: Mapping[str, Any],
    seed: int,
    pruner: Pruner,
    steps: int,
) -> optuna.Study:
    """Open a study by name, or create it.

    Args:
        inputs: identify the search, as plain data.
        first: parameters of the first trial; missing ones are drawn.
        steps: epochs of a whole trial, over all seeds.

    Raises:
        DataError: if the study of that name has other inputs.
    """
    import optuna

    with quiet_optuna():
        study = optuna.create_study(
            storage=storage,
            study_name=name,
            direction="maximize",
            load_if_exists=True,
            sampler=_sampler(seed),
            pruner=_pruner(pruner, steps),
        )
        before = study.user_attrs.get(INPUTS)
        if before is None:
            study.set_user_attr(INPUTS, dict(inputs))
            study.enqueue_trial(dict(first), skip_if_exists=True)
            return study
    other = [key for key in inputs if before.get(key) != inputs[key]]
    if other:
        what = f"the study '{name}' is a search of something else: {', '.join(other)} differ"
        raise DataError(what, where="--study", hint="give another --study")
    return study


def _sampler(seed: int) -> optuna.samplers.BaseSampler:
    """Tree-structured Parzen estimators, seeded by the trial's number and the parameter's name."""
    from optuna.samplers import BaseSampler, TPESampler

    class NamedDraws(BaseSampler):
        def infer_relative_search_space(self, study: Any, trial: Any) -> dict[str, Any]:
            return {}

        def sample_relative(self, study: Any, trial: Any, search_space: Any) -> dict[str, Any]:
            return {}

        def sample_independent(self, study: Any, trial: Any, param_name: str, param_distribution: Any) -> Any:
            key = stream_key(seed, f"tune/{trial.number}/{param_name}") % 2**32
            sampler = TPESampler(seed=key, multivariate=False, constant_liar=True)
            return sampler.sample_independent(study, trial, param_name, param_distribution)

    return NamedDraws()


def _pruner(name: Pruner, steps: int) -> optuna.pruners.BasePruner:
    from optuna.pruners import HyperbandPruner, MedianPruner, NopPruner

    if name == "median":
        return MedianPruner(n_startup_trials=STARTUP, n_warmup_steps=steps // 10)
    return HyperbandPruner(max_resource=max(1, steps)) if name == "hyperband" else NopPruner()


def counted(trials: Sequence[optuna.trial.FrozenTrial]) -> list[optuna.trial.FrozenTrial]:
    """The trials that count towards the total: complete, pruned, failed with an error, or running.

    A trial that was interrupted, or whose worker is lost, has failed without an error, and is replaced by another.
    """
    return [t for t in trials if t.state.name in ("COMPLETE", "PRUNED", "RUNNING") or ERROR in t.user_attrs]


def best_trial(trials: Sequence[optuna.trial.FrozenTrial]) -> optuna.trial.FrozenTrial | None:
    """The complete trial with the highest score; ties go to the lower loss, then to the earlier trial."""
    complete = [t for t in trials if t.state.name == "COMPLETE" and t.value is not None]
    return max(complete, key=lambda t: (t.value, -t.user_attrs[LOSS], -t.number), default=None)
