"""Small runs to serve, and clients that send requests to them."""

import atexit
import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from fastapi.testclient import TestClient

from subgnn.api.train_recipe import train
from subgnn.data.formats.folder import write_folder
from subgnn.data.strings import NodeNames
from subgnn.models.recipes import find_recipe
from subgnn.serve.app import AccessRules, create_app
from subgnn.serve.limits import Limits
from subgnn.serve.runs import ServedRun, open_runs
from tests.training.examples import dataset, recipe

HOST = "http://127.0.0.1"
NAMES = [f"GENE{i}" for i in range(22)] + ["HLA-A", "Ö-SMA"]
SOME = ["GENE0", "GENE1", "GENE2", "#9", "HLA-A"]
SOME_IDS = [0, 1, 2, 9, 22]
SMALL = ["embeddings.dim=8", "training.epochs=2"]


@cache
def run_folder(task: str = "multi-class", method: str = "") -> Path:
    """The folder of a run on 24 named nodes; one for each task, or of a baseline."""
    folder = Path(tempfile.mkdtemp(prefix="subgnn-serve-"))
    atexit.register(_remove, folder)
    data = dataset(task)
    data = replace(data, graph=replace(data.graph, names=NodeNames.of(NAMES)))
    write_folder(data, folder / "data")
    run = folder / (method or task)
    settings = find_recipe(method, SMALL) if method else recipe(3)
    train(data, settings, run, device="cpu", cache=False, report=False, source=str(folder / "data"))
    return run


def _remove(folder: Path) -> None:
    import shutil

    shutil.rmtree(folder, ignore_errors=True)


@cache
def served(task: str = "multi-class", limits: Limits | None = None, method: str = "") -> ServedRun:
    """A run, opened as the server opens it."""
    (run,) = open_runs([f"small={run_folder(task, method)}"], limits=limits or Limits()).values()
    return run


def client(task: str = "multi-class", *, limits: Limits | None = None, access: AccessRules | None = None) -> TestClient:
    """A client of an application in this process; errors of the server become answers, as for users."""
    run = served(task, limits)
    return TestClient(
        create_app({"small": run}, limits=run.limits, access=access), base_url=HOST, raise_server_exceptions=False
    )


@dataclass(frozen=True, slots=True)
class Running:
    """A server in a process of its own."""

    process: subprocess.Popen[str]
    port: int
    errors: Path
    gate: Path

    def ask(
        self, method: str, path: str, body: Any = None, *, headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body of an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        given = {"content-type": "application/json", **(headers or {})}
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        connection.request(method, path, data, given)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, content

    def stop(self) -> int:
        """Ask it to end, and wait until it did."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


_SLOW = """
import os, sys, time
from subgnn.serve import runs
from subgnn.serve.limits import check_deadline
explain = runs.ServedRun.explain
def slowly(self, *subgraphs):
    while not os.path.exists(os.environ["GATE"]):
        check_deadline()
        time.sleep(0.01)
    return explain(self, *subgraphs)
runs.ServedRun.explain = slowly
from subgnn.cli.app import main
sys.exit(main(sys.argv[1:]))
"""


def start(*options: str, token: str | None = None) -> Running:
    """Start ``subgnn serve`` on a free port, and wait until it answers; explanations wait until the gate is opened."""
    gate = Path(tempfile.mkdtemp(prefix="subgnn-gate-")) / "open"
    atexit.register(_remove, gate.parent)
    environment = {name: value for name, value in os.environ.items() if name != "SUBGNN_TOKEN"} | {"GATE": str(gate)}
    environment |= {"SUBGNN_TOKEN": token} if token else {}
    with (gate.parent / "log").open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, "-c", _SLOW, "serve", f"small={run_folder()}", "--port", "0", "--json", *options],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=environment,
        )
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, Path(errors.name).read_text(encoding="utf-8")
    found = json.loads(line)
    assert found["runs"] == ["small"]
    return Running(process, int(found["url"].rstrip("/").rpartition(":")[2]), Path(errors.name), gate)
