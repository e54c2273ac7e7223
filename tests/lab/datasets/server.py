"""A server on this machine that misbehaves in every way a server can."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Callable

import numpy as np

BODY = np.random.default_rng(0).bytes(300_000)
Handler = http.server.BaseHTTPRequestHandler
Answer = Callable[[Handler], None]


class Server:
    """Answers by path; of a list of answers one is used up by each request, the last one stays."""

    def __init__(self) -> None:
        self.answers: dict[str, list[Answer]] = {}
        self.headers: list[dict[str, str]] = []
        outer = self

        class _Handler(Handler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:  # noqa: N802
                outer.headers.append({name.lower(): value for name, value in self.headers.items()})
                queue = outer.answers.get(self.path)
                if queue is None:
                    self.send_error(404)
                    return
                (queue.pop(0) if len(queue) > 1 else queue[0])(self)

            def log_message(self, *_: object) -> None:
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self.http.daemon_threads = True
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self.thread.start()

    def put(self, path: str, *answers: Answer) -> str:
        self.answers[path] = list(answers)
        return f"http://127.0.0.1:{self.http.server_address[1]}{path}"

    def close(self) -> None:
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()


def serve(body: bytes, *, cut: int | None = None, length: bool = True) -> Answer:
    """Send a file; ``cut`` ends the connection after so many bytes of the answer."""

    def answer(handler: Handler) -> None:
        handler.send_response(200)
        if length:
            handler.send_header("Content-Length", str(len(body)))
        handler.send_header("Connection", "close")
        handler.end_headers()
        handler.wfile.write(body if cut is None else body[:cut])
        handler.wfile.flush()
        handler.close_connection = True

    return answer


def status(code: int, **headers: str) -> Answer:
    def answer(handler: Handler) -> None:
        handler.send_response(code)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    return answer


def hang() -> Answer:
    def answer(handler: Handler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "10")
        handler.end_headers()
        handler.wfile.write(b"12345")
        handler.wfile.flush()
        handler.rfile.read(1)  # until the client gives up
        handler.close_connection = True

    return answer
