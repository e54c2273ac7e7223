"""A quick look at a dataset: train four recipes in minutes, and determine which kind of signal its labels carry.

``topology`` sees the shape of a subgraph, ``bag`` and ``avg`` which nodes it has, ``subgnn`` all of that and
the surroundings. Each is trained for few epochs on the dataset's split; :mod:`subgnn.experiments.label_signal` has the
rule by which validation scores are compared. The test split is scored once for each run and shown, and does not enter
the verdict.

FOLDER/quick.json     rows, comparisons and verdict
FOLDER/quick.md       the same as text
FOLDER/inputs.json    hashes of the dataset, and settings
FOLDER/runs/RECIPE    the run of seed 0; RECIPE_1 and so on those of further seeds
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

import numpy as np

from subgnn.config.recipes import find_recipe
from subgnn.config.settings import Recipe
from subgnn.data.dataset import Dataset
from subgnn.data.splits import split_subgraphs
from subgnn.data.subgraphs import SPLITS
from subgnn.errors import DataError, UserError
from subgnn.experiments.label_signal import NETWORK, Model, judge
from subgnn.experiments.output_folder import check_folder, claim_folder
from subgnn.experiments.quick_page import quick_page
from subgnn.experiments.train import train
from subgnn.models.reference_scores import constant_terms, perfect_terms
from subgnn.models.significance import mean_terms, score_terms
from subgnn.parallel.locks import clear_locked, locked_folder
from subgnn.parallel.progress import OnProgress
from subgnn.reports.evaluation import evaluate_run
from subgnn.storage.files import atomic_write
from subgnn.storage.parsing import finite, write_json
from subgnn.training.labels import check_labels
from subgnn.training.run_dir import METRICS

QUICK_RECIPES = ("topology", "bag", "avg", NETWORK)
EPOCHS = 30
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
    """Train the four recipes on a dataset, and judge which signal its labels carry.

    Finished runs are not trained again. A recipe that fails is listed with its message.

    Args:
        out: the folder; new, or of an earlier look at the same dataset with the same settings.
        epochs: of the recipes that are trained by gradient.
        overrides: ``section.key=value`` for all recipes.
        device, source, cache: as for :func:`~subgnn.experiments.train.train`.
        on_progress: called with a description of the work, the units done and the units in all.

    Returns:
        The content of quick.json, which :func:`write_quick` has written.

    Raises:
        DataError: if the folder holds another look, the dataset has no labels, or no recipe could be trained.
    """
    recipes = {name: find_recipe(name, [f"training.epochs={epochs}", *overrides]) for name in QUICK_RECIPES}
    dataset, split = _with_split(dataset)
    inputs = {
        "graph": dataset.graph.undirected().content_hash,
        "subgraphs": dataset.subgraphs.content_hash,
        "epochs": epochs,
        "set": list(overrides),
    }
    check_folder(out, inputs, holds=_HOLDS)
    with locked_folder(out, what="look"):
        new = claim_folder(out, inputs, holds=_HOLDS)
        trainer = _Trainer(dataset, out, seeds, {"device": device, "source": source, "cache": cache}, on_progress)
        rows, models, failures = trainer.train_all(recipes)
        if not models:
            name, message = next(iter(failures.items()))
            if new:
                clear_locked(out)
            what = f"no recipe could be trained, {len(failures)} of {len(recipes)} failed; {name}: {message}"
            raise DataError(what, where=dataset.name)
        about = {"split": split, "epochs": epochs, "seeds": seeds, "set": list(overrides)}
        found = {
            "suite": "quick",
            "out": str(out),
            "dataset": dataset.name,
            "task": dataset.subgraphs.task,
            **about,
            "splits": {name: len(dataset.subgraphs.indices(name)) for name in SPLITS},
            "rows": [_constant_row(dataset), *rows],
            "failures": failures,
            "parts": trainer.parts,
            **_verdict(dataset, models),
        }
        return write_quick(found, out)


def write_quick(found: dict[str, Any], out: Path) -> dict[str, Any]:
    """Write quick.json and quick.md, and return the content of the former, where undefined numbers are null."""
    content: dict[str, Any] = finite(found)
    write_json(content, out / "quick.json")
    with atomic_write(out / "quick.md", overwrite=True) as temporary:
        temporary.write_text(quick_page(content), encoding="utf-8", errors="backslashreplace")
    return content


def _with_split(dataset: Dataset) -> tuple[Dataset, str]:
    """The dataset with its split, or with a drawn one, and a description of the split."""
    subgraphs, words = dataset.subgraphs, "the dataset's own"
    if subgraphs.splits is None and subgraphs.targets is not None:
        subgraphs = split_subgraphs(subgraphs, method="stratified", seed=0)
        words = "drawn: stratified 50/25/25, seed 0"
    check_labels(subgraphs, where=dataset.name)
    return replace(dataset, subgraphs=subgraphs), words


@dataclass(slots=True)
class _Trainer:
    """Trains recipes on a dataset, and scores their runs on validation.

    Attributes:
        options: of :func:`~subgnn.experiments.train.train`.
        parts: after training, contributions of the parts of SubGNN's vectors in its first run.
    """

    dataset: Dataset
    out: Path
    seeds: int
    options: Mapping[str, Any]
    on_progress: OnProgress | None
    parts: Sequence[dict[str, Any]] = ()

    def train_all(self, recipes: Mapping[str, Recipe]) -> tuple[list[dict[str, Any]], dict[str, Model], dict[str, str]]:
        """Rows and models of the recipes that can be trained, and messages of the others."""
        rows: list[dict[str, Any]] = []
        models: dict[str, Model] = {}
        failures: dict[str, str] = {}
        for name, recipe in recipes.items():
            try:
                runs = [self._train(recipe, seed) for seed in range(self.seeds)]
                model = self._score([Path(run["run"]) for run in runs])
            except Exception as error:
                message = str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
                failures[name] = " ".join(message.split())
                continue
            models[name] = model
            rows.append(_recipe_row(self.dataset, runs, model.looks))
        return rows, models, failures

    def _train(self, recipe: Recipe, seed: int) -> dict[str, Any]:
        name = recipe.name if seed == 0 else f"{recipe.name}_{seed}"

        def show(what: str, done: int, total: int) -> None:
            if self.on_progress is not None:
                self.on_progress(f"{name}: {what}", done, max(done, total))

        return train(
            self.dataset,
            recipe,
            self.out / "runs" / name,
            seed=seed,
            devices=1,
            resume=True,
            on_epoch=lambda record: show("training", record["epoch"] + 1, recipe.training.epochs),
            on_prepare=show,
            on_pretrain=lambda record: show("pretraining", record["epoch"] + 1, recipe.pretrain.epochs),
            **self.options,
        )

    def _score(self, runs: Sequence[Path]) -> Model:
        """Score the runs of a recipe on validation, on a dataset without its test part."""
        subgraphs = self.dataset.subgraphs
        kept = np.concatenate([subgraphs.indices("train"), subgraphs.indices("val")])
        seen = replace(self.dataset, subgraphs=subgraphs.take(kept))
        terms = []
        for run in runs:
            found = evaluate_run(run, seen)
            terms.append(score_terms(found.predicted(), found.targets.numpy(), found.task))
            if found.network is not None and run == runs[0]:
                self.parts = [asdict(part) for part in found.contributions()]
        # Each line of metrics.jsonl is a fitted state that validation could choose.
        looks = sum(len((run / METRICS).read_text(encoding="utf-8").splitlines()) for run in runs)
        return Model(mean_terms(terms), looks)


def _recipe_row(dataset: Dataset, runs: Sequence[dict[str, Any]], looks: int) -> dict[str, Any]:
    """Metrics over the runs of a recipe, and their mean time."""
    return {
        "dataset": dataset.name,
        "recipe": runs[0]["recipe"],
        "method": runs[0]["method"],
        "n": len(runs),
        "val": _spread([run["val"] for run in runs]),
        "test": _spread([run["test"] for run in runs]),
        "seconds": fmean(sum(run["seconds"][part] for part in ("pretrain", "prepare", "train")) for run in runs),
        "looks": looks,
        "runs": [run["run"] for run in runs],
    }


def _constant_row(dataset: Dataset) -> dict[str, Any]:
    """The row of the constant prediction."""
    metric = "r2" if dataset.subgraphs.task == "regression" else "micro_f1"
    scores = {
        split: _spread([{metric: constant_terms(dataset, split).score}])
        for split in ("val", "test")
        if len(dataset.subgraphs.indices(split))
    }
    about = {"dataset": dataset.name, "recipe": "constant", "method": "constant", "n": 1}
    return {**about, "val": scores["val"], "test": scores.get("test", {}), "seconds": 0.0}


def _spread(runs: Sequence[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Mean and standard deviation of each metric over runs."""
    columns = {name: [math.nan if run[name] is None else float(run[name]) for run in runs] for name in runs[0]}
    return {name: {"mean": fmean(values), "std": pstdev(values)} for name, values in columns.items()}


def _verdict(dataset: Dataset, models: Mapping[str, Model]) -> dict[str, Any]:
    verdict = judge(
        models,
        constant=constant_terms(dataset, "val"),
        perfect=perfect_terms(dataset, "val"),
        metric="R2" if dataset.subgraphs.task == "regression" else "micro-F1",
    )
    leads = {name: getattr(verdict, name) for name in ("over_constant", "over_topology", "network_over")}
    return {
        "verdict": {"signals": list(verdict.signals), "enough": verdict.enough, "words": list(verdict.words)},
        **{key: {name: asdict(lead) for name, lead in found.items()} for key, found in leads.items()},
    }
