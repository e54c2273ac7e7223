"""Groups of options that the command line and Python share: a dataclass, each field of which is an option.

:func:`with_options` turns a parameter that is such a group into parameters of its own for each field.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from typer import Argument, Option

from subgnn.errors import DataError, UserError, choices, excerpt

if TYPE_CHECKING:
    from subgnn.data.dataset import Dataset
    from subgnn.data.formats.format import LabelFormat, ReadOptions
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
        held = {name: group for name, group in hints.items() if group in groups}
        parameters: list[Parameter] = []
        for name, own in signature(function).parameters.items():
            if name not in held:
                parameters.append(own.replace(annotation=hints[name]))
                continue
            types = get_type_hints(held[name], include_extras=True)
            parameters += [
                Parameter(field.name, Parameter.KEYWORD_ONLY, default=field.default, annotation=types[field.name])
                for field in fields(held[name])
            ]
        known = [parameter.name for parameter in parameters]

        @wraps(function)
        def call(*args: Any, **given: Any) -> T:
            for name in given:
                if name not in known:
                    raise UserError(
                        f"unknown option {excerpt(name)}", where=function.__name__, hint=choices(name, known)
                    )
            for name, group in held.items():
                names = [field.name for field in fields(group)]
                given[name] = group(**{key: given.pop(key) for key in names if key in given})
            return function(*args, **given)

        own_lines = re.search(r"^    Args:\n(?: {8}.*\n)+", function.__doc__ or "", re.MULTILINE)
        if own_lines:
            options = [(one, get_args(one.annotation)) for one in parameters if get_origin(one.annotation) is Annotated]
            lines = [f"        {one.name}: {option.help}\n" for one, (_, option) in options]
            call.__doc__ = own_lines.string.replace(own_lines[0], own_lines[0] + "".join(lines))
            plain = {one.name: one.replace(annotation=kind) for one, (kind, _) in options}
            parameters = [plain.get(one.name, one) for one in parameters]
        call.__signature__ = Signature(parameters, return_annotation=hints["return"])  # type: ignore[attr-defined]
        return call

    return decorate


_GUESSED = "by default guessed from likely titles"
_LABELLED: tuple[TaskName, ...] = ("multi-class", "binary", "multi-label", "regression")


def _option(text: str, metavar: str | None = None) -> Any:
    return Option(metavar=metavar, help=text, rich_help_panel="Tables")


def _column(text: str) -> Any:
    return _option(text, "COLUMN")


MembersTable = Annotated[
    Path | None,
    Argument(metavar="MEMBERS", help="After a table of edges: the subgraphs with their labels.", show_default=False),
]
SubgraphColumn = Annotated[str | None, _column(f"Table of subgraphs: their names; {_GUESSED}.")]
NodeColumn = Annotated[str | None, _column(f"Table of subgraphs: a node, or a list of nodes; {_GUESSED}.")]
Encoding = Annotated[str | None, _option("Encoding of text tables, such as latin-1; UTF-8 by default.", "NAME")]
UnknownNodes = Annotated[
    Literal["error", "drop"],
    _option("Nodes of subgraphs that are not in the graph: refuse them, or leave them out."),
]


@dataclass(frozen=True, slots=True)
class TableOptions:
    """How tables of edges, of subgraphs and of node attributes are read."""

    source: Annotated[str | None, _column(f"Table of edges: the first node; {_GUESSED}, or the first column.")] = None
    target: Annotated[str | None, _column(f"Table of edges: the second node; {_GUESSED}, or the second column.")] = None
    weight: Annotated[str | None, _column("Table of edges: the weight; by default a column called weight, if any.")] = (
        None
    )
    edge_type: Annotated[str | None, _column(f"Table of edges: the type of an edge, any text; {_GUESSED}.")] = None
    edge_time: Annotated[str | None, _column(f"Table of edges: the time, numbers or ISO dates; {_GUESSED}.")] = None
    directed: Annotated[
        bool, Option("--directed", help="Table of edges: keep the direction of edges.", rich_help_panel="Tables")
    ] = False
    subgraph_column: SubgraphColumn = None
    node_column: NodeColumn = None
    label_column: Annotated[str | None, _column(f"Table of subgraphs: the label; {_GUESSED}.")] = None
    split_column: Annotated[str | None, _column(f"Table of subgraphs: train, val or test; {_GUESSED}.")] = None
    time_column: Annotated[str | None, _column(f"Table of subgraphs: the time, numbers or ISO dates; {_GUESSED}.")] = (
        None
    )
    nodes: Annotated[
        Path | None, _option("A table of node attributes: numbers and categories become features.", "TABLE")
    ] = None
    node_id: Annotated[str | None, _column(f"Table of node attributes: the node; {_GUESSED}.")] = None
    encoding: Encoding = None
    unknown: UnknownNodes = "error"
    task: Annotated[
        str | None,
        _option("multiclass, binary, multilabel or regression; by default inferred from the labels.", "TASK"),
    ] = None
    label_separator: Annotated[str | None, _option("With multilabel: text between labels; by default '-'.", "TEXT")] = (
        None
    )

    def reading(self, id_base: int | None, on_note: Callable[[str], None]) -> ReadOptions:
        """The options as the readers of files take them."""
        from subgnn.data.formats.format import Columns, ReadOptions

        columns = Columns(
            source=self.source,
            target=self.target,
            weight=self.weight,
            type=self.edge_type,
            time=self.edge_time,
            subgraph=self.subgraph_column,
            node=self.node_column,
            label=self.label_column,
            split=self.split_column,
            subgraph_time=self.time_column,
            node_id=self.node_id,
        )
        labels = _label_format(self.task, self.label_separator)
        return ReadOptions(id_base, labels, columns, self.directed, self.encoding, self.unknown, on_note)

    def words(self) -> list[str]:
        """The options that are given, as they are typed."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        given = {field.name: values[field.name] for field in fields(self) if values[field.name] != field.default}
        pairs = ((f"--{name.replace('_', '-')}", value) for name, value in given.items())
        return [word for option, value in pairs for word in ([option] if value is True else [option, str(value)])]

    def refuse(self, command: str) -> None:
        """Refuse options of tables, where there are none."""
        if words := self.words():
            hint = f"it goes with tables: {command}"
            raise UserError("this option is for tables, and a dataset is given", where=words[0], hint=hint)

    def read(self, path: Path, members: Path | None, reading: ReadOptions, *, command: str, seed: int = 0) -> Dataset:
        """A dataset by its path, or from a table of edges and one of subgraphs.

        Args:
            command: with which tables are given, for messages.
            seed: of the split, if the subgraphs have none.

        Raises:
            UserError: for options of tables with a dataset.
        """
        from subgnn.data.formats import read_dataset
        from subgnn.data.formats.bundle import is_bundle
        from subgnn.data.read_tables import read_tables

        if members is not None:
            return read_tables(path, members, nodes=self.nodes, options=reading, seed=seed)
        self.refuse(command)
        try:
            return read_dataset(path, id_base=reading.id_base)
        except DataError as error:
            if not path.is_file() or is_bundle(path):
                raise
            hint = f"{error.hint}; or are these edges? give their subgraphs, too: {command}"
            raise DataError(error.what, where=error.where, hint=hint) from None


def _label_format(task: str | None, separator: str | None) -> LabelFormat | None:
    """How labels are written, by the options ``--task`` and ``--label-separator``; None without these."""
    from subgnn.data.formats.format import LabelFormat
    from subgnn.data.subgraphs import parse_task

    if task is None and separator is None:
        return None
    if separator is not None and not separator.strip():
        what = f"{excerpt(separator)} cannot separate labels"
        raise UserError(what, where="--label-separator", hint="accepted: a text such as ';'")
    form = LabelFormat(None if task is None else parse_task(task, "--task", _LABELLED), separator)
    if separator is not None and form.stated_task != "multi-label":
        what = f"labels of task {task} are not separated"
        raise UserError(what, where="--label-separator", hint="pass --task multilabel")
    return form
