"""Bodies of requests and answers, which /openapi.json describes."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, FailFast, Field, model_validator
from pydantic_core import PydanticCustomError

from subgnn.errors import excerpt
from subgnn.inference.search import By

Node = (
    Annotated[int, Field(strict=True, ge=0, le=2**53 - 1)]
    | Annotated[str, Field(strict=True, min_length=1, max_length=200)]
)
# Checking stops at the first mistake of a list: nobody reads a hundred thousand.
Nodes = Annotated[list[Node], Field(min_length=1), FailFast()]
Row = Annotated[int, Field(description="Its row number.")]
Rows = Annotated[list[int], Field(description="Row numbers.")]
Name = Annotated[str, Field(description="Its name, or its row number such as #12: the text for requests.")]
Names = Annotated[list[str], Field(description="The same nodes by name, or by row number such as #12, as in requests.")]

Unknown = Annotated[
    Literal["error", "drop"], Field(description="Nodes that are not in the graph: refuse them, or leave them out.")
]
Coverage = Annotated[
    float | None,
    Field(gt=0, lt=1, description="Add the set of labels that contains the true one with this probability."),
]
ByClass = Annotated[bool, Field(description="Hold the coverage for the subgraphs of each class.")]
MinKnown = Annotated[
    float, Field(ge=0, le=1, description="Leave the label empty if a smaller share of the nodes is in the graph.")
]

_EXAMPLE: list[list[int | str]] = [["TP53", "BAX", "CASP9"], ["#0", "#1", "#2"]]
_AS = "by name (which may be digits), or by row number such as #12; if the graph has no names, numbers are rows"


class Strict(BaseModel):
    """A body whose unknown keys are refused; the error names the first of them."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown(cls, given: Any) -> Any:
        unknown = next((key for key in given if key not in cls.model_fields), None) if isinstance(given, dict) else None
        if unknown is not None:
            context = {"key": excerpt(unknown), "known": ", ".join(cls.model_fields)}
            raise PydanticCustomError("extra_forbidden", "unknown key {key}; accepted: {known}", context)
        return given


class Subgraphs(Strict):
    subgraphs: Annotated[
        list[Nodes],
        Field(min_length=1, description=f"The nodes of each subgraph, {_AS}.", examples=[_EXAMPLE]),
        FailFast(),
    ]
    unknown: Unknown = "error"


class SubgraphsToPredict(Subgraphs):
    coverage: Coverage = None
    coverage_by_class: ByClass = False
    min_known: MinKnown = 0.5


class SubgraphsToSearch(Subgraphs):
    top: int = Field(10, ge=1, le=100, description="How many known subgraphs to find for each.")
    by: By = Field("place", description="The same part of the graph, shared nodes, or the vectors of the run (class).")
    include_test: bool = Field(False, description="Include subgraphs of the test split.")


class SubgraphsToComplete(Subgraphs):
    top: int = Field(20, ge=1, le=1000, description="The most nodes to suggest for each subgraph.")
    among: list[Node] | None = Field(None, min_length=1, description=f"Suggest these nodes only, {_AS}; default any.")


class SubgraphToDraw(Strict):
    nodes: Nodes = Field(description=f"Its nodes, {_AS}.", examples=[_EXAMPLE[0]])
    most: int = Field(60, ge=0, le=1000, description="The most nodes to draw in addition to those of the subgraph.")


class NodesToResolve(Strict):
    nodes: Annotated[list[Node], Field(examples=[["TP53", "bax", "nobody"]]), FailFast()]


class Problem(BaseModel):
    error: str = Field(examples=["subgraph 0: 1 node is not known: 'NOBODY'"])
    hint: str = Field("", description="What is accepted, or what to do.")
    nodes: list[str] = Field([], description="Unknown nodes, as they were given.")


class Health(BaseModel):
    status: str = Field(examples=["ok"])
    version: str
    runs: int


class FoundNode(BaseModel):
    id: Row
    name: Name
    matched: str = Field(description="The name that matched.")
    degree: int


class FoundNodes(BaseModel):
    nodes: list[FoundNode] = Field(description="The best first.")


class ResolvedNode(BaseModel):
    given: str
    id: Row
    name: Name


class ResolvedNodes(BaseModel):
    nodes: list[ResolvedNode]
    unknown: list[str]
    several: list[str] = Field(description="Names that match more than one node.")


class Answer(BaseModel):
    """One answer per subgraph, in the order of the request."""

    run: str
    dropped: list[list[str]] = Field(description="For each subgraph, the nodes that are not in the graph, as given.")


class Prediction(BaseModel):
    nodes: Rows
    names: Names
    label: str = Field(
        description="A class; several joined by '-', or ';' if a class contains '-'; or the value; empty with a note."
    )
    probability: float | None = Field(description="Of the label; null for real-valued labels.")
    probabilities: dict[str, float | None] = Field(description="By class; empty for real-valued labels.")
    value: float | None = Field(None, description="The predicted value, for real-valued labels.")
    labels: list[str] | None = Field(None, description="With a coverage: the set of labels.")
    low: float | None = Field(None, description="With a coverage: the lower end of the interval of the value.")
    high: float | None = Field(None, description="With a coverage: the upper end of the interval of the value.")
    novelty: float | None = Field(description="The share of training subgraphs that are less unusual.")
    known: int = Field(description="How many of its nodes are in the graph.")
    new: int = Field(description="How many of its nodes are not in the graph.")
    note: str = Field(description="Why there is no label; else empty.")


class Predictions(Answer):
    task: str
    predictions: list[Prediction]


class UnknownNode(BaseModel):
    given: str
    subgraphs: int = Field(description="The number of subgraphs it is in.")
    nearest: str | None = Field(description="The most similar name in the graph, for the first few.")


class TableAnswer(BaseModel):
    run: str
    task: str
    columns: list[str] = Field(
        description="name, label, probability, one per class, labels, novelty, nodes, known, new, dropped, note, the "
        "columns of the table, members; as subgnn predict writes them."
    )
    rows: list[list[str | float | None]] = Field(description="In the order of the table.")
    num_unknown: int = Field(description="The number of nodes that are not in the graph.")
    unknown: list[UnknownNode] = Field(description="These nodes, the most frequent first; at most a thousand.")
    notes: list[str] = Field(description="What was guessed about the table, one line each.")


class Vectors(Answer):
    width: int
    vectors: list[list[float | None]]


class Explanations(Answer):
    explanations: list[dict[str, Any]] = Field(description="In the form that subgnn explain writes.")


class SuggestedNode(BaseModel):
    id: Row
    name: Name
    probability: float = Field(description="The chance that it belongs to a subgraph that lost a fifth of its members.")
    neighbours: int = Field(description="The number of its neighbours in the subgraph.")
    reason: str = Field(description="The largest of its contributions.")
    contributions: dict[str, float] = Field(description="Terms of the log odds.")


class Completions(Answer):
    completions: list[list[SuggestedNode]] = Field(description="The likeliest first.")


class DrawnNode(BaseModel):
    id: Row
    name: Name
    kind: str = Field(description="inside, border (one hop away) or anchor (farther away).")
    component: int | None = Field(description="Component of the subgraph; null for nodes outside.")
    links: int = Field(description="Edges between a border node and the subgraph.")
    degree: int
    channels: list[str] = Field(description="Channels that have this node as an anchor.")
    x: float = Field(description="Its place in pixels, where a node is 24 pixels wide.")
    y: float


class DrawnEdge(BaseModel):
    source: int
    target: int
    inside: bool


class Drawing(BaseModel):
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
    nodes: Rows
    names: Names


class ExampleSubgraph(KnownSubgraph):
    split: str = Field(description="test, or else val or train; all if the dataset has no splits.")


class NearSubgraph(KnownSubgraph):
    rank: int = Field(description="From 1, the nearest.")
    split: str | None = Field(description="train, val or test; null if the dataset has no splits.")
    distance: float
    shared: int = Field(description="How many nodes both have.")
    shared_nodes: str = Field(description="The first of them.")


class NearSubgraphs(BaseModel):
    nearest: list[NearSubgraph]


class SearchResults(Answer):
    by: str
    results: list[NearSubgraphs]


class Threshold(BaseModel):
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
    runs: list[Card]


class GraphOfRun(BaseModel):
    graph_hash: str
    differs: list[str] = Field(description="How the graph differs from the one the run was trained on.")


class ReplacedGraph(BaseModel):
    runs: dict[str, GraphOfRun]
