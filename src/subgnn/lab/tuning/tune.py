"""Hyper-parameter search by cross-validation: a recipe, a search space, and a study of trials that workers share.

The test subgraphs are removed from the dataset before anything else (:func:`~subgnn.lab.tuning.trial.without_test`);
no trial, score or file of a search can depend on them.

OUT/recipe.toml     the recipe of the best trial, for ``--recipe``
OUT/trials.tsv      one line per trial: state, score, loss, parameters
OUT/study.json      the result, as ``subgnn tune --json`` prints it
OUT/study.html      the same as a page
OUT/study.db        the study, unless another storage is given
OUT/inputs.json     the inputs of the search: hashes and options
"""

from __future__ import annotations

import json
import math
import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from subgnn.api.train_recipe import with_metric
from subgnn.config.settings import AutoSettings, Recipe, recipe_key
from subgnn.data.dataset import Dataset
from subgnn.embeddings.sources import check_source
from subgnn.errors import DataError, UserError
from subgnn.lab.tuning.search_space import SearchSpace, apply_parameters, find_space, recipe_parameters
from subgnn.lab.tuning.study import (
    ERROR,
    LOSS,
    WORKER,
    Pruner,
    SearchTask,
    check_storage,
    counted,
    failing_storage,
    quiet_optuna,
    require_optuna,
    run_trials_here,
    run_trials_on,
    storage_url,
    without_password,
)
from subgnn.lab.tuning.trial import FOLDS, Splitting, score_kind, split_at_random, without_test
from subgnn.lab.tuning.tune_page import tune_page
from subgnn.models.interface import ChannelModel
from subgnn.models.recipes import check_recipe
from subgnn.models.registry import find_model
from subgnn.parallel.engine import Engine, LocalEngine
from subgnn.parallel.locks import LOCK, names_in
from subgnn.parallel.progress import OnProgress, ignore
from subgnn.reports.reproduce import recipe_toml
from subgnn.storage.files import atomic_write, json_digest, read_json, write_json
from subgnn.task import metric_name, task_of
from subgnn.training.portfolio import CrossValidation

if TYPE_CHECKING:
    import optuna

FILES = {"recipe": "recipe.toml", "trials": "trials.tsv", "result": "study.json", "page": "study.html"}
_INPUTS = "inputs.json"
_MIN_TRIALS = 4  # complete ones, for an estimate of importance
_STATES = {"COMPLETE": "complete", "PRUNED": "pruned", "FAIL": "failed", "RUNNING": "running"}
_COLUMNS = ("trial", "state", "score", "loss", "epochs", "seconds", "worker")


def tune(
    dataset: Dataset,
    recipe: Recipe,
    out: Path,
    *,
    space: SearchSpace | None = None,
    trials: int = 50,
    storage: str | None = None,
    study: str | None = None,
    seeds: int = 1,
    folds: int = FOLDS,
    split: Splitting = "stored",
    pruner: Pruner = "median",
    timeout: float | None = None,
    processes: int = 1,
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
        seeds: trainings of a trial, whose mean counts; with folds, so often for each.
        folds: of training and validation subgraphs, from 2; a trial's score is the mean over folds of the score on a
            fold of a training without it. 0: the score on the validation split.
        split: without folds, ``stored``, or ``random``: training and validation subgraphs divided at random for each
            seed.
        pruner: the rule that ends poor trials early: the median of the others, hyperband, or none.
        timeout: seconds after which no further trial begins.
        processes: workers on this machine.
        seed: of the search; trainings have seeds 0, 1 and so on.
        engine: runs the trials, instead of processes of this machine.
        on_progress: called with a description, the trials done and the trials in all.

    Returns:
        The content of study.json.

    Raises:
        UserError: for settings that do not fit, a folder or study of another search, a storage that cannot be used, or
            if no trial could be completed.
        KeyboardInterrupt: after Ctrl-C; finished trials are in the study, and the result is written.
    """
    require_optuna()
    for name, value in (("trials", trials), ("seeds", seeds), ("processes", processes)):
        if value < 1:
            raise UserError(f"{name} is {value}", where="tune", hint="accepted: a whole number from 1")
    if folds < 0 or folds == 1:
        raise UserError(f"folds is {folds}", where="tune", hint="accepted: 0 (the validation split), or 2 or more")
    if folds and split == "random":
        raise UserError("split is 'random' with folds", where="tune", hint="leave it out, or set folds to 0")
    space = space or find_space("paper" if isinstance(find_model(recipe.method), ChannelModel) else "paper_baselines")
    seen = without_test(dataset)
    _check(seen, recipe, folds, split)
    inputs = {
        "graph": seen.graph.content_hash,  # with the orientations of edges, which prepare.directed uses
        "subgraphs": seen.subgraphs.content_hash,
        "recipe": json_digest(recipe_key(recipe)),
        "space": json_digest(space.plain()),
        "seeds": seeds,
        "split": split,
        "folds": folds,
    }
    task = SearchTask(
        dataset=seen,
        recipe=recipe,
        space=space,
        storage=storage_url(storage, out.resolve()),
        study=study or f"{dataset.name}/{recipe.name}/{space.name}",
        inputs=inputs,
        first=recipe_parameters(space, recipe),
        trials=trials,
        seeds=seeds,
        folds=folds,
        split=split,
        pruner=pruner,
        seed=seed,
        device=device,
        cache=cache,
        deadline=None if timeout is None else time.time() + timeout,
    )
    if engine is not None:
        check_storage(engine, task.storage)
    _claim_folder(out, {"study": task.study, **inputs})
    return _search(task, out, processes, engine, on_progress)


def _search(
    task: SearchTask, out: Path, processes: int, engine: Engine | None, on_progress: OnProgress
) -> dict[str, Any]:
    """Run the missing trials of a study, and write the result, also after an interrupt."""
    with failing_storage(task.storage), quiet_optuna():
        study = task.open()

        def show() -> None:
            done = [t for t in counted(study.get_trials(deepcopy=False)) if t.state.is_finished()]
            on_progress("trials", min(len(done), task.trials), task.trials)

        show()
        try:
            if engine is not None:
                run_trials_on(engine, task, show)
            elif processes == 1:
                run_trials_here(task, show)
            else:
                with LocalEngine(processes, threads=max(1, (os.cpu_count() or 1) // processes)) as local:
                    run_trials_on(local, task, show)
        finally:
            found = write_result(study, task, out)
    if found["best"] is None:
        failed = [t for t in study.get_trials(deepcopy=False) if ERROR in t.user_attrs]
        why = f"; trial {failed[0].number}: {failed[0].user_attrs[ERROR]}" if failed else ""
        hint = "fix the recipe or the space; --set changes a setting"
        raise DataError(f"no trial was completed{why}", where=task.study, hint=hint)
    return found


def _check(seen: Dataset, recipe: Recipe, folds: int, split: Splitting) -> None:
    """Refuse, before creating a study, inputs that every trial would fail on or ignore."""
    check_recipe(recipe, seen.graph, complete=False)
    if recipe.is_portfolio:
        hint = f"tune one of its recipes, such as --recipe {recipe.auto.candidates[-1].recipe}"
        raise UserError(
            f"the recipe '{recipe.name}' is a portfolio, which chooses its own settings", where="tune", hint=hint
        )
    if find_model(recipe.method).uses_embeddings(recipe):
        check_source(recipe)
    if folds:
        CrossValidation.of(seen, AutoSettings(), 0)
    elif split == "random":
        split_at_random(seen, 0)


def _claim_folder(out: Path, inputs: Mapping[str, Any]) -> None:
    """Make the folder of a search, or check that it was made for the same inputs."""
    names = names_in(out)
    if names is not None and _INPUTS in names:
        before = read_json(out / _INPUTS, "choose a different --out")
        other = [key for key in inputs if not isinstance(before, dict) or before.get(key) != inputs[key]]
        if other:
            what = f"it holds a different search: {', '.join(other)} differ"
            raise DataError(what, where=str(out), hint="choose a different --out")
        return
    # Another process may have a lock or a temporary file there while it claims the folder.
    if names is None or not all(name.startswith((LOCK, f".{_INPUTS}.")) for name in names):
        raise DataError("exists already", where=str(out), hint="choose a different --out")
    try:
        write_json(inputs, out / _INPUTS, overwrite=False)
    except DataError:
        if not (out / _INPUTS).is_file():
            raise
        _claim_folder(out, inputs)  # another process was faster, for the same inputs or for others


def write_result(study: optuna.Study, task: SearchTask, out: Path) -> dict[str, Any]:
    """Write the files of a search, and return the content of study.json; the recipe needs a complete trial."""
    trials = counted(study.get_trials())
    complete = [t for t in trials if t.state.name == "COMPLETE" and t.value is not None]
    best = max(complete, key=lambda t: (t.value, -t.user_attrs[LOSS], -t.number), default=None)
    rows, subgraphs = [_trial_row(trial) for trial in trials], task.dataset.subgraphs
    found = {
        "out": str(out),
        "study": task.study,
        "storage": without_password(task.storage),
        "dataset": task.dataset.name,
        "task": task.dataset.subgraphs.task,
        "recipe": task.recipe.name,
        "space": task.space.name,
        "metric": task_of(subgraphs.task).selection_metric(with_metric(task.recipe, subgraphs).training.select_by),
        "seeds": task.seeds,
        "folds": task.folds,
        "split": task.split,
        "pruner": task.pruner,
        "trials": {name: Counter(row["state"] for row in rows)[name] for name in _STATES.values()},
        "total": task.trials,
        "best": None if best is None else _trial_row(best),
        "importance": _importance(study, complete),
        "files": {name: str(out / file) for name, file in FILES.items() if best is not None or name != "recipe"},
    }
    texts = {"trials": _trials_tsv(rows), "page": tune_page(found, rows)}
    if best is not None:
        texts["recipe"] = recipe_toml(_described(apply_parameters(task.space, task.recipe, best.params), found))
    for name, text in texts.items():
        with atomic_write(out / FILES[name], overwrite=True) as temporary:
            temporary.write_text(text, encoding="utf-8", errors="backslashreplace")
    write_json(found, out / FILES["result"])
    return found


def _trial_row(trial: optuna.trial.FrozenTrial) -> dict[str, Any]:
    """A trial as plain data; the score of a pruned one is its last."""
    last = trial.intermediate_values[max(trial.intermediate_values)] if trial.intermediate_values else None
    score = trial.value if trial.state.name == "COMPLETE" else last
    return {
        "trial": trial.number,
        "state": _STATES[trial.state.name],
        "score": score if score is None or math.isfinite(score) else None,
        "loss": trial.user_attrs.get(LOSS),
        "scores": trial.user_attrs.get("scores"),
        "selected_epochs": trial.user_attrs.get("selected_epochs"),
        "epochs": len(trial.intermediate_values),
        "seconds": trial.duration.total_seconds() if trial.duration is not None else None,
        "worker": trial.user_attrs.get(WORKER, ""),
        "parameters": dict(trial.params),
        "error": trial.user_attrs.get(ERROR, ""),
    }


def _importance(study: optuna.Study, complete: Sequence[optuna.trial.FrozenTrial]) -> dict[str, float]:
    """The share of the score's variance over trials that each setting explains (fANOVA), the largest first.

    Only settings that every complete trial has, with more than one value, are included.
    """
    import optuna

    if len(complete) < _MIN_TRIALS or len({t.value for t in complete}) < 2:
        return {}
    names = set.intersection(*(set(t.params) for t in complete))
    varied = [name for name in sorted(names) if len({t.params[name] for t in complete}) > 1]
    if not varied:
        return {}
    evaluator = optuna.importance.FanovaImportanceEvaluator(seed=0)
    return dict(optuna.importance.get_param_importances(study, evaluator=evaluator, params=varied))


def _trials_tsv(rows: Sequence[dict[str, Any]]) -> str:
    """A header and one line per trial; a parameter that a trial does not have is empty."""
    names = sorted({name for row in rows for name in row["parameters"]})
    lines = ["\t".join((*_COLUMNS, *names, "error"))]
    for row in rows:
        values = [row[column] for column in _COLUMNS] + [row["parameters"].get(name) for name in names]
        cells = ["" if v is None else v if isinstance(v, str) else json.dumps(v) for v in values]
        lines.append("\t".join([*cells, row["error"]]))
    return "\n".join(lines) + "\n"


def _described(recipe: Recipe, found: dict[str, Any]) -> Recipe:
    """The recipe with a name, and with a note about the search that found it."""
    best, counts = found["best"], found["trials"]
    over = f", the mean of {found['seeds']} seeds" if found["seeds"] > 1 else ""
    metric = f"{score_kind(found['folds'])} {metric_name(found['metric'])}"
    note = (
        f"Found by subgnn tune on {found['dataset']}, from the recipe {found['recipe']} in the space {found['space']}: "
        f"study {found['study']}, trial {best['trial']} of {counts['complete']} complete, {counts['pruned']} pruned "
        f"and {counts['failed']} failed. {metric.capitalize()} {best['score']:.4f}, loss {best['loss']:.4f}{over}. "
        "This score is optimistic, because it is the best of all trials. No test subgraph was seen."
    )
    return replace(recipe, name=f"{recipe.name}_tuned", note=note)
