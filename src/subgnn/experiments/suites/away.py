"""Run a suite on machines that share no folder with this one: send datasets, and receive the files of runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from subgnn.data.dataset import Dataset
from subgnn.data.formats import read_dataset
from subgnn.experiments.suites.job import OUTCOME, drop_weights
from subgnn.parallel.engine import Engine, Failure, Shared
from subgnn.storage.files import atomic_write, temporary_folder
from subgnn.training.run_dir import RESULTS, read_json, write_json

Function = Callable[..., Any]


@dataclass(frozen=True, slots=True, eq=False)
class _Sent:
    """A job, its function and its dataset."""

    function: Function
    job: dict[str, Any]
    dataset: Shared[Dataset]


@dataclass(frozen=True, slots=True, eq=False)
class _Returned:
    """A job's result, and the files that it wrote, by name."""

    result: Any
    files: dict[str, bytes]


class AwayEngine:
    """An engine for :func:`~subgnn.experiments.suites.run.run_suite` whose workers cannot read this machine's files.

    A dataset is read here and sent once; a run is written to a temporary folder of the worker's machine, and its files,
    some kilobytes, are written to the run's folder here. ``outcome.json``, which marks a finished run, is written last.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._datasets: dict[tuple[str, int | None], Shared[Dataset]] = {}

    @property
    def slots(self) -> int:
        """The number of jobs that run at once."""
        return self._engine.slots

    def share(self, value: Any) -> Shared[Any]:
        """Place a value where the engine's workers can read it."""
        return self._engine.share(value)

    def map(self, function: Function, jobs: Sequence[Any]) -> Iterator[tuple[Any, Any | Failure]]:
        """Yield each job with its result or failure, in the order in which they end, when its files are written."""
        for sent, found in self._engine.map(_work_away, [_Sent(function, job, self._place(job)) for job in jobs]):
            if isinstance(found, Failure):
                yield sent.job, found
                continue
            if found.files:
                _write(Path(sent.job["out"]), found.files)
            yield sent.job, found.result

    def _place(self, job: dict[str, Any]) -> Shared[Dataset]:
        key = job["source"], job["id_base"]
        if key not in self._datasets:
            self._datasets[key] = self._engine.share(read_dataset(Path(job["source"]), id_base=job["id_base"]))
        return self._datasets[key]


def _work_away(sent: _Sent) -> _Returned:
    """Run a job in a worker."""
    with temporary_folder("subgnn-away") as parent:
        folder = parent / "run"
        result = sent.function({**sent.job, "out": str(folder)}, sent.dataset.get())
        if (folder / RESULTS).is_file():
            # The results name the folder of the run, which will be the one here.
            write_json({**read_json(folder / RESULTS, ""), "run": sent.job["out"]}, folder / RESULTS)
        return _Returned(result, {path.name: path.read_bytes() for path in folder.glob("*") if path.is_file()})


def _write(folder: Path, files: dict[str, bytes]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in sorted(files, key=lambda name: name == OUTCOME):
        with atomic_write(folder / name, overwrite=True) as temporary:
            temporary.write_bytes(files[name])
    # From an earlier attempt here that was interrupted.
    drop_weights(folder)
