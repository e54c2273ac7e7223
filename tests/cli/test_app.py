import json
import os
import subprocess
import sys

import pytest

from subgnn import __version__
from subgnn.cli.app import main
from tests.cli.command import call
from tests.data.samples import tree, write_sample

VERBS = [("info",), ("data", "list"), ("data", "describe"), ("data", "check"), ("data", "convert")]


@pytest.fixture(autouse=True)
def _no_debug(monkeypatch):
    monkeypatch.delenv("SUBGNN_DEBUG", raising=False)


def test_version():
    called = call("--version")
    assert (called.code, called.out, called.err) == (0, f"subgnn {__version__}\n", "")


def test_help():
    called = call("--help")
    assert (called.code, called.err) == (0, "")
    for word in ("info", "data", "--version", "--debug", "--help"):
        assert word in called.out


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_help_of_every_verb(verb):
    called = call(*verb, "--help")
    assert (called.code, called.err) == (0, "")
    assert f"subgnn {' '.join(verb)}" in called.out
    assert "--json" in called.out


@pytest.mark.parametrize("arguments", [(), ("data",)], ids=["subgnn", "subgnn data"])
def test_without_a_verb_there_is_help(arguments):
    called = call(*arguments)
    assert called.code == 2
    assert "Usage" in called.out
    assert called.err == ""


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
        (("data", "describe", "x", "--id-base", "one"), "subgnn data describe: Invalid value for '--id-base'"),
        (("data", "convert", "x", "--out", "y", "--to", "zip"), "subgnn data convert: Invalid value for '--to'"),
        (("data", "describe", "a\0b"), "subgnn data describe: "),
    ],
)
def test_usage_errors(arguments, message):
    called = call(*arguments)
    assert (called.code, called.out) == (2, "")
    assert called.error.startswith(message)
    assert "--help" in called.error


@pytest.mark.parametrize("before", [True, False], ids=["before the verb", "behind the verb"])
def test_debug_shows_the_traceback(tmp_path, before):
    arguments = ("data", "describe", tmp_path / "nowhere")
    called = call(*(("--debug", *arguments) if before else (*arguments, "--debug")))
    assert called.code == 2
    assert called.err.startswith("Traceback (most recent call last):")
    assert "DataError" in called.err
    assert called.err.splitlines()[-1].startswith(f"{tmp_path / 'nowhere'}: no such folder")


def test_debug_by_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("SUBGNN_DEBUG", "1")
    assert "Traceback" in call("data", "describe", tmp_path / "nowhere").err


def test_debug_does_no_harm(tmp_path):
    folder = write_sample(tmp_path / "x")
    assert call("data", "describe", folder, "--json", "--debug").json["num_nodes"] == 5


def test_without_debug_there_is_no_traceback(tmp_path):
    assert call("data", "describe", tmp_path / "nowhere").error.startswith(str(tmp_path))


def test_our_own_mistake(tmp_path, monkeypatch):
    def fail(_):
        raise RuntimeError("two\nlines")

    monkeypatch.setattr("subgnn.data.describe.describe", fail)
    folder = write_sample(tmp_path / "x")
    called = call("data", "describe", folder)
    assert (called.code, called.out) == (1, "")
    assert called.error == (
        "subgnn failed: RuntimeError: two lines; this is a bug in subgnn: run again with --debug and report it"
    )
    called = call("data", "describe", folder, "--debug")
    assert called.code == 1
    assert "Traceback" in called.err


def test_an_interrupt(tmp_path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("subgnn.data.formats.folder._write_rows", interrupt)
    folder = write_sample(tmp_path / "x")
    before = tree(tmp_path)
    called = call("data", "convert", folder, "--to", "folder", "--out", tmp_path / "out")
    assert (called.code, called.error) == (130, "interrupted")
    assert tree(tmp_path) == before
    assert [p.name for p in tmp_path.iterdir()] == ["x"]


def test_warnings_filters_come_back(tmp_path):
    import warnings

    before = (list(warnings.filters), warnings.showwarning)
    folder = write_sample(tmp_path / "x", {"edge_list.txt": "0 1\n1 1\n3 4\n"})
    assert call("data", "describe", folder).error.startswith("warning: ")
    assert (list(warnings.filters), warnings.showwarning) == before


def test_with_the_streams_of_pytest(tmp_path, capsys):
    assert main(["data", "describe", str(tmp_path / "nowhere")]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1


def subgnn(*arguments):
    environment = {k: v for k, v in os.environ.items() if k != "SUBGNN_DEBUG"}
    return subprocess.run(
        [sys.executable, "-m", "subgnn", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )


def test_a_process_that_succeeds(tmp_path):
    done = subgnn("data", "check", write_sample(tmp_path / "x"), "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["ok"]


def test_a_process_that_fails(tmp_path):
    done = subgnn("data", "describe", tmp_path / "nowhere")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"{tmp_path / 'nowhere'}: no such folder")


def test_a_reader_that_leaves():
    with subprocess.Popen(
        [sys.executable, "-m", "subgnn", "data", "list"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.close()
        errors = process.stderr.read()
    assert (process.returncode, errors) == (0, b"")
