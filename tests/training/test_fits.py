"""Fits over processes that share the memory limit."""

from contextlib import contextmanager
from types import SimpleNamespace

from subgnn.errors import MemoryLimitError
from subgnn.parallel.engine import Held, LocalEngine
from subgnn.parallel.memory import limit, memory_limit
from subgnn.training.fits import Fits, _PieceJob


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
