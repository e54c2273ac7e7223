"""Groups of options that the command line and Python share: a dataclass, each field of which is an option."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, get_args, get_type_hints

from typer import Option

from subgnn.errors import UserError, choices, excerpt

if TYPE_CHECKING:
    from subgnn.data.dataset import Problems
    from subgnn.data.formats.format import ReadOptions
    from subgnn.task import TaskName

T = TypeVar("T")


def with_options(*groups: type[Any]) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Give a function a keyword for each field of these dataclasses, in the place of the parameter that holds one.

    Unknown keywords are refused, with the closest match. A docstring with a section Args, which commands do not have,
    gets a line for each field, with the help text of its option.

    Example:
        >>> @dataclass
        ... class Sizes:
        ...     width: Annotated[int, Option(help="Columns.")] = 80
        >>> @with_options(Sizes)
        ... def draw(out: Path, *, sizes: Sizes, json: bool = False) -> None:
        ...     print(out, sizes)
        >>> list(signature(draw).parameters)
        ['out', 'width', 'json']
        >>> draw("-", width=3)
        - Sizes(width=3)
    """

    def decorate(function: Callable[..., T]) -> Callable[..., T]:
        hints = get_type_hints(function, include_extras=True)
        held = {name: _parameters(hint) for name, hint in hints.items() if hint in groups}
        own = signature(function).parameters
        plain = {name: [one.replace(annotation=hints.get(name, Any))] for name, one in own.items()}
        parameters = [parameter for name in own for parameter in held.get(name, plain[name])]
        known = [parameter.name for parameter in parameters]

        @wraps(function)
        def call(*args: Any, **given: Any) -> T:
            for name in given:
                if name not in known:
                    hint = choices(name, known)
                    raise UserError(f"unknown option {excerpt(name)}", where=function.__name__, hint=hint)
            for name, options in held.items():
                given[name] = hints[name](**{one.name: given.pop(one.name) for one in options if one.name in given})
            return function(*args, **given)

        if section := re.search(r"^( +)Args:\n(?:\1    .*\n)+", function.__doc__ or "", re.MULTILINE):
            helps = {one.name: get_args(one.annotation)[1].help for options in held.values() for one in options}
            lines = "".join(f"{section[1]}    {name}: {text}\n" for name, text in helps.items())
            call.__doc__ = section.string.replace(section[0], section[0] + lines)
            parameters = [
                one.replace(annotation=get_args(one.annotation)[0]) if one.name in helps else one for one in parameters
            ]
        call.__signature__ = Signature(parameters, return_annotation=hints["return"])  # type: ignore[attr-defined]
        return call

    return decorate


def _parameters(group: type[Any]) -> list[Parameter]:
    types, found = get_type_hints(group, include_extras=True), []
    for one in fields(group):
        if one.init:
            default = Parameter.empty if one.default is MISSING else one.default
            found.append(Parameter(one.name, Parameter.KEYWORD_ONLY, default=default, annotation=types[one.name]))
    return found


_GUESSED = "by default guessed from likely titles"
_LABELLED: tuple[TaskName, ...] = ("multi-class", "binary", "multi-label", "regression")


def _option(text: str, metavar: str | None = None, *names: str) -> Any:
    return Option(*names, metavar=metavar, help=text, rich_help_panel="Tables")


def _column(text: str) -> Any:
    return _option(text, "COLUMN")


SubgraphColumn = Annotated[str | None, _column(f"Table of subgraphs: their names; {_GUESSED}.")]
NodeColumn = Annotated[str | None, _column(f"Table of subgraphs: a node, or a list of nodes; {_GUESSED}.")]
Encoding = Annotated[str | None, _option("Encoding of text tables, such as latin-1; UTF-8 by default.", "NAME")]
Aliases = Annotated[
    Path | None,
    _option("Further names of nodes: a column of aliases, with | between several, and one of names.", "TABLE"),
]
UnknownNodes = Annotated[
    Literal["error", "drop"], _option("Nodes of subgraphs that are not in the graph: refuse them, or leave them out.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOptions:
    """How tables of edges, of subgraphs and of node attributes are read."""

    source: Annotated[str | None, _column(f"Table of edges: the first node; {_GUESSED}, or the first column.")] = None
    target: Annotated[str | None, _column(f"Table of edges: the second node; {_GUESSED}, or the second column.")] = None
    weight: Annotated[str | None, _column(f"Table of edges: the weight; {_GUESSED}.")] = None
    repeated: Annotated[
        Literal["first", "last", "sum", "mean", "max", "count"] | None,
        _option("Table of edges: the weight of edges that repeat a pair; by default the first, with a warning."),
    ] = None
    edge_type: Annotated[str | None, _column(f"Table of edges: the type of an edge, any text; {_GUESSED}.")] = None
    edge_time: Annotated[str | None, _column(f"Table of edges: the time, numbers or ISO dates; {_GUESSED}.")] = None
    directed: Annotated[bool, _option("Table of edges: keep the direction of edges.", None, "--directed")] = False
    subgraph_column: SubgraphColumn = None
    node_column: NodeColumn = None
    label_column: Annotated[str | None, _column(f"Table of subgraphs or of labels: the label; {_GUESSED}.")] = None
    labels: Annotated[
        Path | None, _option("A table of labels by the names of subgraphs; with multilabel, a row each.", "TABLE")
    ] = None
    unlabelled: Annotated[
        Literal["drop", "predict"],
        _option("Subgraphs without a label: leave them out, or predict them after training, to RUN/unlabelled.tsv."),
    ] = "drop"
    keep_na: Annotated[bool, _option("Labels such as NA and None are classes.", None, "--keep-na")] = False
    split_column: Annotated[str | None, _column(f"Table of subgraphs: train, val or test; {_GUESSED}.")] = None
    time_column: Annotated[str | None, _column(f"Table of subgraphs: the time, as for edges; {_GUESSED}.")] = None
    nodes: Annotated[Path | None, _option("A table of node attributes, which become features.", "TABLE")] = None
    node_id: Annotated[str | None, _column(f"Table of node attributes: the node; {_GUESSED}.")] = None
    aliases: Aliases = None
    encoding: Encoding = None
    unknown: UnknownNodes = "error"
    task: Annotated[
        str | None, _option("multiclass, binary, multilabel or regression; by default inferred from labels.", "KIND")
    ] = None
    label_separator: Annotated[str | None, _option("With multilabel: text between labels; default -.", "TEXT")] = None

    def reading(
        self, id_base: int | None, on_note: Callable[[str], None], problems: Problems | None = None
    ) -> ReadOptions:
        from subgnn.data.formats.format import COLUMN_OPTIONS, Columns, LabelFormat, ReadOptions
        from subgnn.data.subgraphs import parse_task

        labels, separator = None, self.label_separator
        if separator is not None and not separator.strip():
            what = f"{excerpt(separator)} cannot separate labels"
            raise UserError(what, where="--label-separator", hint="accepted: a text such as ';'")
        if self.task is not None or separator is not None:
            labels = LabelFormat(None if self.task is None else parse_task(self.task, "--task", _LABELLED), separator)
            if separator is not None and labels.stated_task != "multi-label":
                what = f"labels of task {self.task} are not separated"
                raise UserError(what, where="--label-separator", hint="pass --task multilabel")
        columns = Columns({role: getattr(self, option) for role, option in COLUMN_OPTIONS.items()})
        known = {one.name: getattr(self, one.name) for one in fields(ReadOptions) if hasattr(self, one.name)}
        stated = known | {"id_base": id_base, "labels": labels, "columns": columns, "label_table": self.labels}
        return ReadOptions(**stated, on_note=on_note, problems=problems)
