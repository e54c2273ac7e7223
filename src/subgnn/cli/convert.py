"""``subgnn data convert``: convert datasets between layouts, and graphs of other libraries to datasets."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from typer import Argument, Option

from subgnn.api.options import TableOptions, with_options
from subgnn.api.progress import progress_bar
from subgnn.cli.options import ForceFlag, GzipFlag, IdBase, JsonFlag
from subgnn.cli.output import print_json, print_line, print_next, print_notes
from subgnn.errors import UserError, excerpt
from subgnn.parallel.memory import parse_size

if TYPE_CHECKING:
    from subgnn.data.subgraphs import SubgraphSet

_MIN_MEMORY = 10**7


@with_options(TableOptions)
def convert_dataset(
    *,
    path: Annotated[
        Path,
        Argument(
            metavar="SRC",
            help="A dataset folder or bundle, or a graph: a table of edges (CSV, TSV, Parquet, Excel, JSON lines), "
            ".graphml .gml .json .pt .npz .mtx",
        ),
    ],
    out: Annotated[Path, Option(metavar="DST", help="The folder or bundle to write.")],
    to: Annotated[
        Literal["folder", "bundle"] | None,
        Option(help="Layout to write; by default a folder becomes a bundle, everything else a folder."),
    ] = None,
    subgraphs: Annotated[
        Path | None,
        Option(
            help="For a graph: a table of subgraphs (a row for each node, or for each subgraph with a list), gene sets "
            "(.gmt), or a subgraphs.tsv."
        ),
    ] = None,
    tables: TableOptions,
    id_base: IdBase = None,
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

    subgnn data convert edges.csv --subgraphs sets.xlsx --node-column gene --unknown drop --out my_folder
    """
    from subgnn.data.convert import WriteOptions, convert
    from subgnn.data.describe import label_notes, task_line
    from subgnn.data.formats.bundle import is_bundle

    notes: list[str] = []
    reading = tables.reading(id_base, notes.append)
    with progress_bar() as bar:
        dataset, layout = convert(
            path,
            out,
            subgraphs=subgraphs,
            nodes=tables.nodes,
            reading=reading,
            writing=WriteOptions(to, gzip, force, _memory(memory), bar.prepare),
        )
    graph, count = dataset.graph, len(dataset.subgraphs)
    notes += label_notes(dataset.subgraphs) if reading.labels is None else []
    if reading.labels is None and not path.is_dir() and not is_bundle(path):
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
