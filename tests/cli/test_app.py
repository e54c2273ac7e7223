"""The command itself: help, messages, exit codes, streams; ``info`` and ``recipes``."""

import json
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

from subgnn import __version__
from subgnn.cli.app import app
from subgnn.cli.benchmark import benchmark
from subgnn.cli.data import data
from subgnn.config.recipes import recipe_names
from subgnn.models.recipes import find_recipe
from tests.cli.command import call
from tests.data.samples import write_sample
from tests.pages import Block, Session


@pytest.fixture(autouse=True)
def _no_debug(monkeypatch):
    monkeypatch.delenv("SUBGNN_DEBUG", raising=False)


# Those that take long, need files of others or do not end.
NOT_RUN = ("train", "tune", "benchmark", "serve", "pretrain", "data build")


def test_every_help_has_an_example_that_prints_what_it_shows(tmp_path, monkeypatch):
    groups = {"subgnn": app, "subgnn data": data, "subgnn benchmark": benchmark}
    found = {f"{path} {one.name}": one.help for path, group in groups.items() for one in group.registered_commands}
    assert len(found) > 25
    blocks = {
        command: re.findall(r"^(\$ .*\n[^$\n][\s\S]*?)(?:\n\n|\Z)", text, re.M) for command, text in found.items()
    }
    assert [command for command in found if not re.search(rf"^\$ {command}\b", "\n".join(blocks[command]), re.M)] == []
    for table in ("edges.csv", "members.csv"):
        shutil.copy(Path(__file__).parents[2] / "examples" / "genes" / table, tmp_path)
    (tmp_path / "new.tsv").write_text("TP53-BAX-CASP9\nHLA-A-B2M\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    session = Session()
    session.run(Block("console", "$ subgnn train edges.csv members.csv --recipe bag --out run\n...\n", "set-up"))
    for command in ("subgnn data convert", *(one for one in found if one != "subgnn data convert")):
        if not command.removeprefix("subgnn ").startswith(NOT_RUN):
            ending = "\n$ echo $?\n2" if command == "subgnn data download" else ""
            for block in blocks[command]:
                session.run(Block("console", block + ending, command))


@pytest.mark.parametrize("verb", [(), ("data",), ("data", "describe"), ("train",), ("predict",)])
def test_help(verb):
    called = call(*verb, "--help")
    assert (called.code, called.err) == (0, "")
    assert " ".join(("subgnn", *verb)) in called.out
    assert "--json" in called.out or verb in ((), ("data",))


def test_help_lists_commands_in_the_order_of_use():
    shown = call("--help").out
    listed = re.findall(r"^│ ([a-z]+) ", shown, re.MULTILINE)
    assert listed[:3] == ["train", "predict", "explain"]
    assert listed.index("export") < listed.index("data") < listed.index("recipes") < listed.index("benchmark")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nonsense",), "subgnn: No such command 'nonsense'; see subgnn --help"),
        (("data", "nonsense"), "subgnn data: No such command 'nonsense'; see subgnn data --help"),
        (("--nonsense",), "subgnn: No such option: --nonsense; see subgnn --help"),
        (("data", "list", "--nonsense"), "subgnn data list: No such option: --nonsense; see subgnn data list --help"),
        (("data", "describe"), "subgnn data describe: Missing argument 'DIR'; see subgnn data describe --help"),
        (("data", "convert", "x"), "subgnn data convert: Missing option '--out'; see subgnn data convert --help"),
        (("data", "describe", "x", "y", "z"), "subgnn data describe: Got unexpected extra argument"),
        (("data", "describe", "x", "--id-base", "2"), "subgnn data describe: Invalid value for '--id-base'"),
        (("data", "split", "x", "--out", "y", "--method", "no"), "subgnn data split: Invalid value for '--method'"),
        (
            ("train", "x", "--out", "y", "--device", "tpu"),
            "subgnn train: Invalid value for '--device': 'tpu' is not one of 'auto'",
        ),
    ],
)
def test_usage_errors(arguments, message):
    called = call(*arguments)
    assert (called.code, called.out) == (2, "")
    assert called.error.startswith(message)
    assert "--help" in called.error


def test_debug_shows_the_traceback(tmp_path, monkeypatch):
    arguments = ("data", "describe", tmp_path / "nowhere")
    assert call(*arguments).error.startswith(f"{tmp_path / 'nowhere'}: no such folder")
    for words in (("--debug", *arguments), (*arguments, "--debug")):
        called = call(*words)
        assert called.code == 2
        assert called.err.startswith("Traceback (most recent call last):")
        assert called.err.splitlines()[-1].startswith(f"{tmp_path / 'nowhere'}: no such folder")
    monkeypatch.setenv("SUBGNN_DEBUG", "1")
    assert "Traceback" in call(*arguments).err
    assert call("data", "describe", write_sample(tmp_path / "x"), "--json", "--debug").json["num_nodes"] == 5


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (RuntimeError("two\nlines"), 1, "subgnn failed: RuntimeError: two lines; this is a bug in subgnn: run again "),
        (MemoryError(), 2, "subgnn: out of memory (no details); lower the sizes in the recipe"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: x"), 2, "subgnn: out of memory (DefaultCPUAlloc"),
        (PermissionError(13, "Permission denied", "/x"), 2, "/x: Permission denied; check the path"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_errors_while_a_command_runs(tmp_path, monkeypatch, error, code, message):
    def fail(_):
        raise error

    monkeypatch.setattr("subgnn.data.describe.describe", fail)
    called = call("data", "describe", write_sample(tmp_path / "x"))
    assert (called.code, called.out) == (code, "")
    assert called.error.startswith(message)


def subgnn(*arguments):
    environment = {k: v for k, v in os.environ.items() if k != "SUBGNN_DEBUG"}
    command = [sys.executable, "-m", "subgnn", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def test_a_process(tmp_path):
    done = subgnn("data", "check", write_sample(tmp_path / "x"), "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["ok"]
    done = subgnn("data", "describe", tmp_path / "nowhere")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"{tmp_path / 'nowhere'}: no such folder")


def test_a_reader_that_leaves():
    command = [sys.executable, "-m", "subgnn", "data", "list"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        errors = process.stderr.read()
    assert (process.returncode, errors) == (0, b"")


def test_info(monkeypatch, tmp_path):
    found = call("info", "--json").json
    assert (found["subgnn"], found["python"]) == (__version__, platform.python_version())
    assert (found["packages"]["numpy"], found["devices"][0]) == (np.__version__, "cpu")
    assert found["threads"]["numba"] == numba.get_num_threads()
    shown = call("info").out
    for word in (__version__, platform.python_version(), "numpy", "torch", "devices", "threads", "cache"):
        assert word in shown
    monkeypatch.setattr("subgnn.cli.app._PACKAGES", ("numpy", "no-such-package"))
    assert call("info", "--json").json["packages"] == {"numpy": np.__version__, "no-such-package": "not installed"}
    for name, folder in (("HOME", "home/.cache/subgnn"), ("XDG_CACHE_HOME", "xdg/subgnn"), ("SUBGNN_CACHE", "mine")):
        for other in ("XDG_CACHE_HOME", "SUBGNN_CACHE"):
            monkeypatch.delenv(other, raising=False)
        monkeypatch.setenv(name, str(tmp_path / folder.split("/")[0]))
        assert call("info", "--json").json["cache"] == str(tmp_path / folder)
    assert list(tmp_path.iterdir()) == []


def test_every_recipe_is_listed_with_its_purpose_and_cost():
    found = {one["name"]: one for one in call("recipes", "--json").json["recipes"]}
    assert set(found) == set(recipe_names())
    for one in found.values():
        assert 10 < len(one["purpose"]) < 120, one["name"]
        assert one["note"].startswith(one["purpose"])
        assert one["cost"]
    assert found["auto"]["cost"] == "up to 5 minutes"
    assert (found["bag"]["needs"], found["bag"]["cost"]) == ([], "solved, 18 fits")
    assert found["neighborhood"]["needs"] == ["gin embeddings"]
    assert found["s2v-n"]["needs"] == ["edges", "extra paper", "known subgraphs"]
    assert found["surroundings"]["cost"] == "trained, 5 x 20 epochs"
    assert found["alsentzer2020_ppi_bp"]["published"]["micro_f1"] == 0.599
    shown = call("recipes").out
    assert [line.split() for line in shown.splitlines() if line.strip()][3][0] == "auto"
    assert shown.rstrip().endswith("next: subgnn train DIR --recipe NAME --out RUN")


def test_a_recipe_is_printed_as_toml_and_trained_from_a_file_or_a_run(tmp_path):
    channels = ["--set", "channels=P,S/border", "--set", "channels.P/internal=7", "--set", "channels.S.similarity=hops"]
    shown = call("recipes", "subgnn", *channels)
    (tmp_path / "my.toml").write_text(shown.out)
    made = find_recipe(str(tmp_path / "my.toml"))
    assert [(one.name, one.num_anchors, one.similarity) for one in made.channels] == [
        ("position/internal", 7, ""),
        ("position/border", 15, ""),
        ("structure/border", 15, "hops"),
    ]
    assert made == find_recipe("subgnn", channels[1::2])
    run = tmp_path / "run"
    run.mkdir()
    (run / "recipe.json").write_text(json.dumps(made.plain() | {"seed": 3, "split": "stored"}))
    assert find_recipe(str(run)) == find_recipe(str(run / "recipe.json")) == made
    assert call("recipes", run, "--json").json["name"] == "subgnn"
    refused = call("recipes", "subgnn", "--set", "channels.P=3")
    assert refused.error.startswith(
        "--set: no channel 'P'; the recipe has neighborhood/internal, neighborhood/border, "
    )


def test_an_unknown_recipe_has_five_near_names():
    refused = call("recipes", "structur").error
    near = refused.partition("accepted names: ")[2].partition(";")[0].split(", ")
    assert (near[0], len(near)) == ("structure", 5)
    assert refused.endswith("; did you mean 'structure'?")
