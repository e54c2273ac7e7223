"""What requests and answers look like; the source of /openapi.json."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, FailFast, Field, model_validator
from pydantic_core import PydanticCustomError

from subgnn.errors import excerpt

Node = (
    Annotated[int, Field(strict=True, ge=0, le=2**53 - 1)]
    | Annotated[str, Field(strict=True, min_length=1, max_length=200)]
)
# A list that is wrong is wrong at its first mistake: nobody reads a hundred thousand.
Nodes = Annotated[list[Node], Field(min_length=1), FailFast()]

_EXAMPLE: list[list[int | str]] = [["TP53", "BAX", "CASP9"], ["#0", "#1", "#2"]]
_ROW, _NAME = "Its row number.", "What a request has for it: its name, or its row number, as #12."
_AS = "by name, digits or not, or by row number, as #12; where the graph has no names, numbers are rows"


class Strict(BaseModel):
    """Unknown keys are refused: the first of them, as nobody reads a hundred thousand."""

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
    """Subgraphs to ask about."""

    subgraphs: Annotated[
        list[Nodes],
        Field(min_length=1, description=f"The nodes of each subgraph, {_AS}.", examples=[_EXAMPLE]),
        FailFast(),
    ]


class SubgraphsToExplain(Subgraphs):
    """Subgraphs whose predictions are to be explained."""

    attributions: bool = Field(False, description="Integrated gradients, too: they add up. They need Captum.")


class OneSubgraph(Strict):
    """One subgraph to look at."""

    nodes: Nodes = Field(description=f"Its nodes, {_AS}.", examples=[_EXAMPLE[0]])


class SubgraphToDraw(OneSubgraph):
    """One subgraph to draw."""

    most: int = Field(60, ge=0, le=1000, description="How many nodes beside its own, at most.")


class SubgraphToCompare(OneSubgraph):
    """One subgraph to compare with those of training."""

    count: int = Field(5, ge=1, le=50, description="How many are wanted.")


class NodesToResolve(Strict):
    """Names and row numbers as people type them."""

    nodes: Annotated[list[Node], Field(examples=[["TP53", "bax", "nobody"]]), FailFast()]


class Problem(BaseModel):
    """Why there is no answer."""

    error: str = Field(examples=["subgraph 0: 1 node is not known: 'NOBODY'"])
    hint: str = Field("", description="What is accepted, or what to do.")
    nodes: list[str] = Field([], description="Nodes that are not known, as they were given.")


class Health(BaseModel):
    """The server is there."""

    status: str = Field(examples=["ok"])
    version: str
    runs: int


class FoundNode(BaseModel):
    """A node that a search found."""

    id: int = Field(description=_ROW)
    name: str = Field(description=_NAME)
    matched: str = Field(description="The name by which it was found.")
    degree: int


class FoundNodes(BaseModel):
    """Nodes, the likeliest first."""

    nodes: list[FoundNode]


class ResolvedNode(BaseModel):
    """A node as it was given and as it is."""

    given: str
    id: int = Field(description=_ROW)
    name: str = Field(description=_NAME)


class ResolvedNodes(BaseModel):
    """Names that were understood, and those that were not."""

    nodes: list[ResolvedNode]
    unknown: list[str]
    several: list[str] = Field(description="Names that more than one node has.")


class Prediction(BaseModel):
    """What the run says of one subgraph."""

    nodes: list[int] = Field(description="Row numbers.")
    names: list[str] = Field(description="The same nodes, as a request has them.")
    label: str = Field(
        description="A class; several joined by '-', or by ';' where a class contains that; or the value."
    )
    probabilities: dict[str, float | None] = Field(description="By class; empty for real values.")
    value: float | None = Field(None, description="Of real-valued labels.")


class Predictions(BaseModel):
    """In the order of the request."""

    run: str
    task: str
    predictions: list[Prediction]


class Vectors(BaseModel):
    """z_S of each subgraph, in the order of the request."""

    run: str
    width: int
    vectors: list[list[float | None]]


class Explanations(BaseModel):
    """What carried each prediction, as ``subgnn explain`` writes it."""

    run: str
    explanations: list[dict[str, Any]]


class DrawnNode(BaseModel):
    """A node of a drawing."""

    id: int = Field(description=_ROW)
    name: str = Field(description=_NAME)
    kind: str = Field(description="inside, border (one hop away) or anchor (farther away).")
    component: int | None = Field(description="Of the subgraph's own nodes.")
    links: int = Field(description="Edges into the subgraph, of border nodes.")
    degree: int
    channels: list[str] = Field(description="Channels that hear this node as an anchor.")


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
    left_out: dict[str, int] = Field(description="How many nodes there was no room for.")


class NearSubgraph(BaseModel):
    """A training subgraph; its first hundred nodes."""

    place: int
    name: str
    labels: list[str]
    num_nodes: int
    nodes: list[int] = Field(description="Row numbers.")
    names: list[str] = Field(description="The same nodes, as a request has them.")
    similarity: float | None = Field(description="The cosine of the two vectors.")


class NearSubgraphs(BaseModel):
    """Training subgraphs, nearest first."""

    run: str
    nearest: list[NearSubgraph]


class Card(BaseModel):
    """What a run is."""

    model_config = ConfigDict(extra="allow")

    name: str
    dataset: str | None
    recipe: str | None
    method: str | None
    task: str | None
    classes: list[str]
    num_nodes: int
    num_edges: int
    named: bool
    row_prefix: str = Field(description="What a request has before a row number: '#', unless a name looks like that.")
    limits: dict[str, float]


class Cards(BaseModel):
    """All runs that are served."""

    runs: list[Card]
