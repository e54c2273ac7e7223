"""A server in a process of its own, and clients that do not behave."""

import json
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.serve.examples import SOME, Running, start

pytestmark = pytest.mark.slow

PREDICT = "/api/runs/small/predict"
EXPLAIN = "/api/runs/small/explain"
ASKED = {"subgraphs": [SOME]}
TOKEN = "a-token-of-some-length"


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    running = start("--max-body", "200000")
    yield running
    running.stop()


def head(path: str, length: int, more: str = "") -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: 127.0.0.1", "Content-Type: application/json", f"Content-Length: {length}"]
    return ("\r\n".join(lines) + f"\r\n{more}\r\n").encode()


def connect(server: Running) -> socket.socket:
    found = socket.create_connection(("127.0.0.1", server.port), timeout=60)
    found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return found


def received(connection: socket.socket) -> bytes:
    """All that comes until the server closes."""
    parts = []
    while part := connection.recv(65536):
        parts.append(part)
    return b"".join(parts)


def await_slow(server: Running, count: int) -> None:
    """Until so many requests are in the slow lane."""
    while f'subgnn_inside{{lane="slow"}} {count}.0\n'.encode() not in server.ask("GET", "/metrics")[2]:
        time.sleep(0.01)


def test_it_answers_and_logs_lines_of_json_without_names(server):
    status, headers, body = server.ask("POST", PREDICT, ASKED)
    assert status == 200
    assert json.loads(body)["predictions"][0]["label"].startswith("clique")
    assert float(headers["server-timing"].partition("dur=")[2]) > 0
    assert "server" not in headers
    server.ask("GET", "/api/runs/small/nodes?q=GENE1")
    lines = [json.loads(line) for line in server.errors.read_text(encoding="utf-8").splitlines()]
    (mine,) = [line for line in lines if line.get("id") == headers["x-request-id"]]
    assert mine["status"] == 200
    assert mine["path"] == PREDICT
    assert mine["level"] == "info"
    assert "GENE1" not in server.errors.read_text(encoding="utf-8")


def test_a_million_nodes_and_a_body_that_is_too_large(server):
    status, headers, body = server.ask("POST", PREDICT, {"subgraphs": [list(range(1_000_000))]})
    assert status == 413
    assert headers["connection"] == "close"
    assert "200,000 bytes" in json.loads(body)["error"]
    # What is announced is refused before it is sent.
    with closing(connect(server)) as connection:
        connection.sendall(head(PREDICT, 10**12, more="Expect: 100-continue\r\n"))
        assert received(connection).startswith(b"HTTP/1.1 413")
    status, _, _ = server.ask("POST", PREDICT, {"subgraphs": [list(range(24)) * 500]})
    assert status == 422


def test_chunks_without_an_end_are_cut_off(server):
    with closing(connect(server)) as connection:
        connection.sendall(head(PREDICT, 0).replace(b"Content-Length: 0", b"Transfer-Encoding: chunked"))
        chunk = b"4000\r\n" + b" " * 0x4000 + b"\r\n"
        try:
            for _ in range(100):
                connection.sendall(chunk)
        except OSError:
            pass  # the server has closed already
        else:
            assert received(connection).startswith(b"HTTP/1.1 413")


NOT_HTTP = [
    b"GET / HTTP/1.1\r\n\r\n",
    b"GET /health HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    b"GET /health HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    b"nonsense\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 40 + b"\r\n\r\n",
    b"POST /health HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -1\r\n\r\n",
    b"POST /health HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n12345",
]


def test_invalid_http_is_400(server):
    for raw in NOT_HTTP:
        with closing(connect(server)) as connection:
            connection.sendall(raw)
            connection.shutdown(socket.SHUT_WR)
            assert received(connection).startswith(b"HTTP/1.1 400"), raw


@pytest.mark.parametrize("begin", [b"GET /", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: "])
def test_a_head_without_an_end_is_cut_off(server, begin):
    with closing(connect(server)) as connection:
        try:
            connection.sendall(begin + b"x" * 20_000_000)
            answer = received(connection)
        except OSError:
            answer = b""  # closed before all of it was sent
    assert answer == b"" or answer.startswith(b"HTTP/1.1 400")


def test_small_requests_do_not_wait_for_slow_ones(server):
    found: list[int] = []
    slow = [threading.Thread(target=lambda: found.append(server.ask("POST", EXPLAIN, ASKED)[0])) for _ in range(3)]
    for thread in slow:
        thread.start()
    await_slow(server, 3)
    for path in (PREDICT, "/api/runs/small/embed"):
        assert server.ask("POST", path, ASKED)[0] == 200
    assert server.ask("GET", "/api/runs/small/nodes?q=GENE")[0] == 200
    assert found == []
    server.gate.touch()
    for thread in slow:
        thread.join()
    server.gate.unlink()
    assert found == [200] * 3


def test_clients_that_leave_do_no_harm(server):
    for size in (0, 10):
        with closing(connect(server)) as connection:
            connection.sendall(head(PREDICT, 100) + b" " * size)
    with closing(connect(server)) as connection:
        body = json.dumps(ASKED).encode()
        connection.sendall(head(EXPLAIN, len(body)) + body)
    assert server.ask("GET", "/health")[0] == 200
    assert server.ask("POST", PREDICT, ASKED)[0] == 200


def test_slow_clients_and_tokens():
    running = start("--host", "127.0.0.1", "--timeout", "15", "--body-timeout", "2", token=TOKEN)
    try:
        right = {"authorization": f"Bearer {TOKEN}"}
        for headers in ({}, {"authorization": "Bearer wrong-token-of-length"}):
            status, given, body = running.ask("POST", PREDICT, ASKED, headers=headers)
            assert status == 401
            assert given["www-authenticate"] == "Bearer"
            assert TOKEN not in body.decode()
        assert running.ask("GET", "/metrics")[0] == 401
        assert running.ask("GET", "/health")[0] == 200
        assert running.ask("POST", PREDICT, ASKED, headers=right)[0] == 200
        assert running.ask("POST", EXPLAIN, ASKED, headers=right)[0] == 503  # it waits for the gate
        with closing(connect(running)) as dawdling, closing(connect(running)) as silent:
            dawdling.sendall(head(PREDICT, 100, more=f"Authorization: Bearer {TOKEN}\r\n") + b"{")
            silent.sendall(b"GET /health HTTP/1.1\r\nHost:")
            assert received(dawdling).startswith(b"HTTP/1.1 408")
            assert received(silent) == b""
    finally:
        assert running.stop() == 0
    assert TOKEN not in running.errors.read_text(encoding="utf-8")


def test_sigterm_finishes_what_was_accepted_and_ends_with_0(server):
    # The last test here, because the server ends with it: another one takes long to start.
    running = server
    found: list[int] = []
    asking = threading.Thread(target=lambda: found.append(running.ask("POST", EXPLAIN, ASKED)[0]))
    asking.start()
    body = json.dumps(ASKED).encode()
    with closing(connect(running)) as half, closing(connect(running)) as idle:
        half.sendall(head(PREDICT, len(body)) + body[:5])
        await_slow(running, 1)
        running.process.send_signal(signal.SIGTERM)
        assert received(idle) == b""  # closed: nothing was asked on it
        running.gate.touch()
        half.sendall(body[5:])
        answer = received(half)
    asking.join(60)
    assert answer.startswith(b"HTTP/1.1 200")
    assert found == [200]
    assert running.process.wait(60) == 0
    with pytest.raises(OSError, match="refused"):
        connect(running)
    last = json.loads(running.errors.read_text(encoding="utf-8").splitlines()[-1])
    assert last["event"] == "stopped"
