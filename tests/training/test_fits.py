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


def test_fits_that_share_no_work_are_done_beside_it():
    done = []

    class Engine:
        slots = 2

        def map(self, function, jobs, **_):
            return ((job, done.append(str(job)) or 0.5) for job in jobs)

    entry = Entry("bag", find_recipe("bag"))
    pool = SimpleNamespace(dataset=SimpleNamespace(graph=None, subgraphs=SimpleNamespace(nodes=None)))
    fits = Fits(Engine(), pool, None, None, None, "cpu")
    other = Entry("other", find_recipe("bag"))
    first, second = Piece("topology", DiffusionSettings()), Piece("walk", DiffusionSettings(), products=True)
    pieces = {"bag": [], "other": [[first], [second]]}
    with patch("subgnn.training.fits._pieces", lambda entry, _: pieces[entry.name]):
        assert (fits.shares_little(entry), fits.shares_little(other)) == (True, False)
        received = []
        job = FitJob(None, "bag", entry.recipe, None, "cpu", fold=0)
        fits.prepare([entry, other], beside=[job], receive=lambda job, found: received.append((job.name, found)))
    assert done == ["bag fold 1", "shared work", "shared work"]
    assert received == [("bag", 0.5)]
