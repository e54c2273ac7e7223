"""report, and train with --tensorboard, as they are typed."""

from __future__ import annotations

import shutil

import pytest

from subgnn.data.formats.folder import write_folder
from tests.cli.command import call
from tests.reports.reading import read
from tests.training.examples import dataset


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("report")
    write_folder(dataset(), made / "data")
    settings = ("--set", "training.epochs=2", "--set", "embeddings.dim=8")
    called = call("train", made / "data", "--recipe", "structure", *settings, "--out", made / "run", "--tensorboard")
    assert called.code == 0, called.err
    assert f"the page of the run: {made / 'run' / 'report.html'}" in called.out
    assert any((made / "run" / "tensorboard").iterdir())
    return made


def test_report_replaces_the_page_of_the_run(folder):
    page = folder / "run" / "report.html"
    page.write_text("old")
    called = call("report", folder / "run", "--json")
    assert (called.code, called.json) == (0, {"run": str(folder / "run"), "out": str(page)})
    assert read(page.read_text()).one("h1").text == "structure on cliques, seed 0"


def test_report_into_a_file(folder):
    out = folder / "else.html"
    assert call("report", folder / "run", "--out", out).code == 0
    assert out.read_text().startswith("<!doctype html>")
    assert "exists already" in call("report", folder / "run", "--out", out).error
    assert call("report", folder / "run", "--out", out, "--force").code == 0


def test_report_of_a_dataset_that_moved(folder, tmp_path):
    shutil.copytree(folder / "run", tmp_path / "run")
    (tmp_path / "run" / "run.json").write_text(
        (folder / "run" / "run.json").read_text().replace(str(folder / "data"), "/no/where")
    )
    called = call("report", tmp_path / "run")
    assert called.code == 2
    assert called.error == "/no/where: the run's dataset is not there; say where it is with --data"
    assert call("report", tmp_path / "run", "--data", folder / "data").code == 0


def test_report_of_no_run(tmp_path):
    called = call("report", tmp_path)
    assert called.code == 2
    assert "no finished run" in called.error
