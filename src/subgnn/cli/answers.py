"""Commands that answer about subgraphs from a file: predict, embed, search, explain and complete."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from typer import Argument, Option

from subgnn.api.options import Encoding, NodeColumn, SubgraphColumn, UnknownNodes, with_options
from subgnn.cli.options import (
    DataPath,
    ForceFlag,
    JsonFlag,
    MemoryLimit,
    RunPath,
    Settings,
    SubgraphsFile,
    check_paths,
)
from subgnn.cli.output import print_error, print_json, print_line, print_notes
from subgnn.errors import UserError
from subgnn.storage.files import STANDARD_STREAM

if TYPE_CHECKING:
    from subgnn.inference.answers import Files


TableFile = Annotated[
    Path, Option(metavar="FILE", help="The file to write: .tsv, .csv, .parquet, .jsonl; - for the standard output.")
]


@dataclass(frozen=True, slots=True)
class FileOptions:
    """How the file of subgraphs is read, the dataset of the run, and whether the output may be replaced."""

    subgraph_column: SubgraphColumn = None
    node_column: NodeColumn = None
    encoding: Encoding = None
    unknown: UnknownNodes = "error"
    data: DataPath = None
    force: ForceFlag = False
    excel_safe: Annotated[
        bool,
        Option("--excel-safe", help="In CSV and TSV, put a quote before texts that Excel would take for formulas."),
    ] = False

    def check(self, run: Path | None, subgraphs: Path, out: Path, *, json: bool = False) -> None:
        """Refuse paths that cannot be right; and a table and a JSON object that would both go to stdout."""
        check_paths(run, subgraphs, out, force=self.force)
        if json and out == STANDARD_STREAM:
            what = "the table and the JSON object would both go to the standard output"
            raise UserError(what, where="--out", hint="leave --json out, or name a file")

    def files(self, subgraphs: Path, out: Path) -> tuple[Files, list[str]]:
        """The files that a command reads and writes, and a list that gets the notes about what was guessed."""
        from subgnn.data.formats.format import Columns, ReadOptions
        from subgnn.inference.answers import Files

        notes: list[str] = []
        columns = Columns(subgraph=self.subgraph_column, node=self.node_column)
        reading = ReadOptions(columns=columns, encoding=self.encoding, unknown=self.unknown, on_note=notes.append)
        return Files(subgraphs, out, reading, self.data, self.force, self.excel_safe), notes


@with_options(FileOptions)
def predict_subgraphs(
    *,
    run: RunPath,
    subgraphs: SubgraphsFile,
    out: TableFile,
    top: Annotated[
        int | None, Option(min=1, metavar="K", help="The K likeliest classes in place of a column for each class.")
    ] = None,
    options: FileOptions,
    memory: MemoryLimit = None,
    json: JsonFlag = False,
) -> None:
    """Predict the labels of subgraphs of the graph that a run was trained on.

    Examples:
    subgnn predict runs/first --subgraphs new.tsv --out predictions.tsv

    subgnn predict runs/first --subgraphs sets.gmt --unknown drop --top 3 --out -
    """
    options.check(run, subgraphs, out, json=json)
    from subgnn.inference.answers import write_predictions

    files, notes = options.files(subgraphs, out)
    count = write_predictions(run, files, top=top)
    _report(run, out, json, f"predictions for {count:,} subgraphs", notes, num_subgraphs=count)


@with_options(FileOptions)
def embed_subgraphs(
    *,
    run: Annotated[
        Path,
        Argument(
            metavar="RUN",
            help="A finished run, a file from subgnn export or --model; with --recipe, a dataset or a graph.",
        ),
    ],
    subgraphs: SubgraphsFile,
    out: Annotated[
        Path,
        Option(
            metavar="FILE", help="The file to write: .npy, .parquet, .csv, .tsv, .jsonl; - for the standard output."
        ),
    ],
    recipe: Annotated[
        str | None,
        Option("--recipe", help="Vectors that need no labels, of a graph: unsupervised, or a .toml file."),
    ] = None,
    settings: Settings = None,
    seed: Annotated[int, Option(help="With --recipe: seed of references and of training.")] = 0,
    model: Annotated[
        Path | None, Option(metavar="FILE", help="With --recipe: keep the model, which embed accepts as RUN.")
    ] = None,
    options: FileOptions,
    memory: MemoryLimit = None,
    json: JsonFlag = False,
) -> None:
    """Compute the vector of each subgraph: .npy, or a table with the subgraphs beside their vectors.

    Examples:
    subgnn embed runs/first --subgraphs new.tsv --out vectors.npy

    subgnn embed my_folder --recipe unsupervised --subgraphs sets.tsv --out vectors.npy
    """
    with_recipe = {"--set": settings, "--seed": seed, "--model": model}
    with_run = {"--data": options.data}
    for option, value in (with_recipe if recipe is None else with_run).items():
        if value:
            hint = "leave it out, or say subgnn embed DIR --recipe unsupervised" if recipe is None else "leave it out"
            given = "a run is given" if recipe is None else "--recipe is given, which computes vectors of a graph"
            raise UserError(f"this option has no meaning here: {given}", where=option, hint=hint)
    options.check(run if recipe is None else None, subgraphs, out, json=json)
    from subgnn.inference.answers import write_embeddings, write_embeddings_without_labels

    files, notes = options.files(subgraphs, out)
    if recipe is None:
        count, width = write_embeddings(run, files)
    else:
        from subgnn.config.recipes import find_recipe
        from subgnn.data.read_tables import read_graph_of

        chosen, graph = find_recipe(recipe, settings or ()), read_graph_of(run)
        count, width = write_embeddings_without_labels(graph, files, chosen, seed=seed, model=model)
    words = f"vectors of {width} numbers for {count:,} subgraphs"
    _report(run, out, json, words, notes, num_subgraphs=count, width=width)
    if model is not None and not json and str(out) != "-":
        print_line(f"{model}: the model, for vectors of further subgraphs")


@with_options(FileOptions)
def search_subgraphs(
    *,
    run: Annotated[
        Path, Argument(metavar="RUN", help="A finished run, a file from subgnn export, or vectors from subgnn embed.")
    ],
    subgraphs: SubgraphsFile,
    out: TableFile = Path("-"),
    top: Annotated[int, Option(min=1, metavar="K", help="How many known subgraphs to find.")] = 10,
    distance: Annotated[
        Literal["centred", "cosine", "euclidean"],
        Option(help="Distance of vectors; centred: by the cosine, less the mean of the known vectors."),
    ] = "centred",
    include_test: Annotated[
        bool,
        Option("--include-test", help="In a run: find subgraphs of test, too; by default training and validation."),
    ] = False,
    index: Annotated[
        Literal["auto", "exact", "index"],
        Option(help="Compare all known vectors, or use an index of faiss, as auto does beyond 200,000."),
    ] = "auto",
    options: FileOptions,
    memory: MemoryLimit = None,
    json: JsonFlag = False,
) -> None:
    """Find the known subgraphs nearest to others, with their labels and distances.

    Examples:
    subgnn search runs/first --subgraphs new.tsv --top 10

    subgnn search known.parquet --subgraphs new.parquet --out nearest.tsv
    """
    from subgnn.data.formats.vectors import is_vector_file

    options.check(None if is_vector_file(run) else run, subgraphs, out)
    from subgnn.inference.search import Choice, search_files

    files, notes = options.files(subgraphs, out)
    form = files.output_format(default="tsv") or "tsv"
    answers, count = search_files(run, files, Choice(top, distance, include_test, index))
    if json and out == STANDARD_STREAM:
        print_json({"run": str(run), "distance": distance, "results": answers.to_json(), "notes": notes})
        return
    files.write(form, answers.table())
    _report(run, out, json, f"nearest known subgraphs of {count:,} subgraphs", notes, num_subgraphs=count)


@with_options(FileOptions)
def explain_subgraphs(
    *,
    run: RunPath,
    subgraphs: SubgraphsFile,
    out: Annotated[
        Path,
        Option(metavar="FILE", help="The file to write: .json, .jsonl, .tsv, .csv, .parquet; - for TSV on stdout."),
    ],
    attributions: Annotated[
        bool, Option("--attributions", help="Add integrated gradients, which sum to the logits; needs Captum.")
    ] = False,
    max_nodes: Annotated[int, Option(min=0, help="Leave nodes out one by one in subgraphs of up to so many.")] = 500,
    max_anchors: Annotated[int, Option(min=0, help="Anchors to list, those that matter most.")] = 100,
    options: FileOptions,
    memory: MemoryLimit = None,
    json: JsonFlag = False,
) -> None:
    """Explain predictions: contributions of nodes, components, channels and anchors to each class.

    Example: subgnn explain runs/first --subgraphs new.tsv --out why.json
    """
    options.check(run, subgraphs, out, json=json)
    from subgnn.inference.explain import Explainer, explanation_format, write_explanations
    from subgnn.inference.open import open_run

    files, notes = options.files(subgraphs, out)
    explanation_format(files)  # refuses a wrong output before the run is opened
    explainer = Explainer.of_run(open_run(run, options.data), max_nodes=max_nodes, max_anchors=max_anchors)
    count = write_explanations(explainer, files, attributions=attributions)
    _report(run, out, json, f"explanations of {count:,} predictions", notes, num_subgraphs=count)


@with_options(FileOptions)
def complete_subgraphs(
    *,
    run: RunPath,
    subgraphs: SubgraphsFile,
    out: TableFile = Path("-"),
    top: Annotated[int, Option(min=1, metavar="K", help="How many nodes to suggest for each subgraph.")] = 20,
    among: Annotated[
        Path | None, Option(metavar="FILE", help="Suggest these nodes only: a text file with one per line.")
    ] = None,
    options: FileOptions,
    memory: MemoryLimit = None,
    json: JsonFlag = False,
) -> None:
    """Suggest nodes that are missing in subgraphs, with the probability that they belong.

    The model is fitted to the run's training and validation subgraphs, by leaving members out, when it is first needed.

    Example: subgnn complete runs/first --subgraphs new.tsv --top 20 --out suggestions.tsv
    """
    options.check(run, subgraphs, out)
    from subgnn.inference.complete import complete_file

    files, notes = options.files(subgraphs, out)
    form = files.output_format(default="tsv") or "tsv"
    table, count = complete_file(run, files, top=top, among=among)
    if json and out == STANDARD_STREAM:
        titles = [column.title for column in table.columns]
        rows = [dict(zip(titles, row, strict=True)) for part in table.parts for row in zip(*part, strict=True)]
        print_json({"run": str(run), "num_subgraphs": count, "suggestions": rows, "notes": notes})
        return
    files.write(form, table)
    _report(run, out, json, f"nodes suggested for {count:,} subgraphs", notes, num_subgraphs=count)


def _report(run: Path, out: Path, json: bool, words: str, notes: list[str], **numbers: int) -> None:
    """Print what was written and notes about the input; on stderr if the answers are on the standard output."""
    if json:
        print_json({"run": str(run), "out": str(out), **numbers, "notes": notes})
    elif out == STANDARD_STREAM:
        for note in notes:
            print_error(f"note: {note}")
    else:
        print_notes(notes)
        print_line(f"{out}: {words}")
