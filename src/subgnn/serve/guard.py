"""What every request passes: who asks, how much, for how long; and what is noted of it.

The body is read here, whole and bounded, before any route sees it; so a slow or endless one costs no worker.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any

from subgnn.serve.answers import encode
from subgnn.serve.budget import Budget
from subgnn.serve.limits import Limits
from subgnn.serve.logs import log
from subgnn.serve.metrics import Metrics
from subgnn.serve.refusals import Refusal, failed
from subgnn.serve.security import HEADERS, Door

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
_CLOSING = (408, 413)
_DISCARD_BYTES, _DISCARD_SECONDS = 20_000_000, 1.0
_CLIENT_LEFT = 499  # for logs and metrics alone: nobody receives it


class Guard:
    """The outermost layer of the application."""

    def __init__(self, app: App, *, door: Door, limits: Limits, metrics: Metrics) -> None:
        self.app, self.door, self.limits, self.metrics = app, door, limits, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] == "http":
            await self._request(scope, receive, _Reply(send))
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            await self.app(scope, receive, send)

    async def _request(self, scope: Scope, receive: Receive, reply: _Reply) -> None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        scope["id"] = reply.id
        failure: BaseException | None = None
        try:
            self.door.check(scope["method"], scope["path"], headers)
            body = await self._body(headers, receive)
            budget = scope["budget"] = Budget.of(self.limits.seconds)
            await self._inner(scope, body, receive=receive, reply=reply, budget=budget)
        except Refusal as refusal:
            await reply.refuse(refusal)
        except _ClientLeft:
            reply.status = _CLIENT_LEFT
        except Exception as error:
            failure = error
            if not reply.status:
                await reply.refuse(failed(reply.id))
        finally:
            self._note(scope, reply, failure)

    async def _inner(self, scope: Scope, body: bytes, *, receive: Receive, reply: _Reply, budget: Budget) -> None:
        """Hand over a request that has arrived; when its client leaves, its work is given up."""
        gone = asyncio.Event()

        async def watch() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            budget.given_up.set()
            gone.set()

        given = False

        async def again() -> Message:
            nonlocal given
            if not given:
                given = True
                return {"type": "http.request", "body": body, "more_body": False}
            await gone.wait()
            return {"type": "http.disconnect"}

        watcher = asyncio.create_task(watch())
        try:
            await self.app(scope, again, reply)
        finally:
            watcher.cancel()

    async def _body(self, headers: dict[str, str], receive: Receive) -> bytes:
        most = self.limits.body_bytes
        too_large = Refusal(413, f"a body of more than {most:,} bytes", hint="send fewer subgraphs at a time")
        length = headers.get("content-length", "")
        if length.isascii() and length.isdigit() and int(length[:18]) > most:
            if "expect" not in headers:
                await _discard(receive)
            raise too_large
        body = bytearray()
        try:
            async with asyncio.timeout(self.limits.body_seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise _ClientLeft
                    body += message.get("body", b"")
                    more = message.get("more_body", False)
                    if len(body) > most:
                        if more:
                            await _discard(receive)
                        raise too_large
                    if not more:
                        return bytes(body)
        except TimeoutError:
            what = f"the body did not arrive within {self.limits.body_seconds:g} seconds"
            raise Refusal(408, what, hint="send it at once") from None

    def _note(self, scope: Scope, reply: _Reply, failure: BaseException | None) -> None:
        route = getattr(scope.get("route"), "path", "other")
        method = scope["method"] if scope["method"] in ("GET", "POST", "HEAD") else "other"
        self.metrics.count("subgnn_requests_total", route=route, method=method, status=str(reply.status))
        self.metrics.observe("subgnn_request_seconds", reply.seconds, route=route)
        fields = {
            "id": reply.id,
            "method": scope["method"],
            "path": scope["path"][:200],
            "status": reply.status,
            "ms": round(reply.seconds * 1000, 2),
            "client": (scope.get("client") or ["", 0])[0],
        }
        log("request", logging.ERROR if failure else logging.INFO, error=failure, **fields)


async def _discard(receive: Receive) -> None:
    """Take in some of what is not wanted: clients read the answer only when they have sent all, or could not."""
    taken = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(_DISCARD_SECONDS):
            while taken < _DISCARD_BYTES:
                message = await receive()
                taken += len(message.get("body", b""))
                if not message.get("more_body", False):
                    return


class _ClientLeft(Exception):
    """Nobody waits for an answer."""


class _Reply:
    """Sends an answer, with the headers all answers have; remembers its status."""

    def __init__(self, send: Send) -> None:
        self._send, self._begin = send, time.perf_counter()
        self.status, self.id = 0, secrets.token_hex(8)

    @property
    def seconds(self) -> float:
        """Since the request came."""
        return time.perf_counter() - self._begin

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            own = {
                **HEADERS,
                "cache-control": "no-store",
                "x-request-id": self.id,
                "server-timing": f"total;dur={self.seconds * 1000:.2f}",
            }
            there = {name.lower() for name, _ in message["headers"]}
            added = [(n.encode(), v.encode()) for n, v in own.items() if n.encode() not in there]
            message = {**message, "headers": [*message["headers"], *added]}
        await self._send(message)

    async def refuse(self, refusal: Refusal) -> None:
        """Answer with an error."""
        body = encode(refusal.to_json())
        headers = {"content-type": "application/json", "content-length": str(len(body)), **refusal.headers}
        if refusal.status in _CLOSING:
            headers["connection"] = "close"  # what is still to come is not read
        raw = [(name.encode(), value.encode()) for name, value in headers.items()]
        await self({"type": "http.response.start", "status": refusal.status, "headers": raw})
        await self({"type": "http.response.body", "body": body})
