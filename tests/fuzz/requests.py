"""Requests to a server in this process, as the bytes that are sent, and attacks on it."""

import asyncio
import logging
import re
import socket
import threading
from contextlib import suppress
from functools import cache
from http.client import HTTPException, HTTPResponse
from pathlib import Path

import numpy as np
import uvicorn

from subgnn.errors import UserError
from subgnn.serve.app import create_app
from subgnn.serve.limits import Limits
from subgnn.serve.server import bind_socket, configure
from tests.fuzz import mutations
from tests.serve.examples import served

LIMITS = Limits(body_seconds=0.5, seconds=10)
SECONDS = 120
"""After which an answer counts as missing: attacks that work take hours, and no machine is that busy."""


def request(line: str, body: str = "", **headers: str) -> bytes:
    given = {"Host": "localhost", **headers, **({"Content-Length": str(len(body))} if body else {})}
    head = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in given.items())
    return f"{line} HTTP/1.1\r\n{head}\r\n{body}".encode()


_RUN = "/api/runs/small"
_JSON = '{"subgraphs": [["GENE0", "#1"], ["HLA-A"]], "unknown": "drop"}'
_MORE = _JSON[:-1] + ', "top": 3, "among": ["#3"]}'
_QUERY = "?name=sets.gmt&encoding=latin-1&format=tsv"
_TABLE = "set,genes\r\nfirst,GENE0;GENE1\r\nsecond,HLA-A\r\n"
GOOD = {
    "request for a prediction": request(f"POST {_RUN}/predict", _JSON, Content_Type="application/json"),
    "request for completion": request(f"POST {_RUN}/complete", _MORE, Content_Type="application/json"),
    "request with rows": request(f"POST {_RUN}/table?unknown=drop&top=2", _TABLE, Accept="text/csv"),
    "request with a table": request(f"POST {_RUN}/table{_QUERY}", "first\t-\tGENE0\n", Origin="http://localhost"),
    "request for nodes": request(f"GET {_RUN}/nodes?q=gene&limit=3", Accept="*/*", If_None_Match='"x"'),
}
"""A good request of each kind."""

PIECES = (
    '"', "(", '\\"', ";", "%", "[", "{", '{"a":', "=", ",", "\r", "\n", "\r\n", "-", "--x\r\n", "a", "1", "\0", "\xff",
    "GENE0-",
    "=?utf-8?q?a?=", " ", ";a=b", "\\ud800", "&q=a", "X: a\r\n", "../", "%2e", "\u0130", "\t", ":", "@evil.com",
)  # fmt: skip
"""What an attack repeats."""


@cache
def port() -> int:
    logging.disable(logging.CRITICAL)
    run = served(limits=LIMITS)
    listening = bind_socket("127.0.0.1", 0)
    listening.listen()
    server = uvicorn.Server(configure(create_app({"small": run}, limits=LIMITS), LIMITS))
    threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listening])), daemon=True).start()
    return int(listening.getsockname()[1])


def send(raw: bytes) -> tuple[int, bytes]:
    with socket.create_connection(("127.0.0.1", port()), SECONDS) as connection:
        with suppress(BrokenPipeError, ConnectionResetError):  # refused before all was sent
            connection.sendall(raw)
        answer = HTTPResponse(connection)
        try:
            answer.begin()
            return answer.status, answer.read()
        except (HTTPException, ConnectionResetError):
            return 0, b""


def ask(path: Path) -> tuple[int, bytes]:
    status, body = send(path.read_bytes())
    other, _ = send(request("GET /health", Connection="close"))
    assert other == 200, "the server does not answer any more"
    if 400 <= status < 500 or status in (0, 503):
        raise UserError(f"{status}")
    assert status < 500, f"{status}: {body[:200]!r}"
    return status, body


def attack(data: bytes, rng: np.random.Generator) -> bytes:
    piece = PIECES[rng.integers(len(PIECES))].encode("utf-8" if rng.integers(2) else "latin-1", "replace")
    times = int(rng.choice([10, 1_000, 30_000, 900_000]))
    at = int(rng.integers(len(data) + 1))
    return data[:at] + (piece * times)[:900_000] + data[at:]


def damage(data: bytes, rng: np.random.Generator) -> bytes:
    found = attack(data, rng) if rng.integers(2) else mutations.text(data, rng)
    head, end, body = found.partition(b"\r\n\r\n")
    if rng.integers(8):
        head = re.sub(rb"Content-Length: \d+", b"Content-Length: %d" % len(body), head, count=1)
    return head + end + body
