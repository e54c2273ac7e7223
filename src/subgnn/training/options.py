"""Options for training, declared once, and the description of a run to train.

Each field of :class:`TrainOptions` is an option of ``subgnn train`` and a keyword of ``subgnn.train``. The command line
imports this module for ``--help``, so it imports no numeric library.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from typer import Option

from subgnn.config.files import LARGEST
from subgnn.errors import UserError, excerpt
from subgnn.parallel.memory import LEAST, limit
from subgnn.parallel.progress import OnEpoch, OnProgress, ignore

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from subgnn.config.settings import Recipe
    from subgnn.data.dataset import Dataset
    from subgnn.models.spec import Checkpoint
    from subgnn.result import Candidate, RunResult

SplitName = Annotated[
    Literal["stored", "published"],
    Option("--split", help="'published' swaps val and test if val is smaller, as published results do."),
]
DeviceName = Annotated[Literal["auto", "cpu", "cuda"], Option("--device", help="Device to compute on.")]
CacheFlag = Annotated[bool, Option("--cache/--no-cache", help="Use the cache (read and write).")]
RayAddress = Annotated[
    str | None,
    Option(metavar="HOST:PORT", help="Address of a Ray cluster, or auto; by default Ray is started and stopped."),
]
PRELOAD = (
    "subgnn.training.fits",
    "sklearn.ensemble",
    "subgnn.models.baselines.bag",
    "subgnn.models.baselines.enrichment",
    "subgnn.models.baselines.profiles",
    "subgnn.models.baselines.topology",
    "subgnn.models.kernel_machines.kernel_machine",
)
"""What the fits of a portfolio import."""
_FEW_SUBGRAPHS, _FEW_EDGES = 100, 20_000  # up to these, this process fits a portfolio
_UNITS = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600}


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainOptions:
    """Options for training. Durations and times may also be given as text, which is parsed here."""

    seed: Annotated[int, Option(help="Seed for anchors, weights, batches and dropout.")] = 0
    time: Annotated[
        float | None,
        Option(metavar="DURATION", parser=str, help="Time budget, e.g. 90s, 5m or 1h (auto only; default 5m)."),
    ] = None
    threshold: Annotated[
        str | None,
        Option(
            metavar="AIM",
            help="Choose the threshold of the rarer class, or of each label, for precision=0.9, recall=0.8, f1 or "
            "cost=fp:1,fn:20.",
        ),
    ] = None
    split: SplitName = "stored"
    edges_until: Annotated[
        float | None,
        Option(
            metavar="TIME",
            parser=str,
            help="Ignore later edges, in training and in predictions: a number or an ISO date.",
        ),
    ] = None
    allow_look_ahead: Annotated[
        bool, Option("--allow-look-ahead", help="Allow edges newer than the first held-out subgraph.")
    ] = False
    as_of: Annotated[
        Literal["subgraph", "now"] | None,
        Option(
            help="Measure each subgraph on the graph as it was at its own time, or as it is now; by default at its own "
            "time where the split is by time and edges have times."
        ),
    ] = None
    device: DeviceName = "auto"
    processes: Annotated[
        int | None, Option(min=1, help="Models fitted at once (auto only); by default one per core.")
    ] = None
    engine: Annotated[Literal["local", "ray"], Option(help="Fit on this machine, or on Ray's workers (auto only).")] = (
        "local"
    )
    address: RayAddress = None
    resume: Annotated[bool, Option("--resume", help="Continue an interrupted run.")] = False
    cache: CacheFlag = True

    def __post_init__(self) -> None:
        if self.time is not None:
            object.__setattr__(self, "time", parse_duration(self.time, "--time"))
        if self.edges_until is not None:
            from subgnn.data.values import parse_time

            object.__setattr__(self, "edges_until", parse_time(str(self.edges_until), "--edges-until"))


def parse_duration(value: Any, where: str) -> float:
    """Parse a duration of at least a second into seconds: a number, or text such as ``90s``, ``5m`` or ``1h``.

    Example:
        >>> [parse_duration(value, "--time") for value in (90, "90", "90s", "5m", "1.5h")]
        [90.0, 90.0, 90.0, 300.0, 5400.0]
    """
    text = f"{value:f}" if isinstance(value, float) else str(value)
    found = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)\s*(s|m|min|h|)", text.strip())
    seconds = float(found[1]) * _UNITS[found[2]] if found else 0.0
    if not 1 <= seconds <= LARGEST:
        hint = f"accepted: 90, 90s, 5m, 1h; from 1 to {LARGEST:,} seconds"
        raise UserError(f"the duration is {excerpt(text)}", where=where, hint=hint)
    return seconds


@dataclass(frozen=True, slots=True, eq=False)
class TrainedRun:
    """A run that was just trained, so that its page needs nothing from disk.

    ``records`` are the epochs of all candidates, as in metrics.jsonl; ``tables`` node embeddings by their hash;
    ``outputs`` those of test, or of val if there is no test (n, outputs). ``out_of_fold`` are calibrated outputs of a
    portfolio (repeats, n, outputs), and their subgraphs (n,).
    """

    result: RunResult
    recipe: Recipe
    checkpoint: Checkpoint
    tables: Mapping[str, NDArray[np.float32]]
    records: Sequence[dict[str, Any]] = ()
    outputs: NDArray[np.float32] | None = None
    out_of_fold: tuple[NDArray[np.float64], NDArray[np.int64]] | None = None


WritePage: TypeAlias = "Callable[[Dataset, Path, TrainedRun | None], None]"
"""Writes the page of a finished run, from its dataset, its folder and, just after training, what is in memory."""
OnLeaderboard: TypeAlias = "Callable[[Sequence[Candidate], str], None]"
"""Called with the rows of a portfolio's leaderboard, and the current step."""


@dataclass(frozen=True, slots=True)
class Callbacks:
    """Functions to call as a run progresses; a portfolio calls ``on_leaderboard`` alone, first with the plan."""

    on_epoch: OnEpoch = ignore
    on_prepare: OnProgress = ignore
    on_pretrain: OnEpoch = ignore
    on_leaderboard: OnLeaderboard = ignore


NO_CALLBACKS = Callbacks()


@dataclass(frozen=True, slots=True)
class RunOptions(TrainOptions):
    """A run to train: the options of ``train``, and what :func:`subgnn.api.train_recipe.train` adds to them.

    ``write_page`` is an importable function, or None for no page. ``look_ahead`` says that edges later than the first
    held-out subgraph of a split by time were allowed, ``as_of_step`` to what step the times of subgraphs are rounded
    down, and ``warnings`` what makes the scores misleading.
    """

    recipe: Recipe
    out: Path
    source: str = ""
    keep_data: bool = False
    write_page: WritePage | None = None
    callbacks: Callbacks = NO_CALLBACKS
    look_ahead: bool = False
    as_of_step: float = 0.0
    warnings: tuple[str, ...] = ()

    @property
    def fitted_to(self) -> tuple[str, ...]:
        return ("train", "val") if self.recipe.is_portfolio and self.recipe.auto.fit_on != "train" else ("train",)


def fit_processes(options: TrainOptions, subgraphs: int, edges: int) -> int:
    """The number of local processes that fit a portfolio; 0 if there is so little data that this one does."""
    if subgraphs <= _FEW_SUBGRAPHS and edges <= _FEW_EDGES:
        return 0
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return options.processes or max(1, min(cores, limit() // LEAST))  # each with the memory that a process needs
