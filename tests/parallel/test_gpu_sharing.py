"""The service that lets processes share a GPU, with a stand-in for its daemon."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from subgnn.parallel.engine import LocalEngine
from subgnn.parallel.gpu_sharing import CONTROL, PIPES, GpuSharing, start_gpu_sharing

# Notes what it is asked, and by which folder; a daemon runs where there is a file "daemon", a server where "server" is.
STAND_IN = """#!/bin/sh
folder=${CUDA_MPS_PIPE_DIRECTORY:-$USUAL}
if [ "$1" = "-d" ]; then echo "start in $folder" >> "$NOTES"; touch "$folder/daemon"; exit $DAEMON; fi
read -r words
echo "$words in $folder" >> "$NOTES"
[ -e "$folder/daemon" ] || exit 1
case "$words" in
  start_server*) [ "$SERVER" = yes ] && touch "$folder/server" ;;
  get_server_list) [ -e "$folder/server" ] && echo 123 ;;
  quit*) rm "$folder/daemon" ;;
esac
exit 0
"""


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """A machine that has the service; the notes of its stand-in."""
    program = tmp_path / "bin" / CONTROL
    program.parent.mkdir()
    program.write_text(STAND_IN)
    program.chmod(0o755)
    (tmp_path / "usual").mkdir()
    notes = tmp_path / "notes"
    notes.touch()
    variables = {"NOTES": notes, "USUAL": tmp_path / "usual", "DAEMON": 0, "SERVER": "yes"}
    variables["PATH"] = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    for name, value in variables.items():
        monkeypatch.setenv(name, str(value))
    for name in (PIPES, "CUDA_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)
    return lambda: [line.rsplit(" in ", 1) for line in notes.read_text().splitlines()]


def pipes(_: int) -> str:
    return os.environ.get(PIPES, "")


def test_workers_share_a_service_that_ends_with_them(asked):
    with LocalEngine(2) as engine:
        folders = {folder for _, folder in engine.map(pipes, range(4))}
    (folder,) = folders
    assert not Path(folder).exists()
    words, places = zip(*asked(), strict=True)
    assert words == ("get_server_list", "start", f"start_server -uid {os.getuid()}", "get_server_list", "quit -t 5")
    assert set(places[1:]) == {folder}


def test_one_process_needs_none(asked):
    with LocalEngine(1) as engine:
        assert dict(engine.map(pipes, [1])) == {1: os.environ.get(PIPES, "")}
    assert asked() == []


def test_a_service_that_runs_is_used(asked, tmp_path):
    (tmp_path / "usual" / "daemon").touch()
    assert start_gpu_sharing() == GpuSharing()
    assert [words for words, _ in asked()] == ["get_server_list"]


@pytest.mark.parametrize("name", [PIPES, "CUDA_VISIBLE_DEVICES", "PATH"])
def test_none_is_started_where_it_has_no_use(asked, monkeypatch, tmp_path, name):
    monkeypatch.setenv(name, {PIPES: "there", "CUDA_VISIBLE_DEVICES": "", "PATH": str(tmp_path)}[name])
    assert start_gpu_sharing() == GpuSharing()
    assert asked() == []


@pytest.mark.parametrize(("name", "value"), [("DAEMON", "1"), ("SERVER", "no")])
def test_a_failure_is_one_line_and_no_error(asked, monkeypatch, caplog, name, value):
    monkeypatch.setenv(name, value)
    assert start_gpu_sharing() == GpuSharing()
    assert len(caplog.messages) == 1
    assert "processes take turns on the GPU" in caplog.messages[0]
    folder = asked()[1][1]
    assert asked()[-1] == ["quit -t 5", folder]
    assert not Path(folder).exists()
