"""``subgnn serve``: runs that answer over HTTP, and a page that asks them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from subgnn.cli.output import JsonFlag, print_json, print_line


def serve_runs(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN...", help="Finished runs, or files that export wrote; NAME=RUN gives another name."
        ),
    ],
    host: Annotated[str, typer.Option("--host", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0 takes any that is free.")] = 8000,
    token_file: Annotated[
        Path | None, typer.Option("--token-file", metavar="FILE", help="Holds the token that requests must carry.")
    ] = None,
    allowed_host: Annotated[
        list[str] | None, typer.Option("--allowed-host", metavar="NAME", help="A host name requests may use; repeat.")
    ] = None,
    max_body: Annotated[int, typer.Option("--max-body", min=1, help="Bytes of a request's body.")] = 1_000_000,
    max_subgraphs: Annotated[int, typer.Option("--max-subgraphs", min=1, help="Of a request.")] = 256,
    max_nodes: Annotated[
        int, typer.Option("--max-nodes", min=1, help="Of a request, all subgraphs together.")
    ] = 10_000,
    timeout: Annotated[float, typer.Option("--timeout", min=0.1, help="Seconds of a request.")] = 30.0,
    body_timeout: Annotated[
        float, typer.Option("--body-timeout", min=0.1, help="Seconds in which a request must arrive.")
    ] = 10.0,
    data: Annotated[
        Path | None, typer.Option("--data", metavar="DIR", help="The dataset; by default where each run read it.")
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Answer questions about subgraphs over HTTP, and show a page to ask them.

    Example: subgnn serve runs/first --port 8000
    """
    from subgnn.serve import serve

    def on_ready(found: dict[str, Any]) -> None:
        if json:
            print_json(found)
        else:
            print_line(f"{found['url']}: serving {', '.join(found['runs'])}; Ctrl-C ends")
        sys.stdout.flush()  # whoever waits for the line, behind a pipe, too, may ask now

    serve(
        runs,
        host=host,
        port=port,
        token_file=token_file,
        names=allowed_host or (),
        data=data,
        limits={
            "body_bytes": max_body,
            "subgraphs": max_subgraphs,
            "nodes": max_nodes,
            "seconds": timeout,
            "body_seconds": body_timeout,
        },
        on_ready=on_ready,
    )
