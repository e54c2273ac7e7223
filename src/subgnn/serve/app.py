"""The ASGI application: routes, the page, answers to errors, and the middleware around them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from subgnn.errors import UserError
from subgnn.serve.limits import Limits
from subgnn.serve.middleware import RequestMiddleware
from subgnn.serve.monitoring import Metrics
from subgnn.serve.page import page
from subgnn.serve.responses import JSON, Refusal, failed
from subgnn.serve.routes import AppState, health, invalid, not_json, router
from subgnn.serve.runs import ServedRun
from subgnn.serve.security import AccessRules
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
