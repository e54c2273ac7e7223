"""Hyper-parameter search on validation: a recipe, a search space, and a study of trials that workers share.

The test subgraphs are taken out of the dataset before anything else (:mod:`subgnn.experiments.held_out`); no trial, no
score and no file of a search can depend on them.

OUT/recipe.toml     the recipe of the best trial, for ``--recipe``
OUT/trials.tsv      a line a trial: state, score, loss, parameters
OUT/study.json      the result: what ``subgnn tune --json`` prints
OUT/study.html      the same to look at
OUT/study.db        the study, unless another storage is given
OUT/inputs.json     what is searched: hashes and options
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from subgnn.config.settings import Recipe, recipe_key
from subgnn.data.dataset import Dataset
from subgnn.embeddings import check_source
from subgnn.errors import DataError, UserError
from subgnn.experiments.claim import claim_folder
from subgnn.experiments.draw import own_parameters
from subgnn.experiments.held_out import divide_anew, without_test
from subgnn.experiments.search_space import SearchSpace
from subgnn.experiments.spaces import find_space
from subgnn.experiments.study import ERROR, Pruner, counted, failing_storage, quiet_optuna, require_optuna, storage_url
from subgnn.experiments.trial import Splitting
from subgnn.experiments.tune_result import write_result
from subgnn.experiments.worker import Work, check_storage, run_trials, work
from subgnn.models.registry import uses_embeddings
from subgnn.models.subgnn.build import check_recipe
from subgnn.parallel.engine import Engine, LocalEngine
from subgnn.parallel.progress import OnProgress

if TYPE_CHECKING:
    import optuna


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
    split: Splitting = "stored",
    pruner: Pruner = "median",
    timeout: float | None = None,
    processes: int = 1,
    seed: int = 0,
    device: str = "auto",
    cache: bool = True,
    engine: Engine | None = None,
    on_progress: OnProgress | None = None,
) -> dict[str, Any]:
    """Search for the settings with the best validation micro-F1 (R^2 for regression); ties go to the lower loss.

    The first trial has the recipe's own values, as far as they lie in the space. Given again, the search goes on.

    Args:
        out: the folder of the result; new, or of the same search.
        space: what may change; by default the paper's ranges (:func:`default_space`).
        trials: the total of the study, over all workers and calls.
        storage: the database that keeps the study: the path of a SQLite file, or a URL; by default OUT/study.db.
        study: its name there; by default of dataset, recipe and space.
        seeds: trainings of a trial, of which the mean counts.
        split: ``stored``, or ``random``: training and validation subgraphs divided anew for each seed.
        pruner: what ends trials that fall behind: the median of the others, hyperband, or none.
        timeout: seconds after which no further trial is begun.
        processes: workers on this machine.
        seed: of the search; trainings have seeds 0, 1 and so on.
        device, cache: as for :func:`~subgnn.experiments.train.train`.
        engine: what runs trials, instead of processes of this machine.
        on_progress: called with what is being done, the trials done and the trials in all.

    Returns:
        The content of study.json.

    Raises:
        UserError: for settings that do not fit, a folder or study of another search, a storage that cannot be used, or
            where no trial could be completed.
        KeyboardInterrupt: after Ctrl-C; what is done is kept and written.
    """
    require_optuna()
    for name, value in (("trials", trials), ("seeds", seeds), ("processes", processes)):
        if value < 1:
            raise UserError(f"{name} is {value}", where="tune", hint="accepted: a whole number from 1")
    space = space or default_space(recipe)
    seen = without_test(dataset)
    _check(seen, recipe, space, split)
    task = Work(
        dataset=seen,
        recipe=recipe,
        space=space,
        storage=storage_url(storage, out.resolve()),
        study=study or f"{dataset.name}/{recipe.name}/{space.name}",
        inputs=_inputs(seen, recipe, space, seeds=seeds, split=split),
        first=own_parameters(space, recipe),
        trials=trials,
        seeds=seeds,
        split=split,
        pruner=pruner,
        seed=seed,
        device=device,
        cache=cache,
        deadline=None if timeout is None else time.time() + timeout,
    )
    if engine is not None:
        check_storage(engine, task.storage)
    claim_folder(out, {"study": task.study, **task.inputs}, holds="holds another search")
    with failing_storage(task.storage), quiet_optuna():
        opened = task.open()

        def show() -> None:
            if on_progress is not None:
                done = [t for t in counted(opened.get_trials(deepcopy=False)) if t.state.is_finished()]
                on_progress("trials", min(len(done), trials), trials)

        show()
        try:
            if engine is not None:
                run_trials(engine, task, show)
            elif processes == 1:
                work(task, show)
            else:
                with LocalEngine(processes, threads=max(1, (os.cpu_count() or 1) // processes)) as local:
                    run_trials(local, task, show)
        finally:
            found = write_result(opened, task, out)
    if found["best"] is None:
        raise DataError(
            _why_none(opened), where=task.study, hint="fix the recipe or the space; --set changes a setting"
        )
    return found


def default_space(recipe: Recipe) -> SearchSpace:
    """The paper's ranges: for SubGNN, or for the baselines."""
    return find_space("paper" if recipe.method == "subgnn" else "paper_baselines")


def _check(seen: Dataset, recipe: Recipe, space: SearchSpace, split: Splitting) -> None:
    """Refuse what every trial would fail by, or ignore, before there is a study."""
    check_recipe(recipe, seen.graph)
    if recipe.training.lr_finder and "training.lr" in space.settings and "training.lr_finder" not in space.settings:
        what = "the search space varies training.lr, but the recipe finds its learning rate (training.lr_finder)"
        raise UserError(what, where=space.name, hint="add --set training.lr_finder=false")
    if uses_embeddings(recipe):
        check_source(recipe)
    if split == "random":
        divide_anew(seen, 0)


def _inputs(seen: Dataset, recipe: Recipe, space: SearchSpace, **options: Any) -> dict[str, Any]:
    """What a study is a search of. Words about a recipe or space are no part of it, nor is anything of test."""
    return {
        "graph": seen.graph.content_hash,  # with its orientations, which prepare.directed looks at
        "subgraphs": seen.subgraphs.content_hash,
        "recipe": _hash(recipe_key(recipe)),
        "space": _hash(space.plain()),
        **options,
    }


def _hash(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _why_none(study: optuna.Study) -> str:
    """Why there is no best trial."""
    trials = study.get_trials(deepcopy=False)
    failed = [t for t in trials if ERROR in t.user_attrs]
    if not failed:
        return "no trial was completed"
    return f"no trial was completed; trial {failed[0].number}: {failed[0].user_attrs[ERROR]}"
