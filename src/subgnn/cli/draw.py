"""The command draw, and the pictures of explain."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from subgnn.api.options import with_options
from subgnn.cli.answers import AnswerOptions
from subgnn.cli.options import check_paths
from subgnn.cli.output import print_json, print_line, print_notes
from subgnn.errors import UserError
from subgnn.result import RESULTS

_EXPORT = ".safetensors"


@with_options(AnswerOptions)
def draw_subgraphs(
    *,
    source: Annotated[Path, Argument(metavar="RUN|DIR", help="A run or exported file, or a dataset or graph.")],
    out: Annotated[
        Path, Option(metavar="FILE", help="File to write: .svg, .png, .pdf; numbered if there are several.")
    ],
    neighbors: Annotated[int, Option(min=0, help="How many nodes to draw besides those of the subgraph.")] = 30,
    options: AnswerOptions,
) -> None:
    """Draw subgraphs in their surroundings, with the anchors of a run if it has any.

    To mark what each node contributes to a prediction, use subgnn explain --draw.

    Example:
    $ subgnn draw genes --subgraphs new.tsv --out new.svg
    note: 2 subgraphs have a picture each, in the order of the file: ...
    new-1.svg: a picture, and 1 more
    """
    check_paths(None, options.subgraphs)
    from subgnn.data.read_tables import read_graph_of
    from subgnn.inference.open import open_run
    from subgnn.reports.drawing import PictureFiles

    pictures, files = PictureFiles(out, options.force, neighbors), options.files(out)
    files.output_format(others=[out.suffix])
    if (source / RESULTS).is_file() or (source.is_file() and source.suffix == _EXPORT):
        drawn: Any = open_run(source, options.data).predictor
    elif options.data is not None:
        raise UserError(f"{source} is no run, so its graph is drawn", where="--data", hint="leave it out")
    else:
        drawn = read_graph_of(source).undirected()
    query = files.read(getattr(drawn, "graph", drawn))
    query.refuse_empty()
    for row in range(len(query)):
        pictures.write(drawn, query, row)
    notes = [*options.notes, *pictures.notes(query)]
    if options.json:
        print_json({"source": str(source), "pictures": list(map(str, pictures.written)), "notes": notes})
        return
    print_notes(notes)
    print_line(f"{pictures.written[0]}: a picture" + (f", and {n} more" if (n := len(pictures.written) - 1) else ""))


def explain_file(run: Path, options: AnswerOptions, out: Path, draw: Path | None, **given: Any) -> int:
    """Write explanations of a file of subgraphs, and pictures if they are wanted; return the number of subgraphs."""
    from subgnn.inference.explain import write_explanations
    from subgnn.reports.drawing import PictureFiles

    pictures = None if draw is None else PictureFiles(draw, options.force)
    on_explained = None if pictures is None else pictures.write
    query = write_explanations(run, options.files(out), on_explained=on_explained, **given)
    if pictures is not None:
        options.notes.extend([*pictures.notes(query), f"drawn: {', '.join(map(str, pictures.written))}"])
    return len(query)
