"""Requests answered together have the answers they would have alone."""

import asyncio
import json
import threading

import numpy as np
import pytest

from subgnn.errors import DataError
from subgnn.inference.options import PredictOptions
from subgnn.serve.limits import Deadline, Limits, Refusal
from subgnn.serve.monitoring import Metrics
from subgnn.serve.nodes import subgraphs_of
from subgnn.serve.workers import Lane, PredictionBatcher, SmallRequest
from tests.serve.examples import served

_OPTIONS = PredictOptions()
ROWS = [[[f"#{i % 24}", f"#{5 * i % 24}", "HLA-A"], [f"#{i % 7}"]] for i in range(20)]


def ask_together(monkeypatch, requests, *, limits=None, deadlines=None, run=None, options=_OPTIONS):
    """Answers, or errors, of requests that all wait while the only thread is held; and the sizes of the batches."""
    limits = limits or Limits()
    run, lane, sizes = run or served(), Lane("test", workers=1, limits=limits, metrics=Metrics()), []
    batcher = PredictionBatcher(run, limits)
    compute = type(run.predictor).probabilities

    def counted(self, rows):
        sizes.append(len(rows))
        return compute(self, rows)

    monkeypatch.setattr(type(run.predictor), "probabilities", counted)

    async def go():
        gate = threading.Event()
        held = asyncio.create_task(lane.run(gate.wait, Deadline.after(60)))
        await asyncio.sleep(0)
        tasks = []
        for i, rows in enumerate(requests):
            deadline = deadlines[i] if deadlines else Deadline.after(60)
            small = SmallRequest(rows, sum(map(len, rows)), drop=False, options=options, deadline=deadline)
            tasks.append(asyncio.create_task(batcher.answer(small, lane)))
        await asyncio.sleep(0.05)
        gate.set()
        await held
        return await asyncio.gather(*tasks, return_exceptions=True)

    return asyncio.run(go()), sizes


def test_answers_are_those_of_each_alone(monkeypatch):
    answers, sizes = ask_together(monkeypatch, ROWS)
    assert sizes == [32, 8]  # blocks of walks are full
    for rows, answer in zip(ROWS, answers, strict=True):
        given = subgraphs_of(served().index, rows)
        alone = served().predict_or_embed(rows, PredictOptions(), *given)["predictions"]
        found = json.loads(answer)
        assert found["run"] == "small"
        assert [each["nodes"] for each in found["predictions"]] == [each["nodes"] for each in alone]
        for one, other in zip(found["predictions"], alone, strict=True):
            assert one["probabilities"] == pytest.approx(other["probabilities"], abs=2e-6)


def test_vectors_are_those_of_each_alone(monkeypatch):
    answers, _ = ask_together(monkeypatch, ROWS, options=None)
    for rows, answer in zip(ROWS, answers, strict=True):
        alone = served().predict_or_embed(rows, None, *subgraphs_of(served().index, rows))
        found = json.loads(answer)
        assert (found["run"], found["width"], found["dropped"]) == ("small", alone["width"], [[], []])
        np.testing.assert_allclose(found["vectors"], alone["vectors"], atol=2e-6)


def test_batches_are_bounded_and_no_request_is_left_over(monkeypatch):
    answers, sizes = ask_together(monkeypatch, ROWS, limits=Limits(quick_nodes=13))
    assert sizes == [6] * 6 + [4]  # three requests of four nodes each
    assert all(isinstance(answer, bytes) for answer in answers)


def test_a_mistake_of_one_is_its_own(monkeypatch):
    answers, sizes = ask_together(monkeypatch, [ROWS[0], [["NOBODY"]], ROWS[1]])
    assert sizes == [4]
    assert list(map(type, answers)) == [bytes, Refusal, bytes]
    assert answers[1].nodes == ["NOBODY"]
    answers, sizes = ask_together(monkeypatch, [[["NOBODY"]]])
    assert isinstance(answers[0], Refusal)


def test_a_request_that_is_given_up_takes_nobody_with_it(monkeypatch):
    deadlines = [Deadline.after(60), Deadline.after(0.01), Deadline.after(60)]
    answers, sizes = ask_together(monkeypatch, ROWS[:3], deadlines=deadlines)
    assert sizes == [4]
    assert list(map(type, answers)) == [bytes, Refusal, bytes]
    assert answers[1].status == 503


def test_a_failure_of_one_does_not_spoil_the_others(monkeypatch):
    run = served(method="mn-gin")  # which knows the subgraphs of its dataset alone
    known, unknown = [[f"#{node}" for node in run.subgraphs.nodes[0]]], [["#0", "#23"]]
    answers, _ = ask_together(monkeypatch, [known, unknown, known], run=run)
    assert list(map(type, answers)) == [bytes, DataError, bytes]
    assert answers[2] == answers[0]
