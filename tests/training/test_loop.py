"""The loop's parts: rates, class weights, and early stopping."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from subgnn.config.settings import TrainingSettings
from subgnn.models.examples import Examples
from subgnn.training import loop
from subgnn.training.devices import make_fabric
from subgnn.training.loop import Progress, run_epochs
from subgnn.training.steps import Fitting


class Rows:
    """Inputs whose batch is a table's rows."""

    def __init__(self, table: torch.Tensor) -> None:
        self.whole = type("Whole", (), {"nodes": table})
        self.table, self.asked = table, 0

    def batch(self, rows: torch.Tensor) -> torch.Tensor:
        self.asked += 1
        return self.table[rows]


def example(targets, task="multi-class", **options) -> Examples:
    targets = torch.tensor(targets)
    table = torch.nn.functional.one_hot(torch.arange(len(targets))).float()
    rows = np.arange(len(targets))
    return Examples(**{"inputs": Rows(table), "targets": targets, "task": task, "train": rows, "val": rows} | options)


class Linear(nn.Linear):
    """A network that learns its rows by heart."""

    def embed(self, rows):
        return rows


def run_fit(examples, outputs=2, after_epoch=None, first_as_it_is=False, resume=None, **settings):
    torch.manual_seed(0)
    model = Linear(examples.inputs.table.shape[1], outputs)
    settings = TrainingSettings(**{"epochs": 10, "batch_size": 2, "lr": 0.1} | settings)
    told = {"after_epoch": after_epoch, "first_as_it_is": first_as_it_is, "resume": resume}
    return run_epochs(model, Fitting(examples, settings, 0, make_fabric("cpu")), **told)


@pytest.mark.parametrize("watched", ["train loss", "val loss"])
def test_the_plateau_schedule_is_that_of_torch(watched):
    losses = [2.0, 1.5, *[1.5] * 12, 1.0, *[1.0 - 1e-6 * i for i in range(80)]]
    settings = TrainingSettings(lr=1e-3, schedule="plateau", plateau=watched, plateau_factor=0.2)
    optimizer = torch.optim.Adam([nn.Parameter(torch.zeros(1))], lr=1e-3)
    expected = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.2, min_lr=5e-5)
    progress, name = Progress(), watched.replace(" loss", "_losses")
    for loss in losses:
        assert loop._rate(settings, progress) == pytest.approx(optimizer.param_groups[0]["lr"])
        getattr(progress, name).append(loss)
        expected.step(loss)
    assert loop._rate(settings, progress) == pytest.approx(5e-5)


def test_epochs_before_select_from_are_not_selected_and_do_not_use_up_patience():
    # The rate is 0, so that all epochs are equal, and the first that may be selected is.
    found = run_fit(example([0, 1]), epochs=20, lr=0.0, patience=3, select_from=5)
    assert (found.best_epoch, found.epoch) == (5, 9)
    assert run_fit(example([0, 1]), epochs=4, lr=0.0, select_from=5).best_epoch == 3
    assert found.train_losses == pytest.approx([found.train_losses[0]] * 9)


def test_class_weights_enter_the_loss():
    records = []
    for weighted in (False, True):
        run_fit(
            example([0, 0, 0, 1], weights=torch.tensor([2 / 3, 2]) if weighted else None),
            epochs=1,
            lr=0.0,
            after_epoch=lambda record, *_: records.append(record),
        )
    torch.manual_seed(0)
    logits = Linear(4, 2)(torch.eye(4)).detach()
    each = nn.functional.cross_entropy(logits, torch.tensor([0, 0, 0, 1]), reduction="none")
    weights = torch.tensor([2 / 3, 2 / 3, 2 / 3, 2.0])
    assert records[0]["val_loss"] == pytest.approx(float(each.mean()))
    assert records[1]["val_loss"] == pytest.approx(float((weights * each).sum() / weights.sum()))


def test_gradients_are_clipped_to_their_norm(monkeypatch):
    norms = []
    step = torch.optim.Adam.step

    def watch(self, *arguments, **options):
        gradients = [p.grad.flatten() for group in self.param_groups for p in group["params"]]
        norms.append(float(torch.cat(gradients).norm()))
        return step(self)

    monkeypatch.setattr(torch.optim.Adam, "step", watch)
    run_fit(example([0, 1]), epochs=1)
    run_fit(example([0, 1]), epochs=1, clip=1e-3)
    assert norms[0] > 0.1
    assert norms[1] == pytest.approx(1e-3, rel=1e-2)


@pytest.mark.parametrize(("patience", "epochs"), [(0, 9), (1, 4), (3, 9), (2, 5)])
def test_early_stopping_counts_from_the_best_epoch(monkeypatch, patience, epochs):
    # The best of the first five epochs is epoch 2; epoch 5 is better still.
    losses = iter([5, 4, 3, 3, 3.5, 2, 6, 6, 6])
    monkeypatch.setattr(loop, "evaluate", lambda *_, **__: (value := next(losses), {"micro_f1": -value}))
    progress = run_fit(example([0, 1]), epochs=9, patience=patience)
    assert progress.epoch == epochs
    assert progress.best_epoch == (2 if epochs < 6 else 5)


def test_a_run_that_goes_on_after_its_last_epoch_has_no_patience_left(monkeypatch):
    # A sixth epoch would be the best of all, had the run not ended before it.
    losses = [5, 4, 3, 3, 3.5, 2]
    given, saved = iter(losses), []
    monkeypatch.setattr(loop, "evaluate", lambda *_, **__: (value := next(given), {"micro_f1": -value}))
    whole = run_fit(example([0, 1]), patience=2, after_epoch=lambda _, __, state: saved.append(copy.deepcopy(state())))
    for epoch, state in enumerate(saved):
        given = iter(losses[epoch + 1 :])
        again = run_fit(example([0, 1]), patience=2, resume=state)
        assert (again.epoch, again.best_epoch) == (whole.epoch, whole.best_epoch) == (5, 2)


def test_of_equal_scores_the_lower_loss_then_the_earlier_epoch_is_selected(monkeypatch):
    values = iter([(1.0, 0.5), (0.9, 0.5), (0.9, 0.5), (0.1, 0.4)])
    monkeypatch.setattr(loop, "evaluate", lambda *_, **__: (lambda v: (v[0], {"micro_f1": v[1]}))(next(values)))
    progress = run_fit(example([0, 1]), epochs=4)
    assert progress.best_epoch == 1
    assert progress.best_metrics == {"loss": 0.9, "micro_f1": 0.5}


@pytest.mark.parametrize(
    ("values", "selected"),
    [
        # Two looks at epoch 0, at the training split and at validation; one at each later epoch.
        ([(1.0, 0.5), (1.0, 0.5), (0.9, 0.5), (0.8, 0.5)], 0),
        ([(1.0, 0.5), (1.0, 0.5), (0.9, 0.6), (0.8, 0.6)], 2),
        ([(1.0, 0.5), (1.0, 0.5), (1.1, 0.6), (1.2, 0.6)], 1),
    ],
)
def test_what_was_fitted_in_one_go_is_replaced_by_a_higher_score_alone(monkeypatch, values, selected):
    looks, steps = iter(values), []
    monkeypatch.setattr(loop, "evaluate", lambda *_, **__: (lambda v: (v[0], {"micro_f1": v[1]}))(next(looks)))
    step = torch.optim.Adam.step
    monkeypatch.setattr(torch.optim.Adam, "step", lambda self, *a, **k: (steps.append(1), step(self))[1])
    progress = run_fit(example([0, 1]), epochs=3, first_as_it_is=True)
    assert (progress.best_epoch, progress.epoch, len(steps)) == (selected, 3, 2)


def test_an_epoch_shows_every_training_subgraph_as_often_as_asked(monkeypatch):
    seen = []
    monkeypatch.setattr(loop, "batches", lambda order, size: seen.append(order.tolist()) or [order])
    data = example([0, 1, 1])
    run_fit(data, epochs=1, repeats=3)
    assert sorted(seen[0]) == sorted(3 * data.train.tolist())
