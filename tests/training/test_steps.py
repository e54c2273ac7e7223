"""Captured steps, as far as they can be tested without a GPU: what runs when, and on which batch."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from subgnn.errors import DataWarning
from subgnn.models.examples import PaddableSource, StreamingSource
from subgnn.models.subgnn import Inputs
from subgnn.models.subgnn.batches import StreamedInputs
from subgnn.training.steps import GraphedOutputs, GraphedSteps, _Captured, _CapturedOutputs
from tests.models.subgnn.examples import build_model, prepare_example


class Recorded(GraphedSteps):
    """Steps that note what happens in place of a GPU's work."""

    def __init__(self, *, fails: bool = False) -> None:
        self.seen, self.captured, self.refused = {}, {}, False
        self.fails, self.events = fails, []

    def _run_directly(self, inputs, rows):
        self.events.append(("plain", rows.tolist()))
        return torch.zeros(())

    def _capture(self, inputs, rows, shape):
        if self.fails:
            raise RuntimeError("operation not permitted\nmore")
        positions = inputs.positions(rows, shape)
        events = self.events

        class Graph:
            def replay(self):
                events.append(("replay", positions.tensors[0].tolist()))

        return _Captured(Graph(), positions, torch.ones(()))


@pytest.fixture
def inputs() -> Inputs:
    _, prepared = prepare_example(5)
    _, nodes = build_model(prepared)
    return Inputs(prepared, nodes)


def test_inputs_in_memory_can_be_captured(inputs):
    assert isinstance(inputs, PaddableSource)
    assert not isinstance(inputs, StreamingSource)
    assert StreamedInputs.looks_up_rows
    assert not hasattr(StreamedInputs, "padded_shape")


def test_after_three_steps_of_a_size_it_is_captured_and_replayed_on_each_batch(inputs):
    step = Recorded()
    for rows in ([0, 1], [1, 2], [2, 3], [4, 0], [3, 1]):
        step(inputs, np.array(rows))
    step(inputs, np.array([2]))
    kinds = [kind for kind, _ in step.events]
    assert kinds == ["plain"] * 3 + ["replay"] * 2 + ["plain"]
    assert [rows for _, rows in step.events] == [[0, 1], [1, 2], [2, 3], [4, 0], [3, 1], [2]]


def test_what_cannot_be_captured_runs_as_it_is_and_says_so_once(inputs):
    step = Recorded(fails=True)
    for _ in range(3):
        step(inputs, np.array([0, 1]))
    with pytest.warns(DataWarning, match="cannot be captured here \\(operation not permitted\\)"):
        step(inputs, np.array([0, 1]))
    step(inputs, np.array([0, 1]))
    assert [kind for kind, _ in step.events] == ["plain"] * 5


class RecordedOutputs(GraphedOutputs):
    """Outputs whose capture notes what a GPU would replay."""

    def __init__(self, *, fails: bool = False) -> None:
        super().__init__(stream=None)
        self.fails, self.replayed = fails, 0

    def _capture(self, network, inputs, rows, batch_size):
        if self.fails:
            raise RuntimeError("operation not permitted")
        outputs, recorded = network(inputs.batch(rows)).float(), self

        class Graph:
            def replay(self):
                recorded.replayed += 1
                outputs.copy_(network(inputs.batch(rows)))

        return _CapturedOutputs(Graph(), [], outputs)


def test_validation_is_captured_the_second_time_and_follows_the_weights():
    _, prepared = prepare_example(5)
    model, nodes = build_model(prepared)
    inputs, rows, compute = Inputs(prepared, nodes), np.array([3, 1]), RecordedOutputs()
    for time in range(5):
        with torch.no_grad():
            for weight in model.parameters():
                weight.add_(0.01)
        found = compute(model, inputs, rows, 256)
        torch.testing.assert_close(found, model.eval()(inputs.batch(rows)).float())
        assert compute.replayed == max(0, time - 1)
    compute(model, inputs, np.array([1, 3]), 256)
    assert compute.replayed == 3


def test_validation_that_cannot_be_captured_runs_directly():
    _, prepared = prepare_example(5)
    model, nodes = build_model(prepared)
    inputs, rows, compute = Inputs(prepared, nodes), np.array([3, 1]), RecordedOutputs(fails=True)
    first = compute(model, inputs, rows, 256)
    with pytest.warns(DataWarning, match="validation cannot be captured here \\(operation not permitted\\)"):
        second = compute(model, inputs, rows, 256)
    assert torch.equal(first, second)
    assert torch.equal(first, compute(model, inputs, rows, 256))
