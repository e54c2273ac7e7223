"""Hyper-parameter search with Optuna: a recipe, a search space, and a study of trials.

The test subgraphs are removed from the dataset before anything else. Commands with the same storage, on one machine or
many, share a study.

OUT/recipe.toml     the recipe of the best trial, for ``--recipe``
OUT/trials.tsv      one line per trial, the best first
OUT/study.db        the study, unless another storage is given

A search space is a TOML file with a range or choices for each setting that a search may change (docs/settings.md).
``channels.structure`` applies to both sides, which then have one number of anchors. A subchannel that the recipe does
not have stays off.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from subgnn.api.train_recipe import train, with_metric
from subgnn.channels.table import CHANNELS
from subgnn.config.files import read_toml
from subgnn.config.settings import AutoSettings, Recipe, recipe_key
from subgnn.data.dataset import Dataset
from subgnn.data.subgraphs import SPLITS
from subgnn.embeddings.sources import check_source
from subgnn.errors import DataError, DataWarning, UserError, choices, excerpt, extra_package
from subgnn.models.interface import ChannelModel
from subgnn.models.recipes import check_recipe, parse_recipe, recipe_toml
from subgnn.models.registry import find_model
from subgnn.parallel.engine import Failure
from subgnn.parallel.locks import names_in
from subgnn.parallel.progress import OnProgress, ignore
from subgnn.rng import stream_key
from subgnn.storage.files import atomic_write, json_digest, temporary_folder
from subgnn.task import metric_name, task_of
from subgnn.training.cross_validation import UNUSED, CrossValidation

if TYPE_CHECKING:
    import optuna
    from optuna.distributions import BaseDistribution

FILES = {"recipe": "recipe.toml", "trials": "trials.tsv"}
_LONGEST_MESSAGE = 300
_SECTIONS = (*(f.name for f in fields(Recipe) if is_dataclass(f.default_factory)), "channels", "note")
_SPACES = Path(__file__).parent / "spaces"
_HINT = "accepted: {low = .., high = ..}, optionally with log = true or step = ..; or {choices = [..]}"


@dataclass(frozen=True, slots=True)
class SearchSpace:
    """Distributions by ``section.key`` or ``channels.KIND/SIDE``; KIND alone is both sides."""

    name: str
    dimensions: dict[str, BaseDistribution]

    def apply(self, recipe: Recipe, value_of: Callable[[str, BaseDistribution, Any], Any]) -> Recipe:
        """The recipe with the values of its parameters, from their names, distributions and own values."""
        wanted: dict[str, Any] = {path.partition(".")[0]: {} for path in self.dimensions}
        wanted.pop("channels", None)
        content = parse_recipe(wanted | recipe.plain(), recipe.name).plain()
        for path, dimension in self.dimensions.items():
            section, _, key = path.partition(".")
            if section == "channels":
                chosen = [one for one in content["channels"] if key in (one["kind"], f"{one['kind']}/{one['side']}")]
                for one in chosen:
                    one["num_anchors"] = value_of(path, dimension, one["num_anchors"])
            elif isinstance(own := content[section][key], tuple):
                content[section][key] = [value_of(f"{path}[{i}]", dimension, one) for i, one in enumerate(own)]
            else:
                content[section][key] = value_of(path, dimension, own)
        return parse_recipe(content, recipe.name)


def space_names() -> list[str]:
    """The search spaces that come with the package."""
    return sorted(path.stem for path in _SPACES.glob("*.toml"))


def find_space(name: str) -> SearchSpace:
    """A search space by name, or by the path of a file."""
    if not name.endswith(".toml") and name not in space_names():
        raise UserError(f"unknown search space '{name}'", where="--space", hint=choices(name, space_names()))
    path = Path(name) if name.endswith(".toml") else _SPACES / f"{name}.toml"
    return parse_space(read_toml(path, "search space"), str(path), name=path.stem)


def parse_space(content: Mapping[str, Any], where: str, *, name: str = "unnamed") -> SearchSpace:
    """Make a search space from a mapping, and check that a recipe accepts the ends of every range and every choice."""
    dimensions: dict[str, BaseDistribution] = {}
    for section, entries in content.items():
        if section not in _SECTIONS:
            raise UserError(f"unknown section '{section}'", where=where, hint=choices(section, _SECTIONS))
        for key, entry in _table(entries, section, where).items() if section != "note" else ():
            of = _of_channel if section == "channels" else _of_setting
            dimensions[f"{section}.{key}"] = of(section, key, entry, where)
    if not dimensions:
        hint = "give settings such as: training.lr = {low = 1e-4, high = 1e-2}"
        raise UserError("the search space is empty", where=where, hint=hint)
    return SearchSpace(name, dimensions)


def _table(content: Any, path: str, where: str) -> Mapping[str, Any]:
    if not isinstance(content, Mapping):
        raise UserError(f"{path} is {excerpt(str(content))}", where=where, hint="a table is accepted")
    return content


def _of_setting(section: str, key: str, entry: Any, where: str) -> BaseDistribution:
    settings = parse_recipe({section: {}}, where).plain()[section]
    if key not in settings:
        parse_recipe({section: {key: 0}}, where)  # refuses the unknown name, with a hint
    default, several = settings[key], isinstance(settings[key], tuple)
    whole = type(default[0] if several else default) is int
    dimension, ends = _distribution(entry, f"{section}.{key}", where, whole=whole)
    for value in ends:
        parse_recipe({section: {key: [value] * len(default) if several else value}}, where)
    return dimension


def _of_channel(_: str, key: str, entry: Any, where: str) -> BaseDistribution:
    settings = _table(entry, f"channels.{key}", where)
    known = (*(f"{kind}/{side}" for kind, sides in CHANNELS.items() for side in sides), *CHANNELS)
    for given, accepted in ((key, known), *((part, ("num_anchors",)) for part in settings)):
        if given not in accepted:
            raise UserError(f"unknown name '{given}' in channels.{key}", where=where, hint=choices(given, accepted))
    kind, _, side = key.partition("/")
    dimension, ends = _distribution(settings.get("num_anchors"), f"channels.{key}.num_anchors", where, whole=True)
    for value in ends:
        parse_recipe({"channels": [{"kind": kind, "side": side or "border", "num_anchors": value}]}, where)
    return dimension


def _distribution(entry: Any, path: str, where: str, *, whole: bool) -> tuple[BaseDistribution, list[Any]]:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    try:
        if set(entry) == {"choices"}:
            values = list(entry["choices"])
            return CategoricalDistribution(values), values
        numbers = {name: value for name, value in entry.items() if name != "log"}
        if any(type(value) not in ((int,) if whole else (int, float)) for value in numbers.values()):
            raise ValueError("its numbers must be whole" if whole else "numbers are needed")
        if entry["high"] - entry["low"] < numbers.get("step", 0):
            raise ValueError("step must be no more than high - low")
        return (IntDistribution if whole else FloatDistribution)(**entry), [entry["low"], entry["high"]]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        why = f" ({error})" if isinstance(error, ValueError) else ""
        raise UserError(f"{path} is {excerpt(str(entry))}{why}", where=where, hint=_HINT) from None


def tune(
    dataset: Dataset,
    recipe: Recipe,
    out: Path,
    *,
    space: SearchSpace | None = None,
    trials: int = 50,
    storage: str | None = None,
    study: str | None = None,
    folds: int = 5,
    timeout: float | None = None,
    seed: int = 0,
    device: str = "auto",
    cache: bool = True,
    on_progress: OnProgress = ignore,
) -> dict[str, Any]:
    """Search for the settings with the best out-of-fold score; called again, the search continues.

    The first trial has the recipe's values, as far as they lie in the space, by default the paper's for SubGNN or the
    baselines. ``trials`` is the total over all calls; no trial begins after ``timeout`` seconds. The database of the
    study is a SQLite file or a URL. Returns what ``subgnn tune --json`` prints.
    """
    with extra_package("optuna", extra="tune", feature="tune"):
        import optuna
    check_recipe(recipe, dataset.graph, complete=False)
    if recipe.is_portfolio:
        hint = f"tune one of its recipes, such as --recipe {recipe.auto.candidates[-1].recipe}"
        what = f"the recipe '{recipe.name}' is a portfolio, which chooses its own settings"
        raise UserError(what, where="tune", hint=hint)
    if find_model(recipe.method).uses_embeddings(recipe):
        check_source(recipe)
    space = space or find_space("paper" if isinstance(find_model(recipe.method), ChannelModel) else "paper_baselines")
    subgraphs = dataset.subgraphs
    if subgraphs.splits is not None:
        subgraphs = subgraphs.take(np.flatnonzero(subgraphs.splits != SPLITS.index("test")))
    pool = CrossValidation.of(replace(dataset, subgraphs=subgraphs), AutoSettings(), 0)
    name = study or f"{dataset.name}/{recipe.name}/{space.name}"
    inputs = {
        "graph": dataset.graph.content_hash,
        "subgraphs": pool.given.subgraphs.content_hash,
        "recipe": json_digest(recipe_key(recipe)),
        "space": json_digest({key: repr(one) for key, one in space.dimensions.items()}),
        "folds": folds,
    }
    values: dict[str, tuple[Any, Any]] = {}  # of the first trial: the recipe's, as far as they lie in the space
    space.apply(recipe, lambda key, one, value: values.setdefault(key, (one, value))[1])
    if not values:
        what = f"nothing in it can be changed in the recipe {recipe.name}"
        raise UserError(what, where=f"search space {space.name}", hint="name settings, or subchannels of the recipe")
    own = {
        key: value
        for key, (one, value) in values.items()
        if (value in one.choices if hasattr(one, "choices") else one.low <= value <= one.high)
    }
    url = _storage_url(storage, out.resolve())
    there = names_in(out)
    if there != [] and not {"study.db", *FILES.values()}.intersection(there or []):
        raise DataError("exists already", where=str(out), hint="choose a different --out")
    out.mkdir(parents=True, exist_ok=True)
    states = optuna.trial.TrialState

    def objective(trial: optuna.Trial) -> float:
        # Seeded by number, so that commands that share a study never draw the same.
        trial.study.sampler = optuna.samplers.TPESampler(seed=stream_key(seed, f"tune/{trial.number}") % 2**32)
        try:
            drawn = space.apply(recipe, lambda key, one, _: _suggest(trial, key, one))
            return _score(trial, pool, drawn, folds=folds, device=device, cache=cache)
        except optuna.TrialPruned:
            raise
        except Exception as error:
            trial.set_user_attr("error", Failure.of(error).message[:_LONGEST_MESSAGE])
            raise

    def enough(found: optuna.Study, _: Any = None) -> None:
        done = len(found.get_trials(deepcopy=False, states=(states.COMPLETE, states.PRUNED)))
        on_progress("trials", min(done, trials), trials)
        if done >= trials:
            found.stop()

    with _errors_of_storage(url):
        opened = optuna.create_study(storage=url, study_name=name, direction="maximize", load_if_exists=True)
        before = opened.user_attrs.get("inputs")
        if before is None:
            opened.set_user_attr("inputs", inputs)
            opened.enqueue_trial(own, skip_if_exists=True)
        elif other := [key for key in inputs if before.get(key) != inputs[key]]:
            what = f"the study '{name}' belongs to a different search: {', '.join(other)} differ"
            raise DataError(what, where="--study", hint="choose a different --study, or a different --out")
        missing = trials - len(opened.get_trials(deepcopy=False, states=(states.COMPLETE, states.PRUNED)))
        if missing > 0:
            on_progress("trials", trials - missing, trials)
            opened.optimize(objective, missing, timeout, catch=(Exception,), callbacks=[enough])
        return _write_result(opened, space, recipe, pool.given, out, url)


def _suggest(trial: optuna.Trial, name: str, one: Any) -> Any:
    if hasattr(one, "choices"):
        return trial.suggest_categorical(name, one.choices)
    draw = trial.suggest_int if isinstance(one.low, int) else trial.suggest_float
    return draw(name, one.low, one.high, step=one.step, log=one.log)


def _score(
    trial: optuna.Trial, pool: CrossValidation, recipe: Recipe, *, folds: int, device: str, cache: bool
) -> float:
    """The mean score over trainings without each fold; a trial that is below the median of others so far ends there."""
    import optuna

    subgraphs = pool.dataset.subgraphs
    recipe = with_metric(recipe, subgraphs)
    metric = task_of(subgraphs.task).selection_metric(recipe.training.select_by)
    scores: list[float] = []
    for splits in pool.folds(0, folds):
        used = np.flatnonzero(splits != UNUSED)
        seen = replace(pool.dataset, subgraphs=replace(subgraphs.take(used), splits=splits[used]))
        with temporary_folder("subgnn-trial") as folder:
            found = train(seen, recipe, folder / "run", device=device, cache=cache, report=False)
        scores.append(found.test[metric])
        if math.isnan(scores[-1]):
            raise DataError(f"{metric} of a fold is undefined", where=seen.name, hint="are all targets equal there?")
        trial.report(fmean(scores), len(scores))
        if len(scores) < folds and trial.should_prune():
            raise optuna.TrialPruned
    return fmean(scores)


def _storage_url(given: str | None, out: Path) -> str:
    """The URL of a database, given as a URL or as the path of a SQLite file; by default ``study.db`` in the folder."""
    from sqlalchemy import exc
    from sqlalchemy.engine import make_url

    scheme, sign, rest = (given or str(out / "study.db")).partition("://")
    if not sign:
        return f"sqlite:///{scheme}"
    url = f"{'postgresql+psycopg' if scheme in ('postgres', 'postgresql') else scheme}://{rest}"
    try:
        make_url(url).get_dialect().import_dbapi()
    except (exc.ArgumentError, exc.NoSuchModuleError, ImportError) as error:
        hint = "accepted: the path of a SQLite file, or a URL such as postgresql://USER:PASSWORD@HOST/DATABASE"
        what = f"{excerpt(url)} is not a database ({error})"
        if isinstance(error, ImportError):
            what, hint = f"the driver of {scheme} is not installed", "install it: pip install 'subgnn[tune]'"
        raise UserError(what, where="--storage", hint=hint) from None
    return url


@contextmanager
def _errors_of_storage(url: str) -> Iterator[None]:
    """Silence Optuna's log and minor warnings, and turn errors of its database into one line with a hint."""
    import optuna
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import SQLAlchemyError

    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Fixed parameter .* is out of range")
            warnings.simplefilter("once", DataWarning)  # every trial repeats the warnings about the data
            warnings.filterwarnings("ignore", "test has", DataWarning)  # a trial's test split is a fold
            yield
    except (SQLAlchemyError, optuna.exceptions.StorageInternalError) as error:
        words = " ".join(str(getattr(error, "orig", None) or error.__cause__ or error).split())[:200]
        hint = "is it running and writable? Finished trials are stored; run the same command again"
        where = make_url(url).render_as_string(hide_password=True)
        raise DataError(f"the study cannot be stored there ({words})", where=where, hint=hint) from None
    finally:
        optuna.logging.set_verbosity(before)


def _write_result(
    study: optuna.Study, space: SearchSpace, recipe: Recipe, seen: Dataset, out: Path, url: str
) -> dict[str, Any]:
    from sqlalchemy.engine import make_url

    done = study.get_trials(deepcopy=False)
    counts = Counter(trial.state.name.lower() for trial in done)
    if not counts["complete"]:
        why = next((f": {trial.user_attrs['error']}" for trial in done if "error" in trial.user_attrs), "")
        hint = "fix the recipe or the space; --set changes a setting"
        raise DataError(f"no trial was completed{why}", where=study.study_name, hint=hint)
    best = study.best_trial
    metric = task_of(seen.subgraphs.task).selection_metric(with_metric(recipe, seen.subgraphs).training.select_by)
    score_name = f"out-of-fold {metric_name(metric)}"
    note = (
        f"Found by subgnn tune on {seen.name}, from the recipe {recipe.name} in the space {space.name}: study "
        f"{study.study_name}, trial {best.number} of {counts['complete']} complete, {counts['pruned']} pruned and "
        f"{counts['fail']} failed, {score_name} {best.value:.4f}. "
        "This score is optimistic, because it is the best of all trials. No test subgraph was seen."
    )
    found = space.apply(recipe, lambda key, *_: best.params[key])
    table = study.trials_dataframe().sort_values("value", ascending=False, kind="stable")
    texts = {
        "recipe": recipe_toml(replace(found, name=f"{recipe.name}_tuned", note=note)),
        "trials": table.to_csv(sep="\t", index=False),
    }
    for name, text in texts.items():
        with atomic_write(out / FILES[name], overwrite=True) as temporary:
            temporary.write_text(text, encoding="utf-8", errors="backslashreplace")
    return {
        "out": str(out),
        "study": study.study_name,
        "storage": make_url(url).render_as_string(hide_password=True),
        "dataset": seen.name,
        "task": seen.subgraphs.task,
        "recipe": recipe.name,
        "space": space.name,
        "metric": metric,
        "trials": dict(counts),
        "best": {"trial": best.number, "score": best.value, "parameters": best.params},
        "score_name": score_name,
        "files": {name: str(out / file) for name, file in FILES.items()},
    }
