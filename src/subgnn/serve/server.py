"""The process that listens: sockets, connections and signals."""

from __future__ import annotations

import asyncio
import resource
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import h11
import uvicorn
from threadpoolctl import threadpool_limits
from uvicorn.protocols.http.h11_impl import H11Protocol

from subgnn.errors import UserError
from subgnn.serve.app import RequestMiddleware
from subgnn.serve.limits import Limits
from subgnn.serve.monitoring import log, log_to_stderr
from subgnn.serve.workers import freeze_memory

_BACKLOG = 256
_OTHER_FILES = _BACKLOG + 128
"""Open files other than connections within the limit: those accepted before one is closed, runs, logs, libraries."""
_READ_BYTES = 16_384
_BUSY_BODY = b'{"error":"all connections are in use","hint":"try again later","nodes":[]}'
_BUSY = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 1\r\nconnection: close\r\n"
    b"content-length: %d\r\n\r\n%s" % (len(_BUSY_BODY), _BUSY_BODY)
)


class _HeadWithBody(h11.Connection):
    """Gives the head of an answer with the first part of its body: each write makes the event loop wait for threads."""

    _head: tuple[bytes, ...] = ()

    def send_with_data_passthrough(self, event: h11.Event) -> list[bytes] | None:
        data = super().send_with_data_passthrough(event)
        if isinstance(event, h11.Response):
            self._head = tuple(data or ())
            return []
        if self._head:
            data = [*self._head, *(data or ())]
            self._head = ()
        return data


def protocol(limits: Limits) -> type[H11Protocol]:
    """HTTP/1.1 with limits on open connections and on the time to send a request and to read its answer.

    Above ``limits.connections``, a new connection replaces the one that has been idle longest: silent, slow to send its
    request, or slow to read its answer. Connections whose request is being processed stay.

    This is a subclass because uvicorn has no timeout for heads or for reading answers, and its limit of connections
    (``limit_concurrency``) lets silent ones shut everybody else out.
    """
    connections: dict[LimitedProtocol, None] = {}  # ordered by the time of their last answer

    def close_idle() -> bool:
        for connection in connections:
            if not connection.is_processing:
                connection.transport.abort()
                del connections[connection]
                return True
        return False

    class LimitedProtocol(H11Protocol):
        """Closes connections that are idle or slow."""

        _head_timer: asyncio.TimerHandle | None = None
        _write_timer: asyncio.TimerHandle | None = None

        @property
        def is_processing(self) -> bool:
            """Whether a request has arrived completely, and its answer is being computed."""
            busy = self.cycle is not None and not self.cycle.response_complete and not self.cycle.more_body
            return busy and self._write_timer is None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self.conn = _HeadWithBody(h11.SERVER, limits.target_bytes + limits.header_bytes)
            # All events of one read are processed before other connections: few, even if each chunk has one byte.
            transport.max_size = _READ_BYTES  # type: ignore[attr-defined]
            if len(connections) >= limits.connections and not close_idle():
                transport.write(_BUSY)
                transport.close()
                return
            connections[self] = None
            self._start_head_timer()

        def data_received(self, data: bytes) -> None:
            if self not in connections:  # refused; its data are not read
                return
            if self._head_timer is None and (self.cycle is None or self.cycle.response_complete):
                self._start_head_timer()
            super().data_received(data)
            if self.cycle is not None and not self.cycle.response_complete:
                self._head_timer = _stopped(self._head_timer)

        def on_response_complete(self) -> None:
            self._head_timer = _stopped(self._head_timer)
            if self in connections:
                del connections[self]
                connections[self] = None
            super().on_response_complete()

        def connection_lost(self, exc: Exception | None) -> None:
            connections.pop(self, None)
            self._head_timer, self._write_timer = _stopped(self._head_timer), _stopped(self._write_timer)
            super().connection_lost(exc)

        def pause_writing(self) -> None:
            self._write_timer = self.loop.call_later(limits.seconds, self.transport.abort)
            super().pause_writing()

        def resume_writing(self) -> None:
            self._write_timer = _stopped(self._write_timer)
            super().resume_writing()

        def _start_head_timer(self) -> None:
            self._head_timer = self.loop.call_later(limits.body_seconds, self.transport.abort)

    return LimitedProtocol


def within_open_files(limits: Limits) -> Limits:
    """Raise the limit of open files to what the connections need, or lower the limit of connections."""
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


def bind_socket(host: str, port: int) -> socket.socket:
    """A socket bound to an address, not listening yet; port 0 takes any that is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio disables Nagle's algorithm only if the protocol is named; else small answers wait 40 ms.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except (OSError, OverflowError) as error:
        listening.close()
        reason = getattr(error, "strerror", None) or str(error)
        raise UserError(reason.lower(), where=f"{host}:{port}", hint="choose another --host or --port") from None
    return listening


def configure(app: RequestMiddleware, limits: Limits) -> uvicorn.Config:
    """How uvicorn serves an application."""
    return uvicorn.Config(
        app,
        http=protocol(limits),
        ws="none",
        loop="asyncio",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=_BACKLOG,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=int(limits.seconds) + 5,
        h11_max_incomplete_event_size=limits.target_bytes + limits.header_bytes,
    )


def run_server(
    app: RequestMiddleware, listening: socket.socket, *, limits: Limits, on_ready: Callable[[], None]
) -> None:
    """Serve until SIGTERM or Ctrl-C; accepted requests are finished first."""
    log_to_stderr()
    server = uvicorn.Server(configure(app, within_open_files(limits)))

    def leave(*_: object) -> None:
        server.should_exit = True

    # uvicorn handles these signals while it serves, and raises them again at the end; the exit code must be 0.
    before = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        freeze_memory()
        listening.listen(_BACKLOG)  # connections wait from now on
        on_ready()
        with threadpool_limits(1, "blas"):  # further threads would wait in loops, on cores that lanes use
            server.run(sockets=[listening])
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    log("stopped")
