"""Routes of the HTTP interface."""

import asyncio
import json
import re
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Annotated, Any, get_type_hints

import numpy as np
from fastapi import APIRouter, Depends, Path, Query, Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError

from subgnn.channels.walk_table import advance_tables
from subgnn.data.formats.format import Columns, ReadOptions
from subgnn.errors import UserError, choices
from subgnn.inference.options import PredictOptions
from subgnn.inference.search import SearchOptions
from subgnn.ragged import Ragged
from subgnn.serve import schemas
from subgnn.serve.limits import JSON, Deadline, Limits, Refusal, encode
from subgnn.serve.monitoring import Metrics, log
from subgnn.serve.nodes import check_size, known_nodes, resolve, subgraphs_of
from subgnn.serve.runs import ServedRun
from subgnn.serve.tables import MEDIA_TYPES, AnswerFormat, accepted_format, answer_table
from subgnn.serve.workers import Lane, Lanes, PredictionBatcher, SmallRequest, freeze_memory
from subgnn.versions import __version__

SMALL_BODY = 16_384
"""Bytes of a body that is parsed within a millisecond, which is less than handing it over to a thread costs."""
_MAX_MISTAKES = 3
_HINT = "see /openapi.json"
_JSON_TYPE = re.compile(r"\s*application/([^\s;]+\+)?json\s*(;|$)", re.IGNORECASE)
_WARM_UP_SECONDS = 600.0  # that one step may take

_ERRORS = {
    400: "The body is not valid JSON, or the Host header is not accepted.",
    401: "The token is missing or wrong.",
    403: "The request comes from another origin.",
    404: "There is no such run.",
    409: "The runs answer on their own graphs, which do not change.",
    408: "The body took too long to arrive.",
    413: "The body is too large.",
    414: "The path and the query are too long.",
    422: "A node is unknown, or there are too many or too few subgraphs or nodes.",
    431: "The headers are too large.",
    500: "A bug in the server; see its log.",
    503: "The server is busy, or the work took too long.",
}
_RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {"model": schemas.Problem, "description": text} for status, text in _ERRORS.items()
}


class BodyRoute(APIRoute):
    """A route whose endpoint takes a request, a run and a ``body``, and answers by itself.

    FastAPI would parse bodies in the event loop, which blocks other requests; here large bodies are parsed in a thread.
    Resolving dependencies would take as long as everything else that a request needs in the event loop.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Parse the body and call the endpoint; requests without a body are refused as FastAPI does."""
        handle = super().get_route_handler()
        endpoint: Callable[..., Coroutine[Any, Any, Response]] = self.endpoint
        model = get_type_hints(endpoint).get("body")
        if model is None:
            return handle

        async def parse_first(request: Request) -> Response:
            raw = await request.body()
            if not raw:
                return await handle(request)
            if not _JSON_TYPE.match(request.headers.get("content-type", "")):
                raise Refusal(422, "the body is not declared as JSON", hint="send content-type: application/json")
            run = await find_run(request, request.path_params["run"])
            if len(raw) <= SMALL_BODY:
                return await endpoint(request, run, parse_body(model, raw))
            # A new deadline: a lane cancels the deadline of its work when that is done.
            deadline = Deadline(request.scope["deadline"].until)
            parsed = await state_of(request).lanes.parse.run(lambda: parse_body(model, raw), deadline)
            return await endpoint(request, run, parsed)

        return parse_first


def parse_body(model: type[BaseModel], body: bytes) -> BaseModel:
    """Parse and check a body; 400 for invalid JSON, 422 for one that does not match the model."""
    try:
        return model.model_validate(json.loads(body))
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        raise invalid([{**item, "loc": ("body", *item["loc"])} for item in found[:_MAX_MISTAKES]]) from None
    except (ValueError, RecursionError):
        raise not_json() from None


def not_json() -> Refusal:
    """400: the body cannot be parsed."""
    return Refusal(400, "the body is not valid JSON", hint=_HINT)


def invalid(found: Any) -> Refusal:
    """422: the first mistakes and their locations, without the values that were sent."""
    texts = [f"{'.'.join(str(part)[:40] for part in item['loc'])}: {item['msg']}" for item in found[:_MAX_MISTAKES]]
    return Refusal(422, "; ".join(texts)[:500], hint=_HINT)


health = APIRouter(tags=["server"])
router = APIRouter(prefix="/api/runs", tags=["runs"], responses=_RESPONSES, route_class=BodyRoute)

OpenRuns = Callable[[], dict[str, ServedRun]]


class AppState:
    """What routes share: the runs, the limits, the lanes and the metrics."""

    def __init__(
        self, runs: dict[str, ServedRun], *, limits: Limits, metrics: Metrics, open_again: OpenRuns | None = None
    ) -> None:
        self.limits, self.metrics, self.open_again = limits, metrics, open_again
        self.lanes = Lanes(limits, metrics)
        self._replacing = asyncio.Lock()
        self.use(runs)

    def use(self, runs: dict[str, ServedRun]) -> None:
        """Answer with these runs from now on; a request that has begun goes on with the run that it has."""
        self.runs = runs
        self.batchers = {name: PredictionBatcher(run, self.limits) for name, run in runs.items()}

    async def replace_graph(self) -> dict[str, ServedRun]:
        """Read the graph again, and answer on it once all runs are open; if that fails, the old one stays."""
        if self.open_again is None:
            hint = "start the server with --graph PATH, and replace what is there"
            raise Refusal(409, "the runs answer on their own graphs, which do not change", hint=hint)
        if self._replacing.locked():
            raise Refusal(503, "the graph is being replaced already", hint="try again later", retry=5)
        async with self._replacing:
            found = await asyncio.to_thread(self.open_again)
        self.use(found)
        freeze_memory()
        return found

    async def warm_up(self) -> None:
        """Compute what explanations and comparisons need, in small steps between requests."""

        async def step(work: Callable[[], Any]) -> Any:
            return await self.lanes.slow.run(work, Deadline.after(_WARM_UP_SECONDS))

        for run in self.runs.values():
            try:
                while not await step(advance_tables):
                    pass
                await step(run.explainer.reference)
                while len(run.known) and not await step(run.known.advance):
                    pass
                await step(run.completer)
            except (Refusal, UserError) as error:
                log("not ready", run=run.name, reason=str(error))


def state_of(request: Request) -> AppState:
    """The state of the application."""
    state: AppState = request.app.state.serving
    return state


async def find_run(
    request: Request, run: Annotated[str, Path(description="Name of a run.", max_length=100)]
) -> ServedRun:
    """The run of that name, or 404."""
    runs = state_of(request).runs
    if run not in runs:
        raise Refusal(404, "there is no such run", hint=choices(run, runs))
    return runs[run]


Run = Annotated[ServedRun, Depends(find_run)]


def counted(request: Request, run: ServedRun, body: bytes, *, subgraphs: int, media_type: str = JSON) -> Response:
    """An answer, counted in the metrics."""
    question = request.scope["route"].path.rpartition("/")[2]
    state_of(request).metrics.subgraphs.labels(run=run.name, question=question).inc(subgraphs)
    return Response(body, media_type=media_type)


def lane_for(request: Request, nodes: int, *, slow: bool = False) -> Lane:
    """The lane of a request with that many nodes."""
    state = state_of(request)
    return state.lanes.slow if slow or nodes > state.limits.quick_nodes else state.lanes.quick


async def answer(
    request: Request, run: ServedRun, work: Callable[[], Any], *, lane: Lane, subgraphs: int = 1
) -> Response:
    """Do the work, and encode its result, in a lane."""
    return counted(request, run, await lane.run(lambda: encode(work()), request.scope["deadline"]), subgraphs=subgraphs)


async def answer_each(
    request: Request,
    run: ServedRun,
    body: schemas.Subgraphs,
    work: Callable[[Ragged, list[list[str]]], dict[str, Any]],
    *,
    size: int,
    slow: bool = False,
) -> Response:
    """Do work on subgraphs with ``size`` nodes and on the nodes dropped from each, which are added to its result."""

    def found() -> dict[str, Any]:
        rows, dropped = subgraphs_of(run.index, body.subgraphs, drop=body.unknown == "drop")
        return work(rows, dropped) | {"dropped": dropped}

    return await answer(request, run, found, lane=lane_for(request, size, slow=slow), subgraphs=len(body.subgraphs))


async def answer_together(
    request: Request, run: ServedRun, body: schemas.Subgraphs, options: PredictOptions | None = None
) -> Response:
    """Predict subgraphs, or without options compute their vectors; a few together with those of other requests."""
    state, rows = state_of(request), body.subgraphs
    size = check_size(rows, state.limits)
    lane = lane_for(request, size)
    if lane is not state.lanes.quick:
        return await answer_each(request, run, body, partial(run.predict_or_embed, rows, options), size=size)
    small = SmallRequest(rows, size, body.unknown == "drop", options, request.scope["deadline"])
    return counted(request, run, await state.batchers[run.name].answer(small, lane), subgraphs=len(rows))


@health.get("/health", response_model=schemas.Health)
async def is_healthy(request: Request) -> Any:
    """Report that the server is running."""
    return {"status": "ok", "version": __version__, "runs": len(state_of(request).runs)}


@health.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
async def metrics(request: Request) -> Response:
    """Metrics for Prometheus."""
    state = state_of(request)

    def compare() -> None:
        for run in state.runs.values():
            for quantity, p_value, _ in run.drift.differences() if run.drift is not None else ():
                state.metrics.drift.labels(run=run.name, quantity=quantity).set(p_value)

    await asyncio.to_thread(compare)
    return Response(state.metrics.text(), media_type="text/plain; version=0.0.4")


@health.post("/api/graph", response_model=schemas.ReplacedGraph, responses=_RESPONSES)
async def replace_graph(request: Request) -> Any:
    """Read the graph of --graph again, and answer on it; requests that have begun finish on the graph before."""
    found = await state_of(request).replace_graph()
    runs = {
        name: {"graph_hash": run.predictor.graph.content_hash, "differs": run.differs} for name, run in found.items()
    }
    return Response(encode({"runs": runs}), media_type=JSON)


@router.get("", response_model=schemas.Cards)
async def runs(request: Request) -> Any:
    """List the runs with facts about each."""
    return Response(encode({"runs": [run.card() for run in state_of(request).runs.values()]}), media_type=JSON)


@router.get("/{run}", response_model=schemas.Card)
async def card(run: Run) -> Any:
    """Describe a run: recipe, dataset, metrics, classes, versions, limits."""
    return Response(encode(run.card()), media_type=JSON)


@router.get("/{run}/nodes", response_model=schemas.FoundNodes)
async def search(
    request: Request,
    run: Run,
    q: Annotated[
        str,
        Query(min_length=1, max_length=200, description="Part of a name, or a row number like #12.", examples=["TP5"]),
    ],
    limit: Annotated[int, Query(ge=1, le=1000)] = 10,
) -> Any:
    """Search nodes by name: exact matches first, then names that begin with the text, then that contain it."""
    most = min(limit, state_of(request).limits.found)

    def work() -> Any:
        return {"nodes": [found.model_dump() for found in run.index.search(q, limit=most)]}

    return await answer(request, run, work, lane=state_of(request).lanes.search, subgraphs=0)


@router.post("/{run}/resolve", response_model=schemas.ResolvedNodes)
async def resolve_nodes(request: Request, run: Run, body: schemas.NodesToResolve) -> Any:
    """Turn a list of names and row numbers into nodes, and list those that match no node or several."""
    check_size([body.nodes], state_of(request).limits)

    def work() -> Any:
        found, unknown, several = resolve(run.index, body.nodes)
        nodes = [{"given": given, "id": node, "name": run.index.name(node)} for node, given in found.items()]
        return {"nodes": nodes, "unknown": unknown, "several": several}

    return await answer(request, run, work, lane=state_of(request).lanes.search, subgraphs=0)


@router.post("/{run}/predict", response_model=schemas.Predictions)
async def predict(request: Request, run: Run, body: schemas.SubgraphsToPredict) -> Any:
    """Predict the labels of subgraphs, including ones that are not in the dataset."""
    options = PredictOptions(coverage=body.coverage, coverage_by_class=body.coverage_by_class, min_known=body.min_known)
    return await answer_together(request, run, body, options)


_TABLE = {"type": "string", "format": "binary", "description": "CSV, TSV, Parquet, Excel, JSON lines or GMT."}
_TABLE_BODY = {
    "required": True,
    "content": {"text/csv": {"schema": {"type": "string"}}, "application/octet-stream": {"schema": _TABLE}},
}
_TABLE_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "model": schemas.TableAnswer,
        "content": {media.partition(";")[0]: {} for media in MEDIA_TYPES.values() if media != JSON},
        "description": "Predictions, joined to the rows of the table.",
    }
}


@router.post("/{run}/table", openapi_extra={"requestBody": _TABLE_BODY}, responses=_TABLE_RESPONSES)
async def table(
    request: Request,
    run: Run,
    unknown: schemas.Unknown = "error",
    top: Annotated[
        int | None,
        Query(ge=1, le=1000, description="How many of the likeliest classes to list, instead of one column per class."),
    ] = None,
    coverage: schemas.Coverage = None,
    coverage_by_class: schemas.ByClass = False,
    min_known: schemas.MinKnown = 0.5,
    sort: Annotated[
        str | None,
        Query(max_length=300, description="Highest first, by probability, probability:CLASS, value or novelty."),
    ] = None,
    members: Annotated[bool, Query(description="Give the nodes of each subgraph, in the last column.")] = True,
    format: Annotated[
        AnswerFormat | None, Query(description="The format of the answer; by default what Accept names first, or json.")
    ] = None,
    name: Annotated[
        str, Query(min_length=1, max_length=100, description="The name of the table's file, such as sets.gmt.")
    ] = "table",
    subgraph_column: Annotated[
        str | None, Query(max_length=200, description="The column with the names of subgraphs; guessed by default.")
    ] = None,
    node_column: Annotated[
        str | None, Query(max_length=200, description="The column with nodes, or lists of nodes; guessed by default.")
    ] = None,
    encoding: Annotated[str | None, Query(max_length=40, description="The encoding of text; UTF-8 by default.")] = None,
    excel_safe: Annotated[
        bool, Query(description="In CSV and TSV, put a quote before texts that Excel would take for formulas.")
    ] = False,
) -> Any:
    """Predict the subgraphs of a table, which is the body, and answer with a table."""
    state, body = state_of(request), await request.body()
    if request.headers.get("content-type", "").lower().startswith("multipart/"):
        raise Refusal(422, "the table is in a form", hint="send it as the body, as curl --data-binary @FILE does")
    columns = Columns(subgraph=subgraph_column, node=node_column)
    reading = partial(ReadOptions, columns=columns, encoding=encoding, unknown=unknown)
    wanted = PredictOptions(
        top=top, coverage=coverage, coverage_by_class=coverage_by_class, min_known=min_known, sort=sort, members=members
    )
    form = format or accepted_format(request.headers.get("accept", ""))

    def work() -> tuple[bytes, int]:
        return answer_table(run, name, body, reading, form, state.limits, wanted, excel_safe=excel_safe)

    content, count = await state.lanes.slow.run(work, request.scope["deadline"])
    found = counted(request, run, content, subgraphs=count, media_type=MEDIA_TYPES[form])
    if form != "json":
        found.headers["content-disposition"] = f'attachment; filename="predictions.{form}"'
    return found


@router.post("/{run}/embed", response_model=schemas.Vectors)
async def embed(request: Request, run: Run, body: schemas.Subgraphs) -> Any:
    """Compute the vector of each subgraph, as the head receives it."""
    return await answer_together(request, run, body)


@router.post("/{run}/explain", response_model=schemas.Explanations)
async def explain(request: Request, run: Run, body: schemas.Subgraphs) -> Any:
    """Explain each prediction: contributions of nodes, components, channels and anchors."""
    size = check_size(body.subgraphs, state_of(request).limits, explained=True)
    return await answer_each(
        request, run, body, lambda rows, _: run.explain(body.subgraphs, rows), size=size, slow=True
    )


@router.post("/{run}/complete", response_model=schemas.Completions)
async def complete(request: Request, run: Run, body: schemas.SubgraphsToComplete) -> Any:
    """Suggest nodes that are missing from each subgraph, with the probability that they belong to it."""
    limits, among = state_of(request).limits, body.among
    size = check_size(body.subgraphs, limits) + (0 if among is None else check_size([among], limits))

    def work(subgraphs: Ragged, _: Any) -> dict[str, Any]:
        few = None
        if among is not None:
            few = known_nodes(run.index, among, "among", drop=body.unknown == "drop")[0].astype(np.int64)
        return run.complete(subgraphs, top=body.top, among=few)

    return await answer_each(request, run, body, work, size=size, slow=run.fitted_completer is None)


@router.post("/{run}/draw", response_model=schemas.Drawing)
async def draw(request: Request, run: Run, body: schemas.SubgraphToDraw) -> Any:
    """Select nodes and edges in and around a subgraph, few enough to be drawn."""
    limits = state_of(request).limits
    size = check_size([body.nodes], limits)

    def work() -> Any:
        return run.draw(known_nodes(run.index, body.nodes, "subgraph 0")[0], most=min(body.most, limits.drawn))

    return await answer(request, run, work, lane=lane_for(request, size))


@router.post("/{run}/search", response_model=schemas.SearchResults)
async def search_known(request: Request, run: Run, body: schemas.SubgraphsToSearch) -> Any:
    """Find the known subgraphs (training and validation) that are nearest, with their labels."""
    size = check_size(body.subgraphs, state_of(request).limits)
    options = SearchOptions(body.top, body.include_test, body.by)
    slow = not run.known.is_ready(options)
    return await answer_each(request, run, body, lambda rows, _: run.search(rows, options), size=size, slow=slow)
