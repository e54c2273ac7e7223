"""``subgnn explain``: what carried a prediction."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from subgnn.cli.output import JsonFlag, MemoryLimit, print_json, print_line
from subgnn.cli.predict import Data, Force, Run, Subgraphs


def explain_subgraphs(
    run: Run,
    subgraphs: Subgraphs,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The .json or .tsv to write.")],
    attributions: Annotated[
        bool, typer.Option("--attributions", help="Integrated gradients, too: they add up. They need Captum.")
    ] = False,
    max_nodes: Annotated[
        int, typer.Option("--max-nodes", min=0, help="Of larger subgraphs, nodes are not left out one by one.")
    ] = 500,
    max_anchors: Annotated[
        int, typer.Option("--max-anchors", min=0, help="Anchors that are listed, those that matter most.")
    ] = 100,
    data: Data = None,
    force: Force = False,
    memory: MemoryLimit = None,
    json: JsonFlag = False,
) -> None:
    """Say which nodes, components, channels and anchors carried each prediction.

    Example: subgnn explain runs/first --subgraphs new.tsv --out why.json
    """
    from subgnn.explain.files import check_suffix, open_explainer, write_explanations

    check_suffix(out)
    explainer = open_explainer(run, data, max_nodes=max_nodes, max_anchors=max_anchors)
    count = write_explanations(explainer, subgraphs, out, attributions=attributions, overwrite=force)
    if json:
        print_json({"run": str(run), "out": str(out), "num_subgraphs": count})
    else:
        print_line(f"{out}: explanations of {count:,} predictions")
