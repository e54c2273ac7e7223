"""``subgnn data ...``: make, fetch, look at, check, split and convert datasets."""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from subgnn.cli.build import build_dataset
from subgnn.cli.download import download_dataset_verb
from subgnn.cli.generate import generate_dataset
from subgnn.cli.output import IdBase, JsonFlag, print_error, print_json, print_line, print_table
from subgnn.cli.progress import progress_bar
from subgnn.cli.split import split_dataset
from subgnn.data.catalog import CATALOG
from subgnn.data.check import check
from subgnn.data.convert import TableColumns, convert
from subgnn.data.describe import describe, label_notes, task_line
from subgnn.data.formats import read_dataset
from subgnn.data.formats.bundle import is_bundle
from subgnn.data.formats.folder import LabelForm
from subgnn.data.plot import plot_dataset
from subgnn.data.subgraphs import SubgraphSet, Task, parse_task
from subgnn.errors import UserError, excerpt
from subgnn.parallel.memory import parse_size

data = typer.Typer(no_args_is_help=True, help="Make, fetch, look at, check, split and convert datasets.")
data.command("generate")(generate_dataset)
data.command("build")(build_dataset)
data.command("download")(download_dataset_verb)
data.command("split")(split_dataset)

_LEAST_MEMORY = 10**7
_LABELLED: tuple[Task, ...] = ("multi-class", "binary", "multi-label", "regression")

Dataset = Annotated[
    Path, typer.Argument(metavar="DIR", help="A dataset folder, a bundle, or a file of subgraphs alone.")
]


class Layout(StrEnum):
    """What ``data convert`` writes."""

    folder = "folder"
    bundle = "bundle"


@data.command("list")
def list_datasets(json: JsonFlag = False) -> None:
    """List the datasets of the paper: what they are, how large, how they are had."""
    if json:
        print_json({"datasets": [asdict(entry) for entry in CATALOG.values()]})
        return
    rows = [
        (e.name, f"{e.num_nodes:,}", f"{e.num_edges:,}", f"{e.num_subgraphs:,}", str(e.num_labels), e.task)
        for e in CATALOG.values()
    ]
    print_table("Datasets (sizes from the paper)", ("name", "nodes", "edges", "subgraphs", "labels", "task"), rows)
    for entry in CATALOG.values():
        print_line(f"{entry.name}: {entry.about}")
    for how in dict.fromkeys(e.how for e in CATALOG.values()):
        print_line(f"{', '.join(e.name for e in CATALOG.values() if e.how == how)}: {how}")
    print_line("next: subgnn data describe DIR")


@data.command("describe")
def describe_dataset(
    path: Dataset,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FOLDER", help="Draw properties by class, and a few subgraphs.")
    ] = None,
    id_base: IdBase = None,
    json: JsonFlag = False,
) -> None:
    """Print the paper's two property tables for a dataset.

    Example: subgnn data describe my_folder --plot pictures
    """
    dataset = read_dataset(path, id_base=id_base)
    found = describe(dataset)
    if plot is not None:
        found["plots"] = [str(picture) for picture in plot_dataset(dataset, plot)]
    if json:
        print_json(found)
        return
    print_table(
        f"Base graph of {found['name']}",
        ("nodes", "edges", "density", "subgraphs", "labels", "task"),
        [
            (
                f"{found['num_nodes']:,}",
                f"{found['num_edges']:,}",
                f"{found['density']:.4f}",
                f"{found['num_subgraphs']:,}",
                str(found["num_labels"]),
                found["task"],
            )
        ],
    )
    properties = found["subgraphs"]
    formats = {"nodes": ".1f", "density": ".3f", "cut_ratio": ".3g", "components": ".1f"}
    cells = [f"{properties[k]['mean']:{f}} ± {properties[k]['std']:{f}}" for k, f in formats.items()]
    print_table("Subgraphs, mean ± standard deviation", ("nodes", "density", "cut ratio", "components"), [cells])
    _print_counts(found, task_line(dataset.subgraphs))
    for picture in found.get("plots", ()):
        print_line(f"drawn: {picture}")
    print_line(f"next: subgnn data check {path}")


def _print_counts(found: dict[str, Any], task: str) -> None:
    print_line(task)
    if found["splits"]:
        print_line("splits: " + ", ".join(f"{name} {count:,}" for name, count in found["splits"].items()))
    for note in found["notes"]:
        print_line(f"note: {note}")


@data.command("check")
def check_dataset(path: Dataset, id_base: IdBase = None, json: JsonFlag = False) -> None:
    """List every problem of a dataset, with file and line; exit 0 if there is none, 2 otherwise.

    Example: subgnn data check my_folder
    """
    problems, dataset = check(path, id_base=id_base)
    if json:
        print_json(
            {
                "path": str(path),
                "ok": not problems.num_errors,
                "num_errors": problems.num_errors,
                "errors": [asdict(problem) for problem in problems.errors],
                "warnings": [asdict(problem) for problem in problems.warnings],
                "notes": [asdict(problem) for problem in problems.notes],
            }
        )
    else:
        for problem in problems.notes:
            print_line(f"note: {problem}")
        for problem in problems.warnings:
            print_line(f"warning: {problem}")
        for problem in problems.errors:
            print_line(f"error: {problem}")
        if problems.num_errors > len(problems.errors):
            print_line(f"and {problems.num_errors - len(problems.errors):,} more")
    if dataset is None:
        count = problems.num_errors
        print_error(f"{path}: {count:,} problem{'s' if count > 1 else ''}; fix the files and check again")
        raise typer.Exit(2)
    if not json:
        graph, subgraphs = dataset.graph, dataset.subgraphs
        print_line(f"{path}: fine; {graph.num_nodes:,} nodes, {graph.num_edges:,} edges, {len(subgraphs):,} subgraphs")
        print_line(f"next: subgnn data describe {path}")


@data.command("convert")
def convert_dataset(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="SRC",
            help="A dataset folder or bundle, or a graph: .csv .tsv .parquet .graphml .gml .json .pt .npz .mtx",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", metavar="DST", help="The folder or bundle to write.")],
    to: Annotated[
        Layout | None,
        typer.Option("--to", help="What to write; by default a folder becomes a bundle and everything else a folder."),
    ] = None,
    subgraphs: Annotated[
        Path | None,
        typer.Option(
            "--subgraphs",
            help="For a graph alone: a table with columns subgraph, node, label, split, or a subgraphs.tsv.",
        ),
    ] = None,
    source_column: Annotated[
        str | None, typer.Option("--source", help="Table of edges: column of the first node; by default the first.")
    ] = None,
    target_column: Annotated[
        str | None, typer.Option("--target", help="Table of edges: column of the second node; by default the second.")
    ] = None,
    weight_column: Annotated[
        str | None, typer.Option("--weight", help="Table of edges: column of weights; by default none.")
    ] = None,
    directed: Annotated[bool, typer.Option("--directed", help="Table of edges: keep the direction of edges.")] = False,
    id_base: IdBase = None,
    task: Annotated[
        str | None,
        typer.Option(
            "--task",
            metavar="TASK",
            help="What labels are: multiclass, binary, multilabel or regression; by default what they look like.",
        ),
    ] = None,
    separator: Annotated[
        str | None,
        typer.Option(
            "--label-separator", metavar="TEXT", help="What joins several labels of a subgraph; '-' with multilabel."
        ),
    ] = None,
    gzip: Annotated[bool, typer.Option("--gzip", help="Compress the edge list of a folder.")] = False,
    memory: Annotated[
        str,
        typer.Option(
            "--memory",
            metavar="SIZE",
            help="A folder to a bundle: memory to work in; the edge list may be larger. 10MB at least.",
        ),
    ] = "2GB",
    force: Annotated[bool, typer.Option("--force", help="Replace what is at DST.")] = False,
    json: JsonFlag = False,
) -> None:
    """Turn a folder into a bundle that opens by memory map, a bundle or another library's graph into a folder.

    Examples:
    subgnn data convert my_folder --out my.subgnn

    subgnn data convert edges.csv --subgraphs members.csv --out my_folder
    """
    form = _label_form(task, separator)
    with progress_bar() as bar:
        dataset, layout = convert(
            source,
            out,
            to=None if to is None else to.value,
            subgraphs=subgraphs,
            columns=TableColumns(source_column, target_column, weight_column),
            directed=directed,
            id_base=id_base,
            labels=form,
            compress=gzip,
            overwrite=force,
            memory=_memory(memory),
            on_progress=bar.prepare,
        )
    graph, count = dataset.graph, len(dataset.subgraphs)
    notes = label_notes(dataset.subgraphs) if form is None else []
    if form is None and not source.is_dir() and not is_bundle(source):
        notes += _whole_notes(dataset.subgraphs)
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
    for note in notes:
        print_line(f"note: {note}")
    print_line(f"next: subgnn data check {out}")


def _label_form(task: str | None, separator: str | None) -> LabelForm | None:
    if task is None and separator is None:
        return None
    if separator is not None and not separator.strip():
        raise UserError(
            f"{excerpt(separator)} joins nothing", where="--label-separator", hint="such as ';' is accepted"
        )
    form = LabelForm(None if task is None else parse_task(task, "--task", _LABELLED), separator)
    if separator is not None and form.stated != "multi-label":
        raise UserError(f"labels of task {task} are whole", where="--label-separator", hint="pass --task multilabel")
    return form


def _whole_notes(subgraphs: SubgraphSet) -> list[str]:
    """That labels with a hyphen were kept whole."""
    joined = [name for name in subgraphs.classes if "-" in name.strip("-")]
    if subgraphs.task == "multi-label" or not joined:
        return []
    return [f"labels are kept whole ({joined[0]}); where '-' joins several labels, pass --task multilabel"]


def _memory(text: str) -> int:
    size = parse_size(text, "--memory")
    if size < _LEAST_MEMORY:
        raise UserError(f"{excerpt(text)} is too little", where="--memory", hint="10MB or more is accepted")
    return size
