"""A small result of a run, for tests that need one without training."""

from typing import Any

from subgnn.result import RunResult, Seconds


def result(**changes: Any) -> RunResult:
    """A result of nothing in particular, with changes."""
    fields: dict[str, Any] = {
        "run": "", "dataset": "cliques", "source": "", "split": "stored", "recipe": "auto", "method": "auto", "seed": 0,
        "task": "multi-class", "fitted_to": ("train",), "unused": (), "selected_epoch": 0, "epochs": 1, "val": {},
        "test": {}, "intervals": {}, "published": {}, "peak_memory_mb": 1.0, "device": "cpu", "devices": 1,
        "seconds": Seconds(pretrain=0.0, prepare=0.0, train=0.0, epoch_median=0.0), "versions": {},
        "date": "2025-03-01T09:30:15+00:00",
    }  # fmt: skip
    return RunResult(**fields | changes)
