"""What the runs of a recipe came to: their answers on validation, and their row of a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

import numpy as np

from subgnn.data.dataset import Dataset
from subgnn.experiments.constant import constant_pieces
from subgnn.experiments.paired import Pieces, score_pieces
from subgnn.reports.evaluation import evaluate_run
from subgnn.training.run_dir import METRICS


def ask_runs(
    dataset: Dataset, runs: Sequence[Path], parts: list[dict[str, Any]]
) -> tuple[list[Pieces], list[dict[str, Any]]]:
    """Pieces of each run on validation; and, of the first one of SubGNN, what each part of its vectors contributes."""
    # Without its test part, a dataset is judged by its validation part.
    kept = np.concatenate([dataset.subgraphs.indices("train"), dataset.subgraphs.indices("val")])
    seen = replace(dataset, subgraphs=dataset.subgraphs.take(kept))
    every = []
    for run in runs:
        found = evaluate_run(run, seen)
        every.append(score_pieces(found.predicted(), found.targets.numpy(), found.task))
        if found.network is not None and run == runs[0]:
            parts = [asdict(part) for part in found.contributions()]
    return every, parts


def looks_of(run: Path) -> int:
    """How many fitted states validation chose from: a line of metrics.jsonl each."""
    return len((run / METRICS).read_text(encoding="utf-8").splitlines())


def recipe_row(dataset: Dataset, runs: Sequence[dict[str, Any]], looks: int) -> dict[str, Any]:
    """A recipe's row: metrics over its runs, and what they took."""
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


def _spread(every: Sequence[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Mean and deviation of each metric over runs."""
    columns = {
        name: [math.nan if run[name] is None else float(run[name]) for run in every] for name in every[0] if every
    }
    return {name: {"mean": fmean(values), "std": pstdev(values)} for name, values in columns.items()}


def constant_row(dataset: Dataset) -> dict[str, Any]:
    """The row of the answer that looks at nothing."""
    metric = "r2" if dataset.subgraphs.task == "regression" else "micro_f1"
    scores = {
        split: _spread([{metric: constant_pieces(dataset, split).score}])
        for split in ("val", "test")
        if len(dataset.subgraphs.indices(split))
    }
    return {
        "dataset": dataset.name,
        "recipe": "constant",
        "method": "constant",
        "n": 1,
        "val": scores["val"],
        "test": scores.get("test", {}),
        "seconds": 0.0,
    }
