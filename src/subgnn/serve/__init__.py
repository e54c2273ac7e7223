"""Runs that answer over HTTP, and a page that asks them.

Read in this order: server (a process that listens), app (the application), guard (what every request passes: security,
limits, logs, metrics), routes (the questions), runs (the answers). A request's work is done in one of two lanes
(lanes), within its budget of time (budget). The page is in static.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from subgnn.errors import MissingExtra

__all__ = ["serve"]


def serve(
    runs: Sequence[str],
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    token_file: Path | None = None,
    names: Sequence[str] = (),
    data: Path | None = None,
    limits: dict[str, float] | None = None,
    on_ready: Callable[[dict[str, Any]], None] | None = None,
) -> None:
    """Serve runs until SIGTERM or Ctrl-C.

    Args:
        runs: folders of finished runs, or files that ``subgnn export`` wrote; each as RUN or NAME=RUN.
        host, port: where to listen; port 0 takes any that is free.
        token_file: holds the token that requests must carry; by default that of SUBGNN_TOKEN, if it is set.
        names: further host names that requests may name.
        data: the dataset of all runs; by default where each run read it.
        limits: those of :class:`~subgnn.serve.limits.Limits` that are to be others.
        on_ready: called with the address and the runs when requests are answered.

    Raises:
        UserError: for runs, addresses or tokens that will not do.
    """
    try:
        import fastapi  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise MissingExtra(error.name or "fastapi", extra="serve", feature="subgnn serve") from None
    from subgnn.serve.app import create_app
    from subgnn.serve.limits import Limits
    from subgnn.serve.runs import open_runs
    from subgnn.serve.security import Door, read_token
    from subgnn.serve.server import bound, listen

    bounds = Limits(**(limits or {}))  # type: ignore[arg-type]
    door = Door(host, read_token(token_file), frozenset(name.lower() for name in names))
    listening = bound(host, port)
    try:
        opened = open_runs(runs, limits=bounds, data=data)
        for run in opened.values():
            run.warm_up()
        app = create_app(opened, door=door, limits=bounds)
        address = f"[{host}]" if ":" in host else host
        found = {"url": f"http://{address}:{listening.getsockname()[1]}/", "runs": list(opened)}
        listen(app, listening, limits=bounds, on_ready=lambda: on_ready(found) if on_ready else None)
    finally:
        listening.close()
