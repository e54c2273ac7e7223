"""A run to be trained: its recipe, folder and options, and the functions that it calls as it progresses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.config.settings import Recipe
from subgnn.data.dataset import Dataset
from subgnn.parallel.progress import OnProgress

OnEpoch = Callable[[dict[str, Any]], None]
WritePage = Callable[[Dataset, Path, NDArray[np.float32] | None], None]
"""Writes the page of a finished run, from its dataset, its folder and, where they are known, its subgraphs' vectors."""


def ignore(*_: Any) -> None:
    """Do nothing."""


@dataclass(frozen=True, slots=True)
class Callbacks:
    """Functions that are called with an epoch's record, the progress of the preparation, and epochs of pretraining."""

    on_epoch: OnEpoch = ignore
    on_prepare: OnProgress = ignore
    on_pretrain: OnEpoch = ignore


@dataclass(frozen=True, slots=True)
class RunOptions:
    """A run to be trained; :func:`subgnn.experiments.train.train` explains the fields.

    ``write_page`` is an importable function, or None for no page.
    """

    recipe: Recipe
    out: Path
    seed: int = 0
    split: str = "stored"
    device: str = "auto"
    resume: bool = False
    source: str = ""
    cache: bool = True
    tensorboard: bool = False
    write_page: WritePage | None = None
    callbacks: Callbacks = Callbacks()
