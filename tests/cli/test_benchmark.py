"""benchmark run and report, as they are typed."""

import pytest

from subgnn.data.formats.folder import write_folder
from tests.cli.command import call
from tests.lab.suites.examples import SMALL as SUITE_SMALL
from tests.training.examples import dataset


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("benchmark")
    write_folder(dataset(), folder / "data")
    return folder


SUITE = """
title = "Two bags"

[protocol]
split = "stored"
seeds = 3

[[datasets]]
name = "my-data"

[[models]]
label = "bag"
recipe = "bag"
[models.published]
source = "a letter"
micro_f1 = { my-data = 0.5 }

[[models]]
label = "broken"
recipe = "avg"
set = ["embeddings.source=nowhere.npy"]
"""


@pytest.fixture(scope="module")
def suite(folder, tmp_path_factory):
    (folder / "suite.toml").write_text(SUITE)
    settings = [word for given in SUITE_SMALL for word in ("--set", given)]
    command = ["benchmark", "run", folder / "suite.toml", "--data", f"my_data={folder / 'data'}", "--seeds", 1]
    command += ["--out", folder / "suite", "--device", "cpu", *settings]
    return folder, command, call(*command)


def test_a_suite_of_ones_own(suite):
    folder, _, called = suite
    assert called.code == 1  # as one of its two runs failed
    assert "micro-F1, stored" in called.out
    assert "incomplete: broken on my-data, seed 0: nowhere.npy: " in called.out
    assert f"the page: {folder / 'suite' / 'report.html'}" in called.out
    first = "broken on my-data, seed 0: nowhere.npy: "
    assert called.error.startswith(f"benchmark run: 1 of 2 runs failed; the first: {first}")


def test_a_suite_as_json_and_its_report(suite):
    folder, command, _ = suite
    found = call(*command, "--json").json
    assert found == call("benchmark", "report", folder / "suite", "--json").json
    (row,) = found["rows"]
    assert {"dataset", "model", "protocol", "n", "error", "seconds"} <= set(row)
    assert (row["micro_f1"]["std"], row["published"]) == (0, {"micro_f1": 0.5, "source": "a letter"})
    assert row["gap"] == row["micro_f1"]["mean"] - 0.5
    assert set(row["auroc"]) == {"mean", "std"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("run sinthetic --out y", "benchmark run: unknown suite 'sinthetic'; accepted: ablation,"),
        ("run real --out y", "no dataset is given; give at least one folder, such as --data ppi-bp=DIR"),
        ("run real --out y --data x", "--data: 'x'; accepted: NAME=DIR"),
        ("run synthetic --out y --memory 3KB", "--memory: 0 MB"),
        ("report y", "y: no such table; benchmark run writes DIR/results.csv"),
    ],
)
def test_refusals(tmp_path, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    called = call("benchmark", *words.split())
    assert called.code == 2
    assert said in called.error
    assert not list(tmp_path.iterdir())
