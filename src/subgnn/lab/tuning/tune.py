"""Hyper-parameter search with Optuna: a recipe, a search space, and a study of trials that workers share.

The test subgraphs are removed from the dataset before anything else (:func:`~subgnn.lab.tuning.trial.without_test`);
no trial, score or file of a search can depend on them. Workers communicate only through Optuna's storage, so they may
be processes of one machine or of many.

OUT/recipe.toml     the recipe of the best trial, for ``--recipe``
OUT/trials.tsv      the leaderboard: one line per trial, the best first
OUT/study.json      the result, as ``subgnn tune --json`` prints it
OUT/study.db        the study, unless another storage is given
"""

from __future__ import annotations

import json
import time
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from subgnn.api.train_recipe import with_metric
from subgnn.config.settings import AutoSettings, Recipe, recipe_key
from subgnn.data.dataset import Dataset
from subgnn.embeddings.sources import check_source
from subgnn.errors import DataError, DataWarning, UserError
from subgnn.lab.tuning.search_space import SearchSpace, find_space, parameters, with_parameters
from subgnn.lab.tuning.study import (
    ERROR,
    INPUTS,
    LOSS,
    Search,
    counted,
    quiet_optuna,
    require_optuna,
    storage_url,
    without_password,
)
from subgnn.lab.tuning.trial import FOLDS, without_test
from subgnn.models.interface import ChannelModel
from subgnn.models.recipes import check_recipe
from subgnn.models.registry import find_model
from subgnn.parallel.engine import Engine, Failure, LocalEngine, Shared
from subgnn.parallel.locks import names_in
from subgnn.parallel.progress import OnProgress, ignore
from subgnn.reports.reproduce import recipe_toml
from subgnn.storage.files import atomic_write, json_digest, read_json, write_json
from subgnn.task import metric_name, task_of
from subgnn.training.cross_validation import CrossValidation

if TYPE_CHECKING:
    import optuna

FILES = {"recipe": "recipe.toml", "trials": "trials.tsv", "result": "study.json"}
_STATES = {"COMPLETE": "complete", "PRUNED": "pruned", "FAIL": "failed", "RUNNING": "running"}
_COLUMNS = ("trial", "state", "score", "loss", "seconds")


def tune(
    dataset: Dataset,
    recipe: Recipe,
    out: Path,
    *,
    space: SearchSpace | None = None,
    trials: int = 50,
    storage: str | None = None,
    study: str | None = None,
    folds: int = FOLDS,
    timeout: float | None = None,
    seed: int = 0,
    device: str = "auto",
    cache: bool = True,
    engine: Engine | None = None,
    on_progress: OnProgress = ignore,
) -> dict[str, Any]:
    """Search for the settings with the best out-of-fold micro-F1 (R^2 for regression); ties go to the lower loss.

    The first trial has the recipe's values, as far as they lie in the space. Called again, the search continues.

    Args:
        out: the folder of the result; new, or of the same search.
        space: the settings that may change; by default the paper's ranges for SubGNN or the baselines.
        trials: the total of the study, over all workers and calls.
        storage: the database of the study: the path of a SQLite file, or a URL; by default OUT/study.db.
        study: its name there; by default made of dataset, recipe and space.
        folds: of training and validation subgraphs, from 2; 0: trials are scored on the validation split.
        timeout: seconds after which no further trial begins.
        seed: of the search.
        engine: runs the trials; by default this process does.
        on_progress: called with a description, the trials done and the trials in all.

    Returns:
        The content of study.json.

    Raises:
        UserError: for settings that do not fit, a folder or study of another search, a storage that cannot be used, or
            if no trial could be completed.
        KeyboardInterrupt: after Ctrl-C; finished trials are in the study, and the result is written.
    """
    require_optuna()
    if trials < 1:
        raise UserError(f"trials is {trials}", where="tune", hint="accepted: a whole number from 1")
    if folds < 0 or folds == 1:
        raise UserError(f"folds is {folds}", where="tune", hint="accepted: 0 (the validation split), or 2 or more")
    space = space or find_space("paper" if isinstance(find_model(recipe.method), ChannelModel) else "paper_baselines")
    seen = without_test(dataset)
    _check(seen, recipe, folds)
    inputs = {
        "graph": seen.graph.content_hash,  # with the orientations of edges, which prepare.directed uses
        "subgraphs": seen.subgraphs.content_hash,
        "recipe": json_digest(recipe_key(recipe)),
        "space": json_digest({name: repr(one) for name, one in space.dimensions.items()}),
        "folds": folds,
    }
    name = study or f"{dataset.name}/{recipe.name}/{space.name}"
    deadline = None if timeout is None else time.time() + timeout
    url = storage_url(storage, out.resolve())
    search = Search(seen, recipe, space, url, name, inputs, trials, folds, seed, device, cache, deadline)
    parameters(space, recipe)
    _check_storage(engine, url)
    _claim_folder(out, {"study": name, **inputs})
    return _run(search, out, engine or LocalEngine(), on_progress)


def _check(seen: Dataset, recipe: Recipe, folds: int) -> None:
    """Refuse, before creating a study, inputs that every trial would fail on or ignore."""
    check_recipe(recipe, seen.graph, complete=False)
    if recipe.is_portfolio:
        hint = f"tune one of its recipes, such as --recipe {recipe.auto.candidates[-1].recipe}"
        what = f"the recipe '{recipe.name}' is a portfolio, which chooses its own settings"
        raise UserError(what, where="tune", hint=hint)
    if find_model(recipe.method).uses_embeddings(recipe):
        check_source(recipe)
    if folds:
        CrossValidation.of(seen, AutoSettings(), 0)


def _check_storage(engine: Engine | None, storage: str) -> None:
    """Refuse a SQLite file for workers of several machines: its locks work on one machine only."""
    machines = sorted(getattr(engine, "machines", ()))
    if storage.startswith("sqlite") and len(machines) > 1:
        what = f"a SQLite file cannot be shared by {len(machines)} machines"
        hint = "give a database that all can reach, such as --storage postgresql://USER:PASSWORD@HOST/DATABASE"
        raise UserError(what, where="--storage", hint=hint)


def _claim_folder(out: Path, inputs: dict[str, Any]) -> None:
    """Make the folder of a search, or check that it was made for the same inputs."""
    file = out / FILES["result"]
    if not file.is_file():
        if names_in(out) != []:
            raise DataError("exists already", where=str(out), hint="choose a different --out")
        write_json({INPUTS: inputs}, file, overwrite=False)
        return
    found = read_json(file, "choose a different --out")
    before = found.get(INPUTS) if isinstance(found, dict) else None
    other = [key for key in inputs if not isinstance(before, dict) or before.get(key) != inputs[key]]
    if other:
        what = f"it holds a different search: {', '.join(other)} differ"
        raise DataError(what, where=str(out), hint="choose a different --out")


def _run(search: Search, out: Path, engine: Engine, on_progress: OnProgress) -> dict[str, Any]:
    """Run the missing trials of a study, one per job, and write the result, also after an interrupt."""
    import optuna

    study = search.open()
    with quiet_optuna(search.storage):
        optuna.storages.fail_stale_trials(study)
        done = len(counted(study))
        on_progress("trials", min(done, search.trials), search.trials)
        shared = engine.share(search)
        try:
            for _, result in engine.map(_run_trial, [shared] * (search.trials - done)):
                if isinstance(result, Failure):
                    if result.error is not None:
                        result.throw()
                    text = f"a trial was lost: {result.message}; run the same command again to replace it"
                    warnings.warn(text, DataWarning, stacklevel=2)
                    continue
                done += result
                on_progress("trials", min(done, search.trials), search.trials)
        finally:
            found = _write_result(study, search, out)
    if found["best"] is None:
        failed = [t for t in counted(study) if ERROR in t.user_attrs]
        why = f"; trial {failed[0].number}: {failed[0].user_attrs[ERROR]}" if failed else ""
        hint = "fix the recipe or the space; --set changes a setting"
        raise DataError(f"no trial was completed{why}", where=search.study, hint=hint)
    return found


def _run_trial(search: Shared[Search]) -> int:
    return search.get().run_trials(most=1)


def _write_result(study: optuna.Study, search: Search, out: Path) -> dict[str, Any]:
    """Write the files of a search, and return the content of study.json; the recipe needs a complete trial."""
    rows = sorted(map(_trial_row, counted(study)), key=_rank)
    best = next((row for row in rows if row["state"] == "complete"), None)
    subgraphs = search.dataset.subgraphs
    chosen = with_metric(search.recipe, subgraphs).training.select_by
    metric = task_of(subgraphs.task).selection_metric(chosen)
    found = {
        "out": str(out),
        "study": search.study,
        "storage": without_password(search.storage),
        "dataset": search.dataset.name,
        "task": search.dataset.subgraphs.task,
        "recipe": search.recipe.name,
        "space": search.space.name,
        "metric": metric,
        "folds": search.folds,
        "trials": {name: Counter(row["state"] for row in rows)[name] for name in _STATES.values()},
        "total": search.trials,
        "best": best,
        "leaderboard": rows,
        "files": {name: str(out / file) for name, file in FILES.items() if best is not None or name != "recipe"},
        INPUTS: {"study": search.study, **search.inputs},
    }
    texts = {"trials": _trials_tsv(rows)}
    if best is not None:
        texts["recipe"] = recipe_toml(_described(with_parameters(search.recipe, best["parameters"]), found))
    for name, text in texts.items():
        with atomic_write(out / FILES[name], overwrite=True) as temporary:
            temporary.write_text(text, encoding="utf-8", errors="backslashreplace")
    write_json(found, out / FILES["result"])
    return found


def _rank(row: dict[str, Any]) -> tuple[float, ...]:
    """Complete trials first, by score, then by loss; the others after them."""
    if row["state"] != "complete":
        return (1.0, row["trial"])
    return (0.0, -row["score"], row["loss"], row["trial"])


def _trial_row(trial: optuna.trial.FrozenTrial) -> dict[str, Any]:
    """A trial as plain data; the score of a pruned one is its last."""
    last = trial.intermediate_values[max(trial.intermediate_values)] if trial.intermediate_values else None
    return {
        "trial": trial.number,
        "state": _STATES[trial.state.name],
        "score": trial.value if trial.state.name == "COMPLETE" else last,
        "loss": trial.user_attrs.get(LOSS),
        "scores": trial.user_attrs.get("scores"),
        "seconds": trial.duration.total_seconds() if trial.duration is not None else None,
        "parameters": dict(trial.params),
        "error": trial.user_attrs.get(ERROR, ""),
    }


def _trials_tsv(rows: Sequence[dict[str, Any]]) -> str:
    """A header and one line per trial; a parameter that a trial does not have is empty."""
    names = sorted({name for row in rows for name in row["parameters"]})
    lines = ["\t".join((*_COLUMNS, *names, "error"))]
    for row in rows:
        values = [row[column] for column in _COLUMNS] + [row["parameters"].get(name) for name in names]
        cells = ["" if v is None else v if isinstance(v, str) else json.dumps(v) for v in values]
        lines.append("\t".join([*cells, row["error"]]))
    return "\n".join(lines) + "\n"


def score_word(found: dict[str, Any]) -> str:
    """The word for a trial's score, such as ``out-of-fold micro-F1``."""
    return f"{'out-of-fold' if found['folds'] else 'validation'} {metric_name(found['metric'])}"


def _described(recipe: Recipe, found: dict[str, Any]) -> Recipe:
    """The recipe with a name, and with a note about the search that found it."""
    best, counts, score = found["best"], found["trials"], score_word(found).capitalize()
    note = (
        f"Found by subgnn tune on {found['dataset']}, from the recipe {found['recipe']} in the space {found['space']}: "
        f"study {found['study']}, trial {best['trial']} of {counts['complete']} complete, {counts['pruned']} pruned "
        f"and {counts['failed']} failed. {score} {best['score']:.4f}, loss {best['loss']:.4f}. "
        "This score is optimistic, because it is the best of all trials. No test subgraph was seen."
    )
    return replace(recipe, name=f"{recipe.name}_tuned", note=note)
