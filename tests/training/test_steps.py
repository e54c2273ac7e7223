"""Captured steps, as far as they can be tested without a GPU: what runs when, and on which batch."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from subgnn.errors import DataWarning
from subgnn.models.examples import PaddableSource
from subgnn.models.subgnn import Inputs
from subgnn.models.subgnn.batches import StreamedInputs
from subgnn.training.steps import AdamByRows, GraphedOutputs, GraphedSteps, _Captured, clip_sparse
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
    assert not hasattr(inputs, "looks_up_rows")
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
    with pytest.warns(DataWarning, match="could not capture steps as a CUDA graph \\(operation not permitted\\)"):
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

        return _Captured(Graph(), [], outputs)


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
    with pytest.warns(DataWarning, match="could not capture validation as a CUDA graph \\(operation not permitted\\)"):
        second = compute(model, inputs, rows, 256)
    assert torch.equal(first, second)
    assert torch.equal(first, compute(model, inputs, rows, 256))


class Lookup(nn.Module):
    def __init__(self, *, sparse: bool) -> None:
        super().__init__()
        self.sparse = sparse
        self.table = nn.Parameter(torch.arange(12.0).reshape(4, 3) / 10)
        self.map = nn.Parameter(torch.tensor([1.0, -1.0, 0.5]))

    def forward(self, rows):
        return (functional.embedding(rows, self.table, sparse=self.sparse) @ self.map).square().sum()


def steps(sparse, batches, *, clip=0.0, **options):
    model = Lookup(sparse=sparse)
    optimizer = AdamByRows(model.parameters(), lr=0.1, **options)
    for rows in batches:
        optimizer.zero_grad()
        model(torch.tensor(rows)).backward()
        assert model.table.grad.is_sparse == sparse
        if clip and sparse:
            clip_sparse(model.parameters(), clip)
        elif clip:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
    return model


def test_where_every_batch_touches_all_rows_it_is_plain_adam():
    batches = [[0, 1, 2, 3], [3, 2, 2, 1, 0], [1, 0, 3, 2]]
    ours, theirs = (steps(sparse, batches, clip=0.3) for sparse in (True, False))
    torch.testing.assert_close(ours.table, theirs.table)
    torch.testing.assert_close(ours.map, theirs.map)


def test_rows_that_are_not_looked_up_rest():
    model = steps(True, [[0, 1], [1], [1, 3]])
    untouched = Lookup(sparse=True).table
    assert torch.equal(model.table[2], untouched[2])
    assert not torch.equal(model.table[3], untouched[3])
    once = steps(True, [[0, 1]])
    assert torch.equal(model.table[0], once.table[0])


def test_its_state_can_be_kept():
    batches = [[0, 1], [1, 2], [2, 3]]
    whole = steps(True, batches)
    model = Lookup(sparse=True)
    optimizer = AdamByRows(model.parameters(), lr=0.1)
    for rows in batches:
        other = AdamByRows(model.parameters(), lr=0.1)
        other.load_state_dict(optimizer.state_dict())
        optimizer = other
        optimizer.zero_grad()
        model(torch.tensor(rows)).backward()
        optimizer.step()
    assert torch.equal(model.table, whole.table)
