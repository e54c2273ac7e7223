"""From runs to a process that listens, and ends when it is told to."""

from __future__ import annotations

import asyncio
import resource
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from subgnn.errors import UserError
from subgnn.serve.guard import Guard
from subgnn.serve.limits import Limits
from subgnn.serve.logs import log, log_to_stderr

_BACKLOG = 256
_OTHER_FILES = _BACKLOG + 128
"""Files beside the connections: connections that are accepted at once before room is made, runs, logs, libraries."""
_BUSY_BODY = b'{"error":"all connections are at work","hint":"try again later","nodes":[]}'
_BUSY = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 1\r\nconnection: close\r\n"
    b"content-length: %d\r\n\r\n%s" % (len(_BUSY_BODY), _BUSY_BODY)
)


def protocol(limits: Limits) -> type[H11Protocol]:
    """HTTP/1.1 with clients that neither dawdle over a request nor over reading its answer, nor crowd others out.

    Above ``limits.connections``, a connection on which the server is not at work is closed for a new one: that which
    has been so for longest, be it silent, slow to send its request, or slow to read its answer.
    """
    waiting: dict[Impatient, None] = {}  # open connections, in the order in which their clients had their last turn

    def make_room() -> bool:
        """Close a connection for another one; False where all are at work."""
        for connection in waiting:
            if not connection.at_work:
                connection.transport.abort()
                del waiting[connection]
                return True
        return False

    class Impatient(H11Protocol):
        """Closes connections on which nothing gets done."""

        _head: asyncio.TimerHandle | None = None
        _reading: asyncio.TimerHandle | None = None

        @property
        def at_work(self) -> bool:
            """Whether a request has arrived whole, and its answer is being made."""
            busy = self.cycle is not None and not self.cycle.response_complete and not self.cycle.more_body
            return busy and self._reading is None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            if len(waiting) >= limits.connections and not make_room():
                transport.write(_BUSY)
                transport.close()
                return
            waiting[self] = None
            self._await_head()

        def data_received(self, data: bytes) -> None:
            if self not in waiting:  # refused; what it sends is not read
                return
            if self._head is None and (self.cycle is None or self.cycle.response_complete):
                self._await_head()
            super().data_received(data)
            if self.cycle is not None and not self.cycle.response_complete:
                self._head = _stopped(self._head)

        def on_response_complete(self) -> None:
            self._head = _stopped(self._head)
            if self in waiting:
                del waiting[self]
                waiting[self] = None
            super().on_response_complete()

        def connection_lost(self, exc: Exception | None) -> None:
            waiting.pop(self, None)
            self._head, self._reading = _stopped(self._head), _stopped(self._reading)
            super().connection_lost(exc)

        def pause_writing(self) -> None:
            self._reading = self.loop.call_later(limits.seconds, self.transport.abort)
            super().pause_writing()

        def resume_writing(self) -> None:
            self._reading = _stopped(self._reading)
            super().resume_writing()

        def _await_head(self) -> None:
            self._head = self.loop.call_later(limits.body_seconds, self.transport.abort)

    return Impatient


def within_open_files(limits: Limits) -> Limits:
    """Allow this process as many open files as its connections need, or limit the connections to what it may have."""
    wanted = limits.connections + _OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
            soft = allowed
        if soft < wanted:
            limits = replace(limits, connections=max(1, soft - _OTHER_FILES))
            log("fewer connections", connections=limits.connections, open_files=soft)
    return limits


def _stopped(timer: asyncio.TimerHandle | None) -> asyncio.TimerHandle | None:
    if timer is not None:
        timer.cancel()
    return None


class _Server(uvicorn.Server):
    """Ends with code 0 when it is asked to end and has finished what it had accepted."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._on_ready()


def bound(host: str, port: int) -> socket.socket:
    """A socket at that address, on which nobody listens yet; port 0 takes any that is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named, asyncio sends answers at once; without it, small ones wait 40 ms for an acknowledgement.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except (OSError, OverflowError) as error:
        listening.close()
        reason = getattr(error, "strerror", None) or str(error)
        raise UserError(reason.lower(), where=f"{host}:{port}", hint="choose another --host or --port") from None
    return listening


def listen(app: Guard, listening: socket.socket, *, limits: Limits, on_ready: Callable[[], None]) -> None:
    """Serve until SIGTERM or Ctrl-C; requests that were accepted are finished first."""
    log_to_stderr()
    limits = within_open_files(limits)
    options: dict[str, Any] = {
        "http": protocol(limits),
        "ws": "none",
        "loop": "asyncio",
        "log_config": None,
        "access_log": False,
        "server_header": False,
        "proxy_headers": False,
        "backlog": _BACKLOG,
        "timeout_keep_alive": 15,
        "timeout_graceful_shutdown": int(limits.seconds) + 5,
        "h11_max_incomplete_event_size": 32_768,
    }
    server = _Server(uvicorn.Config(app, **options), on_ready)
    asyncio.run(server.serve(sockets=[listening]))
    log("stopped")
