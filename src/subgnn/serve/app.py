"""The application: routes, the page, and the guard around them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from subgnn.errors import UserError
from subgnn.serve.answers import encode
from subgnn.serve.bodies import invalid, not_json
from subgnn.serve.guard import Guard
from subgnn.serve.limits import Limits
from subgnn.serve.metrics import Metrics
from subgnn.serve.page import page
from subgnn.serve.refusals import Refusal, failed
from subgnn.serve.routes import JSON, Served, health, router
from subgnn.serve.runs import ServedRun
from subgnn.serve.security import Door
from subgnn.versions import __version__

_ABOUT = """Ask trained runs about subgraphs of their graph: predictions, vectors, explanations, drawings, neighbours.

Nodes are given by name, or by row number, as #12; where the graph has no names, 12 is row 12.
Errors are JSON with `error`, `hint` and `nodes`."""


def create_app(runs: dict[str, ServedRun], *, door: Door | None = None, limits: Limits | None = None) -> Guard:
    """An ASGI application that answers about runs.

    Args:
        runs: by the names they are served by, as :func:`~subgnn.serve.runs.open_runs` gives them.
        door: who may ask; by default those on this machine.
        limits: of requests.
    """
    limits = limits or Limits()
    metrics = Metrics()
    metrics.gauge("process_start_time_seconds", time.time())
    here = Served(runs, limits=limits, metrics=metrics)
    for run in runs.values():
        metrics.gauge("subgnn_run_info", 1, run=run.name, method=str(run.results.get("method")))

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        getting_ready = asyncio.create_task(here.get_ready())
        yield
        getting_ready.cancel()
        here.lanes.close()

    app = FastAPI(
        title="subgnn serve",
        version=__version__,
        description=_ABOUT,
        docs_url=None,  # they load scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
    )
    app.state.served = here
    app.include_router(health)
    app.include_router(router)
    app.include_router(page)
    app.add_exception_handler(Refusal, _refused)
    app.add_exception_handler(UserError, _mistaken)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _other)
    app.add_exception_handler(Exception, _failed)
    return Guard(app, door=door or Door(), limits=limits, metrics=metrics)


async def _refused(_: Request, error: Exception) -> Response:
    refusal = error if isinstance(error, Refusal) else Refusal(500, "")
    return Response(encode(refusal.to_json()), refusal.status, headers=refusal.headers, media_type=JSON)


async def _mistaken(request: Request, error: Exception) -> Response:
    """What the library says of the request, as of any other input."""
    what, hint = (error.what, error.hint) if isinstance(error, UserError) else ("", "")
    return await _refused(request, Refusal(422, what, hint=hint))


async def _failed(request: Request, _: Exception) -> Response:
    """Our mistake; what it was is in the log, under the same id."""
    return await _refused(request, failed(request.scope["id"]))


async def _invalid(request: Request, error: Exception) -> Response:
    """What the framework finds wrong: of a path or a query, or a body that does not say that it is JSON."""
    found: list[Any] = list(error.errors()) if isinstance(error, RequestValidationError) else []
    unread = any(item["type"] == "json_invalid" for item in found)
    return await _refused(request, not_json() if unread else invalid(found))


async def _other(request: Request, error: Exception) -> Response:
    """What the framework refuses: no such path, no such method, no text."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    what = {404: "there is no such path", 405: "this path has other methods"}.get(status, "the request is malformed")
    answer = await _refused(request, Refusal(status, what, hint="see /openapi.json"))
    answer.headers.update(getattr(error, "headers", None) or {})
    return answer
