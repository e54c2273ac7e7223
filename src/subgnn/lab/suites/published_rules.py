"""Selection rules of the authors of later models, two of which use the test split.

They are applied only on request (``benchmark run --as-published``), to the epochs of a run that was trained and
selected on validation as always: every epoch and every candidate of its grid is scored on test, and the rule picks
among these. So both readings come from one training, and no model depends on the rule.

- ``first epoch``: the first epoch with the highest validation micro-F1 (S2N). It differs from ours, by which the lower
  validation loss decides among these, but does not look at test.
- ``best test among ties``: of all epochs with the highest validation micro-F1, the one with the highest test micro-F1
  (GLASS and SSNP, whose loops replace the test score by a higher one whenever validation ties with its best).
- ``best test``: the highest test micro-F1 of all candidates (WLKS, whose published numbers are the best of a grid).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from subgnn.config.settings import TrainingSettings
from subgnn.training.run_dir import METRICS

Record = dict[str, Any]
_VAL, _TEST = "val_micro_f1", "test_micro_f1"
_TIE = 1e-5

RULES: dict[str, Callable[[Record, float], tuple[float, ...]]] = {
    "first epoch": lambda record, best: (float(record[_VAL] == best), -record["epoch"]),
    "best test among ties": lambda record, best: (float(record[_VAL] >= best - _TIE), record[_TEST]),
    "best test": lambda record, best: (record[_TEST], record[_VAL]),
}
"""What is highest for the record that a rule selects, given the highest validation score; of equals the first."""


def select_as_published(rule: str, run: Path, settings: TrainingSettings) -> dict[str, Any] | None:
    """The scores of the epoch that a rule selects among those of a run; None where the task has no micro-F1.

    Returns:
        The rule, the epoch, the candidate where there are several, and the scores on val and test.
    """
    lines = (run / METRICS).read_text(encoding="utf-8").splitlines()
    records = [record for record in map(json.loads, lines) if {_VAL, _TEST} <= record.keys()]
    last = max((record["epoch"] for record in records), default=0)
    allowed = [record for record in records if record["epoch"] >= min(settings.select_from, last)]
    if not allowed:
        return None
    best = max(record[_VAL] for record in allowed)
    chosen = max(allowed, key=lambda record: RULES[rule](record, best))
    scores = {
        split: {name.removeprefix(f"{split}_"): value for name, value in chosen.items() if name.startswith(f"{split}_")}
        for split in ("val", "test")
    }
    return {"rule": rule, "epoch": chosen["epoch"], "candidate": chosen.get("candidate", ""), **scores}


def has_test_scores(run: Path) -> bool:
    """Whether the epochs of a run, as far as there are any, were scored on test."""
    try:
        with (run / METRICS).open(encoding="utf-8") as file:
            return _TEST in json.loads(file.readline() or "{}")
    except (OSError, ValueError):
        return False
