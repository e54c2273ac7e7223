"""``subgnn data download``: the authors' files, fetched, unpacked and checked."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from subgnn.cli.output import JsonFlag, print_json, print_line
from subgnn.data.download import Downloaded, download_dataset
from subgnn.data.fetch import Progress


def download_dataset_verb(
    name: Annotated[str, typer.Argument(metavar="NAME", help="ppi-bp, hpo-metab, hpo-neuro or em-user.")],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder to write.")],
    url: Annotated[
        str | None,
        typer.Option("--url", help="Another place to fetch a .zip or .tar.gz from, in place of the authors' own."),
    ] = None,
    sha256: Annotated[str | None, typer.Option("--sha256", help="What the archive must hash to, where known.")] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace what is at DIR, and fetch an archive in the cache again.")
    ] = False,
    json: JsonFlag = False,
) -> None:
    """Fetch a dataset of the paper as its authors publish it; a fetch that was cut goes on where it stopped.

    Example: subgnn data download ppi-bp --out ppi_bp
    """
    with _progress_bar(name) as progress:
        found = download_dataset(name, out, url=url, sha256=sha256, progress=progress, overwrite=force)
    if json:
        print_json(_as_json(found))
        return
    graph, subgraphs = found.dataset.graph, found.dataset.subgraphs
    print_line(f"{out}: {graph.num_nodes:,} nodes, {graph.num_edges:,} edges, {len(subgraphs):,} subgraphs")
    print_line(f"sha256 of the archive: {found.sha256}")
    for note in found.notes:
        print_line(f"note: {note}")
    if found.archive is not None:
        print_line(f"the archive holds further datasets and is kept: {found.archive}")
    print_line(f"next: subgnn data describe {out}")


def _as_json(found: Downloaded) -> dict[str, object]:
    return {
        "name": found.dataset.name,
        "out": str(found.folder),
        "url": found.url,
        "sha256": found.sha256,
        "archive": None if found.archive is None else str(found.archive),
        "num_nodes": found.dataset.graph.num_nodes,
        "num_edges": found.dataset.graph.num_edges,
        "num_subgraphs": len(found.dataset.subgraphs),
        "task": found.dataset.subgraphs.task,
        "notes": list(found.notes),
    }


@contextmanager
def _progress_bar(title: str) -> Iterator[Progress | None]:
    """A bar on stderr where that is a terminal; nothing elsewhere."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Bar(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(f"fetching {title}", total=None)
        yield lambda have, total: bar.update(task, completed=have, total=total)
