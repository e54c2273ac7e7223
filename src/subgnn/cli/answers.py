"""Commands about subgraphs from a file: predict, embed, search, explain, complete and draw."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Argument, Option

from subgnn.api.options import with_options
from subgnn.api.progress import progress_bar
from subgnn.cli.options import AnswerOptions, RecordFile, RunPath, Settings, WorkerOptions, check_paths
from subgnn.cli.output import print_json, print_line, print_notes
from subgnn.errors import UserError, counted
from subgnn.inference.options import PredictOptions
from subgnn.result import RESULTS
from subgnn.storage.files import STANDARD_STREAM

_EXPORT = ".safetensors"
TableFile = Annotated[Path, Option(metavar="FILE", help="File to write: .tsv, .csv, .parquet, .jsonl; - for stdout.")]


@with_options(PredictOptions, AnswerOptions, WorkerOptions)
def predict_subgraphs(
    *,
    run: RunPath,
    out: TableFile,
    record: RecordFile = None,
    wanted: PredictOptions,
    workers: WorkerOptions,
    options: AnswerOptions,
) -> None:
    """Predict the labels of new subgraphs.

    Examples:
    $ subgnn predict run --subgraphs new.tsv --out predictions.tsv
    predictions.tsv: predictions for 2 subgraphs

    $ subgnn predict run --subgraphs new.tsv --sort probability:apoptosis --out - | head -3
    """
    options.check(run, out)
    from subgnn.inference.predictions import write_predictions

    with workers.workers() as engine:
        count = write_predictions(run, options.files(out), wanted, engine=engine, record=record)
    options.report(run, out, f"predictions for {counted(count, 'subgraph')}", num_subgraphs=count)


@with_options(AnswerOptions)
def embed_subgraphs(
    *,
    run: Annotated[Path, Argument(metavar="RUN", help="A run or exported file; with --recipe, a dataset or graph.")],
    out: Annotated[Path, Option(metavar="FILE", help="The file: .npy, .parquet, .csv, .tsv, .jsonl; - for stdout.")],
    recipe: Annotated[str | None, Option(help="Compute vectors without labels: unsupervised, or a .toml file.")] = None,
    settings: Settings = None,
    seed: Annotated[int, Option(help="With --recipe: seed for references and training.")] = 0,
    model: Annotated[Path | None, Option(metavar="FILE", help="With --recipe: save the model, for use as RUN.")] = None,
    options: AnswerOptions,
) -> None:
    """Compute a vector for each subgraph, as .npy or as a table of subgraphs with their vectors.

    Examples:
    $ subgnn embed run --subgraphs new.tsv --out vectors.npy
    vectors.npy: vectors of 4 numbers for 2 subgraphs

    $ subgnn embed genes --recipe unsupervised --subgraphs new.tsv --out free.npy
    free.npy: vectors of 256 numbers for 2 subgraphs
    """
    if recipe is None:
        given, hint = "a run is given", "leave it out, or run subgnn embed DIR --recipe unsupervised"
        refused = {"--set": settings, "--seed": seed, "--model": model}
    else:
        given, hint = "--recipe computes vectors from a graph", "leave it out"
        refused = {"--data": options.data, "--graph": options.graph}
    if option := next((option for option, value in refused.items() if value), ""):
        raise UserError(f"this option does not apply here: {given}", where=option, hint=hint)
    options.check(run if recipe is None else None, out)
    from subgnn.inference.answers import write_embeddings, write_embeddings_without_labels

    files = options.files(out)
    with progress_bar() as bar:
        if recipe is None:
            count, width = write_embeddings(run, files, on_progress=bar.prepare)
        else:
            from subgnn.data.read_tables import read_graph_of
            from subgnn.models.recipes import find_recipe

            chosen, graph = find_recipe(recipe, settings or ()), read_graph_of(run)
            count, width = write_embeddings_without_labels(
                graph, files, chosen, seed=seed, model=model, on_progress=bar.prepare
            )
    words = f"vectors of {width} numbers for {counted(count, 'subgraph')}"
    options.report(run, out, words, num_subgraphs=count, width=width)
    if model is not None and out != STANDARD_STREAM:
        print_line(f"{model}: the model, to embed more subgraphs")


@with_options(AnswerOptions)
def search_subgraphs(
    *,
    run: RunPath,
    out: TableFile = STANDARD_STREAM,
    top: Annotated[int, Option(min=1, metavar="K", help="How many known subgraphs to find.")] = 10,
    by: Annotated[
        Literal["place", "nodes", "class"], Option(help="Same part of the graph, shared nodes, or the run's vectors.")
    ] = "place",
    include_test: Annotated[bool, Option("--include-test", help="Also search the test split.")] = False,
    options: AnswerOptions,
) -> None:
    """Find the known subgraphs that are most like new ones, with their labels, distances and shared nodes.

    Example:
    $ subgnn search run --subgraphs new.tsv --top 1
    subgraph        rank  row  nearest      label      ...
    TP53-BAX-CASP9  1     8    apoptosis_9  apoptosis  ...
    ...
    """
    options.check(run, out, json_on_stdout=True)
    from subgnn.inference.search import SearchOptions, open_search, search, search_table

    files = options.files(out)
    form = files.output_format(default="tsv") or "tsv"
    searching = SearchOptions(top, include_test, by)
    known, query = open_search(run, files, searching)
    if options.json and out == STANDARD_STREAM:
        results = [query.about(row) | {"nearest": hits} for row, hits in search(known, query, searching)]
        print_json({"run": str(run), "by": by, "results": results, "notes": options.notes})
        return
    files.write(form, search_table(known, query, searching))
    options.report(run, out, f"nearest known subgraphs for {counted(len(query), 'subgraph')}", num_subgraphs=len(query))


@with_options(AnswerOptions)
def explain_subgraphs(
    *,
    run: RunPath,
    out: Annotated[Path, Option(metavar="FILE", help="File to write: .json, .jsonl, .tsv, .csv, .parquet; - for TSV.")],
    max_nodes: Annotated[int, Option(min=0, help="Skip per-node contributions for subgraphs of more nodes.")] = 500,
    max_anchors: Annotated[int, Option(min=0, help="How many anchors to list, the most important first.")] = 100,
    draw: Annotated[
        Path | None, Option(metavar="FILE", help="Also draw the subgraph, with its contributions: .svg, .png, .pdf.")
    ] = None,
    record: RecordFile = None,
    options: AnswerOptions,
) -> None:
    """Explain predictions: contributions of nodes, components, channels and anchors to each class.

    Examples:
    $ subgnn explain run --subgraphs new.tsv --out why.json
    why.json: explanations of 2 predictions

    $ subgnn explain run --subgraphs new.tsv --out why.tsv --draw why.svg
    """
    options.check(run, out)
    from subgnn.inference.explain import write_explanations
    from subgnn.reports.drawing import PictureFiles

    pictures = None if draw is None else PictureFiles(draw, options.force)
    draws = None if pictures is None else pictures.write
    limits = {"max_nodes": max_nodes, "max_anchors": max_anchors}
    query = write_explanations(run, options.files(out), on_explained=draws, record=record, **limits)
    if pictures is not None:
        options.notes.extend([*pictures.notes(query), f"drawn: {', '.join(map(str, pictures.written))}"])
    count = len(query)
    options.report(run, out, f"explanations of {counted(count, 'prediction')}", num_subgraphs=count)


@with_options(AnswerOptions)
def complete_subgraphs(
    *,
    run: RunPath,
    out: TableFile = STANDARD_STREAM,
    top: Annotated[int, Option(min=1, metavar="K", help="How many nodes to suggest for each subgraph.")] = 20,
    among: Annotated[Path | None, Option(metavar="FILE", help="Suggest only these nodes, one per line.")] = None,
    options: AnswerOptions,
) -> None:
    """Suggest nodes that are missing from subgraphs, each with the probability that it belongs.

    On first use, a model is fitted to the run's training and validation subgraphs by leaving members out.

    Example:
    $ subgnn complete run --subgraphs new.tsv --top 1
    subgraph        rank  node  probability  ...
    TP53-BAX-CASP9  1     XIAP  ...
    ...
    """
    options.check(run, out, json_on_stdout=True)
    from subgnn.inference.complete import complete_file

    files = options.files(out)
    form = files.output_format(default="tsv") or "tsv"
    table, count = complete_file(run, files, top=top, among=among)
    if options.json and out == STANDARD_STREAM:
        titles = [column.title for column in table.columns]
        rows = [dict(zip(titles, row, strict=True)) for part in table.parts for row in zip(*part, strict=True)]
        print_json({"run": str(run), "num_subgraphs": count, "suggestions": rows, "notes": options.notes})
        return
    files.write(form, table)
    options.report(run, out, f"nodes suggested for {counted(count, 'subgraph')}", num_subgraphs=count)


@with_options(AnswerOptions)
def draw_subgraphs(
    *,
    source: Annotated[Path, Argument(metavar="RUN|DIR", help="A run or exported file, or a dataset or graph.")],
    out: Annotated[Path, Option(metavar="FILE", help="The file: .svg, .png, .pdf; numbered if there are several.")],
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
    print_json({"source": str(source), "pictures": list(map(str, pictures.written)), "notes": notes})
    print_notes(notes)
    print_line(f"{pictures.written[0]}: a picture" + (f", and {n} more" if (n := len(pictures.written) - 1) else ""))
