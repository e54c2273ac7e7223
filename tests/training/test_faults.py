"""What can go wrong with a run's files, its disk, its labels and its user's patience."""

import errno
import os
import shlex
import shutil
import signal
import threading
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from subgnn import SubgraphSet
from subgnn.api.estimator import SubgraphClassifier
from subgnn.api.train_recipe import train
from subgnn.data.formats.folder import write_folder
from subgnn.errors import DataError, DataWarning
from subgnn.models.checkpoint import load_checkpoint
from subgnn.parallel.interrupts import noted_interrupt
from subgnn.parallel.locks import LOCK, host_name
from subgnn.reports.run_page import MODEL_CARD
from subgnn.result import RESULTS
from subgnn.task import MultiClass
from subgnn.training import run as run_module
from subgnn.training.run_dir import CHECKPOINT, LAST, METRICS, PAGE, RECIPE, SUBGRAPHS
from tests.cli.command import call
from tests.training.examples import CHANNELS, assert_equal_runs, dataset, press_ctrl_c, recipe, train_until

pytestmark = pytest.mark.slow

FEW = CHANNELS[2:3]
OPTIONS = ("--recipe", "structure", "--set", "training.epochs=6", "--set", "embeddings.dim=4", "--no-cache")


def small(epochs: int = 5, **model: object):
    return recipe(epochs, channels=FEW, **model)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


FINISHED = sorted([RESULTS, RECIPE, METRICS, CHECKPOINT, PAGE, SUBGRAPHS, MODEL_CARD])


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run that nothing happened to."""
    run = tmp_path_factory.mktemp("whole") / "run"
    train(dataset(), small(), run, seed=1)
    return run


@pytest.fixture
def cut(tmp_path):
    """The same run, interrupted after its third epoch."""
    train_until(2, dataset(), small(), tmp_path / "run", seed=1)
    assert names(tmp_path / "run") == sorted([RECIPE, METRICS, LAST, SUBGRAPHS])
    return tmp_path / "run"


def go_on(run):
    return train(dataset(), small(), run, seed=1, resume=True)


@pytest.mark.parametrize("kept", [0, 1, 100, 0.5, -1])
def test_damaged_progress_starts_the_run_from_the_beginning(whole, cut, kept):
    content = (cut / LAST).read_bytes()
    (cut / LAST).write_bytes(content[: int(kept * len(content)) if isinstance(kept, float) else kept])
    with pytest.warns(DataWarning, match=r"last\.safetensors: .*saved progress.*; the run starts from the beginning"):
        go_on(cut)
    assert_equal_runs(whole, cut)
    assert names(cut) == FINISHED


def flipped(content: bytes) -> Iterator[bytes]:
    """The content with one bit changed, sixty times."""
    rng = np.random.default_rng(0)
    for _ in range(60):
        damaged = bytearray(content)
        damaged[rng.integers(0, len(content))] ^= 1 << int(rng.integers(0, 8))
        yield bytes(damaged)


def test_a_flipped_bit_is_noticed(whole, cut, tmp_path):
    for file, load in ((whole / CHECKPOINT, load_checkpoint), (cut / LAST, run_module.load_progress)):
        for damaged in flipped(file.read_bytes()):
            (tmp_path / file.name).write_bytes(damaged)
            with pytest.raises(DataError):
                load(tmp_path / file.name)


@pytest.mark.parametrize("text", ['{"epoch": 0, "tra', "not ours at all\n" * 20, None])
def test_a_damaged_or_lost_metrics_file_is_written_anew(whole, cut, text):
    (cut / METRICS).unlink()
    if text is not None:
        (cut / METRICS).write_text(text)
    go_on(cut)
    assert_equal_runs(whole, cut)


def test_progress_of_another_version_is_said_and_kept(cut, monkeypatch):
    monkeypatch.setattr(run_module, "PROGRESS", replace(run_module.PROGRESS, version=99))
    with pytest.raises(DataError, match="saved progress of version 1; this release reads version 99; remove the file"):
        go_on(cut)
    assert (cut / LAST).is_file()


@pytest.mark.parametrize(("name", "message"), [(RECIPE, "give another --out"), (RESULTS, "subgnn train --resume")])
def test_damaged_json_is_said(whole, tmp_path, name, message):
    shutil.copytree(whole, tmp_path / "run")
    (tmp_path / "run" / name).write_text('{"half')
    with pytest.raises(DataError, match=f"{name}: this is not valid JSON, or it is damaged; .*{message}"):
        go_on(tmp_path / "run")


def test_what_a_killed_writer_left_is_no_hindrance(whole, tmp_path):
    run = tmp_path / "run"
    run.mkdir()

    def leave(name):
        for suffix in ("lock", "part"):
            (run / f".{name}.{host_name()}.1.0123abcd.{suffix}").write_text("{")
        (run / LOCK).write_text("1 nowhere")

    leave(RECIPE)
    train(dataset(), small(), run, seed=1)
    leave(RESULTS)
    (run / LAST).write_text("left by a process that was killed just before it removed this")
    go_on(run)
    assert names(run) == FINISHED
    assert_equal_runs(whole, run)


def test_a_disk_that_fills_up(whole, tmp_path, monkeypatch):
    write_folder(dataset(), tmp_path / "data")
    monkeypatch.setattr(run_module, "SECONDS_BETWEEN_SAVES", 0.0)
    command = ("train", tmp_path / "data", *OPTIONS, "--out")
    assert call(*command, tmp_path / "whole").code == 0
    sync, calls = os.fsync, []

    def full(file):
        calls.append(file)
        if len(calls) == 4:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(file)

    monkeypatch.setattr(os, "fsync", full)
    called = call(*command, tmp_path / "run")
    last = tmp_path / "run" / LAST
    assert called.code == 2
    said = "cannot be written (No space left on device); make room there, or choose another place"
    assert called.error == f"{last}: {said}"
    assert names(tmp_path / "run") == sorted([RECIPE, METRICS, LAST, SUBGRAPHS])
    assert call(*command, tmp_path / "run", "--resume").code == 0
    assert_equal_runs(tmp_path / "whole", tmp_path / "run")


@pytest.fixture
def _listening() -> Iterator[None]:
    """Python's own handler of Ctrl-C: a process started in the background may have been told to ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupt_at(monkeypatch, step: int, presses: int = 1) -> None:
    """Press Ctrl-C in the middle of the ``step``-th batch."""
    counted, compute = [], MultiClass.loss

    def pressing(*arguments):
        counted.append(1)
        if len(counted) == step:
            for _ in range(presses):
                press_ctrl_c()
        return compute(*arguments)

    monkeypatch.setattr(MultiClass, "loss", pressing)


@pytest.mark.usefixtures("_listening")
def test_ctrl_c_saves_and_the_run_goes_on(tmp_path, monkeypatch):
    write_folder(dataset(), tmp_path / "data")
    command = ("train", tmp_path / "data", *OPTIONS, "--set", "training.batch_size=4", "--out")
    assert call(*command, tmp_path / "whole").code == 0
    interrupt_at(monkeypatch, 9)
    called = call(*command, tmp_path / "run")
    again = shlex.join(["subgnn", *map(str, (*command, tmp_path / "run", "--resume"))])
    assert (called.code, called.error) == (130, f"interrupted; continue with: {again}")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert names(tmp_path / "run") == sorted([RECIPE, METRICS, LAST, SUBGRAPHS])
    assert len((tmp_path / "run" / METRICS).read_text().splitlines()) == 2
    monkeypatch.undo()
    assert call(*shlex.split(again)[1:]).code == 0
    assert_equal_runs(tmp_path / "whole", tmp_path / "run")


@pytest.mark.usefixtures("_listening")
def test_a_second_ctrl_c_is_obeyed_at_once(whole, tmp_path, monkeypatch):
    interrupt_at(monkeypatch, 4, presses=2)
    with pytest.raises(KeyboardInterrupt):
        train(dataset(), small(), tmp_path / "run", seed=1)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert LAST not in names(tmp_path / "run")
    monkeypatch.undo()
    go_on(tmp_path / "run")
    assert_equal_runs(whole, tmp_path / "run")


def test_another_s_handler_is_left_alone():
    seen = []
    before = signal.signal(signal.SIGINT, lambda *_: seen.append(1))
    try:
        with noted_interrupt() as interrupt:
            press_ctrl_c()
            assert (seen, interrupt.pressed) == ([1], False)
    finally:
        signal.signal(signal.SIGINT, before)


def test_training_works_outside_the_main_thread(tmp_path):
    thread = threading.Thread(target=lambda: train(dataset(), small(1), tmp_path / "run", seed=1))
    thread.start()
    thread.join()
    assert names(tmp_path / "run") == FINISHED


def with_labels(labels, splits=None):
    data = dataset()
    nodes = [row.tolist() for row in data.subgraphs.nodes]
    splits = splits or ["train"] * 20 + ["val"] * 5 + ["test"] * 5
    subgraphs = SubgraphSet.from_lists(nodes, num_nodes=data.graph.num_nodes, labels=labels, splits=splits)
    return replace(data, subgraphs=subgraphs)


@pytest.mark.filterwarnings("ignore:.* one subgraph")
@pytest.mark.parametrize("class_weights", [False, True])
def test_labels_that_training_never_sees(tmp_path, class_weights):
    labels = ["a", "b"] * 10 + ["a", "b", "x", "x", "b"] + ["a", "y", "b", "x", "a"]
    settings = small(2)
    settings = replace(settings, training=replace(settings.training, class_weights=class_weights))
    message = r"4 subgraphs in val and test have a label that no training subgraph has: 'x' \(3\), 'y' \(1\); it cannot"
    with pytest.warns(DataWarning, match=message):
        results = train(with_labels(labels), settings, tmp_path / "run")
    assert 0 <= results.test["macro_f1"] <= 1


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.filterwarnings("default::subgnn.errors.DataWarning")
def test_a_class_with_one_member_in_the_estimator(seed):
    data = with_labels(["only", *(["a", "b"] * 15)][:30])
    subgraphs = replace(data.subgraphs, splits=None)
    options = ("training.epochs=1", "embeddings.dim=4", "model.head=[8, 8]")
    model = SubgraphClassifier(data.graph, recipe="structure", settings=options, random_state=seed).fit(subgraphs)
    assert model.predict_proba(subgraphs).shape == (30, 3)
