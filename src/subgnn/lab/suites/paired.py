"""Compare models subgraph by subgraph, from the predictions that runs keep.

By the protocol ``folds`` every subgraph is predicted once in ten runs, by models that never saw it; with a stored
split, all seeds predict one test split, and a subgraph counts with its mean over them. A split that is drawn by seed
has no such pairs.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from subgnn.lab.suites.job import ANSWERS
from subgnn.lab.suites.plan import FOLDS
from subgnn.lab.suites.spec import Suite
from subgnn.lab.suites.table import table_rows
from subgnn.metrics.significance import ScoreTerms, lead_interval, score_terms, swap_test
from subgnn.task import task_of

NAME = ["dataset", "protocol", "model", "variant", "set"]
COLUMNS = [*NAME, "against", "n", "lead", "low", "high", "p"]
_READ_ERRORS = (OSError, ValueError, KeyError, EOFError, SyntaxError, RuntimeError, MemoryError, zipfile.BadZipFile)


@dataclass(frozen=True, slots=True, eq=False)
class Predicted:
    """What a model's predictions add to its score, the mean over its runs.

    Shapes:
        subgraphs: (n,) rows of the dataset that were predicted, in order.
        units: (n,) equal for subgraphs of one group or with equal nodes, which depend on each other.
    """

    subgraphs: NDArray[np.int64]
    units: NDArray[np.int64]
    terms: ScoreTerms


def read_predictions(runs: Sequence[Mapping[str, Any]]) -> Predicted | None:
    """Read the predictions of a model's runs; None where the split is random, or no file can be read."""
    draws: dict[int, list[tuple[NDArray[Any], ...]]] = {}
    units: dict[int, int] = {}
    for run in runs:
        try:
            with np.load(run["folder"] / ANSWERS, allow_pickle=False) as file:
                found = {name: file[name] for name in file.files}
            said = task_of(run["task"]).decide(found["probabilities"], found.get("thresholds", 0.5))
            rows, targets = found["rows"], found["targets"]
        except (*_READ_ERRORS, zlib.error):
            continue
        draw = run["seed"] // FOLDS if run["split"] == "folds" else run["seed"]
        draws.setdefault(draw, []).append((rows, said, targets))
        units |= zip(rows.tolist(), found.get("units", rows).tolist(), strict=True)
    if not draws or runs[0]["split"] == "random":
        return None
    tested, gain, weight = [], [], []
    for parts in draws.values():  # one prediction of a subgraph in each
        rows, labels, targets = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        terms = score_terms(labels, targets, runs[0]["task"])
        tested.append(rows)
        gain.append(terms.gain)
        weight.append(terms.weight)
    subgraphs, places = np.unique(np.concatenate(tested), return_inverse=True)
    times = np.bincount(places)
    means = (np.bincount(places, np.concatenate(values)) / times for values in (gain, weight))
    unit = np.unique([units[row] for row in subgraphs.tolist()], return_inverse=True)[1]
    return Predicted(subgraphs, unit, ScoreTerms(*means))


def compare_predictions(ours: Predicted, theirs: Predicted) -> dict[str, float] | None:
    """The lead over another model on the subgraphs of both, its 95 % interval, and p of a two-sided swap test.

    Subgraphs of one group, or with equal nodes, are swapped and drawn together.
    """
    both, here, there = np.intersect1d(ours.subgraphs, theirs.subgraphs, return_indices=True)
    if not len(both):
        return None
    units = np.unique(ours.units[here], return_inverse=True)[1]
    mine, other = ours.terms.take(here).joined(units), theirs.terms.take(there).joined(units)
    first, second = (mine, other) if mine.score >= other.score else (other, mine)
    low, high = lead_interval(mine, other)
    p = min(1.0, 2 * swap_test(first, second))  # swaps are symmetric
    return {"n": len(both), "lead": mine.score - other.score, "low": low, "high": high, "p": p}


def pair_models(suite: Suite, outcomes: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Every model against those that the suite names in ``compare``, on each dataset."""
    groups: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for run in outcomes if suite.compare else ():
        for row in table_rows(suite, run):
            groups.setdefault(tuple(str(row[name]) for name in NAME), []).append(run)
    predicted = {name: found for name, runs in groups.items() if (found := read_predictions(runs)) is not None}
    rows = []
    for name, ours in predicted.items():
        for other, theirs in predicted.items():
            if other != name and other[2] in suite.compare and (other[:2], other[4]) == (name[:2], name[4]):
                lead = compare_predictions(ours, theirs) or {}
                rows.append({**dict(zip(NAME, name, strict=True)), "against": other[2], **lead})
    return pd.DataFrame(rows, columns=COLUMNS)
