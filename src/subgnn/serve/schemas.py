"""Bodies of requests and answers, of which /openapi.json is made."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, FailFast, Field, model_validator
from pydantic_core import PydanticCustomError

from subgnn.errors import excerpt
from subgnn.inference.nearest import Distance

Node = (
    Annotated[int, Field(strict=True, ge=0, le=2**53 - 1)]
    | Annotated[str, Field(strict=True, min_length=1, max_length=200)]
)
# Checking stops at the first mistake of a list: nobody reads a hundred thousand.
Nodes = Annotated[list[Node], Field(min_length=1), FailFast()]

_EXAMPLE: list[list[int | str]] = [["TP53", "BAX", "CASP9"], ["#0", "#1", "#2"]]
_ROW, _NAME = "Its row number.", "Its name, or its row number as #12: the text for requests."
_NAMES = "The same nodes by name, or by row number as #12: the text for requests."
_DROPPED = "Of each subgraph, the nodes that are not in the graph, as they were given."
_AS = "by name (also of digits), or by row number as #12; if the graph has no names, numbers are rows"


class Strict(BaseModel):
    """A body whose unknown keys are refused; the error names the first of them."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown(cls, given: Any) -> Any:
        unknown = next((key for key in given if key not in cls.model_fields), None) if isinstance(given, dict) else None
        if unknown is not None:
            known = ", ".join(cls.model_fields)
            raise PydanticCustomError(
                "extra_forbidden", "unknown key {key}; accepted: {known}", {"key": excerpt(unknown), "known": known}
            )
        return given


class Subgraphs(Strict):
    """Subgraphs to predict or embed."""

    subgraphs: Annotated[
        list[Nodes],
        Field(min_length=1, description=f"The nodes of each subgraph, {_AS}.", examples=[_EXAMPLE]),
        FailFast(),
    ]
    unknown: Literal["error", "drop"] = Field(
        "error", description="Nodes that are not in the graph: refuse them, or leave them out."
    )


class SubgraphsToExplain(Subgraphs):
    """Subgraphs whose predictions are to be explained."""

    attributions: bool = Field(
        False, description="Compute integrated gradients as well, which add up to the logits. Needs Captum."
    )


class SubgraphsToSearch(Subgraphs):
    """Subgraphs whose nearest known subgraphs are to be found."""

    top: int = Field(10, ge=1, le=100, description="How many known subgraphs to find for each.")
    distance: Distance = Field("centred", description="Of vectors; centred: by the cosine, less the mean of the known.")
    include_test: bool = Field(False, description="Find subgraphs of the test split, too.")


class SubgraphsToComplete(Subgraphs):
    """Subgraphs that nodes may be missing in."""

    top: int = Field(20, ge=1, le=1000, description="Most nodes to suggest for each subgraph.")
    among: list[Node] | None = Field(
        None, min_length=1, description=f"Suggest these nodes only, {_AS}; by default any."
    )


class OneSubgraph(Strict):
    """One subgraph."""

    nodes: Nodes = Field(description=f"Its nodes, {_AS}.", examples=[_EXAMPLE[0]])


class SubgraphToDraw(OneSubgraph):
    """One subgraph to draw."""

    most: int = Field(60, ge=0, le=1000, description="Most nodes to draw in addition to those of the subgraph.")


class NodesToResolve(Strict):
    """Names and row numbers, as typed or pasted."""

    nodes: Annotated[list[Node], Field(examples=[["TP53", "bax", "nobody"]]), FailFast()]


class Problem(BaseModel):
    """An error."""

    error: str = Field(examples=["subgraph 0: 1 node is not known: 'NOBODY'"])
    hint: str = Field("", description="What is accepted, or what to do.")
    nodes: list[str] = Field([], description="Unknown nodes, as they were given.")


class Health(BaseModel):
    """The state of the server."""

    status: str = Field(examples=["ok"])
    version: str
    runs: int


class FoundNode(BaseModel):
    """A search result."""

    id: int = Field(description=_ROW)
    name: str = Field(description=_NAME)
    matched: str = Field(description="The name that matched.")
    degree: int


class FoundNodes(BaseModel):
    """Search results, best first."""

    nodes: list[FoundNode]


class ResolvedNode(BaseModel):
    """A node and the text it was given by."""

    given: str
    id: int = Field(description=_ROW)
    name: str = Field(description=_NAME)


class ResolvedNodes(BaseModel):
    """Nodes of a list, and names that match no node or several."""

    nodes: list[ResolvedNode]
    unknown: list[str]
    several: list[str] = Field(description="Names that match more than one node.")


class Prediction(BaseModel):
    """The prediction for one subgraph."""

    nodes: list[int] = Field(description="Row numbers.")
    names: list[str] = Field(description=_NAMES)
    label: str = Field(description="A class; several joined by '-', or by ';' if a class contains '-'; or the value.")
    probabilities: dict[str, float | None] = Field(description="By class; empty for real-valued labels.")
    value: float | None = Field(None, description="The predicted value, for real-valued labels.")


class Predictions(BaseModel):
    """Predictions in the order of the request."""

    run: str
    task: str
    predictions: list[Prediction]
    dropped: list[list[str]] = Field(description=_DROPPED)


class UnknownNode(BaseModel):
    """A node of a table that is not in the graph."""

    given: str
    subgraphs: int = Field(description="The number of subgraphs it is in.")
    nearest: str | None = Field(description="The most similar name in the graph, for the first few.")


class TableAnswer(BaseModel):
    """Predictions joined to the rows of a table, in its order."""

    run: str
    task: str
    columns: list[str] = Field(description="subgraph, label, a class each; then name, dropped and those of the table.")
    rows: list[list[str | float | None]]
    num_unknown: int = Field(description="The number of nodes that are not in the graph.")
    unknown: list[UnknownNode] = Field(description="These nodes, the most frequent first; up to a thousand.")
    notes: list[str] = Field(description="What was guessed about the table, a line each.")


class Vectors(BaseModel):
    """z_S of each subgraph, in the order of the request."""

    run: str
    width: int
    vectors: list[list[float | None]]
    dropped: list[list[str]] = Field(description=_DROPPED)


class Explanations(BaseModel):
    """Explanations of predictions, as ``subgnn explain`` writes them."""

    run: str
    explanations: list[dict[str, Any]]
    dropped: list[list[str]] = Field(description=_DROPPED)


class SuggestedNode(BaseModel):
    """A node that may be missing in a subgraph."""

    id: int = Field(description=_ROW)
    name: str = Field(description=_NAME)
    probability: float = Field(description="That it belongs to a subgraph that has lost a fifth of its members.")
    neighbours: int = Field(description="The number of its neighbours in the subgraph.")
    reason: str = Field(description="The largest of its contributions.")
    contributions: dict[str, float] = Field(description="Terms of the log odds.")


class Completions(BaseModel):
    """Nodes that may be missing in each subgraph, the likeliest first."""

    run: str
    completions: list[list[SuggestedNode]]
    dropped: list[list[str]] = Field(description=_DROPPED)


class DrawnNode(BaseModel):
    """A node of a drawing."""

    id: int = Field(description=_ROW)
    name: str = Field(description=_NAME)
    kind: str = Field(description="inside, border (one hop away) or anchor (farther away).")
    component: int | None = Field(description="Component of the subgraph; null for nodes outside.")
    links: int = Field(description="Edges between a border node and the subgraph.")
    degree: int
    channels: list[str] = Field(description="Channels that have this node as an anchor.")
    x: float = Field(description="Its place in pixels, where a node is 24 pixels wide.")
    y: float


class DrawnEdge(BaseModel):
    """An edge among drawn nodes."""

    source: int
    target: int
    inside: bool


class Drawing(BaseModel):
    """A subgraph and its surroundings."""

    nodes: list[DrawnNode]
    edges: list[DrawnEdge]
    num_components: int
    num_border: int
    num_inside_edges: int
    left_out: dict[str, int] = Field(description="Numbers of nodes that were left out for lack of space.")


class KnownSubgraph(BaseModel):
    """A subgraph of the dataset, with its first hundred nodes."""

    place: int
    name: str
    labels: list[str]
    num_nodes: int
    nodes: list[int] = Field(description="Row numbers.")
    names: list[str] = Field(description=_NAMES)


class ExampleSubgraph(KnownSubgraph):
    """A subgraph to start with."""

    split: str = Field(description="test, or else val or train; all if the dataset has no splits.")


class NearSubgraph(KnownSubgraph):
    """A known subgraph that was found."""

    rank: int = Field(description="From 1, the nearest.")
    split: str | None = Field(description="train, val or test; null if the dataset has no splits.")
    distance: float


class NearSubgraphs(BaseModel):
    """The known subgraphs nearest to one, the nearest first."""

    nearest: list[NearSubgraph]


class SearchResults(BaseModel):
    """Known subgraphs nearest to each subgraph, in the order of the request."""

    run: str
    distance: str
    results: list[NearSubgraphs]
    dropped: list[list[str]] = Field(description=_DROPPED)


class Threshold(BaseModel):
    """Thresholds that were chosen for an aim."""

    aim: str = Field(examples=["precision=0.9"])
    chosen_on: str = Field(description="validation, or out-of-fold.")
    thresholds: dict[str, float] = Field(description="Probabilities above which a class is predicted, by class.")


class Card(BaseModel):
    """Facts about a run."""

    model_config = ConfigDict(extra="allow")

    name: str
    dataset: str | None
    recipe: str | None
    method: str | None
    task: str | None
    classes: list[str]
    threshold: Threshold | None = Field(None, description="null where the likelier class is predicted.")
    num_nodes: int
    num_edges: int
    named: bool
    row_prefix: str = Field(description="The text before a row number: '#', unless names look like that.")
    examples: list[ExampleSubgraph] = Field(description="Subgraphs to start with, of each class in turn.")
    limits: dict[str, float]


class Cards(BaseModel):
    """All runs that are served."""

    runs: list[Card]
