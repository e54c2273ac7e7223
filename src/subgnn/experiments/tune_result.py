"""What a search leaves: the best recipe, a table of trials, and the whole as JSON and as a page."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from subgnn.config.settings import Recipe
from subgnn.experiments.draw import apply_parameters
from subgnn.experiments.study import ERROR, LOSS, WORKER, best_trial, counted, without_password
from subgnn.experiments.trial import metric_of
from subgnn.experiments.tune_page import tune_page
from subgnn.reports.reproduce import recipe_toml
from subgnn.reports.run_page import METRIC_NAMES
from subgnn.storage.files import atomic_write
from subgnn.training.run_dir import write_json

if TYPE_CHECKING:
    import optuna

    from subgnn.experiments.worker import Work

FILES = {"recipe": "recipe.toml", "trials": "trials.tsv", "result": "study.json", "page": "study.html"}
FEW = 4
"""With fewer complete trials than this, nothing is said about which settings matter."""
_STATES = {"COMPLETE": "complete", "PRUNED": "pruned", "FAIL": "failed", "RUNNING": "running"}
_COLUMNS = ("trial", "state", "score", "loss", "epochs", "seconds", "worker")


def write_result(study: optuna.Study, task: Work, out: Path) -> dict[str, Any]:
    """Write the files of a search, the recipe only where a trial was completed, and return what study.json holds."""
    trials = counted(study.get_trials())
    best = best_trial(trials)
    rows = [trial_row(trial) for trial in trials]
    metric = metric_of(task.dataset.subgraphs.task)
    found = {
        "out": str(out),
        "study": task.study,
        "storage": without_password(task.storage),
        "dataset": task.dataset.name,
        "task": task.dataset.subgraphs.task,
        "recipe": task.recipe.name,
        "space": task.space.name,
        "metric": metric,
        "seeds": task.seeds,
        "split": task.split,
        "pruner": task.pruner,
        "trials": {name: Counter(row["state"] for row in rows)[name] for name in _STATES.values()},
        "total": task.trials,
        "best": None if best is None else trial_row(best),
        "importance": importance(study, trials),
        "files": {name: str(out / file) for name, file in FILES.items() if best is not None or name != "recipe"},
    }
    if best is not None:
        tuned = apply_parameters(task.space, task.recipe, best.params)
        _write(recipe_toml(_described(tuned, found)), out / FILES["recipe"])
    _write(trials_tsv(rows), out / FILES["trials"])
    _write(tune_page(found, rows), out / FILES["page"])
    write_json(found, out / FILES["result"])
    return found


def trial_row(trial: optuna.trial.FrozenTrial) -> dict[str, Any]:
    """A trial as plain data; the score of a pruned one is the last it had."""
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


def importance(study: optuna.Study, trials: Sequence[optuna.trial.FrozenTrial]) -> dict[str, float]:
    """Which part of the score's variance over trials each setting explains (fANOVA), the largest first.

    Of settings that every complete trial has, and that have had more than one value.
    """
    import optuna

    complete = [t for t in trials if t.state.name == "COMPLETE"]
    if len(complete) < FEW or len({t.value for t in complete}) < 2:
        return {}
    names = set.intersection(*(set(t.params) for t in complete))
    varied = [name for name in sorted(names) if len({t.params[name] for t in complete}) > 1]
    if not varied:
        return {}
    evaluator = optuna.importance.FanovaImportanceEvaluator(seed=0)
    return dict(optuna.importance.get_param_importances(study, evaluator=evaluator, params=varied))


def trials_tsv(rows: Sequence[dict[str, Any]]) -> str:
    """A header and a line a trial; a parameter that a trial does not have is empty."""
    names = sorted({name for row in rows for name in row["parameters"]})
    lines = ["\t".join((*_COLUMNS, *names, "error"))]
    for row in rows:
        cells = [row[column] for column in _COLUMNS] + [row["parameters"].get(name) for name in names]
        lines.append("\t".join([*map(_cell, cells), row["error"]]))
    return "\n".join(lines) + "\n"


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value)


def _described(recipe: Recipe, found: dict[str, Any]) -> Recipe:
    """The recipe with a name, and a note that says where it comes from."""
    best, counts = found["best"], found["trials"]
    over = f", the mean of {found['seeds']} seeds" if found["seeds"] > 1 else ""
    note = (
        f"Found by subgnn tune on {found['dataset']}, from the recipe {found['recipe']} in the space {found['space']}: "
        f"study {found['study']}, trial {best['trial']} of {counts['complete']} complete, {counts['pruned']} pruned "
        f"and {counts['failed']} failed. Validation {METRIC_NAMES[found['metric']]} {best['score']:.4f}, "
        f"loss {best['loss']:.4f}{over}: the best of so many is high by luck. No test subgraph was seen."
    )
    return replace(recipe, name=f"{recipe.name}_tuned", note=note)


def _write(text: str, path: Path) -> None:
    with atomic_write(path, overwrite=True) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace")
