"""Fits over processes that share the memory limit."""

from contextlib import contextmanager
from types import SimpleNamespace
from unittest.mock import patch

import pytest

from subgnn.errors import MemoryLimitError
from subgnn.models.kernel_machines.rows import Piece
from subgnn.models.kernel_machines.views import DiffusionSettings
from subgnn.models.recipes import find_recipe
from subgnn.parallel.engine import Held, LocalEngine
from subgnn.parallel.memory import limit, memory_limit
from subgnn.training import fits
from subgnn.training.fit import Stopped
from subgnn.training.fits import Entry, FitJob, Fits, _PieceJob, run_fit


class Common:
    seed, cache, join = 0, False, False

    @contextmanager
    def opened(self):
        yield SimpleNamespace(graph=None, subgraphs=SimpleNamespace(nodes=None))


def needs_three_gigabytes(graph, nodes):
    if limit() < 3 * 10**9:
        raise MemoryLimitError("3 GB are needed")


def needs_five_gigabytes(graph, nodes):
    if limit() < 5 * 10**9:
        raise MemoryLimitError("5 GB are needed")


@pytest.mark.slow
def test_jobs_that_need_more_than_their_part_of_the_memory_run_in_fewer_processes():
    pieces = [needs_three_gigabytes, needs_five_gigabytes]
    with memory_limit("4GB"), LocalEngine(2) as engine:
        shared = Fits(engine, None, None, None, None, "cpu")
        found = {
            job.piece: result for job, result in shared.map([_PieceJob(Held(Common()), piece) for piece in pieces])
        }
    assert not isinstance(getattr(found[needs_three_gigabytes], "error", None), MemoryLimitError)
    assert "5 GB are needed" in found[needs_five_gigabytes].message


def test_fits_start_when_the_work_that_they_share_is_done():
    done = []

    class Engine:
        slots = 2

        def map(self, function, jobs, **_):
            while jobs:
                job = jobs.popleft()
                done.append(f"{job} {job.piece.view}" if isinstance(job, _PieceJob) else str(job))
                yield job, 0.5

    subgraphs = SimpleNamespace(graph=None, subgraphs=SimpleNamespace(nodes=None))
    shared = Fits(Engine(), SimpleNamespace(dataset=subgraphs, given=subgraphs), None, None, None, "cpu")
    small, walk, lift = (
        Piece(view, DiffusionSettings(), products=view == "lift") for view in ("topology", "walk", "lift")
    )
    stages = {"bag": [], "one": [[walk], [lift]], "two": [[small, walk]]}
    fold = [FitJob(None, name, find_recipe("bag"), None, "cpu", fold=i) for i in range(2) for name in stages]
    with patch.object(Fits, "_stages", lambda self, job: [list(stage) for stage in stages[job.name]]):
        assert [job for job, _ in shared.fit(fold)] == [fold[i] for i in (0, 2, 1, 3, 5, 4)]
        assert shared.shared_seconds(Entry("one", find_recipe("bag"))) == 1.0
        assert len(list(shared.fit(fold))) == 6
    work = ["shared work topology", "bag fold 1", "shared work walk", "shared work lift"]
    assert done[:9] == [*work, "two fold 1", "one fold 1", "bag fold 2", "two fold 2", "one fold 2"]


def test_only_epochs_after_the_first_are_extrapolated():
    """A network of 300 epochs of .1 s, whose preparation and first epoch take 20 s, has time in 60 s, not in 40."""
    clock = [0.0]

    def fit(*_, hooks, **__):
        for seconds in [20.0] + [0.1] * 299:
            clock[0] += seconds
            hooks.after_epoch({}, None)
        raise Stopped("finished")

    recipe = find_recipe("subgnn", ["training.epochs=300"])
    common = Held(Common())
    with patch.object(fits, "fit", fit), patch.object(fits, "time", SimpleNamespace(monotonic=lambda: clock[0])):
        notes = [run_fit(FitJob(common, "net", recipe, None, "cpu", 0, 0, seconds)).why for seconds in (60.0, 40.0)]
    assert notes == ["finished", "a fit may take 50 s; 40 s were left for each"]
