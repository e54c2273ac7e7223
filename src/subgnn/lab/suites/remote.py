"""Run a suite on machines that share no folder with this one: send datasets, and receive the files of runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from subgnn.data.dataset import Dataset
from subgnn.data.formats import read_dataset
from subgnn.lab.suites.job import OUTCOME, drop_weights
from subgnn.parallel.engine import Engine, Failure, Shared
from subgnn.result import RESULTS, read_result
from subgnn.storage.files import atomic_write, temporary_folder

Function = Callable[..., Any]


@dataclass(frozen=True, slots=True, eq=False)
class _RemoteJob:
    function: Function
    job: dict[str, Any]
    dataset: Shared[Dataset]


class RemoteEngine:
    """An engine for :func:`~subgnn.lab.suites.run.run_suite` whose workers cannot read this machine's files.

    A dataset is read here and sent once; a run is written to a temporary folder of the worker's machine, and its files,
    some kilobytes, are written to the run's folder here. ``outcome.json``, which marks a finished run, is written last.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._datasets: dict[tuple[str, int | None], Shared[Dataset]] = {}
        self.share = engine.share

    @property
    def slots(self) -> int:
        """The number of jobs that run at once."""
        return self._engine.slots

    def map(self, function: Function, jobs: Sequence[Any]) -> Iterator[tuple[Any, Any | Failure]]:
        """Yield each job with its result or failure, in the order in which they end, when its files are written."""
        for remote, found in self._engine.map(_run, [_RemoteJob(function, job, self._dataset(job)) for job in jobs]):
            if isinstance(found, Failure):
                yield remote.job, found
                continue
            result, files = found
            if files:
                _write(Path(remote.job["out"]), files)
            yield remote.job, result

    def _dataset(self, job: dict[str, Any]) -> Shared[Dataset]:
        key = job["source"], job["id_base"]
        if key not in self._datasets:
            self._datasets[key] = self.share(read_dataset(Path(job["source"]), id_base=job["id_base"]))
        return self._datasets[key]


def _run(remote: _RemoteJob) -> tuple[Any, dict[str, bytes]]:
    """Run a job in a worker; returns its result, and the files that it wrote, by name."""
    with temporary_folder("subgnn-remote") as parent:
        folder = parent / "run"
        result = remote.function({**remote.job, "out": str(folder)}, remote.dataset.get())
        if (folder / RESULTS).is_file():
            # The result names the folder of the run, which will be the one here.
            replace(read_result(folder), run=remote.job["out"]).save(folder)
        return result, {path.name: path.read_bytes() for path in folder.glob("*") if path.is_file()}


def _write(folder: Path, files: dict[str, bytes]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in sorted(files, key=lambda name: name == OUTCOME):
        with atomic_write(folder / name, overwrite=True) as temporary:
            temporary.write_bytes(files[name])
    # From an earlier attempt here that was interrupted.
    drop_weights(folder)
