"""A run to be trained: its recipe, folder and options, and the functions that it calls as it progresses."""

from __future__ import annotations

import resource
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from subgnn.config.settings import Recipe
from subgnn.data.dataset import Dataset
from subgnn.models.recipes import unused_data
from subgnn.models.spec import Checkpoint
from subgnn.parallel.progress import OnEpoch, OnProgress, ignore
from subgnn.result import Candidate, RunResult
from subgnn.training.train_options import TrainOptions
from subgnn.versions import versions


@dataclass(frozen=True, slots=True, eq=False)
class TrainedRun:
    """A run that was just trained, so that its page needs nothing from disk.

    Attributes:
        records: the epochs of all candidates, as in metrics.jsonl; none of a portfolio.
        tables: of node embeddings that the model started from, by their hash.
        outputs: for the test split, or for val where there is none (n, outputs); None where nothing is held out.
        out_of_fold: calibrated outputs of a portfolio (repeats, n, outputs), and their subgraphs (n,).
        vectors: z_S of all subgraphs, where training has computed them (N, width).
    """

    result: RunResult
    recipe: Recipe
    checkpoint: Checkpoint
    tables: Mapping[str, NDArray[np.float32]]
    records: Sequence[dict[str, Any]] = ()
    outputs: NDArray[np.float32] | None = None
    out_of_fold: tuple[NDArray[np.float64], NDArray[np.int64]] | None = None
    vectors: NDArray[np.float32] | None = None


WritePage = Callable[[Dataset, Path, TrainedRun | None], None]
"""Writes the page of a finished run, from its dataset, its folder and, just after training, what is in memory."""


OnLeaderboard = Callable[[Sequence[Candidate], str], None]
"""Called with the rows of a portfolio's leaderboard, and what is being done now."""


@dataclass(frozen=True, slots=True)
class Callbacks:
    """Functions that are called as a run progresses.

    Args:
        on_epoch: called with each epoch's record; not for a portfolio.
        on_prepare: called, before the first epoch, with what is being prepared, the units done and the total.
        on_pretrain: called with each epoch's record of a pretraining, where one is needed.
        on_leaderboard: called, for a portfolio, with the rows of its leaderboard and what is being done: first with
            the plan, whose rows have estimates, then whenever a row changes.
    """

    on_epoch: OnEpoch = ignore
    on_prepare: OnProgress = ignore
    on_pretrain: OnEpoch = ignore
    on_leaderboard: OnLeaderboard = ignore


NO_CALLBACKS = Callbacks()


@dataclass(frozen=True, slots=True)
class RunOptions(TrainOptions):
    """A run to be trained: the options of ``train``, and what :func:`subgnn.api.train_recipe.train` adds to them.

    ``write_page`` is an importable function, or None for no page. ``look_ahead`` says that edges later than the first
    held-out subgraph of a split by time were allowed, and ``warnings`` what makes the scores misleading.
    """

    recipe: Recipe
    out: Path
    source: str = ""
    keep_data: bool = False
    score_epochs: bool = False
    write_page: WritePage | None = None
    callbacks: Callbacks = NO_CALLBACKS
    look_ahead: bool = False
    warnings: tuple[str, ...] = ()

    @property
    def fitted_to(self) -> tuple[str, ...]:
        """The splits that the model learns from."""
        both = self.recipe.is_portfolio and self.recipe.auto.fit_on != "train"
        return ("train", "val") if both else ("train",)

    def about(self, dataset: Dataset, device: torch.device, devices: int = 1) -> dict[str, Any]:
        """Fields of the result: the data and the settings, the process, the machine and the time."""
        return {
            "run": str(self.out),
            "dataset": dataset.name,
            "source": self.source,
            "split": self.split,
            "edges_until": self.edges_until,
            "look_ahead": self.look_ahead,
            "recipe": self.recipe.name,
            "method": self.recipe.method,
            "seed": self.seed,
            "task": dataset.subgraphs.task,
            "fitted_to": self.fitted_to,
            "unused": tuple(unused_data(self.recipe, dataset.graph)),
            "warnings": self.warnings,
            "published": self.recipe.published,
            "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            "device": str(device),
            "devices": devices,
            "versions": versions(),
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
        }
