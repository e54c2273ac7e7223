"""``subgnn predict`` and ``subgnn embed``: ask a run about subgraphs, seen before or not."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from subgnn.cli.engine import Address, EngineChoice, EngineKind, cluster
from subgnn.cli.output import JsonFlag, MemoryLimit, print_json, print_line

Run = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a finished run, or a file by subgnn export.")]
Subgraphs = Annotated[
    Path,
    typer.Option(
        "--subgraphs",
        metavar="FILE",
        help="A subgraph a line: nodes by name (or #row), joined by '-'; further columns are ignored.",
    ),
]
Data = Annotated[
    Path | None, typer.Option("--data", metavar="DIR", help="The dataset; by default where the run read it.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace what is at FILE.")]


def predict_subgraphs(
    run: Run,
    subgraphs: Subgraphs,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The TSV to write.")],
    data: Data = None,
    force: Force = False,
    engine: EngineChoice = EngineKind.local,
    address: Address = None,
    memory: MemoryLimit = None,
    json: JsonFlag = False,
) -> None:
    """Predict labels of subgraphs of the graph a run was trained on.

    Example: subgnn predict runs/first --subgraphs new.tsv --out predictions.tsv
    """
    from subgnn.inference.subgraph_files import write_predictions

    with cluster(engine, address) as workers:
        count = write_predictions(run, subgraphs, out, data=data, overwrite=force, engine=workers)
    if json:
        print_json({"run": str(run), "out": str(out), "num_subgraphs": count})
    else:
        print_line(f"{out}: predictions for {count:,} subgraphs")


def embed_subgraphs(
    run: Run,
    subgraphs: Subgraphs,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The .npy or .parquet to write.")],
    data: Data = None,
    force: Force = False,
    engine: EngineChoice = EngineKind.local,
    address: Address = None,
    memory: MemoryLimit = None,
    json: JsonFlag = False,
) -> None:
    """Write the vector of each subgraph: .npy, or .parquet with the subgraphs beside it.

    Example: subgnn embed runs/first --subgraphs new.tsv --out vectors.npy
    """
    from subgnn.inference.subgraph_files import write_embeddings

    with cluster(engine, address) as workers:
        shape = write_embeddings(run, subgraphs, out, data=data, overwrite=force, engine=workers)
    if json:
        print_json({"run": str(run), "out": str(out), "num_subgraphs": shape[0], "width": shape[1]})
    else:
        print_line(f"{out}: vectors of {shape[1]} numbers for {shape[0]:,} subgraphs")
