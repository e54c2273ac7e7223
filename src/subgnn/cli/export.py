"""``subgnn export``: a run as one file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from subgnn.cli.output import JsonFlag, print_json, print_line
from subgnn.cli.predict import Data, Force, Run


def export_run_file(
    run: Run,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The file to write; a program is a .pt2.")],
    with_graph: Annotated[
        bool, typer.Option("--with-graph", help="Put the graph into it, so that nothing else is needed.")
    ] = False,
    format: Annotated[
        Literal["portable", "torch-export"] | None,
        typer.Option(
            "--format",
            help="portable: RUN in one file; torch-export: a program from distances to logits. A .pt2 is the latter.",
        ),
    ] = None,
    data: Data = None,
    force: Force = False,
    json: JsonFlag = False,
) -> None:
    """Write a run as one file that predict, embed, explain and serve take in place of RUN.

    Example: subgnn export runs/first --with-graph --out first.safetensors
    """
    from subgnn.errors import UserError
    from subgnn.inference import export_program, export_run

    format = format or ("torch-export" if out.suffix == ".pt2" else "portable")
    if format == "torch-export":
        if with_graph:
            raise UserError("a program holds no graph", where="--with-graph", hint="leave it out")
        about = export_program(run, out, data=data, overwrite=force)
    else:
        about = export_run(run, out, data=data, with_graph=with_graph, overwrite=force)
    if json:
        print_json({"run": str(run), "out": str(out), "format": format, **about})
        return
    print_line(f"{out}: {about['bytes']:,} bytes")
    if format == "portable":
        more = "" if with_graph else " --data DIR"
        print_line(f"next: subgnn predict {out}{more} --subgraphs FILE --out predictions.tsv")
