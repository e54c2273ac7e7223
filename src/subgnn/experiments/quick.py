"""A closer look at a dataset: four recipes in minutes, and which kind of signal its labels carry.

``topology`` sees the shape of a subgraph, ``bag`` and ``avg`` which nodes it has, ``default`` (SubGNN) all that and
what is around it. Each is trained for few epochs on the dataset's own split; :mod:`subgnn.experiments.signal` says how
their validation scores are judged. The test split is scored once for each run, shown, and has no part in the verdict.

FOLDER/quick.json     rows, comparisons and verdict
FOLDER/quick.md       the same for people
FOLDER/inputs.json    what was looked at: hashes and settings
FOLDER/runs/RECIPE    the run of seed 0; RECIPE_1 and so on those of further seeds
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from subgnn.config.recipes import find_recipe
from subgnn.config.settings import Recipe
from subgnn.data.dataset import Dataset
from subgnn.data.splits import split_subgraphs
from subgnn.data.subgraphs import SPLITS
from subgnn.errors import DataError, UserError
from subgnn.experiments.claim import check_folder, claim_folder
from subgnn.experiments.constant import constant_pieces, perfect_pieces
from subgnn.experiments.outcome import ask_runs, constant_row, looks_of, recipe_row
from subgnn.experiments.paired import mean_pieces
from subgnn.experiments.quick_page import quick_page
from subgnn.experiments.signal import NETWORK, Model, Verdict, judge
from subgnn.experiments.train import train
from subgnn.parallel.locks import clear_locked, locked_folder
from subgnn.parallel.progress import OnProgress
from subgnn.storage.files import atomic_write
from subgnn.training.labels import check_labels
from subgnn.training.run_dir import write_json

QUICK_RECIPES = ("topology", "bag", "avg", NETWORK)
EPOCHS = 30
_RESULT, _PAGE, _RUNS = "quick.json", "quick.md", "runs"
_HOLDS = "holds a look at something else"


def run_quick(
    dataset: Dataset,
    out: Path,
    *,
    epochs: int = EPOCHS,
    seeds: int = 1,
    overrides: Sequence[str] = (),
    device: str = "auto",
    source: str = "",
    cache: bool = True,
    on_progress: OnProgress | None = None,
) -> dict[str, Any]:
    """Train the four recipes on a dataset, and judge what its labels carry.

    Runs that are finished are not trained again. A recipe that fails is listed with its message.

    Args:
        out: the folder; new, or of an earlier look at the same dataset with the same settings.
        epochs: of the recipes that are trained by gradient.
        overrides: ``section.key=value`` for all recipes.
        device, source, cache: as for :func:`~subgnn.experiments.train.train`.
        on_progress: called with what is being done, the units done and the units in all.

    Returns:
        The content of quick.json, after :func:`write_quick`.

    Raises:
        DataError: where the folder holds another look, the dataset has no labels, or no recipe could be trained.
    """
    recipes = {name: find_recipe(name, [f"training.epochs={epochs}", *overrides]) for name in QUICK_RECIPES}
    dataset, split = _with_split(dataset)
    inputs = _inputs(dataset, epochs, overrides)
    check_folder(out, inputs, holds=_HOLDS)
    with locked_folder(out, what="look"):
        new = claim_folder(out, inputs, holds=_HOLDS)
        about = {"split": split, "epochs": epochs, "seeds": seeds, "set": list(overrides)}
        options = {"device": device, "source": source, "cache": cache, "show": on_progress}
        return write_quick(_look(dataset, recipes, out, about, options, new=new), out)


def _look(
    dataset: Dataset,
    recipes: Mapping[str, Recipe],
    out: Path,
    about: dict[str, Any],
    options: Mapping[str, Any],
    *,
    new: bool,
) -> dict[str, Any]:
    """Train the recipes that are not finished, and judge all; where none can be trained, a new folder is left empty."""
    rows: list[dict[str, Any]] = []
    models: dict[str, Model] = {}
    failures: dict[str, str] = {}
    parts: list[dict[str, Any]] = []
    for name, recipe in recipes.items():
        try:
            runs = [_run(dataset, recipe, out, seed=seed, **options) for seed in range(about["seeds"])]
            every, parts = ask_runs(dataset, [Path(run["run"]) for run in runs], parts)
        except Exception as error:
            message = str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
            failures[name] = " ".join(message.split())
            continue
        looks = sum(looks_of(Path(run["run"])) for run in runs)
        models[name] = Model(mean_pieces(every), looks)
        rows.append(recipe_row(dataset, runs, looks))
    if not models:
        name, message = next(iter(failures.items()))
        if new:
            clear_locked(out)
        what = f"no recipe could be trained, {len(failures)} of {len(recipes)} failed; {name}: {message}"
        raise DataError(what, where=dataset.name)
    constant, perfect = constant_pieces(dataset, "val"), perfect_pieces(dataset, "val")
    metric = "R2" if dataset.subgraphs.task == "regression" else "micro-F1"
    verdict = judge(models, constant=constant, perfect=perfect, metric=metric)
    return {
        "suite": "quick",
        "out": str(out),
        "dataset": dataset.name,
        "task": dataset.subgraphs.task,
        **about,
        "splits": {name: len(dataset.subgraphs.indices(name)) for name in SPLITS},
        "rows": [constant_row(dataset), *rows],
        "failures": failures,
        "parts": parts,
        **_verdict_keys(verdict),
    }


def write_quick(found: dict[str, Any], out: Path) -> dict[str, Any]:
    """Write quick.json and quick.md, and return what the former holds: an undefined number is null."""
    finite: dict[str, Any] = _finite(found)
    write_json(finite, out / _RESULT)
    with atomic_write(out / _PAGE, overwrite=True) as temporary:
        temporary.write_text(quick_page(finite), encoding="utf-8", errors="backslashreplace")
    return finite


def _with_split(dataset: Dataset) -> tuple[Dataset, str]:
    """The dataset under its own split, or under one that is drawn, and which it is."""
    subgraphs = dataset.subgraphs
    words = "the dataset's own"
    if subgraphs.splits is None and subgraphs.targets is not None:
        subgraphs = split_subgraphs(subgraphs, method="stratified", seed=0)
        words = "drawn: stratified 50/25/25, seed 0"
    check_labels(subgraphs, where=dataset.name)
    return replace(dataset, subgraphs=subgraphs), words


def _inputs(dataset: Dataset, epochs: int, overrides: Sequence[str]) -> dict[str, Any]:
    """What a look is at, and with what."""
    return {
        "graph": dataset.graph.undirected().content_hash,
        "subgraphs": dataset.subgraphs.content_hash,
        "epochs": epochs,
        "set": list(overrides),
    }


def _run(
    dataset: Dataset,
    recipe: Recipe,
    out: Path,
    *,
    seed: int,
    device: str,
    source: str,
    cache: bool,
    show: OnProgress | None,
) -> dict[str, Any]:
    name = recipe.name if seed == 0 else f"{recipe.name}_{seed}"

    def after_epoch(record: dict[str, Any]) -> None:
        if show is not None:
            show(f"{name}: training", record["epoch"] + 1, max(record["epoch"] + 1, recipe.training.epochs))

    def while_preparing(what: str, done: int, total: int) -> None:
        if show is not None:
            show(f"{name}: {what}", done, total)

    def while_pretraining(record: dict[str, Any]) -> None:
        if show is not None:
            show(f"{name}: pretraining", record["epoch"] + 1, recipe.pretrain.epochs)

    return train(
        dataset,
        recipe,
        out / _RUNS / name,
        seed=seed,
        device=device,
        devices=1,
        resume=True,
        source=source,
        cache=cache,
        on_epoch=after_epoch,
        on_prepare=while_preparing,
        on_pretrain=while_pretraining,
    )


def _verdict_keys(verdict: Verdict) -> dict[str, Any]:
    return {
        "verdict": {"signals": list(verdict.signals), "enough": verdict.enough, "words": list(verdict.words)},
        "over_constant": {name: asdict(lead) for name, lead in verdict.over_constant.items()},
        "over_topology": {name: asdict(lead) for name, lead in verdict.over_topology.items()},
        "network_over": {name: asdict(lead) for name, lead in verdict.network_over.items()},
    }


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
