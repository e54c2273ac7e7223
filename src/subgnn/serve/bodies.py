"""Bodies of requests: parsed and checked outside the event loop, where they are not small.

While a body is parsed nothing else runs in its thread; in that of the event loop, no other request would be heard.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from typing import Any, get_type_hints

from fastapi import Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError

from subgnn.serve.budget import Budget
from subgnn.serve.refusals import Refusal

SMALL = 16_384
"""Bytes of a body that is parsed within a millisecond, which is less than handing it over costs others."""
_LISTED = 3
_HINT = "see /openapi.json"


class _Parsed(Request):
    """A request whose body was read and checked."""

    raw: bytes
    asked: BaseModel

    async def body(self) -> bytes:
        """The body as it came."""
        return self.raw

    async def json(self) -> Any:
        """What it means, which the framework takes as it is."""
        return self.asked


class BodyRoute(APIRoute):
    """A route whose endpoint takes its body as the argument ``asked``."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Parse the body, then go on as the framework does."""
        handle = super().get_route_handler()
        model = get_type_hints(self.endpoint).get("asked")
        if model is None:
            return handle

        async def parse_first(request: Request) -> Response:
            body = await request.body()
            if not body or not is_json(request.headers.get("content-type", "")):
                return await handle(request)
            if len(body) <= SMALL:
                asked = parse(model, body)
            else:
                # A budget of its own: that of the request ends with the work that answers it.
                budget = Budget(request.scope["budget"].until)
                asked = await request.app.state.served.lanes.parse.run(lambda: parse(model, body), budget)
            parsed = _Parsed(request.scope, request.receive)
            parsed.raw, parsed.asked = body, asked
            return await handle(parsed)

        return parse_first


def is_json(content_type: str) -> bool:
    """Whether a body says that it is JSON."""
    kind, _, subtype = content_type.partition(";")[0].strip().lower().partition("/")
    return kind == "application" and (subtype == "json" or subtype.endswith("+json"))


def parse(model: type[BaseModel], body: bytes) -> BaseModel:
    """What a body means.

    Raises:
        Refusal: 400 where it is not valid JSON, 422 where it is another than the model; with the first mistakes alone.
    """
    try:
        return model.model_validate(json.loads(body))
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        raise invalid([{**item, "loc": ("body", *item["loc"])} for item in found[:_LISTED]]) from None
    except (ValueError, RecursionError):
        raise not_json() from None


def not_json() -> Refusal:
    """The body cannot be parsed."""
    return Refusal(400, "the body is not valid JSON", hint=_HINT)


def invalid(found: Any) -> Refusal:
    """The first mistakes, with their places and without what was sent."""
    texts = [f"{'.'.join(str(part)[:40] for part in item['loc'])}: {item['msg']}" for item in found[:_LISTED]]
    return Refusal(422, "; ".join(texts)[:500], hint=_HINT)
