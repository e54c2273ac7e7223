"""Training on two devices, for real: two processes on a CPU."""

from __future__ import annotations

import contextvars
import json
import os
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from subgnn.cli.app import main
from subgnn.config.recipes import find_recipe
from subgnn.data.formats.folder import write_folder
from subgnn.errors import DataError, RankDied, UserError
from subgnn.experiments.train import train
from subgnn.models.checkpoint import load_checkpoint
from subgnn.parallel.engine import Failure
from subgnn.parallel.locks import LOCK, locked_folder
from subgnn.parallel.memory import within
from subgnn.parallel.processes import Ended
from subgnn.training import launch
from subgnn.training.devices import current_ranks
from subgnn.training.options import NO_CALLBACKS, Callbacks, RunOptions
from subgnn.training.run_dir import CHECKPOINT, LAST, METRICS

from .examples import CHANNELS, dataset, recipe

EPOCHS = 5


def odd_dataset():
    """Nineteen subgraphs to learn from: with batches of 6 = 2 x 3, a last one of 7, of which no half is a share."""
    data = dataset()
    splits = np.array(data.subgraphs.splits)
    splits[19] = splits[20]
    return replace(data, subgraphs=replace(data.subgraphs, splits=splits))


def settings(batch_size: int):
    """Batch norm, dropout, clipping, class weights and two draws of anchors."""
    whole = recipe(EPOCHS)
    return replace(
        whole,
        prepare=replace(whole.prepare, draws=2, ensemble=True),
        training=replace(whole.training, batch_size=batch_size, class_weights=True, clip=0.5),
    )


def records(run: Path) -> list[dict]:
    return [json.loads(line) for line in (run / METRICS).read_text().splitlines()]


def assert_close(a: Path, b: Path) -> None:
    for one, other in zip(records(a), records(b), strict=True):
        assert one == pytest.approx(other, abs=1e-5, nan_ok=True)
    ours, theirs = (load_checkpoint(run / CHECKPOINT).weights for run in (a, b))
    for name, value in ours.items():
        torch.testing.assert_close(value, theirs[name], atol=1e-4, rtol=1e-4, msg=name)


def ranks_of_ours() -> list[int]:
    """The processes of ranks that this process has started, the first rank first."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            variables = (folder / "environ").read_bytes().split(b"\0") if parent == os.getpid() else []
        except OSError:
            continue
        found |= {int(v[5:]): int(folder.name) for v in variables if v.startswith(b"RANK=")}
    return [found[rank] for rank in sorted(found)]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/environ").is_file(), reason="finds processes in /proc")
def test_two_devices_that_are_interrupted_and_killed_are_one_with_twice_the_batch(tmp_path):
    run, alone, data, seen = tmp_path / "two", tmp_path / "one", odd_dataset(), []

    def interrupt(record):
        if record["epoch"] == 1:
            raise KeyboardInterrupt

    def claim():
        with locked_folder(run):
            pass

    def kill(record):
        seen[:] = ranks_of_ours()
        for pid in seen:  # each has the run's lock, which lasts as long as any of them
            assert str(run / LOCK) in [str(file.readlink()) for file in Path(f"/proc/{pid}/fd").iterdir()]
        with pytest.raises(DataError, match=r"another process .* is writing this run"):
            contextvars.Context().run(claim)
        os.kill(seen[1], signal.SIGKILL)

    def go_on(devices, callbacks=NO_CALLBACKS):
        return train(data, settings(3), run, device="cpu", devices=devices, seed=2, resume=True, callbacks=callbacks)

    with pytest.raises(KeyboardInterrupt):
        go_on(2, Callbacks(on_epoch=interrupt))
    assert (run / LAST).is_file()
    with pytest.raises(DataError, match="the run was on 2 devices, not 1"):
        go_on(1)
    with pytest.raises(RankDied, match=r"rank 1 of 2 was killed \(SIGKILL.*continue with --resume"):
        go_on(2, Callbacks(on_epoch=kill))
    assert len(seen) == 2
    assert not any(Path(f"/proc/{pid}").exists() for pid in seen)
    results = go_on(2)

    expected = train(data, settings(6), alone, device="cpu", seed=2)
    assert_close(run, alone)
    assert (results.devices, expected.devices) == (2, 1)
    assert results.selected_epoch == expected.selected_epoch
    for split in ("val", "test"):
        assert results.scores(split) == pytest.approx(expected.scores(split), abs=1e-5, nan_ok=True)
    assert sorted(path.name for path in run.iterdir()) == sorted(path.name for path in alone.iterdir())


@pytest.mark.slow
def test_several_networks_on_two_devices_are_those_of_one_with_twice_the_batch(tmp_path):
    found = []
    for devices, size in ((2, 3), (1, 6)):
        small = recipe(2, channels=CHANNELS[2:4], hidden_norm="batch")
        small = replace(small, training=replace(small.training, batch_size=size, members=2))
        found.append(train(odd_dataset(), small, tmp_path / str(devices), device="cpu", devices=devices, report=False))
    two, one = found
    assert [m["val"] for m in two["members"]] == [pytest.approx(m["val"], abs=1e-4) for m in one["members"]]
    assert two["test"] == pytest.approx(one["test"], abs=1e-4)


@pytest.mark.slow
def test_the_command_line_trains_a_baseline_on_two_devices(tmp_path, capfd):
    write_folder(dataset(), tmp_path / "data")
    options = ["--set", "training.epochs=2", "--no-cache", "--json"]
    command = ["train", str(tmp_path / "data"), "--recipe", "avg", "--device", "cpu", *options, "--out"]
    assert main([*command, str(tmp_path / "two"), "--devices", "2", "--set", "training.batch_size=4"]) == 0
    two = json.loads(capfd.readouterr().out)
    assert main([*command, str(tmp_path / "one"), "--set", "training.batch_size=8"]) == 0
    assert two["devices"] == 2
    assert records(tmp_path / "two") == [pytest.approx(r, abs=1e-5) for r in records(tmp_path / "one")]


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (DataError("no label", where="file:3", hint="give one"), DataError, "file:3: no label; give one"),
        (UserError("no", where="train"), UserError, "train: no"),
        (PermissionError(13, "Permission denied", "run/last.pt"), OSError, "run/last.pt"),
        (ValueError("seven"), RuntimeError, r"ValueError: seven \(rank 1 of 2\)"),
    ],
)
def test_the_error_of_a_rank_is_raised_here(error, kind, text, tmp_path):
    failures = launch.Failures()
    failures.add(0, Failure("RuntimeError: connection closed"), 2.0)  # noticed first, but the later one
    failures.add(1, Failure.of(error), 1.0)
    with pytest.raises(kind, match=text):
        failures.throw(2, tmp_path, Path("run"))


def test_a_rank_that_died_is_one_line_and_exit_1(tmp_path, monkeypatch, capsys):
    def died(*_, **__):
        raise RankDied("run: rank 1 of 2 was killed")

    monkeypatch.setattr("subgnn.training.run.launch", died)
    write_folder(dataset(), tmp_path / "data")
    devices = ["--devices", "2", "--device", "cpu"]
    assert main(["train", str(tmp_path / "data"), "--recipe", "subgnn", *devices, "--out", str(tmp_path / "run")]) == 1
    assert capsys.readouterr().err == "run: rank 1 of 2 was killed\n"


@pytest.mark.parametrize(
    ("name", "device", "devices", "message"),
    [
        ("bag", "cpu", 2, "the method bag is fitted on one device; with several devices: subgnn, avg, gc"),
        ("subgnn", "cpu", 0, "--devices: 0 devices; accepted: a whole number from 1"),
        ("subgnn", "cuda", 999, "999 devices, but there are"),
    ],
)
def test_what_many_devices_cannot_do_is_said_first(tmp_path, name, device, devices, message):
    if device == "cuda" and not torch.cuda.is_available():
        with pytest.raises(UserError, match=message):
            launch.check_devices(RunOptions(find_recipe(name), tmp_path, device=device), devices)
        return
    with pytest.raises(UserError, match=message):
        train(dataset(), find_recipe(name), tmp_path / "run", device=device, devices=devices)
    assert not (tmp_path / "run").exists()


def test_pretrained_embeddings_need_the_cache_to_be_shared():
    chosen = find_recipe("subgnn", ["embeddings.source=gin"])
    with pytest.raises(UserError, match="pretrained embeddings are shared through the cache; leave --no-cache out"):
        launch.check_devices(RunOptions(chosen, Path("run"), device="cpu", cache=False), 2)


def test_a_rank_is_known_by_its_environment(monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    assert current_ranks(None) is None
    assert current_ranks(4) is None
    for name, value in {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}.items():
        monkeypatch.setenv(name, value)
    found = current_ranks(None)
    assert found is not None
    assert (found.rank, found.size, found.local_rank, found.nodes) == (3, 4, 1, 2)
    assert current_ranks(2) == found
    assert current_ranks(1) is None
    with pytest.raises(UserError, match="4 devices, but 2 processes were started on this machine"):
        current_ranks(4)


def test_ranks_divide_the_memory(tmp_path, monkeypatch):
    limits = []
    monkeypatch.setattr(launch, "Process", lambda *_, memory, **__: limits.append(memory))
    monkeypatch.setattr(launch, "_follow", lambda *_: {})
    monkeypatch.setattr(launch, "end_all", lambda *_, **__: None)
    with within("6GB"):
        launch.launch(dataset(), RunOptions(recipe(1), tmp_path), devices=2)
    assert limits == [3 * 10**9] * 2


def test_the_first_death_is_the_reason(tmp_path):
    failures = launch.Failures()
    failures.add(0, Ended(0))
    assert not failures
    failures.add(1, Failure("ValueError: seven"), 1.0)
    assert not failures.are_complete  # another rank may still report an earlier error
    failures.add(0, Ended(-signal.SIGABRT))
    assert (failures.first, failures.killed) == (1, [])
    failures.add(2, Ended(-signal.SIGKILL))
    assert (failures.killed, failures.are_complete) == ([2], True)
    with pytest.raises(RankDied, match=r"^run: rank 2 of 3 was killed \(SIGKILL: out of memory, perhaps\); the others"):
        failures.throw(3, tmp_path, Path("run"))


def test_a_rank_that_ends_without_a_message_is_explained_by_its_last_line(tmp_path):
    (tmp_path / "1.log").write_text("first\nlast words\n")
    failures = launch.Failures()
    failures.add(1, Ended(7))
    with pytest.raises(RankDied, match=r"rank 1 of 2 ended by itself \(exit code 7\) \(last words\); the others"):
        failures.throw(2, tmp_path, Path("run"))
