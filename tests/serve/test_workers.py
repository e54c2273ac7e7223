"""Lanes are bounded, do not wait for each other, and give up work that nobody waits for."""

import asyncio
import threading

import pytest

from subgnn.ragged import Ragged
from subgnn.serve.limits import CURRENT, Deadline, DeadlinePassed, Limits, Refusal, check_deadline
from subgnn.serve.monitoring import Metrics
from subgnn.serve.workers import Lane
from tests.serve.examples import served

LONG = 60.0


def lane(workers: int = 1, waiting: int = 2) -> Lane:
    return Lane("test", workers=workers, limits=Limits(waiting=waiting), metrics=Metrics())


def test_more_than_may_wait_is_refused_and_room_comes_back():
    async def go():
        gate, one = threading.Event(), lane(workers=1, waiting=2)
        inside = [asyncio.create_task(one.run(gate.wait, Deadline.after(LONG))) for _ in range(3)]
        await asyncio.sleep(0)
        try:
            with pytest.raises(Refusal, match="waiting") as refused:
                await one.run(lambda: 1, Deadline.after(1))
        finally:
            gate.set()
        assert refused.value.status == 503
        assert "retry-after" in refused.value.headers
        assert all(await asyncio.gather(*inside))
        assert await one.run(lambda: 1, Deadline.after(LONG)) == 1

    asyncio.run(go())


def test_work_out_of_time_is_503_and_ends_at_its_next_step():
    ended = threading.Event()

    def work():
        try:
            while True:
                check_deadline()
        except DeadlinePassed:
            ended.set()
            raise

    async def go():
        one = lane()
        with pytest.raises(Refusal, match="within") as refused:
            await one.run(work, Deadline.after(0.05))
        assert refused.value.status == 503
        assert await one.run(lambda: "free", Deadline.after(LONG)) == "free"

    asyncio.run(go())
    assert ended.wait(10)


def test_work_whose_client_left_ends():
    begun, deadline = threading.Event(), Deadline.after(LONG)

    def work():
        begun.set()
        while True:
            check_deadline()

    async def go():
        task = asyncio.create_task(lane().run(work, deadline))
        await asyncio.to_thread(begun.wait, 10)
        deadline.cancelled.set()
        with pytest.raises(Refusal):
            await task

    asyncio.run(go())


def test_a_predictor_looks_at_its_deadline():
    predictor, rows = served().predictor, Ragged.from_rows([[0, 1], [2]])
    baseline = served(method="bag").predictor
    token = CURRENT.set(Deadline.after(0))
    try:
        for method in (baseline.outputs, baseline.embeddings):
            with pytest.raises(DeadlinePassed):
                method(rows)
        for method in (predictor.outputs, predictor.embeddings, predictor.measured):
            with pytest.raises(DeadlinePassed):
                method(rows)
    finally:
        CURRENT.reset(token)
