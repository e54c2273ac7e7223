"""``subgnn train``, and tables of a run's scores."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from typer import Argument, Context, Option

from subgnn.api.options import Encoding, NodeColumn, SubgraphColumn, UnknownNodes, with_options
from subgnn.api.progress import progress_bar
from subgnn.cli.options import DataOptions, JsonFlag, MemoryLimit, RecipeName, Settings, check_paths
from subgnn.cli.output import continuing_command, print_json, print_line, print_next, print_notes, print_table
from subgnn.errors import UserError, counted
from subgnn.result import RunResult
from subgnn.training.options import PRELOAD, DeviceName, TrainOptions, fit_processes


@with_options(TrainOptions, DataOptions)
def train_run(
    *,
    context: Context,
    path: Annotated[Path, Argument(metavar="DIR", help="A dataset; or a table of edges or a graph, with MEMBERS.")],
    out: Annotated[Path, Option(metavar="RUN", help="The folder of the run.")],
    recipe: RecipeName = "auto",
    settings: Settings = None,
    options: TrainOptions,
    data: DataOptions,
    memory: MemoryLimit = None,
    json: JsonFlag = False,
) -> None:
    """Find the best model for labelled subgraphs by cross-validation, or train a named recipe.

    Data is a dataset, or tables: the edges, then the labelled subgraphs. Models are compared on the labelled subgraphs
    outside test, which is scored once, at the end; a named recipe is selected on the validation split. Press Ctrl-C to
    stop with the best so far.

    Examples:
    $ subgnn train edges.csv members.csv --out run
    ...
    chosen: simplest (diffusion-topology 1.00)
    the page of the run: run/report.html

    $ subgnn train genes --recipe subgnn --seed 0 --out runs/subgnn
    """
    from subgnn.config.recipes import check_recipe_early

    check_recipe_early(recipe, settings or ())

    from subgnn.data.describe import task_line
    from subgnn.training.run_dir import PAGE, check_early

    check_early(options, out)

    dataset = data.read(path, "subgnn train EDGES MEMBERS --out RUN", seed=options.seed)
    many = fit_processes(options, len(dataset.subgraphs), dataset.graph.num_edges) > 1
    if recipe == "auto" and options.engine == "local" and many:
        from subgnn.parallel.engine import import_early

        import_early(PRELOAD)  # beside the imports of this process

    from subgnn.api.train_recipe import metric_line, train
    from subgnn.models.recipes import find_recipe, unused_line
    from subgnn.training.devices import current_ranks

    chosen = find_recipe(recipe, settings or ())
    prints = (ranks := current_ranks()) is None or not ranks.rank  # of several ranks, only one
    if prints:
        print_notes(data.notes)
        print_line(task_line(dataset.subgraphs))
        for line in (metric_line(chosen, dataset.subgraphs), unused_line(chosen, dataset.graph, dataset.subgraphs)):
            if line:
                print_line(line)
    with progress_bar(chosen.training.epochs, chosen.pretrain.epochs, quiet=json) as bar:
        given = asdict(options) | {"source": str(path.resolve()), "keep_data": data.members is not None}
        result = train(dataset, chosen, out, ranks=ranks, callbacks=bar.callbacks(), **given)
    if not prints:
        return
    unlabelled, predicted = dataset.unlabelled, out / "unlabelled.tsv"
    if unlabelled is not None:
        from subgnn.api.run import as_query, load
        from subgnn.inference.answers import Files
        from subgnn.inference.predictions import prediction_table

        run = load(out, dataset)
        table = prediction_table(run.predictor, as_query(unlabelled, run.graph, "error"))
        Files(predicted, predicted, overwrite=True).write("tsv", table)
    print_json(result.to_json() | ({} if unlabelled is None else {"unlabelled": str(predicted)}))
    print_result(result)
    again = continuing_command(context.obj)
    if result.interrupted:
        print_line(f"interrupted: chosen among finished candidates; to try the rest, run: {again}")
    elif result.late:
        longer = continuing_command(context.obj, time=f"{2 * (options.time or chosen.auto.time):.0f}s")
        print_line(f"out of time: {', '.join(result.late)}; to add what is missing, run: {longer}")
    if unlabelled is not None:
        print_line(f"{predicted}: predictions for {counted(len(unlabelled), 'subgraph')} without a label")
    if (out / PAGE).is_file():
        print_line(f"the page of the run: {out / PAGE}")
    print_next("predict", out, "--subgraphs", "FILE", "--out", "predictions.tsv")
    report = result.threshold
    if options.threshold is not None and report is not None and not any(one.reached for one in report.labels):
        from subgnn.metrics.thresholds import threshold_notes

        notes = threshold_notes(report)
        more = f", and {len(notes) - 1} more labels" if len(notes) > 1 else ""
        hint = f"{result.run} is finished and predicts with 0.5; ask for less to use another threshold"
        raise UserError(f"{notes[0]}{more}", where="--threshold", hint=hint)


def update_trained_run(
    run: Annotated[Path, Argument(metavar="RUN", help="The folder of a finished run.")],
    graph: Annotated[Path, Option(metavar="PATH", help="The graph as it is now: a dataset, or a table of edges.")],
    out: Annotated[Path, Option(metavar="RUN2", help="The folder of the new run.")],
    subgraphs: Annotated[
        Path | None,
        Option(metavar="FILE", help="More labelled subgraphs; without a column of splits, all are for training."),
    ] = None,
    subgraph_column: SubgraphColumn = None,
    node_column: NodeColumn = None,
    encoding: Encoding = None,
    unknown: UnknownNodes = "error",
    device: DeviceName = "auto",
    memory: MemoryLimit = None,
    json: JsonFlag = False,
) -> None:
    """Fit the chosen models of a run again on a graph that has grown, with old and new labels.

    Example:
    $ subgnn update run --graph edges.csv --out run2
    note: 48 nodes as in training, 0 new, 0 gone; 128 edges, 128 in training
    ...
    next: subgnn predict run2 --subgraphs FILE --out predictions.tsv
    """
    check_paths(run, subgraphs)
    from subgnn.api.update import update_run
    from subgnn.config.settings import Recipe
    from subgnn.data.formats.format import Columns, ReadOptions
    from subgnn.training.run_dir import read_run_recipe

    notes: list[str] = []
    columns = Columns(subgraph=subgraph_column, node=node_column)
    reading = ReadOptions(columns=columns, encoding=encoding, unknown=unknown, on_note=notes.append)
    recipe = Recipe() if run.is_file() else read_run_recipe(run)  # an exported run is refused below
    with progress_bar(recipe.training.epochs, recipe.pretrain.epochs, quiet=json) as bar:
        callbacks = bar.callbacks()
        result = update_run(run, graph, out, subgraphs=subgraphs, reading=reading, device=device, callbacks=callbacks)
    print_json(result.to_json() | {"notes": notes})
    print_notes(notes)
    print_result(result)
    if (given := result.updated_from) is not None and given.before:
        title = f"the same {given.subgraphs:,} held-out subgraphs on the new graph"
        _print_scores(title, "run", {"before": given.before, "after": given.after}, list(given.before))
    elif given is not None:
        print_line(f"not compared with {given.run}: {given.note}")
    print_next("predict", out, "--subgraphs", "FILE", "--out", "predictions.tsv")


def print_result(result: RunResult) -> None:
    """Print the scores of a run by split."""
    if result.is_portfolio:
        title = f"{result.run}: candidates by out-of-fold {result.metric.replace('_', '-')}"
        cells = []
        for row in (row for row in result.leaderboard if row.score is not None):
            interval = "" if row.low is None else f"{row.low:.3f}\N{NO-BREAK SPACE}to\N{NO-BREAK SPACE}{row.high:.3f}"
            weight = f"{row.weight:.2f}" if row.weight else ""
            cells.append((row.name, f"{row.score:.3f}", interval, weight, f"{row.seconds:.1f}", row.note))
        print_table(title, ("candidate", "score", "95 % interval", "weight", "seconds", "note"), cells)
        for row in result.leaderboard:
            if row.score is None:
                print_line(f"no score: {row.name} ({row.note})")
        if result.judged:
            print_line(f"candidates were compared on {result.judged:,} of the subgraphs")
        members = [f"{row.name} {row.weight:.2f}" for row in result.leaderboard if row.weight]
        print_line(f"chosen: {result.chosen} ({', '.join(members)})")
        print_line(result.signal)
        if result.learning_curve is not None:
            print_line(result.learning_curve.sentence)
    shown = {"train": result.train, "val": result.val, "test": result.test}
    metrics = [name for name in result.test or result.val if name != "loss"]
    if result.as_of:
        print_line("each subgraph is measured on the graph as it was at its own time; for one graph, pass --as-of now")
    title = f"{result.run}: {result.recipe} on {result.dataset}, seed {result.seed}"
    scores = {result.scores_name(split): values for split, values in shown.items() if values}
    _print_scores(title, "split", scores, metrics)
    if result.threshold is not None:
        from subgnn.metrics.thresholds import threshold_notes
        from subgnn.reports.sections import threshold_table

        print_table(*threshold_table(result.threshold))
        print_notes(threshold_notes(result.threshold))
    if result.is_portfolio:
        return
    if (published := result.published).get("micro_f1") is not None:
        print_line(f"published: micro-f1 {published['micro_f1']} ({published.get('source', '')})")
    if result.candidate:
        print_line(f"selected on validation: {result.candidate}, of {len(result.candidates)} candidates")
    if result.members:
        print_line(f"the mean of {len(result.members)} networks; below, the epoch of the first")
    print_line(f"selected epoch {result.selected_epoch} of {result.epochs}")


def _print_scores(title: str, what: str, scores: Mapping[str, Mapping[str, float]], metrics: Sequence[str]) -> None:
    from subgnn.task import metric_text

    rows = [(name, *(metric_text(m, some.get(m, math.nan)) for m in metrics)) for name, some in scores.items()]
    print_table(title, (what, *(m.replace("_", "-") for m in metrics)), rows)
