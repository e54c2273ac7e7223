"""``subgnn report``: the page of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from subgnn.cli.output import JsonFlag, print_json, print_line


def report_run(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a finished run.")],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="The page; by default RUN/report.html, replaced.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option("--data", metavar="DIR", help="The dataset; by default where the run read it.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace what is at FILE.")] = False,
    json: JsonFlag = False,
) -> None:
    """Write the page of a run: scores, curves, mistakes, drawings; one HTML file that needs nothing else.

    Example: subgnn report runs/first
    """
    from subgnn.reports import write_report

    written = write_report(run, out, data=data, overwrite=force)
    if json:
        print_json({"run": str(run), "out": str(written)})
    else:
        print_line(f"{written}: open it in a browser")
