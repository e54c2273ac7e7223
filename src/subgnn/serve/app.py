"""The ASGI application: access, routes, the page, errors, and what happens to every request.

Around all routes are access, a bounded body, a deadline, security headers, logs and metrics. The body is read here,
completely and within limits, before any route sees it, so a slow or endless body occupies no worker. This is plain ASGI
around the whole application: Starlette's own middleware runs inside its error handler, whose answers would lack the
headers, and its limit of bodies has no timeout.

- On a loopback address everybody on the machine has access, but not the pages of other sites in a browser there:
  requests must name this machine as their host (which stops DNS rebinding), and must not come from another origin.
- On any other address requests need a bearer token, and the server does not start without one.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import logging
import mimetypes
import os
import re
import secrets
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from subgnn.errors import UserError
from subgnn.serve.limits import JSON, Deadline, Limits, Refusal
from subgnn.serve.monitoring import Metrics, log
from subgnn.serve.routes import AppState, OpenRuns, health, invalid, not_json, router
from subgnn.serve.runs import ServedRun
from subgnn.versions import __version__

_CLOSING = (408, 413, 414, 431)
_DISCARD_BYTES, _DISCARD_SECONDS = 20_000_000, 1.0
_CLIENT_LEFT = 499  # a status for logs and metrics; nobody receives it
_ABOUT = """Query trained runs about subgraphs of their graph: predictions, vectors, explanations, drawings, neighbours.

Nodes are given by name, or by row number as #12; if the graph has no names, 12 is row 12.
Errors are JSON with `error`, `hint` and `nodes`."""

TOKEN_VARIABLE = "SUBGNN_TOKEN"
_MIN_TOKEN = 16
_LOOPBACK_HOSTS = frozenset({"localhost", "127.0.0.1", "[::1]"})
_HOST = re.compile(r"(?P<name>[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:(?P<port>[0-9]{1,5}))?")
_OPEN_PATHS = frozenset({"/", "/health", "/openapi.json"})
STATIC = "/static/"

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}


def is_loopback(host: str) -> bool:
    """Whether an address can be reached only from this machine."""
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


def read_token(file: Path | None) -> str | None:
    """The token in a file, or else in SUBGNN_TOKEN; None without either."""
    given = file.read_text(encoding="utf-8").strip() if file is not None else os.environ.get(TOKEN_VARIABLE, "").strip()
    where = str(file) if file is not None else TOKEN_VARIABLE
    if not given and file is None:
        return None
    if len(given) < _MIN_TOKEN or not given.isascii() or not given.isprintable() or " " in given:
        hint = f"accepted: at least {_MIN_TOKEN} printable ASCII characters, for example from: openssl rand -hex 32"
        raise UserError(f"the token of {len(given)} characters is not valid", where=where, hint=hint)
    return given


@dataclass(frozen=True, slots=True)
class AccessRules:
    """Who may send requests to ``host``; unlike Starlette's TrustedHostMiddleware, by origin and token, too."""

    host: str = "127.0.0.1"
    token: str | None = None
    names: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if self.token is None and not is_loopback(self.host):
            hint = f"give one with --token-file FILE or {TOKEN_VARIABLE}, or listen on 127.0.0.1"
            what = f"{self.host} can be reached from other machines, but there is no token"
            raise UserError(what, where="--host", hint=hint)

    def check(self, method: str, path: str, headers: Mapping[str, str]) -> None:
        """Raise :class:`Refusal` (400, 401 or 403) for a request without access."""
        host = headers.get("host", "")
        found = _HOST.fullmatch(host)
        if found is None or int(found["port"] or 1) not in range(1, 2**16):
            raise Refusal(400, "the Host header is missing or not valid", hint="accepted: NAME or NAME:PORT")
        known = self.names
        if is_loopback(self.host):
            known |= _LOOPBACK_HOSTS | {f"[{self.host}]" if ":" in self.host else self.host}
        if known and found["name"].lower() not in known:
            raise Refusal(400, "the Host header names a different host", hint=f"accepted: {', '.join(sorted(known))}")
        origin = headers.get("origin")
        hint = "open the server's own page"
        if origin is not None and origin.partition("://")[2] != host:
            raise Refusal(403, "the request comes from a page with a different origin", hint=hint)
        if headers.get("sec-fetch-site") in ("cross-site", "same-site") and method != "GET":
            raise Refusal(403, "the request comes from another site", hint=hint)
        # No token is needed for the state of the server and for the page, which holds no data.
        if self.token is not None and path not in _OPEN_PATHS and not path.startswith(STATIC):
            scheme, _, given = headers.get("authorization", "").partition(" ")
            if scheme.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), self.token.encode()):
                raise Refusal(401, "the token is missing or wrong", hint="send it as: Authorization: Bearer TOKEN")


def create_app(
    runs: dict[str, ServedRun],
    *,
    access: AccessRules | None = None,
    limits: Limits | None = None,
    open_again: OpenRuns | None = None,
) -> RequestMiddleware:
    """An ASGI application that serves runs; ``open_again`` opens them on the graph as it is now, if that may change."""
    limits, metrics = limits or Limits(), Metrics()
    state = AppState(runs, limits=limits, metrics=metrics, open_again=open_again)
    for run in runs.values():
        metrics.run_info.labels(run=run.name, method=run.result.method).set(1)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        warming_up = asyncio.create_task(state.warm_up())
        yield
        warming_up.cancel()
        state.lanes.close()

    app = FastAPI(
        title="subgnn serve",
        version=__version__,
        description=_ABOUT,
        docs_url=None,  # they load scripts from other sites
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
    )
    app.state.serving = state
    for part in (router, health, page):  # in the order that paths are compared in
        app.include_router(part)
    for kind in (Refusal, UserError, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(kind, _error_response)
    return RequestMiddleware(app, access=access or AccessRules(), limits=limits, metrics=metrics)


async def _error_response(request: Request, error: Exception) -> Response:
    if isinstance(error, Refusal):
        refusal = error
    elif isinstance(error, UserError):  # of the library, about its input
        refusal = Refusal(422, error.what, hint=error.hint)
    elif isinstance(error, RequestValidationError):  # in a path or a query, or a body that is not declared as JSON
        found: list[Any] = list(error.errors())
        refusal = not_json() if any(item["type"] == "json_invalid" for item in found) else invalid(found)
    elif isinstance(error, HTTPException):  # unknown paths, wrong methods and text that cannot be decoded
        status, known = error.status_code, {404: "there is no such path", 405: "this path does not support this method"}
        refusal = Refusal(status, known.get(status, "the request is malformed"), hint="see /openapi.json")
    else:
        refusal = _failed(request.scope["id"])
    headers = refusal.headers | dict(getattr(error, "headers", None) or {})
    return Response(refusal.body(), refusal.status, headers=headers, media_type=JSON)


def _failed(request_id: str) -> Refusal:
    """The answer to a request that met a bug; the log has the error under the request's id."""
    return Refusal(500, "the server failed; this is a bug in subgnn", hint=f"its log has more, under {request_id}")


class RequestMiddleware:
    """The outermost layer of the application."""

    def __init__(self, app: ASGIApp, *, access: AccessRules, limits: Limits, metrics: Metrics) -> None:
        self.app, self.access, self.limits, self.metrics = app, access, limits, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        reply, limits, failure = _Reply(send), self.limits, None
        scope["id"] = reply.id
        try:
            # Refuse a long head before anything parses it; the protocol bounds only heads that arrive in pieces.
            if len(scope.get("raw_path") or scope["path"]) + len(scope["query_string"]) > limits.target_bytes:
                raise Refusal(414, f"path and query exceed {limits.target_bytes:,} bytes", hint="send a body")
            if sum(len(name) + len(value) for name, value in scope["headers"]) > limits.header_bytes:
                raise Refusal(431, f"the headers exceed {limits.header_bytes:,} bytes", hint="send fewer headers")
            headers = Headers(scope=scope)
            self.access.check(scope["method"], scope["path"], headers)
            body = await self._read_body(headers, Request(scope, receive).stream())
            scope["deadline"] = Deadline.after(limits.seconds)
            await self._forward(scope, body, receive, reply)
        except Refusal as refusal:
            await reply.refuse(refusal, scope, receive)
        except ClientDisconnect:
            reply.status = _CLIENT_LEFT
        except Exception as error:
            failure = error
            if not reply.status:
                await reply.refuse(_failed(reply.id), scope, receive)
        finally:
            route = getattr(scope.get("route"), "path", "other")
            method = scope["method"] if scope["method"] in ("GET", "POST", "HEAD") else "other"
            self.metrics.requests.labels(route=route, method=method, status=str(reply.status)).inc()
            self.metrics.request_seconds.labels(route=route).observe(reply.seconds)
            fields = {
                "id": reply.id,
                "method": scope["method"],
                "path": scope["path"][:200],
                "status": reply.status,
                "ms": round(reply.seconds * 1000, 2),
                "client": (scope.get("client") or ["", 0])[0],
            }
            log("request", logging.ERROR if failure else logging.INFO, error=failure, **fields)

    async def _forward(self, scope: Scope, body: bytes, receive: Receive, reply: _Reply) -> None:
        """Pass on a complete request; if its client leaves, its work is cancelled."""
        gone = asyncio.Event()

        async def watch() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            scope["deadline"].cancelled.set()
            gone.set()

        messages = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def replay() -> Message:
            for message in messages:
                return message
            await gone.wait()
            return {"type": "http.disconnect"}

        watcher = asyncio.create_task(watch())
        try:
            await self.app(scope, replay, reply)
        finally:
            watcher.cancel()

    async def _read_body(self, headers: Headers, stream: AsyncIterator[bytes]) -> bytes:
        most = self.limits.body_bytes
        too_large = Refusal(413, f"the body exceeds {most:,} bytes", hint="send fewer subgraphs at a time")
        length = headers.get("content-length", "")
        if length.isascii() and length.isdigit() and int(length[:18]) > most:
            if "expect" not in headers:
                await _discard(stream)
            raise too_large
        body = bytearray()
        try:
            async with asyncio.timeout(self.limits.body_seconds):
                async for part in stream:
                    body += part
                    if len(body) > most:
                        await _discard(stream)
                        raise too_large
                return bytes(body)
        except TimeoutError:
            what = f"the body did not arrive within {self.limits.body_seconds:g} seconds"
            raise Refusal(408, what, hint="send it without pauses") from None


async def _discard(stream: AsyncIterator[bytes]) -> None:
    """Read some of a body that is too large: clients read the answer only after they have sent theirs."""
    taken = 0
    with suppress(TimeoutError, ClientDisconnect):
        async with asyncio.timeout(_DISCARD_SECONDS):
            async for part in stream:
                taken += len(part)
                if taken >= _DISCARD_BYTES:
                    return


class _Reply:
    """Sends an answer with the headers of all answers, and records its status."""

    def __init__(self, send: Send) -> None:
        self._send, self._begin = send, time.perf_counter()
        self.status, self.id = 0, secrets.token_hex(8)

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._begin

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            timing = f"total;dur={self.seconds * 1000:.2f}"
            added = {"cache-control": "no-store", "x-request-id": self.id, "server-timing": timing}
            for name, value in (HEADERS | added).items():
                headers.setdefault(name, value)
        await self._send(message)

    async def refuse(self, refusal: Refusal, scope: Scope, receive: Receive) -> None:
        """Answer with an error; the connection is closed if the rest of the body is not read."""
        headers = refusal.headers | ({"connection": "close"} if refusal.status in _CLOSING else {})
        await Response(refusal.body(), refusal.status, headers=headers, media_type=JSON)(scope, receive, self)


_FOLDER = Path(__file__).with_name("static")
FILES = {path.relative_to(_FOLDER).as_posix(): path.read_bytes() for path in _FOLDER.rglob("*") if path.is_file()}
"""Content of each file, by its path below /static/, read once; no other file of the disk can be requested."""
_TYPES = {".js": "text/javascript", ".mjs": "text/javascript", ".md": "text/plain"}  # whatever the system says
_TAGS = {path: f'"{hashlib.sha256(content).hexdigest()[:24]}"' for path, content in FILES.items()}

page = APIRouter(include_in_schema=False)


@page.get("/")
@page.get(STATIC + "{path:path}")
async def static(request: Request, path: str = "index.html") -> Response:
    """A file of the page, or the page itself."""
    if path not in FILES:
        raise Refusal(404, "there is no such file")
    headers = {"etag": _TAGS[path], "cache-control": "no-cache"}
    if request.headers.get("if-none-match") == _TAGS[path]:
        return Response(status_code=304, headers=headers)
    kind = _TYPES.get(Path(path).suffix) or mimetypes.guess_type(path)[0]
    return Response(FILES[path], media_type=kind, headers=headers)
