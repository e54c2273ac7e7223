"""serve, as it is typed wrongly; tests/serve has the rest."""

from __future__ import annotations

import socket

import pytest

from tests.cli.command import call
from tests.serve.examples import run_folder


@pytest.fixture(autouse=True)
def _no_token(monkeypatch):
    monkeypatch.delenv("SUBGNN_TOKEN", raising=False)


def test_no_run(tmp_path):
    called = call("serve", tmp_path, "--port", 0)
    assert called.code == 2
    assert "no finished run" in called.error


def test_an_address_for_others_needs_a_token(tmp_path):
    called = call("serve", run_folder(), "--host", "0.0.0.0", "--port", 0)
    assert called.code == 2
    assert "--host: 0.0.0.0 can be reached from other machines, and there is no token; give one" in called.error
    (tmp_path / "token").write_text("short")
    called = call("serve", run_folder(), "--host", "0.0.0.0", "--token-file", tmp_path / "token")
    assert called.code == 2
    assert "at least 16" in called.error


def test_a_port_that_is_taken():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        called = call("serve", run_folder(), "--port", port)
    assert called.code == 2
    assert called.error.startswith(f"127.0.0.1:{port}: address already in use")


def test_two_runs_of_one_name():
    called = call("serve", run_folder(), run_folder(), "--port", 0)
    assert called.code == 2
    assert "two runs are called 'multi-class'" in called.error
    assert "NAME=RUN" in called.error


def test_a_dataset_that_moved(tmp_path):
    called = call("serve", run_folder(), "--data", tmp_path / "gone", "--port", 0)
    assert called.code == 2
    assert "--data" in called.error


def test_without_the_extra(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "fastapi", None)
    called = call("serve", run_folder(), "--port", 0)
    assert called.code == 2
    assert "pip install 'subgnn[serve]'" in called.error
