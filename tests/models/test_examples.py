"""Outputs a batch at a time."""

import numpy as np
import pytest
import torch
from torch import nn

from subgnn.models.examples import Examples, evaluate, outputs_of
from subgnn.task import task_of

ROWS = np.array([4, 0, 2, 6, 1])


class Rows:
    """Inputs whose batch is a table's rows; it notes what was asked for."""

    def __init__(self, table: torch.Tensor) -> None:
        self.table, self.asked = table, []

    def __len__(self) -> int:
        return len(self.table)

    def batch(self, rows):
        self.asked.append(rows.tolist())
        return self.table[rows]


class Network(nn.Module):
    """Double the input in evaluation, and nothing but zeros in training."""

    def forward(self, rows):
        assert not torch.is_grad_enabled()
        return rows * (0 if self.training else 2)


def table(rows: int = 7) -> torch.Tensor:
    return torch.arange(1.0, 1 + 2 * rows, dtype=torch.float64).reshape(rows, 2)


def examples(**options) -> Examples:
    given = {"inputs": Rows(table()), "targets": torch.tensor([0, 1, 0, 1, 1, 0, 1]), "task": "multi-class"}
    return Examples(**given | {"train": ROWS, "val": ROWS} | options)


def test_outputs_come_in_the_order_asked_for_a_batch_at_a_time():
    inputs = Rows(table())
    found = outputs_of(Network().train(), inputs, ROWS, 2)
    assert found.dtype == torch.float32
    assert found.tolist() == (2 * table()[ROWS]).tolist()
    assert inputs.asked == [[4, 0], [2, 6], [1]]


def test_loss_and_metrics_are_those_of_the_chosen_subgraphs():
    weights = torch.tensor([1.0, 3.0])
    given = examples(inputs=Rows(table().flip(1) * 0.1), weights=weights)
    outputs, targets = (2 * given.inputs.table[ROWS]).float(), given.targets[ROWS]
    value, found = evaluate(Network(), given, ROWS, 2)
    assert value == pytest.approx(float(task_of("multi-class").loss(outputs, targets, weights)))
    assert value != pytest.approx(float(task_of("multi-class").loss(outputs, targets)))
    assert found == task_of("multi-class").metrics(outputs, targets)
    given = examples(inputs=Rows(table()[:, :1]), targets=torch.arange(7.0), task="regression", unit=5.0)
    expected = task_of("regression").metrics(2 * table()[ROWS, :1], given.targets[ROWS], unit=5.0)
    assert evaluate(Network(), given, ROWS, 2)[1] == expected  # in units of the label
