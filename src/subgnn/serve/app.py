"""The ASGI application: routes, the page, answers to errors, and the middleware around them."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from subgnn.errors import UserError
from subgnn.serve.limits import Limits
from subgnn.serve.middleware import RequestMiddleware
from subgnn.serve.monitoring import Metrics
from subgnn.serve.responses import JSON, Refusal, failed
from subgnn.serve.routes import AppState, health, invalid, not_json, router
from subgnn.serve.runs import ServedRun
from subgnn.serve.security import STATIC, AccessRules
from subgnn.versions import __version__

_ABOUT = """Query trained runs about subgraphs of their graph: predictions, vectors, explanations, drawings, neighbours.

Nodes are given by name, or by row number as #12; if the graph has no names, 12 is row 12.
Errors are JSON with `error`, `hint` and `nodes`."""


def create_app(
    runs: dict[str, ServedRun], *, access: AccessRules | None = None, limits: Limits | None = None
) -> RequestMiddleware:
    """An ASGI application that serves runs.

    Args:
        runs: by the names they are served by, as :func:`~subgnn.serve.runs.open_runs` returns them.
        access: who may send requests; by default those on this machine.
        limits: of requests.
    """
    limits = limits or Limits()
    metrics = Metrics()
    state = AppState(runs, limits=limits, metrics=metrics)
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
    app.include_router(health)
    app.include_router(router)
    app.include_router(page)
    for kind, handler in (
        (Refusal, _refused),
        (UserError, _user_error),
        (RequestValidationError, _invalid),
        (HTTPException, _framework_error),
        (Exception, _failed),
    ):
        app.add_exception_handler(kind, handler)
    return RequestMiddleware(app, access=access or AccessRules(), limits=limits, metrics=metrics)


async def _refused(_: Request, error: Exception) -> Response:
    refusal = error if isinstance(error, Refusal) else Refusal(500, "")
    return Response(refusal.body(), refusal.status, headers=refusal.headers, media_type=JSON)


async def _user_error(request: Request, error: Exception) -> Response:
    """Errors of the library about its input."""
    what, hint = (error.what, error.hint) if isinstance(error, UserError) else ("", "")
    return await _refused(request, Refusal(422, what, hint=hint))


async def _failed(request: Request, _: Exception) -> Response:
    """Any other error is a bug; the log has it under the request's id."""
    return await _refused(request, failed(request.scope["id"]))


async def _invalid(request: Request, error: Exception) -> Response:
    """Errors in a path or a query, and bodies that are not declared as JSON."""
    found: list[Any] = list(error.errors()) if isinstance(error, RequestValidationError) else []
    unread = any(item["type"] == "json_invalid" for item in found)
    return await _refused(request, not_json() if unread else invalid(found))


async def _framework_error(request: Request, error: Exception) -> Response:
    """Unknown paths, wrong methods and text that cannot be decoded."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    what = {404: "there is no such path", 405: "this path has other methods"}.get(status, "the request is malformed")
    answer = await _refused(request, Refusal(status, what, hint="see /openapi.json"))
    answer.headers.update(getattr(error, "headers", None) or {})
    return answer


_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".md": "text/plain; charset=utf-8",
}


def _collect(folder: Traversable, prefix: str) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for entry in folder.iterdir():
        if entry.is_dir():
            found |= _collect(entry, f"{prefix}{entry.name}/")
        elif "." + entry.name.rpartition(".")[2] in _TYPES:
            found[prefix + entry.name] = entry.read_bytes()
    return found


FILES = _collect(files("subgnn.serve") / "static", "")
"""Content of each file, by its path below /static/, read once; no other file of the disk can be requested."""

_TAGS = {path: f'"{hashlib.sha256(content).hexdigest()[:24]}"' for path, content in FILES.items()}

page = APIRouter(include_in_schema=False)


def _file(path: str, request: Request) -> Response:
    if path not in FILES:
        raise Refusal(404, "there is no such file")
    headers = {"etag": _TAGS[path], "cache-control": "no-cache"}
    if request.headers.get("if-none-match") == _TAGS[path]:
        return Response(status_code=304, headers=headers)
    return Response(FILES[path], media_type=_TYPES["." + path.rpartition(".")[2]], headers=headers)


@page.get("/")
async def index(request: Request) -> Response:
    """The page."""
    return _file("index.html", request)


@page.get(STATIC + "{path:path}")
async def static(path: str, request: Request) -> Response:
    """A file of the page."""
    return _file(path, request)
