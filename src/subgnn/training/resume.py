"""Fit the candidates of a run, save progress on the way, and continue after an interruption."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from lightning.fabric import Fabric
from numpy.typing import NDArray

from subgnn.errors import DataError, DataWarning
from subgnn.models.examples import Examples, evaluate
from subgnn.models.interface import Candidate
from subgnn.parallel.interrupts import noted_interrupt
from subgnn.storage.torch_file import Damaged, load, save
from subgnn.training.candidates import fit_candidate
from subgnn.training.devices import any_rank
from subgnn.training.logs import MetricsLog, Record
from subgnn.training.loop import Progress
from subgnn.training.options import RunOptions
from subgnn.training.run_dir import LAST, METRICS
from subgnn.training.steps import Fitting

SECONDS_BETWEEN_SAVES = 10.0
_FORMAT, _VERSION = "subgnn-progress", 1


def fit_all(
    candidates: Sequence[Candidate],
    examples: Examples,
    options: RunOptions,
    *,
    fabric: Fabric,
    score: NDArray[np.int64] | None = None,
) -> tuple[list[Progress], list[Record]]:
    """Fit the candidates in turn, and return their progress and the records of all epochs.

    They go on from the saved progress of an interrupted run if there is any.

    Args:
        score: test subgraphs whose scores every epoch's record is to have, too; they have no part in the fit.
    """
    first, out = fabric.is_global_zero, options.out
    before: dict[str, Any] | None = fabric.broadcast(
        _saved_progress(out, fabric.world_size, len(candidates)) if options.resume and first else None
    )
    fitted = [] if before is None else [Progress(**progress) for progress in before["fitted"]]
    log = MetricsLog(out / METRICS, "" if before is None else before["metrics"]) if first else None
    saved_at = time.monotonic()
    with noted_interrupt() as interrupt:

        def after_epoch(record: dict[str, Any], progress: Progress, state: Callable[[], dict[str, Any]]) -> None:
            nonlocal saved_at
            if score is not None:
                scores = evaluate(candidate.network, examples, score, candidate.recipe.training.batch_size)[1]
                record = record | {f"test_{name}": value for name, value in scores.items()}
            record = record | ({"candidate": candidate.name} if candidate.name else {})
            if log is not None:
                log.append(record)
            due = time.monotonic() - saved_at >= SECONDS_BETWEEN_SAVES
            try:
                options.callbacks.on_epoch(record)
            except KeyboardInterrupt:
                interrupt.pressed = True
            stop = any_rank(fabric, interrupt.pressed)
            if log is not None and (due or stop):
                about = {"metrics": log.text, "devices": fabric.world_size}
                save_progress(state() | about | {"fitted": [progress.plain() for progress in fitted]}, out / LAST)
                saved_at = time.monotonic()
            if stop:
                raise KeyboardInterrupt

        for candidate in candidates[len(fitted) :]:
            fitting = Fitting(examples, candidate.recipe.training, candidate.seed, fabric)
            fitted.append(fit_candidate(candidate, fitting, resume=before, after_epoch=after_epoch))
            before = None
    return fitted, [] if log is None else [json.loads(line) for line in log.text.splitlines()]


def _saved_progress(out: Path, devices: int, candidates: int) -> dict[str, Any] | None:
    """The progress of an interrupted run; None where there is none, or it is damaged."""
    if not (out / LAST).is_file():
        return None
    try:
        found = load_progress(out / LAST)
    except Damaged as error:
        warnings.warn(f"{error.where}: {error.what}; the run starts from the beginning", DataWarning, stacklevel=4)
        return None
    saved = [*found["fitted"], found["progress"]]
    names = Progress.__dataclass_fields__.keys()
    if len(saved) > candidates or not all(isinstance(one, dict) and one.keys() == names for one in saved):
        hint = "remove it to start from the beginning"
        raise DataError("the saved progress does not fit the run", where=str(out / LAST), hint=hint)
    before = found["devices"]
    if before != devices:
        what = f"the run was on {before} devices, not {devices}, which makes other batches"
        raise DataError(what, where=str(out), hint=f"continue with --devices {before}, or give another --out")
    return found


def save_progress(state: dict[str, Any], path: Path) -> None:
    """Write the state that ``--resume`` needs."""
    save({"format": _FORMAT, "version": _VERSION} | state, path)


def load_progress(path: Path) -> dict[str, Any]:
    """Read the state that :func:`save_progress` wrote.

    Raises:
        Damaged: if it is not saved progress, or was changed since.
    """
    content = load(path)
    if content.get("format") != _FORMAT:
        raise Damaged(path)
    if content.get("version") != _VERSION:
        what = f"saved progress of version {content.get('version')}"
        hint = f"this release reads version {_VERSION}; remove the file to start from the beginning"
        raise DataError(what, where=str(path), hint=hint)
    for name, kind in {"metrics": str, "fitted": list, "progress": dict, "devices": int}.items():
        if not isinstance(content.get(name), kind):
            raise Damaged(path, f"'{name}' is missing, or of a wrong kind")
    return content
