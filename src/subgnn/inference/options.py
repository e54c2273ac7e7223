"""Options for predictions, declared once for the command line (--help needs no more), Python and the server."""

from dataclasses import dataclass
from typing import Annotated

from typer import Option

from subgnn.errors import UserError


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictOptions:
    """What a table of predictions has beside the labels, and the order of its rows."""

    top: Annotated[int | None, Option(min=1, metavar="K", help="List only the K most likely classes.")] = None
    coverage: Annotated[
        float | None,
        Option(metavar="P", help="Add the set of labels that contains the true one with probability P, e.g. 0.9."),
    ] = None
    coverage_by_class: Annotated[
        bool, Option("--coverage-by-class", help="With --coverage: hold P for the subgraphs of each class.")
    ] = False
    min_known: Annotated[
        float,
        Option(min=0, max=1, metavar="SHARE", help="Leave the label empty if a smaller share of the nodes is known."),
    ] = 0.5
    sort: Annotated[
        str | None, Option(metavar="COLUMN", help="Highest first by probability, probability:CLASS, value or novelty.")
    ] = None
    members: Annotated[bool, Option("--members/--no-members", help="Write the nodes of each subgraph, last.")] = True

    def __post_init__(self) -> None:
        if self.top is not None and self.top < 1:
            raise UserError(f"{self.top} classes", where="--top", hint="accepted: 1 or more")
        if self.coverage_by_class and self.coverage is None:
            raise UserError("there is no coverage to hold", where="--coverage-by-class", hint="give one, such as 0.9")
        if not 0 <= self.min_known <= 1:
            raise UserError(f"the share is {self.min_known:g}", where="--min-known", hint="accepted: 0 to 1")
