"""The ASGI application: routes, the page, errors, and the middleware around them."""

from __future__ import annotations

import asyncio
import hashlib
import mimetypes
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from subgnn.errors import UserError
from subgnn.serve.limits import JSON, Limits, Refusal, failed
from subgnn.serve.middleware import RequestMiddleware
from subgnn.serve.monitoring import Metrics
from subgnn.serve.routes import AppState, OpenRuns, graphs, health, invalid, not_json, router
from subgnn.serve.runs import ServedRun
from subgnn.serve.security import STATIC, AccessRules
from subgnn.versions import __version__

_ABOUT = """Query trained runs about subgraphs of their graph: predictions, vectors, explanations, drawings, neighbours.

Nodes are given by name, or by row number as #12; if the graph has no names, 12 is row 12.
Errors are JSON with `error`, `hint` and `nodes`."""


def create_app(
    runs: dict[str, ServedRun],
    *,
    access: AccessRules | None = None,
    limits: Limits | None = None,
    open_again: OpenRuns | None = None,
) -> RequestMiddleware:
    """An ASGI application that serves runs.

    Args:
        runs: by name, from :func:`~subgnn.serve.runs.open_runs`.
        access: who may send requests; by default those on this machine.
        open_again: opens the runs on the graph as it is now, if they answer on one that may change.
    """
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
    for part in (health, graphs, router, page):
        app.include_router(part)
    for kind in (Refusal, UserError, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(kind, _error_response)
    return RequestMiddleware(app, access=access or AccessRules(), limits=limits, metrics=metrics)


async def _error_response(request: Request, error: Exception) -> Response:
    refusal = _refusal(request, error)
    headers = refusal.headers | dict(getattr(error, "headers", None) or {})
    return Response(refusal.body(), refusal.status, headers=headers, media_type=JSON)


def _refusal(request: Request, error: Exception) -> Refusal:
    if isinstance(error, Refusal):
        return error
    if isinstance(error, UserError):  # of the library, about its input
        return Refusal(422, error.what, hint=error.hint)
    if isinstance(error, RequestValidationError):  # in a path or a query, or a body that is not declared as JSON
        found: list[Any] = list(error.errors())
        return not_json() if any(item["type"] == "json_invalid" for item in found) else invalid(found)
    if isinstance(error, HTTPException):  # unknown paths, wrong methods and text that cannot be decoded
        status, known = error.status_code, {404: "there is no such path", 405: "this path does not support this method"}
        return Refusal(status, known.get(status, "the request is malformed"), hint="see /openapi.json")
    return failed(request.scope["id"])  # a bug; the log has it under the request's id


_FOLDER = Path(__file__).with_name("static")
FILES = {path.relative_to(_FOLDER).as_posix(): path.read_bytes() for path in _FOLDER.rglob("*") if path.is_file()}
"""Content of each file, by its path below /static/, read once; no other file of the disk can be requested."""
_TYPES = {".js": "text/javascript", ".mjs": "text/javascript", ".md": "text/plain"}  # whatever the system says
_TAGS = {path: f'"{hashlib.sha256(content).hexdigest()[:24]}"' for path, content in FILES.items()}

page = APIRouter(include_in_schema=False)


@page.get("/")
async def index(request: Request) -> Response:
    """The page."""
    return await static("index.html", request)


@page.get(STATIC + "{path:path}")
async def static(path: str, request: Request) -> Response:
    """A file of the page."""
    if path not in FILES:
        raise Refusal(404, "there is no such file")
    headers = {"etag": _TAGS[path], "cache-control": "no-cache"}
    if request.headers.get("if-none-match") == _TAGS[path]:
        return Response(status_code=304, headers=headers)
    kind = _TYPES.get(Path(path).suffix) or mimetypes.guess_type(path)[0]
    return Response(FILES[path], media_type=kind, headers=headers)
