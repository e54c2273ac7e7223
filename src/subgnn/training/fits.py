"""The fits of a portfolio's candidates, each a job of an engine: in this process, in others, or on a Ray cluster.

Each fit uses one thread, so that its result is the same wherever it runs. Processes of this machine map the dataset and
what fits share into their memory (:mod:`subgnn.models.kernel_machines.shared`).
"""

import math
import os
import shutil
import tempfile
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray

from subgnn.config.settings import Recipe
from subgnn.data.dataset import Dataset
from subgnn.data.graph import Graph
from subgnn.data.place_graph import place_graph
from subgnn.data.subgraphs import SubgraphSet
from subgnn.embeddings.sources import source_vectors
from subgnn.errors import DataWarning, MemoryLimitError
from subgnn.models.kernel_machines.shared import share_views
from subgnn.models.registry import model_of, trainable_model_of
from subgnn.parallel.cluster import open_engine
from subgnn.parallel.engine import Engine, Failure, LocalEngine, Shared, Stop, never, one_thread
from subgnn.parallel.memory import share
from subgnn.storage.files import json_digest
from subgnn.training.cross_validation import CrossValidation
from subgnn.training.devices import make_fabric
from subgnn.training.fit import FitHooks, FitResult, Stopped, fit
from subgnn.training.options import PRELOAD, TrainOptions, fit_processes

_SECONDS_BEFORE_ESTIMATE = 1.0
_IN_MEMORY = "/dev/shm"  # a folder of Linux whose files are in memory


@dataclass(frozen=True, slots=True, eq=False)
class Fold:
    """Predictions of a fit for its held-out subgraphs (n, outputs), or ``why`` not; the first keeps the fit itself."""

    predictions: NDArray[np.float32] | None
    seconds: float
    why: str = ""
    fitted: FitResult | Path | None = None


@dataclass(slots=True, eq=False)
class Entry:
    """A candidate: its recipe and, once it was judged, its out-of-fold predictions (repeats, n, outputs).

    ``seconds`` are those of each fit. ``dropped`` says why it was not judged, or failed; ``late``, that there was no
    time for it; ``behind``, that it was stopped because it is clearly behind the best.
    """

    name: str
    recipe: Recipe
    repeats: int = 1
    predictions: NDArray[np.float32] | None = None
    seconds: list[float] = field(default_factory=list)
    dropped: str = ""
    late: bool = False
    behind: bool = False
    note: str = ""
    folds: dict[tuple[int, int], Fold] = field(default_factory=dict)

    @property
    def is_simple(self) -> bool:
        return trainable_model_of(self.recipe).is_fitted_in_one_go

    @property
    def fit_seconds(self) -> float:
        """Seconds of one fit; the first one also prepares what the others share."""
        return float(np.median(self.seconds[1:] or self.seconds)) if self.seconds else 0.0

    @property
    def can_answer(self) -> bool:
        """Whether its fit to all folds but the first is there."""
        return (0, 0) in self.folds and self.folds[0, 0].fitted is not None

    def leave_out(self, why: str) -> None:
        self.dropped, self.late = why, True


@dataclass(frozen=True, slots=True, eq=False)
class _Common:
    """What the fits of a search share; ``folder`` is where processes of this machine share what they prepare."""

    graph: Shared[Graph]
    name: str
    subgraphs: SubgraphSet
    seed: int
    join: bool
    cache: bool
    folder: Path | None

    @contextmanager
    def opened(self) -> Iterator[Dataset]:
        """The dataset with its graph, in whichever process this is, until the end of the block."""
        with share_views(self.folder if self.folder is not None and self.folder.is_dir() else None):
            yield Dataset(self.name, self.graph.get(), self.subgraphs)


@dataclass(frozen=True, slots=True, eq=False)
class FitJob:
    """One fit, by epochs in ``seconds`` and from a file of ``vectors``; ``fold`` is -1 for a member's final one."""

    common: Shared[_Common]
    name: str
    recipe: Recipe
    splits: NDArray[np.int8]
    device: str
    repeat: int = 0
    fold: int = -1
    seconds: float = math.inf
    vectors: str = ""

    @property
    def on_gpu(self) -> bool:
        return self.device == "cuda"

    def __str__(self) -> str:
        return self.name if self.fold < 0 else f"{self.name} fold {self.fold + 1}"


def run_fit(job: FitJob, stop: Stop | None = None) -> Fold | FitResult:
    """Do one fit, in whichever process this is."""
    common, begin, ends = job.common.get(), time.monotonic(), list[float]()
    planned = trainable_model_of(job.recipe).num_fits(job.recipe) * job.recipe.training.epochs

    def after_epoch(record: dict[str, Any], _: Any) -> None:
        ends.append(time.monotonic())
        if stop is not None and stop():
            raise Stopped("interrupted")
        # Preparation and the first epoch, which warms up, are not extrapolated.
        needed = ends[0] - begin + (ends[-1] - ends[0]) / max(1, len(ends) - 1) * (planned - 1)
        if ends[-1] - ends[0] >= _SECONDS_BEFORE_ESTIMATE and needed > job.seconds:
            raise Stopped(f"a fit may take {needed:.0f} s; {max(0.0, job.seconds):.0f} s were left for each")

    try:
        with warnings.catch_warnings(), common.opened() as dataset:
            # The whole set was checked before; a fold may well lack a class.
            warnings.simplefilter("ignore", DataWarning)
            found = fit(
                job.recipe,
                dataset,
                job.splits,
                seed=common.seed,
                device=job.device,
                cache=common.cache,
                vectors=np.load(job.vectors, mmap_mode="c") if job.vectors else None,
                join=common.join,
                outputs=("test",),
                hooks=FitHooks(after_epoch=after_epoch),
            )
    except Stopped as why:
        return Fold(None, time.monotonic() - begin, str(why))
    found = replace(found, vectors=None)
    if job.fold < 0:
        return found
    kept: FitResult | Path | None = None
    if job.repeat == job.fold == 0 and (common.folder is None or common.folder.is_dir()):
        kept = found if common.folder is None else common.folder / f"first-{job.name}"
        if isinstance(kept, Path):
            joblib.dump(found, kept)
    return Fold(found.predictions.astype(np.float32), time.monotonic() - begin, fitted=kept)


@dataclass(frozen=True, slots=True, eq=False)
class _VectorsJob:
    """Node embeddings to compute, or to find in the cache, and to write to a file."""

    common: Shared[_Common]
    name: str
    recipe: Recipe
    device: str
    path: str

    @property
    def on_gpu(self) -> bool:
        return self.device == "cuda"

    def __str__(self) -> str:
        return f"embeddings of {self.name}"


@dataclass(frozen=True, slots=True, eq=False)
class _PieceJob:
    """A piece of the work that fits share (:meth:`~subgnn.models.interface.TrainableModel.shared_pieces`)."""

    common: Shared[_Common]
    piece: Any

    def __str__(self) -> str:
        return "shared work"


@dataclass(slots=True, eq=False)
class Fits:
    """Runs the fits of a search on an engine; ``stop`` ends them all. Made by :func:`open_fits`."""

    engine: Engine
    pool: CrossValidation
    folder: Path
    part: Shared[_Common]
    whole: Shared[_Common]
    device: str
    stop: Stop = never
    _vectors: dict[str, str] = field(default_factory=dict)
    _done: dict[tuple[Shared[_Common], Any], float] = field(default_factory=dict)  # seconds of pieces of shared work

    def job(self, entry: Entry, splits: NDArray[np.int8], **options: Any) -> FitJob:
        """A fit of a candidate; the final one is to the whole dataset."""
        common = self.part if "fold" in options else self.whole
        device = "cpu" if entry.is_simple else self.device
        return FitJob(common, entry.name, entry.recipe, splits, device, vectors=self._file(entry), **options)

    def map(self, jobs: Sequence[Any], *, seconds: float = math.inf) -> Iterator[tuple[Any, Any]]:
        """Yield each job and its result as they end; those that need more memory run again in fewer processes."""
        end = self.stop
        function: Callable[[Any], Any] = _run
        if isinstance(self.engine, LocalEngine) and not self.engine.has_workers:
            function = lambda job: _run(job, end)  # noqa: E731 (it stays in this process)
        processes = self.engine.slots if isinstance(self.engine, LocalEngine) else 1
        engine: Any = nullcontext(self.engine)
        waiting = jobs if isinstance(jobs, deque) else deque(jobs)
        while waiting and not end():
            larger = []
            with engine as workers:
                for job, result in workers.map(function, waiting, stop=end, seconds=seconds):
                    if processes > 1 and isinstance(result, Failure) and isinstance(result.error, MemoryLimitError):
                        larger.append(job)
                    else:
                        yield job, result
            waiting.extend(larger)
            processes //= 2
            engine = LocalEngine(processes, apart=True)

    def first_fit(self, entry: Entry) -> FitResult | None:
        """The fit of a candidate to all folds but the first, where it is still there."""
        kept = entry.folds[0, 0].fitted if (0, 0) in entry.folds else None
        if isinstance(kept, Path):
            kept = joblib.load(kept) if kept.is_file() else None
        path = self._file(entry)
        return None if kept is None else replace(kept, vectors=np.load(path, mmap_mode="c") if path else None)

    def prepare_vectors(self, entry: Entry) -> None:
        key = vectors_key(entry.recipe)
        if not key or key in self._vectors:
            return
        job = _VectorsJob(self.part, entry.name, entry.recipe, self.device, str(self.folder / f"{key}.npy"))
        for _, found in self.map([job]):
            if isinstance(found, Failure):
                found.throw()
            self._vectors[key] = found

    def fit(
        self, jobs: Sequence[FitJob], *, seconds: float = math.inf, cheap: float = 0.0
    ) -> Iterator[tuple[FitJob, Any]]:
        """Yield fits with their results, as :meth:`map` does; processes divide the work that the fits share.

        A fit starts when the work that its candidate needs is done; one that needs none fills idle processes. With
        little time, a candidate that needs little of this work is the answer: it is fitted before that work is done to
        the first fold, and to the others as well if its first fit took no more than ``cheap`` seconds.
        """
        stages = {key: self._stages(job) for key, job in {(job.common, job.name): job for job in jobs}.items()}
        little = {key for key, pieces in stages.items() if all(piece.is_small for stage in pieces for piece in stage)}
        if self.engine.slots == 1:  # fits do it themselves
            stages = {key: [] for key in stages}
        held, waiting, begun, first = list(jobs), deque[Any](), set(self._done), dict[Any, float]()

        def rank(job: FitJob | _PieceJob) -> int:
            if isinstance(job, _PieceJob):
                return 0 if job.piece.is_small else 3
            key = job.common, job.name
            if key in little and job.fold <= 0:
                return 1
            return 2 if key in little and first.get(key, math.inf) <= cheap else 4 + job.fold

        def release() -> None:
            """Let what waits for nothing more run."""
            ready: list[FitJob | _PieceJob] = []
            for (common, _), pieces in stages.items():
                while pieces and self._done.keys() >= {(common, piece) for piece in pieces[0]}:
                    del pieces[0]
                needed = {(common, piece): None for stage in pieces[:1] for piece in stage}
                ready += [_PieceJob(*key) for key in needed if key not in begun]
                begun.update(needed)
            ready += [job for job in held if not stages[job.common, job.name]]
            held[:] = [job for job in held if stages[job.common, job.name]]
            ranked = sorted([*waiting, *ready], key=rank)
            waiting.clear()
            waiting.extend(ranked)

        release()
        for job, result in self.map(waiting, seconds=seconds):
            if isinstance(job, FitJob):
                if job.repeat == job.fold == 0 and isinstance(result, Fold):
                    first[job.common, job.name] = result.seconds
                    release()
                yield job, result
            else:  # what failed is computed again by a fit, which reports it
                self._done[job.common, job.piece] = result if isinstance(result, float) else 0.0
                release()

    def shared_seconds(self, entry: Entry) -> float:
        """Seconds of the shared work that was done for a candidate, other than that which the graph alone needs."""
        stages = self._stages(FitJob(self.part, entry.name, entry.recipe, np.empty(0, np.int8), self.device))
        found = {piece for stage in stages for piece in stage if not piece.of_graph}
        return sum(self._done.get((self.part, piece), 0.0) for piece in found)

    def _stages(self, job: FitJob) -> list[list[Any]]:
        """The shared work that a fit needs: stages, one after the other, of pieces that can be done at once."""
        dataset = self.pool.dataset if job.common is self.part else self.pool.given
        return trainable_model_of(job.recipe).shared_pieces(job.recipe, dataset.graph, dataset.subgraphs.nodes)

    def _file(self, entry: Entry) -> str:
        return self._vectors.get(vectors_key(entry.recipe), "")


def _run(job: FitJob | _VectorsJob | _PieceJob, stop: Stop | None = None) -> Any:
    """Do a job: a fit, the seconds of a piece of work, or the file of node embeddings."""
    if isinstance(job, FitJob):
        return run_fit(job, stop)
    common, begin = job.common.get(), time.monotonic()
    if isinstance(job, _PieceJob):
        with common.opened() as dataset:
            job.piece(dataset.graph, dataset.subgraphs.nodes)
        return time.monotonic() - begin

    def on_epoch(_: dict[str, Any]) -> None:
        if stop is not None and stop():
            raise Stopped("interrupted")

    vectors = source_vectors(job.recipe, common.graph.get(), device=job.device, cache=common.cache, on_epoch=on_epoch)
    np.save(job.path, np.asarray(vectors, np.float32))
    return job.path


def vectors_key(recipe: Recipe) -> str:
    """A hash of how a recipe makes node embeddings; empty for random ones, and for models without."""
    if not model_of(recipe).uses_embeddings(recipe) or recipe.embeddings.source == "random":
        return ""
    return json_digest({"embeddings": asdict(recipe.embeddings), "pretrain": asdict(recipe.pretrain)})


@contextmanager
def open_fits(pool: CrossValidation, options: TrainOptions, *, source: str = "") -> Iterator[Fits]:
    """Processes to fit candidates in, until the end of the block; they map the dataset if ``source`` is a bundle."""
    subgraphs, graph = pool.dataset.subgraphs, pool.dataset.graph
    device = make_fabric(options.device).device.type
    engine: Any
    if options.engine == "ray" or options.address is not None:  # which an engine that is not Ray refuses
        engine = open_engine(options.engine, address=options.address, processes=options.processes)
    else:
        count = fit_processes(options, len(subgraphs), graph.num_edges)
        engine = LocalEngine(max(1, count), apart=count > 0, preload=PRELOAD)
    with engine, tempfile.TemporaryDirectory(prefix=f"subgnn-{os.getpid()}-", dir=_scratch()) as folder, one_thread():
        for _ in engine.map(int, range(engine.slots)):
            pass  # the start of processes, and their imports, are not part of the time limit
        placed = place_graph(engine, graph, source=Path(source) if source else None, with_names=True)

        def common(dataset: Dataset) -> Shared[_Common]:
            apart = None if isinstance(engine, LocalEngine) and not engine.has_workers else Path(folder)
            join, named = not pool.has_validation, (dataset.name, dataset.subgraphs)
            shared: Shared[_Common] = engine.share(_Common(placed, *named, pool.seed, join, options.cache, apart))
            return shared

        part = common(pool.dataset)
        whole = part if pool.dataset is pool.given else common(pool.given)
        yield Fits(engine, pool, Path(folder), part, whole, device)


def _scratch() -> str | None:
    """Where processes share arrays: in memory, if there is room for half of the limit; else in the temporary folder."""
    try:
        room = shutil.disk_usage(_IN_MEMORY).free
        for path in Path(_IN_MEMORY).glob("subgnn-*-*"):  # of processes that were killed
            if not Path("/proc", path.name.split("-")[1]).exists() and path.stat().st_uid == os.getuid():
                shutil.rmtree(path, ignore_errors=True)
    except OSError:
        return None
    return _IN_MEMORY if room >= share(0.5) and os.access(_IN_MEMORY, os.W_OK) else None
