"""``subgnn data convert``: convert datasets between layouts, and graphs of other libraries to datasets."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option

from subgnn.cli.options import ForceFlag, GzipFlag, IdBase, JsonFlag
from subgnn.cli.output import print_json, print_line, print_next, print_notes
from subgnn.cli.progress import progress_bar
from subgnn.data.convert import WriteOptions, convert
from subgnn.data.describe import label_notes, task_line
from subgnn.data.formats.bundle import is_bundle
from subgnn.data.formats.columns import Columns
from subgnn.data.formats.format import LabelFormat, ReadOptions
from subgnn.data.subgraphs import SubgraphSet, Task, parse_task
from subgnn.errors import UserError, excerpt
from subgnn.parallel.memory import parse_size

_MIN_MEMORY = 10**7
_LABELLED: tuple[Task, ...] = ("multi-class", "binary", "multi-label", "regression")


def convert_dataset(
    source: Annotated[
        Path,
        Argument(
            metavar="SRC",
            help="A dataset folder or bundle, or a graph: .csv .tsv .parquet .graphml .gml .json .pt .npz .mtx",
        ),
    ],
    out: Annotated[Path, Option(metavar="DST", help="The folder or bundle to write.")],
    to: Annotated[
        Literal["folder", "bundle"] | None,
        Option(help="Layout to write; by default a folder becomes a bundle, everything else a folder."),
    ] = None,
    subgraphs: Annotated[
        Path | None, Option(help="For a graph: a table with columns subgraph, node, label, split, or a subgraphs.tsv.")
    ] = None,
    source_column: Annotated[
        str | None, Option("--source", help="Table of edges: column of the first node; by default the first.")
    ] = None,
    target_column: Annotated[
        str | None, Option("--target", help="Table of edges: column of the second node; by default the second.")
    ] = None,
    weight_column: Annotated[
        str | None, Option("--weight", help="Table of edges: column of weights; by default none.")
    ] = None,
    directed: Annotated[bool, Option("--directed", help="Table of edges: keep the direction of edges.")] = False,
    id_base: IdBase = None,
    task: Annotated[
        str | None,
        Option(
            metavar="TASK", help="multiclass, binary, multilabel or regression; by default inferred from the labels."
        ),
    ] = None,
    separator: Annotated[
        str | None,
        Option("--label-separator", metavar="TEXT", help="With multilabel: text between labels; by default '-'."),
    ] = None,
    gzip: GzipFlag = False,
    memory: Annotated[
        str, Option(metavar="SIZE", help="Folder to bundle: memory to use, at least 10MB; the edge list may be larger.")
    ] = "2GB",
    force: ForceFlag = False,
    json: JsonFlag = False,
) -> None:
    """Convert a folder to a bundle, which is opened by memory map, or a bundle or another library's graph to a folder.

    Examples:
    subgnn data convert my_folder --out my.subgnn

    subgnn data convert edges.csv --subgraphs members.csv --out my_folder
    """
    form = _label_form(task, separator)
    with progress_bar() as bar:
        dataset, layout = convert(
            source,
            out,
            subgraphs=subgraphs,
            reading=ReadOptions(id_base, form, Columns(source_column, target_column, weight_column), directed),
            writing=WriteOptions(to, gzip, force, _memory(memory), bar.prepare),
        )
    graph, count = dataset.graph, len(dataset.subgraphs)
    notes = label_notes(dataset.subgraphs) if form is None else []
    if form is None and not source.is_dir() and not is_bundle(source):
        notes += _hyphen_notes(dataset.subgraphs)
    if json:
        print_json(
            {
                "out": str(out),
                "layout": layout,
                "num_nodes": graph.num_nodes,
                "num_edges": graph.num_edges,
                "num_subgraphs": count,
                "dropped": asdict(graph.dropped),
                "graph_hash": graph.content_hash,
                "task": dataset.subgraphs.task,
                "label_counts": dataset.subgraphs.label_counts(),
                "notes": notes,
            }
        )
        return
    print_line(f"{out}: a {layout} of {graph.num_nodes:,} nodes, {graph.num_edges:,} edges, {count:,} subgraphs")
    if not count:
        print_line(f"there are no subgraphs yet: write {out}/subgraphs.tsv, or convert again with --subgraphs")
    else:
        print_line(task_line(dataset.subgraphs))
    print_notes(notes)
    print_next("data", "check", out)


def _label_form(task: str | None, separator: str | None) -> LabelFormat | None:
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


def _hyphen_notes(subgraphs: SubgraphSet) -> list[str]:
    """A note if labels with a hyphen were not split."""
    joined = [name for name in subgraphs.classes if "-" in name.strip("-")]
    if subgraphs.task == "multi-label" or not joined:
        return []
    return [f"labels are not split ({joined[0]}); if '-' joins several labels, pass --task multilabel"]


def _memory(text: str) -> int:
    size = parse_size(text, "--memory")
    if size < _MIN_MEMORY:
        raise UserError(f"{excerpt(text)} is too little", where="--memory", hint="10MB or more is accepted")
    return size
