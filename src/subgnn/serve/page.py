"""The files of the page, read once; no other file of the disk can be requested."""

from __future__ import annotations

import hashlib
from importlib.resources import files
from importlib.resources.abc import Traversable

from fastapi import APIRouter, Request, Response

from subgnn.serve.responses import Refusal
from subgnn.serve.security import STATIC

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
"""Content of each file, by its path below /static/."""

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
