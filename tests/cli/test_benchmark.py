"""benchmark run quick, as it is typed."""

from __future__ import annotations

import json

import pytest
import typer

from subgnn.cli.app import app
from subgnn.data.formats.folder import write_folder
from subgnn.experiments.quick import EPOCHS
from tests.cli.command import call
from tests.experiments.test_quick import SMALL
from tests.training.examples import dataset


@pytest.fixture(scope="module")
def looked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("benchmark")
    write_folder(dataset(), folder / "data")
    settings = [word for given in SMALL for word in ("--set", given)]
    command = ["benchmark", "run", "quick", folder / "data", "--out", folder / "look", "--epochs", 2, *settings]
    return folder, command, call(*command)


def test_the_table_and_the_verdict(looked):
    folder, _, called = looked
    assert called.code == 0
    assert "split the dataset's own (train 20, val 5, test 5)" in " ".join(called.out.split())
    for name in ("constant", "topology", "bag", "avg", "default"):
        assert f"  {name} " in called.out
    assert "with 5 validation subgraphs, not even a model without an error" in called.out
    assert f"next: subgnn train {folder / 'data'} --recipe default" in called.out
    assert called.err == ""


def test_again_as_json(looked):
    folder, command, _ = looked
    found = call(*command, "--json").json
    assert found == json.loads((folder / "look" / "quick.json").read_text())
    assert {"rows", "failures", "verdict", "split"} <= set(found)


def test_an_unknown_suite_lists_the_choices(looked, tmp_path):
    folder, *_ = looked
    called = call("benchmark", "run", "quik", folder / "data", "--out", tmp_path / "x")
    assert called.code == 2
    assert called.error == "benchmark run: unknown suite 'quik'; accepted: quick; did you mean 'quick'?"
    assert not (tmp_path / "x").exists()


def test_the_epochs_are_those_of_the_library():
    run = typer.main.get_command(app).commands["benchmark"].commands["run"]
    assert {p.name: p.default for p in run.params}["epochs"] == EPOCHS


def test_without_a_dataset(tmp_path):
    called = call("benchmark", "run", "quick", "--out", tmp_path / "x")
    assert called.code == 2
    assert called.error.startswith("benchmark run: no dataset is given; as in: subgnn benchmark run quick DIR")
