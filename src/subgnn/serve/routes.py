"""The questions a server answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request, Response

from subgnn.errors import UserError, choices
from subgnn.ragged import Ragged
from subgnn.serve import schemas
from subgnn.serve.answers import encode
from subgnn.serve.bodies import BodyRoute
from subgnn.serve.budget import Budget
from subgnn.serve.lanes import Lane, Lanes
from subgnn.serve.limits import Limits
from subgnn.serve.logs import log
from subgnn.serve.metrics import Metrics, resident_bytes
from subgnn.serve.nodes import check_size, resolve, subgraphs_of
from subgnn.serve.refusals import Refusal
from subgnn.serve.runs import ServedRun
from subgnn.serve.together import Together
from subgnn.versions import __version__

Statuses = dict[int | str, dict[str, Any]]
_PROBLEMS: Statuses = {
    400: {"model": schemas.Problem, "description": "The request is not valid JSON, or names another host."},
    401: {"model": schemas.Problem, "description": "The token is missing or wrong."},
    403: {"model": schemas.Problem, "description": "The request comes from another origin."},
    404: {"model": schemas.Problem, "description": "There is no such run."},
    408: {"model": schemas.Problem, "description": "The body took too long to arrive."},
    413: {"model": schemas.Problem, "description": "The body is too large."},
    422: {"model": schemas.Problem, "description": "A node is not known, or there is too much or too little of it."},
    500: {"model": schemas.Problem, "description": "The server made a mistake, which is in its log."},
    503: {"model": schemas.Problem, "description": "The server is busy, or the work took too long."},
}

JSON = "application/json"
_WHILE = 600.0  # seconds that one step of getting ready may take

health = APIRouter(tags=["server"])
router = APIRouter(prefix="/api/runs", tags=["runs"], responses=_PROBLEMS, route_class=BodyRoute)


class Served:
    """All that routes need: the runs, the limits, the lanes and the metrics."""

    def __init__(self, runs: dict[str, ServedRun], *, limits: Limits, metrics: Metrics) -> None:
        self.runs, self.limits, self.metrics = runs, limits, metrics
        self.lanes = Lanes(limits, metrics)
        self.together = {name: Together(run, limits) for name, run in runs.items()}

    async def get_ready(self) -> None:
        """Compute what explanations and comparisons will need, a little at a time, between requests."""
        for run in self.runs.values():
            try:
                await self.lanes.slow.run(run.explainer.reference, Budget.of(_WHILE))
                while len(run.training) and not await self.lanes.slow.run(run.training.advance, Budget.of(_WHILE)):
                    pass
            except (Refusal, UserError) as error:
                log("not ready", run=run.name, reason=str(error))


def served(request: Request) -> Served:
    """What the application was made with."""
    found: Served = request.app.state.served
    return found


def the_run(request: Request, run: Annotated[str, Path(description="The name of a run.", max_length=100)]) -> ServedRun:
    """The run of that name, or 404."""
    runs = served(request).runs
    if run not in runs:
        raise Refusal(404, "there is no such run", hint=choices(run, runs))
    return runs[run]


Run = Annotated[ServedRun, Depends(the_run)]


async def answer(
    request: Request, run: ServedRun, work: Callable[[], Any], *, lane: Lane, subgraphs: int = 1
) -> Response:
    """Do the work in a lane; the answer is encoded there, too."""
    body = await lane.run(lambda: encode(work()), request.scope["budget"])
    return answered(request, run, body, subgraphs=subgraphs)


def answered(request: Request, run: ServedRun, body: bytes, *, subgraphs: int) -> Response:
    """An answer that is there, and counted."""
    here = served(request)
    question = request.scope["route"].path.rpartition("/")[2]
    here.metrics.count("subgnn_subgraphs_total", subgraphs, run=run.name, question=question)
    return Response(body, media_type=JSON)


def lane_for(request: Request, nodes: int, *, slow: bool = False) -> Lane:
    """The lane of a question about so many nodes."""
    here = served(request)
    return here.lanes.slow if slow or nodes > here.limits.quick_nodes else here.lanes.quick


@health.get("/health", response_model=schemas.Health)
async def is_healthy(request: Request) -> Any:
    """Say that the server is there."""
    return {"status": "ok", "version": __version__, "runs": len(served(request).runs)}


@health.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
async def metrics(request: Request) -> Response:
    """Numbers for Prometheus."""
    here = served(request).metrics
    here.gauge("process_resident_memory_bytes", resident_bytes())
    return Response(here.text(), media_type="text/plain; version=0.0.4")


@router.get("", response_model=schemas.Cards)
async def runs(request: Request) -> Any:
    """List the runs, each with its card."""
    return Response(encode({"runs": [run.card() for run in served(request).runs.values()]}), media_type=JSON)


@router.get("/{run}", response_model=schemas.Card)
async def card(run: Run) -> Any:
    """Give the card of a run: recipe, dataset, metrics, labels, versions, limits."""
    return Response(encode(run.card()), media_type=JSON)


@router.get("/{run}/nodes", response_model=schemas.FoundNodes)
async def search(
    request: Request,
    run: Run,
    q: Annotated[
        str,
        Query(min_length=1, max_length=200, description="A part of a name, or a row number, as #12.", examples=["TP5"]),
    ],
    limit: Annotated[int, Query(ge=1, le=1000)] = 10,
) -> Any:
    """Search nodes by name: the very name first, then beginnings, then parts."""
    most = min(limit, served(request).limits.found)

    def work() -> Any:
        found = run.index.search(q, limit=most)
        return {"nodes": [{"id": f.node, "name": f.name, "matched": f.matched, "degree": f.degree} for f in found]}

    return await answer(request, run, work, lane=served(request).lanes.search, subgraphs=0)


@router.post("/{run}/resolve", response_model=schemas.ResolvedNodes)
async def resolve_nodes(request: Request, run: Run, asked: schemas.NodesToResolve) -> Any:
    """Turn a list of names and row numbers, as people paste it, into nodes; what is not understood is listed."""
    check_size([asked.nodes], served(request).limits)

    def work() -> Any:
        found, unknown, several = resolve(run.index, asked.nodes)
        nodes = [{"given": given, "id": node, "name": run.index.name(node)} for node, given in found.items()]
        return {"nodes": nodes, "unknown": unknown, "several": several}

    return await answer(request, run, work, lane=served(request).lanes.search, subgraphs=0)


def _of_subgraphs(run: ServedRun, question: Callable[[Ragged], Any], rows: Sequence[Sequence[int | str]]) -> Any:
    return question(subgraphs_of(run.index, rows))


@router.post("/{run}/predict", response_model=schemas.Predictions)
async def predict(request: Request, run: Run, asked: schemas.Subgraphs) -> Any:
    """Predict the labels of subgraphs, seen before or not."""
    rows = asked.subgraphs
    here = served(request)
    size = check_size(rows, here.limits)
    lane = lane_for(request, size)
    if lane is here.lanes.quick:
        budget = request.scope["budget"]
        body = await here.together[run.name].predict(rows, nodes=size, lane=lane, budget=budget)
        return answered(request, run, body, subgraphs=len(rows))
    work = partial(_of_subgraphs, run, run.predict, rows)
    return await answer(request, run, work, lane=lane, subgraphs=len(rows))


@router.post("/{run}/embed", response_model=schemas.Vectors)
async def embed(request: Request, run: Run, asked: schemas.Subgraphs) -> Any:
    """Give the vector of each subgraph, as the head receives it."""
    rows = asked.subgraphs
    lane = lane_for(request, check_size(rows, served(request).limits))
    work = partial(_of_subgraphs, run, run.embed, rows)
    return await answer(request, run, work, lane=lane, subgraphs=len(rows))


@router.post("/{run}/explain", response_model=schemas.Explanations)
async def explain(request: Request, run: Run, asked: schemas.SubgraphsToExplain) -> Any:
    """Say which nodes, components, channels and anchors carried each prediction."""
    rows = asked.subgraphs
    size = check_size(rows, served(request).limits, explained=True)
    work = partial(_of_subgraphs, run, partial(run.explain, attributions=asked.attributions), rows)
    return await answer(request, run, work, lane=lane_for(request, size, slow=True), subgraphs=len(rows))


@router.post("/{run}/draw", response_model=schemas.Drawing)
async def draw(request: Request, run: Run, asked: schemas.SubgraphToDraw) -> Any:
    """Give a subgraph and what lies around it, few enough nodes to be drawn."""
    limits = served(request).limits
    size = check_size([asked.nodes], limits)

    def work() -> Any:
        return run.draw(subgraphs_of(run.index, [asked.nodes])[0], most=min(asked.most, limits.drawn))

    return await answer(request, run, work, lane=lane_for(request, size))


@router.post("/{run}/nearest", response_model=schemas.NearSubgraphs)
async def nearest(request: Request, run: Run, asked: schemas.SubgraphToCompare) -> Any:
    """Find the training subgraphs whose vectors are nearest."""
    size = check_size([asked.nodes], served(request).limits)

    def work() -> Any:
        return run.nearest(subgraphs_of(run.index, [asked.nodes])[0], asked.count)

    return await answer(request, run, work, lane=lane_for(request, size, slow=not run.training.ready))
