"""Connections above the limit: those being processed are kept, idle ones are closed."""

from __future__ import annotations

import asyncio
import resource

import uvicorn
from uvicorn.server import ServerState

from subgnn.serve import server
from subgnn.serve.limits import Limits
from subgnn.serve.server import protocol, within_open_files

GET = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
POST = b"POST /health HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\n"


class Clients:
    """A server of few connections, and its clients."""

    def __init__(self, connections: int) -> None:
        self.limits, self.gate, self.begun = Limits(connections=connections), asyncio.Event(), asyncio.Semaphore(0)

    async def __aenter__(self) -> Clients:
        config = uvicorn.Config(self._answer, interface="asgi3", ws="none", log_config=None)
        config.load()
        kind, state = protocol(self.limits), ServerState()
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: kind(config=config, server_state=state, app_state={}), "127.0.0.1", 0
        )
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _answer(self, scope, receive, send):
        while (await receive()).get("more_body"):
            pass
        if scope["path"] == "/slow":
            self.begun.release()
            await self.gate.wait()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})

    async def connect(self, sent: bytes = b"") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        writer.write(sent)
        await writer.drain()
        return reader, writer

    async def ask(self) -> bytes:
        reader, writer = await self.connect(GET)
        found = await reader.readuntil(b"\r\n")
        writer.close()
        return found


async def is_closed(client: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> bool:
    try:
        return await client[0].read(1) == b""
    except ConnectionError:
        return True


def test_silent_and_slow_clients_make_room_for_others():
    async def check() -> None:
        async with Clients(3) as clients:
            idle = [await clients.connect(sent) for sent in (b"", GET[:9], POST + b"12")]
            for _ in range(5):
                assert await clients.ask() == b"HTTP/1.1 200 OK\r\n"
            assert await is_closed(idle[0])  # that which was idle for longest
            more = [await clients.connect() for _ in range(20)]
            assert await clients.ask() == b"HTTP/1.1 200 OK\r\n"
            for client in (*idle, *more[:17]):
                assert await is_closed(client)

    asyncio.run(check())


def test_those_at_work_are_kept():
    async def check() -> None:
        async with Clients(2) as clients:
            slow = [await clients.connect(GET.replace(b"/health", b"/slow")) for _ in range(2)]
            for _ in slow:
                await clients.begun.acquire()
            reader, _ = await clients.connect(GET)
            refused = await reader.read()
            assert refused.startswith(b"HTTP/1.1 503")
            assert b"retry-after: 1" in refused
            clients.gate.set()
            for reader, _ in slow:
                assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200")
            # Answered, they are idle again.
            assert await clients.ask() == b"HTTP/1.1 200 OK\r\n"

    asyncio.run(check())


def test_connections_are_no_more_than_open_files_allow(monkeypatch):
    asked = []
    monkeypatch.setattr(server.resource, "setrlimit", lambda _, limits: asked.append(limits))
    monkeypatch.setattr(server.resource, "getrlimit", lambda _: (1024, 4096))
    assert within_open_files(Limits(connections=1000)).connections == 1000
    assert asked == [(1000 + server._OTHER_FILES, 4096)]
    monkeypatch.setattr(server.resource, "getrlimit", lambda _: (1024, 1024))
    assert within_open_files(Limits(connections=1000)).connections == 1024 - server._OTHER_FILES
    monkeypatch.setattr(server.resource, "getrlimit", lambda _: (resource.RLIM_INFINITY,) * 2)
    assert within_open_files(Limits(connections=1000)).connections == 1000
    assert len(asked) == 2
