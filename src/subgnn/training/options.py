"""Options of a run beside its recipe, and the functions that it calls as it progresses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.data.dataset import Dataset
from subgnn.parallel.progress import OnProgress

OnEpoch = Callable[[dict[str, Any]], None]
WritePage = Callable[[Dataset, Path, NDArray[np.float32] | None], None]
"""Writes the page of a finished run, from its dataset, its folder and, where they are known, its subgraphs' vectors."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options of a run.

    Attributes:
        seed: of anchors, weights, batches and dropout.
        device: ``auto``, ``cpu`` or ``cuda``.
        source: where the dataset was read from.
        cache: whether prepared subgraphs and pretrained embeddings are read from the cache, and written there.
        tensorboard: whether to write event files for TensorBoard.
        write_page: an importable function, or None for no page.
    """

    seed: int = 0
    device: str = "auto"
    source: str = ""
    cache: bool = True
    tensorboard: bool = False
    write_page: WritePage | None = None


def ignore(*_: Any) -> None:
    """Do nothing."""


@dataclass(frozen=True, slots=True)
class Callbacks:
    """Functions that are called with an epoch's record, the progress of the preparation, and epochs of pretraining."""

    on_epoch: OnEpoch = ignore
    on_prepare: OnProgress = ignore
    on_pretrain: OnEpoch = ignore
