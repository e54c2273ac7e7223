"""``subgnn data download``, against a server on this machine."""

from __future__ import annotations

import functools
import http.server
import json
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from subgnn.cli.create import download
from subgnn.data.formats import read_dataset
from subgnn.errors import UserError

app = typer.Typer()
app.command()(download)


@pytest.fixture
def address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("SUBGNN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    (tmp_path / "www").mkdir()
    with zipfile.ZipFile(tmp_path / "www" / "data.zip", "w") as packed:
        packed.writestr("ppi_bp/edge_list.txt", "0 1\n1 2\n")
        packed.writestr("ppi_bp/subgraphs.pth", "0-1\tA\ttrain\n1-2\tB\tval\n2\tA\ttest\n")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    handler = functools.partial(Quiet, directory=str(tmp_path / "www"))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/data.zip"
    server.shutdown()
    server.server_close()
    thread.join()


def test_download_writes_a_folder_that_can_be_read(address: str, tmp_path: Path) -> None:
    out = tmp_path / "ppi"
    result = CliRunner().invoke(app, ["ppi-bp", "--out", str(out), "--url", address])
    assert result.exit_code == 0, result.output
    assert f"{out}: 3 nodes, 2 edges, 3 subgraphs" in result.stdout
    assert result.stdout.splitlines()[-1] == f"next: subgnn data check {out}"
    assert result.stderr == ""
    assert read_dataset(out).card["url"] == address


def test_json_is_one_object(address: str, tmp_path: Path) -> None:
    out = tmp_path / "ppi"
    result = CliRunner().invoke(app, ["ppi-bp", "--out", str(out), "--url", address, "--json"])
    found = json.loads(result.stdout)
    assert found["name"] == "ppi-bp"
    assert (found["num_nodes"], found["num_edges"], found["num_subgraphs"]) == (3, 2, 3)
    assert len(found["sha256"]) == 64
    again = CliRunner().invoke(
        app, ["ppi-bp", "--out", str(out), "--url", address, "--json", "--force", "--sha256", found["sha256"]]
    )
    assert json.loads(again.stdout)["sha256"] == found["sha256"]


def test_errors_are_the_users(address: str, tmp_path: Path) -> None:
    for arguments, match in (
        (["nosuch", "--url", address], "unknown dataset"),
        (["ppi-bp", "--url", address + "x"], "404"),
        (["ppi-bp", "--url", address, "--sha256", "0" * 64], "hashes to"),
        (["ppi-bp", "--url", "file:///etc/passwd"], "cannot fetch"),
    ):
        result = CliRunner().invoke(app, [*arguments, "--out", str(tmp_path / "out")])
        assert isinstance(result.exception, UserError)
        assert match in str(result.exception)
        assert not (tmp_path / "out").exists()
