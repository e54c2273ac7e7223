"""One trial of a search: a recipe trained with several seeds and judged on validation alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any, Literal

from subgnn.config.settings import Recipe
from subgnn.data.dataset import Dataset
from subgnn.data.subgraphs import Task
from subgnn.errors import DataError
from subgnn.experiments.held_out import divide_anew
from subgnn.experiments.train import train
from subgnn.models.registry import METHODS
from subgnn.storage.files import temporary_folder

Splitting = Literal["stored", "random"]
OnStep = Callable[[int, float], None]
"""Called with the epochs so far and the score so far; it may raise to end the trial."""


def longest(recipe: Recipe) -> int:
    """The most epochs that one training has: those of every candidate, where the recipe leaves a choice open.

    Of several networks (training.members), those of all.
    """
    method = METHODS.get(recipe.method)
    fitted = recipe.training.members if method is None else len(method.candidates(recipe))
    return recipe.training.epochs * fitted


def metric_of(task: Task) -> str:
    """What a search maximises."""
    return "r2" if task == "regression" else "micro_f1"


@dataclass(slots=True)
class Judged:
    """Validation of a trial: score and loss at the selected epoch of each seed, and the epochs trained."""

    scores: list[float] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    selected: list[int] = field(default_factory=list)

    @property
    def score(self) -> float:
        """The mean over seeds."""
        return fmean(self.scores)

    @property
    def loss(self) -> float:
        """The mean over seeds; it decides between equal scores."""
        return fmean(self.losses)


class _SoFar:
    """The best epoch so far by the rule of the training loop, and the mean with the seeds that are done."""

    def __init__(self, task: Task, done: Sequence[float], on_step: OnStep | None) -> None:
        self._metric, self._by_loss = f"val_{metric_of(task)}", task == "regression"
        self._done, self._on_step = list(done), on_step
        self._best: tuple[float, float] | None = None
        self._score, self.steps = 0.0, 0

    def __call__(self, record: dict[str, Any]) -> None:
        """Take an epoch's record."""
        score, loss = float(record[self._metric]), float(record["val_loss"])
        rank = (-loss if self._by_loss else score, -loss)
        if self._best is None or rank > self._best:
            self._best, self._score = rank, score
        self.steps += 1
        if self._on_step is not None:
            self._on_step(self.steps, fmean([*self._done, self._score]))


def judge_recipe(
    dataset: Dataset,
    recipe: Recipe,
    *,
    seeds: int = 1,
    split: Splitting = "stored",
    device: str = "auto",
    cache: bool = True,
    on_step: OnStep | None = None,
) -> Judged:
    """Train a recipe with seeds 0, 1 and so on, and judge each at the epoch that validation selects.

    Args:
        dataset: without test subgraphs (:func:`~subgnn.experiments.held_out.without_test`).
        split: ``stored``, the dataset's own training and validation; or ``random``, these divided anew for each seed.
        device, cache: as for :func:`~subgnn.experiments.train.train`.
        on_step: called after each epoch with its number, counted over all seeds from 1, and the mean over seeds of
            the best score so far.

    Raises:
        DataError: where the score is undefined, as R^2 is where all validation targets are equal.
    """
    judged, metric = Judged(), metric_of(dataset.subgraphs.task)
    for seed in range(seeds):
        before = seed * longest(recipe)

        def step(number: int, score: float, before: int = before) -> None:
            if on_step is not None:
                on_step(before + number, score)

        watch = _SoFar(dataset.subgraphs.task, judged.scores, step)
        seen = dataset if split == "stored" else divide_anew(dataset, seed)
        with temporary_folder("subgnn-trial") as folder:
            results = train(
                seen,
                recipe,
                folder / "run",
                seed=seed,
                device=device,
                cache=cache,
                on_epoch=watch,
                report=False,
            )
        score = float(results["val"][metric])
        if score != score:
            what = f"validation {metric} is undefined"
            raise DataError(what, where=dataset.name, hint="are all validation targets equal?")
        judged.scores.append(score)
        judged.losses.append(float(results["val"]["loss"]))
        judged.selected.append(int(results["selected_epoch"]))
    return judged
