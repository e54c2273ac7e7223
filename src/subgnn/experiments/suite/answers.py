"""What test answers tell beyond a score: calibration, generalisation to unseen nodes, and where vectors lie."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.experiments.paired import score_pieces
from subgnn.experiments.suite.jobs import ANSWERS
from subgnn.experiments.suite.rows import Group, spread
from subgnn.reports.calibration import Bin, calibration

BIN_ENDS = (0.2, 0.4, 0.6, 0.8, 1.0)
_DAMAGE = (
    OSError,
    ValueError,
    KeyError,
    EOFError,
    SyntaxError,
    RuntimeError,
    MemoryError,
    zipfile.BadZipFile,
    zlib.error,
)
_TINY = 1e-6  # overlaps are kept as float32


def read_answers(folder: Path) -> dict[str, NDArray[Any]] | None:
    """Arrays of answers.npz; None where the run has none, as without a test split, or damaged ones."""
    try:
        with np.load(folder / ANSWERS, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except _DAMAGE:
        return None


def predicted(probabilities: NDArray[Any], task: str) -> NDArray[Any]:
    """Classes (n,), or sets of classes (n, classes) at a probability of one half."""
    if task == "multi-label":
        return (probabilities > 0.5).astype(np.int64)
    return np.asarray(probabilities.argmax(axis=1))


def reliability(group: Group) -> tuple[list[Bin], float] | None:
    """Bins of said and seen over the test answers of all seeds, and the expected calibration error."""
    task = group.runs[0]["task"]
    every = [found for run in group.runs if (found := read_answers(run["folder"])) is not None]
    if task == "regression" or not every:
        return None
    said, right = [], []
    for found in every:
        if task == "multi-label":
            said.append(found["probabilities"].reshape(-1))
            right.append((found["targets"] == 1).reshape(-1))
        else:
            said.append(found["probabilities"].max(axis=1))
            right.append(predicted(found["probabilities"], task) == found["targets"])
    return calibration(np.concatenate(said), np.concatenate(right))


def overlap_bins(group: Group) -> list[dict[str, Any]]:
    """Micro-F1 of the test subgraphs whose largest overlap with a training subgraph is in each fifth, over seeds.

    A bin holds overlaps above the end of the one before and up to its own; the first one holds 0. A seed without a
    subgraph in a bin has no part in it.
    """
    task = group.runs[0]["task"]
    if task == "regression":
        return []
    scores: list[list[float]] = [[] for _ in BIN_ENDS]
    counts: list[list[int]] = [[] for _ in BIN_ENDS]
    for run in group.runs:
        found = read_answers(run["folder"])
        if found is None:
            continue
        place = np.searchsorted(np.asarray(BIN_ENDS) + _TINY, found["overlap"], side="left")
        said = predicted(found["probabilities"], task)
        for i in range(len(BIN_ENDS)):
            here = place == i
            counts[i].append(int(here.sum()))
            if here.any():
                score = score_pieces(said[here], found["targets"][here], task).score
                if np.isfinite(score):
                    scores[i].append(score)
    return [
        {
            "begin": 0.0 if i == 0 else BIN_ENDS[i - 1],
            "end": end,
            "subgraphs": float(np.mean(counts[i])),
            "n": len(scores[i]),
            "micro_f1": spread(scores[i]),
        }
        for i, end in enumerate(BIN_ENDS)
        if counts[i] and sum(counts[i])
    ]


def random_score(group: Group) -> float | None:
    """The micro-F1 to expect of an answer by chance: each class alike; with several labels, each with one half.

    With several labels it is the ratio of what is to be expected, 2 TP over 2 TP + FP + FN.
    """
    run = group.runs[0]
    found, classes = read_answers(run["folder"]), len(run["classes"])
    if run["task"] == "regression" or found is None:
        return None
    if run["task"] != "multi-label":
        return 1 / classes
    there = float(np.mean(found["targets"].sum(axis=1)))
    return there / (there + (classes - there) / 2 + there / 2)


def projection(group: Group) -> tuple[NDArray[np.float64], NDArray[Any], tuple[float, float], int] | None:
    """z_S of the test subgraphs on their first two principal axes.

    Returns:
        Places (n, 2), targets, the shares of the variance along the two axes, and the seed; None where no run of the
        group kept vectors.
    """
    for run in group.runs:
        found = read_answers(run["folder"])
        if found is not None and "vectors" in found and len(found["vectors"]) > 2:
            vectors = found["vectors"].astype(np.float64)
            centred = vectors - vectors.mean(axis=0)
            left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
            if len(sizes) < 2 or not np.isfinite(sizes).all() or sizes[0] <= 0:
                continue
            # An axis and its opposite are the same; the sign is fixed by the largest entry.
            signs = np.sign(left[np.abs(left[:, :2]).argmax(axis=0), [0, 1]])
            share = sizes[:2] ** 2 / (sizes**2).sum()
            return left[:, :2] * sizes[:2] * signs, found["targets"], (float(share[0]), float(share[1])), run["seed"]
    return None


def first_label(targets: NDArray[Any], row: int) -> int:
    """The class of a subgraph, to colour it by; of several, the first."""
    if targets.ndim == 1:
        return int(targets[row])
    there = np.flatnonzero(targets[row])
    return int(there[0]) if len(there) else -1


def calibration_groups(groups: Sequence[Group], rows: Sequence[dict[str, Any]], dataset: str) -> list[Group]:
    """Whose calibration is shown: all models that are no baseline, and the best baseline."""
    mine = {row["config"] for row in rows if row["dataset"] == dataset and not row["baseline"]}
    rivals = {row["against"]["model"] for row in rows if row["dataset"] == dataset and row["against"]}
    plain = [group for group in groups if group.dataset == dataset and not group.setting]
    return [group for group in plain if group.config in mine or group.label in rivals]
