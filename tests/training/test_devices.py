"""Training on two devices, for real: torchrun starts two processes on a CPU."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from subgnn.data.formats.folder import write_folder
from subgnn.errors import UserError
from subgnn.models.checkpoint import load_checkpoint
from subgnn.models.recipes import find_recipe
from subgnn.models.subgnn.layer import BatchNorm
from subgnn.task import task_of
from subgnn.training.devices import GlobalDropout, Ranks, current_ranks, part_of_loss, share_of, use_global_batch
from subgnn.training.options import RunOptions
from subgnn.training.run import check_ranks
from subgnn.training.run_dir import CHECKPOINT, METRICS
from subgnn.training.steps import Steps
from tests.cli.command import call

from .examples import dataset

TWO = Ranks(0, 2, 0, 2)
SETTINGS = (
    *("embeddings.dim=8", "model.norm=batch", "model.hidden_norm=batch"),
    *("training.epochs=4", "training.class_weights=true", "training.clip=0.5", "training.members=2"),
)


def odd_dataset():
    """Nineteen subgraphs to learn from: with batches of 6 = 2 x 3, a last one of 7, of which no half is a share."""
    data = dataset()
    splits = np.array(data.subgraphs.splits)
    splits[19] = splits[20]
    return replace(data, subgraphs=replace(data.subgraphs, splits=splits))


def records(run: Path) -> list[dict]:
    return [json.loads(line) for line in (run / METRICS).read_text().splitlines()]


@pytest.mark.slow
def test_two_ranks_that_torchrun_starts_are_one_process_with_twice_the_batch(tmp_path):
    """Batch norm, dropout, clipping, class weights and two networks."""
    data, two, one = (tmp_path / name for name in ("data", "two", "one"))
    write_folder(odd_dataset(), data)
    given = ["train", data, "--recipe", "subgnn", "--device", "cpu", "--json", *(f"--set={text}" for text in SETTINGS)]
    words = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "subgnn"]
    torchrun = subprocess.Popen(
        [*words, *given, "--set=training.batch_size=3", "--out", two],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "GLOO_SOCKET_IFNAME": "lo"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        told, problems = torchrun.communicate(timeout=120)
    finally:
        torchrun.terminate()  # if that took too long: it ends its ranks
    assert torchrun.returncode == 0, problems
    results = json.loads(told)  # one rank has printed it
    assert call(*given, "--set=training.batch_size=6", "--out", one).code == 0
    assert results["devices"] == 2
    for ours, theirs in zip(records(two), records(one), strict=True):
        assert ours == pytest.approx(theirs, abs=1e-5, nan_ok=True)
    ours, theirs = (load_checkpoint(run / CHECKPOINT).weights for run in (two, one))
    for name, value in ours.items():
        torch.testing.assert_close(value, theirs[name], atol=1e-4, rtol=1e-4, msg=name)
    assert sorted(path.name for path in two.iterdir()) == sorted(path.name for path in one.iterdir())


def test_what_several_ranks_cannot_do_is_refused(tmp_path, monkeypatch):
    def refused(message, *options, name="subgnn", **given):
        with pytest.raises(UserError, match=message):
            check_ranks(RunOptions(find_recipe(name, options), tmp_path, **given), TWO)

    refused("the method bag is fitted on one device; with several devices: subgnn, avg, gc", name="bag", device="cpu")
    shared = "pretrained embeddings are shared through the cache; leave --no-cache out"
    refused(shared, "embeddings.source=gin", device="cpu", cache=False)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    refused("there are 2 processes, but only 1 GPUs; give --nproc-per-node 1", device="cuda")


def test_a_rank_is_known_by_its_environment(monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    assert current_ranks() is None
    for name, value in {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}.items():
        monkeypatch.setenv(name, value)
    assert current_ranks() == Ranks(rank=3, size=4, local_rank=1, local_size=2)


@given(total=st.integers(1, 50), size=st.integers(1, 8))
def test_shares_are_the_batch_in_its_order(total, size):
    shares = [share_of(total, rank, size) for rank in range(size)]
    if total < size:
        assert all(share.whole for share in shares)
        return
    assert [i for share in shares for i in range(share.begin, share.end)] == list(range(total))
    lengths = [share.end - share.begin for share in shares]
    assert max(lengths) - min(lengths) <= 1
    assert shares[0].whole == (size == 1)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("task", ["multi-class", "multi-label", "regression"])
@pytest.mark.parametrize(("total", "size"), [(7, 2), (9, 4), (2, 3), (6, 1)])
def test_parts_of_the_loss_add_up_to_it_and_so_do_gradients(task, weighted, total, size):
    torch.manual_seed(0)
    outputs = torch.randn(total, 1 if task == "regression" else 3, dtype=torch.float64, requires_grad=True)
    targets = {
        "multi-class": torch.randint(0, 3, (total,)),
        "multi-label": torch.randint(0, 2, (total, 3)),
        "regression": torch.randn(total, dtype=torch.float64),
    }[task]
    weights = torch.tensor([0.5, 2.0, 7.0], dtype=torch.float64) if weighted and task != "regression" else None
    expected = task_of(task).loss(outputs, targets, weights)
    (gradient,) = torch.autograd.grad(expected, outputs)
    found = torch.zeros((), dtype=torch.float64)
    for rank in range(size):
        share = share_of(total, rank, size)
        own = slice(share.begin, share.end)
        part = part_of_loss(share, targets, task=task, weights=weights, size=size)
        found = found + task_of(task).loss(outputs[own], targets[own], weights) * part
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(torch.autograd.grad(found, outputs)[0], gradient)


def test_dropout_of_shares_is_that_of_the_batch():
    x = torch.randn(7, 5)
    whole, ours = nn.Dropout(0.4), GlobalDropout(0.4)
    parts = []
    for rank in range(3):
        ours.share = share_of(7, rank, 3)
        torch.manual_seed(3)
        parts.append(ours(x[ours.share.begin : ours.share.end]))
        after = torch.rand(1)  # the numbers drawn after it are the same, too
    torch.manual_seed(3)
    torch.testing.assert_close(torch.cat(parts), whole(x))
    assert torch.equal(torch.rand(1), after)


def test_a_model_that_follows_computes_the_same_alone():
    model = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Sequential(BatchNorm(6), nn.Dropout(0.5)))
    x = torch.randn(5, 4)
    torch.manual_seed(0)
    expected, names = model(x), list(model.state_dict())
    use_global_batch(model)
    torch.manual_seed(0)
    torch.testing.assert_close(model(x), expected)
    assert list(model.state_dict()) == names
    assert len(Steps(model, None, None).of_batch) == 3
