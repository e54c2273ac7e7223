"""Options of the commands that read tables: columns, encoding, unknown nodes and labels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from typer import Option

from subgnn.errors import UserError, excerpt

if TYPE_CHECKING:
    from subgnn.data.formats.format import LabelFormat
    from subgnn.data.subgraphs import Task

_GUESSED = "by default guessed from likely titles"
SourceColumn = Annotated[
    str | None,
    Option("--source", metavar="COLUMN", help=f"Table of edges: the first node; {_GUESSED}, or the first column."),
]
TargetColumn = Annotated[
    str | None,
    Option("--target", metavar="COLUMN", help=f"Table of edges: the second node; {_GUESSED}, or the second column."),
]
WeightColumn = Annotated[
    str | None,
    Option("--weight", metavar="COLUMN", help="Table of edges: the weight; by default a column called weight, if any."),
]
TypeColumn = Annotated[
    str | None,
    Option("--edge-type", metavar="COLUMN", help=f"Table of edges: the type of an edge, any text; {_GUESSED}."),
]
EdgeTimeColumn = Annotated[
    str | None,
    Option("--edge-time", metavar="COLUMN", help=f"Table of edges: the time, numbers or ISO dates; {_GUESSED}."),
]
DirectedFlag = Annotated[bool, Option("--directed", help="Table of edges: keep the direction of edges.")]
SubgraphColumn = Annotated[
    str | None, Option("--subgraph-column", metavar="COLUMN", help=f"Table of subgraphs: their names; {_GUESSED}.")
]
NodeColumn = Annotated[
    str | None,
    Option("--node-column", metavar="COLUMN", help=f"Table of subgraphs: a node, or a list of nodes; {_GUESSED}."),
]
LabelColumn = Annotated[
    str | None, Option("--label-column", metavar="COLUMN", help=f"Table of subgraphs: the label; {_GUESSED}.")
]
SplitColumn = Annotated[
    str | None,
    Option("--split-column", metavar="COLUMN", help=f"Table of subgraphs: train, val or test; {_GUESSED}."),
]
TimeColumn = Annotated[
    str | None,
    Option("--time-column", metavar="COLUMN", help=f"Table of subgraphs: the time, numbers or ISO dates; {_GUESSED}."),
]
NodesTable = Annotated[
    Path | None,
    Option("--nodes", metavar="TABLE", help="A table of node attributes: numbers and categories become features."),
]
NodeId = Annotated[
    str | None, Option("--node-id", metavar="COLUMN", help=f"Table of node attributes: the node; {_GUESSED}.")
]
Encoding = Annotated[
    str | None, Option("--encoding", metavar="NAME", help="Encoding of text tables, such as latin-1; UTF-8 by default.")
]
UnknownNodes = Annotated[
    Literal["error", "drop"],
    Option("--unknown", help="Nodes of subgraphs that are not in the graph: refuse them, or leave them out."),
]
TaskName = Annotated[
    str | None,
    Option(metavar="TASK", help="multiclass, binary, multilabel or regression; by default inferred from the labels."),
]
LabelSeparator = Annotated[
    str | None,
    Option("--label-separator", metavar="TEXT", help="With multilabel: text between labels; by default '-'."),
]
_LABELLED: tuple[Task, ...] = ("multi-class", "binary", "multi-label", "regression")


def label_format(task: str | None, separator: str | None) -> LabelFormat | None:
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
