"""Serve trained runs over HTTP, with a page to explore them.

Read server (the process that listens) and app (the application) first. A request passes the middleware (access, limits,
logs, metrics) to a route, which does its work in one of the lanes of workers with one of the runs.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from subgnn.errors import UserError, extra_package
from subgnn.parallel.progress import ignore
from subgnn.result import read_result

__all__ = ["named_runs", "serve"]

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,79}")


def serve(
    runs: list[str],
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    token_file: Path | None = None,
    names: Sequence[str] = (),
    data: Path | None = None,
    graph: Path | None = None,
    record: Path | None = None,
    limits: dict[str, float] | None = None,
    on_ready: Callable[[dict[str, Any]], None] = ignore,
) -> None:
    """Serve runs, each given as RUN or NAME=RUN, until SIGTERM or Ctrl-C; arguments are options of ``subgnn serve``.

    Args:
        names: further host names to accept.
        limits: changes to the defaults of :class:`~subgnn.serve.limits.Limits`.
        on_ready: called with the address and the runs when the server accepts requests.
    """
    for _, path in named_runs(runs):
        if not path.is_file():
            read_result(path)  # refuses what is not a run before torch is imported
    with extra_package("fastapi", extra="serve", feature="subgnn serve"):
        import fastapi  # noqa: F401
        import prometheus_client  # noqa: F401
        import uvicorn  # noqa: F401
    from subgnn.serve.app import AccessRules, create_app, read_token
    from subgnn.serve.limits import Limits
    from subgnn.serve.runs import ServedRun, open_runs
    from subgnn.serve.server import bind_socket, run_server

    accepted = Limits(**(limits or {}))  # type: ignore[arg-type]
    access = AccessRules(host, read_token(token_file), frozenset(name.lower() for name in names))

    def open_all() -> dict[str, ServedRun]:
        found = open_runs(runs, limits=accepted, data=data, graph=graph, record=record)
        for run in found.values():
            run.warm_up()
        return found

    listening = bind_socket(host, port)
    try:
        opened = open_all()
        app = create_app(opened, access=access, limits=accepted, open_again=None if graph is None else open_all)
        address = f"[{host}]" if ":" in host else host
        found = {"url": f"http://{address}:{listening.getsockname()[1]}/", "runs": list(opened)}
        run_server(app, listening, limits=accepted, on_ready=lambda: on_ready(found))
    finally:
        listening.close()


def named_runs(given: Iterable[str]) -> list[tuple[str, Path]]:
    """The runs and their distinct names."""
    found: dict[str, Path] = {}
    for text in given:
        name, equals, path = text.rpartition("=")
        folder = Path(path)
        if not equals or not _NAME.fullmatch(name):
            folder = Path(text)
            own = folder.resolve()
            name = re.sub(r"[^A-Za-z0-9_.-]", "_", own.stem if own.is_file() else own.name).lstrip(".-")[:80] or "run"
        if name in found:
            hint = "name one of them: serve NAME=RUN"
            raise UserError(f"two runs are called '{name}'", where=f"{found[name]}, {folder}", hint=hint)
        found[name] = folder
    return list(found.items())
