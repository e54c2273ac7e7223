"""Fits over processes that share the memory limit."""

from contextlib import contextmanager
from types import SimpleNamespace
from unittest.mock import patch

from subgnn.errors import MemoryLimitError
from subgnn.models.kernel_machines.rows import Piece
from subgnn.models.kernel_machines.views import DiffusionSettings
from subgnn.models.recipes import find_recipe
from subgnn.parallel.engine import Held, LocalEngine
from subgnn.parallel.memory import limit, memory_limit
from subgnn.training.fits import Entry, FitJob, Fits, _PieceJob


class Common:
    @contextmanager
    def opened(self):
        yield SimpleNamespace(graph=None, subgraphs=SimpleNamespace(nodes=None))


def needs_three_gigabytes(graph, nodes):
    if limit() < 3 * 10**9:
        raise MemoryLimitError("3 GB are needed")


def needs_five_gigabytes(graph, nodes):
    if limit() < 5 * 10**9:
        raise MemoryLimitError("5 GB are needed")


def test_jobs_that_need_more_than_their_part_of_the_memory_run_in_fewer_processes():
    pieces = [needs_three_gigabytes, needs_five_gigabytes]
    with memory_limit("4GB"), LocalEngine(2) as engine:
        fits = Fits(engine, None, None, None, None, "cpu")
        found = {job.piece: result for job, result in fits.map([_PieceJob(Held(Common()), piece) for piece in pieces])}
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
    fits = Fits(Engine(), SimpleNamespace(dataset=subgraphs, given=subgraphs), None, None, None, "cpu")
    small, walk, lift = (
        Piece(view, DiffusionSettings(), products=view == "lift") for view in ("topology", "walk", "lift")
    )
    stages = {"bag": [], "one": [[walk], [lift]], "two": [[small, walk]]}
    fold = [FitJob(None, name, find_recipe("bag"), None, "cpu", fold=i) for i in range(2) for name in stages]
    with patch.object(Fits, "_stages", lambda self, job: [list(stage) for stage in stages[job.name]]):
        assert [job for job, _ in fits.fit(fold)] == [fold[i] for i in (0, 2, 1, 3, 5, 4)]
        assert fits.shared_seconds(Entry("one", find_recipe("bag"))) == 1.0
        assert len(list(fits.fit(fold))) == 6
    work = ["shared work topology", "bag fold 1", "shared work walk", "shared work lift"]
    assert done[:9] == [*work, "two fold 1", "one fold 1", "bag fold 2", "two fold 2", "one fold 2"]
