"""Event files have the records of metrics.jsonl, each once, also after an interruption."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import replace

import pytest

from subgnn.errors import MissingExtra
from subgnn.experiments.train import train
from subgnn.training import resume
from subgnn.training.run_dir import METRICS

from .examples import dataset, recipe


def events(folder):
    """Tag to its (step, value) pairs, all that the files hold."""
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

    found = {}
    for path in sorted((folder / "tensorboard").iterdir()):
        for event in EventFileLoader(str(path)).Load():
            for value in event.summary.value:
                found.setdefault(value.tag, []).append((event.step, value.tensor.float_val[0]))
    return found


def expected(folder):
    records = [json.loads(line) for line in (folder / METRICS).read_text().splitlines()]
    found = {}
    for record in records:
        for name, value in record.items():
            if name not in ("epoch", "candidate") and math.isfinite(value):
                split, metric = name.split("_", 1)
                tag = f"{metric}/{split}" + (
                    f"/{record['candidate']}".replace(" ", "_") if "candidate" in record else ""
                )
                found.setdefault(tag, []).append((record["epoch"], pytest.approx(value, rel=1e-6)))
    return found


def test_events_are_the_records(tmp_path):
    train(dataset(), recipe(4), tmp_path / "run", tensorboard=True, report=False)
    found = events(tmp_path / "run")
    assert {"loss/train", "loss/val", "micro_f1/val"} <= set(found)
    assert found == expected(tmp_path / "run")


@pytest.mark.parametrize("before", [True, False], ids=["from the start", "on going on"])
def test_a_run_that_goes_on_has_every_epoch_once(tmp_path, monkeypatch, before):
    monkeypatch.setattr(resume, "SECONDS_BETWEEN_SAVES", 0.0)

    def interrupt(record):
        if record["epoch"] == 3:
            # What was saved after epoch 1 is all there is to go on from.
            monkeypatch.setattr(resume, "SECONDS_BETWEEN_SAVES", 0.0)
            raise KeyboardInterrupt
        if record["epoch"] == 1:
            monkeypatch.setattr(resume, "SECONDS_BETWEEN_SAVES", 1e9)

    with pytest.raises(KeyboardInterrupt):
        train(dataset(), recipe(6), tmp_path / "run", on_epoch=interrupt, tensorboard=before, report=False)
    assert (tmp_path / "run" / "tensorboard").exists() == before
    train(dataset(), recipe(6), tmp_path / "run", resume=True, tensorboard=True, report=False)
    found = events(tmp_path / "run")
    assert [step for step, _ in found["loss/train"]] == [0, 1, 2, 3, 4, 5]
    assert found == expected(tmp_path / "run")


def test_several_networks_have_a_curve_each_also_after_an_interruption(tmp_path, monkeypatch):
    monkeypatch.setattr(resume, "SECONDS_BETWEEN_SAVES", 0.0)
    several = replace(recipe(3), training=replace(recipe(3).training, members=2))

    def interrupt(record):
        if (record["candidate"], record["epoch"]) == ("member 1", 0):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(dataset(), several, tmp_path / "run", on_epoch=interrupt, tensorboard=True, report=False)
    train(dataset(), several, tmp_path / "run", resume=True, tensorboard=True, report=False)
    found = events(tmp_path / "run")
    assert found == expected(tmp_path / "run")
    for member in (0, 1):
        assert [step for step, _ in found[f"loss/train/member_{member}"]] == [0, 1, 2]


def test_without_it_no_event_is_written(tmp_path):
    train(dataset(), recipe(1), tmp_path / "run", report=False)
    assert not (tmp_path / "run" / "tensorboard").exists()


def test_a_missing_package_is_said_before_the_work(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(MissingExtra, match=r"--tensorboard needs the package tensorboard.*subgnn\[tensorboard\]"):
        train(dataset(), recipe(1), tmp_path / "run", tensorboard=True)
    assert not (tmp_path / "run").exists()
