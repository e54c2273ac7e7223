"""Arguments and options that several commands share, and checks of them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from typer import Argument, Option

from subgnn.api.options import Aliases, Encoding, NodeColumn, SubgraphColumn, TableOptions, UnknownNodes
from subgnn.cli.output import as_json, print_error, print_json, print_line, print_notes
from subgnn.errors import DataError, UserError
from subgnn.parallel.memory import memory_limit
from subgnn.storage.files import STANDARD_STREAM, refuse_existing
from subgnn.training.options import RayAddress

if TYPE_CHECKING:
    from subgnn.data.dataset import Dataset, Problems
    from subgnn.inference.answers import Files
    from subgnn.parallel.engine import Engine


def _limit_memory(context: typer.Context, memory: str | None) -> str | None:
    """Put the limit in force until the command is done."""
    context.with_resource(memory_limit(memory))
    return memory


def _print_json(context: typer.Context, wanted: bool) -> bool:
    if wanted:
        context.with_resource(as_json())
    return wanted


def _recipes_beginning_with(incomplete: str) -> list[str]:
    from subgnn.config.recipes import recipe_names

    return [name for name in recipe_names() if name.startswith(incomplete)]


DatasetPath = Annotated[Path, Argument(metavar="DIR", help="A dataset folder or bundle.")]
RunPath = Annotated[Path, Argument(metavar="RUN", help="The folder of a finished run, or a file from subgnn export.")]
OutFolder = Annotated[Path, Option("--out", metavar="DIR", help="The folder to write.")]
DataPath = Annotated[Path | None, Option("--data", metavar="DIR", help="The dataset; by default the run's own.")]
GraphPath = Annotated[
    Path | None,
    Option("--graph", metavar="PATH", help="Another graph to answer on, such as one that has grown: dataset or edges."),
]
RecordFile = Annotated[
    Path | None, Option("--record", metavar="FILE", help="Append a line of JSON about each answer, for subgnn verify.")
]
RecipeName = Annotated[
    str, Option("--recipe", help="A recipe by name, a .toml file, or a run.", autocompletion=_recipes_beginning_with)
]
Settings = Annotated[
    list[str] | None,
    Option("--set", metavar="SECTION.KEY=VALUE", help="Override a setting of the recipe; may be repeated."),
]
KeyValues = Annotated[list[str] | None, Option("--set", metavar="KEY=VALUE", help="A setting; may be repeated.")]
IdBase = Annotated[
    int | None, Option("--id-base", min=0, max=1, help="First node id, 0 or 1; by default as in dataset.json, or 0.")
]
MemoryLimit = Annotated[
    str | None,
    Option(
        "--memory",
        metavar="SIZE",
        callback=_limit_memory,
        help="Memory limit, such as 16GB; by default two thirds of the machine's memory. It does not change results.",
    ),
]
ForceFlag = Annotated[bool, Option("--force", help="Replace an existing output.")]
JsonFlag = Annotated[
    bool, Option("--json", callback=_print_json, help="Print a single JSON object on stdout, and nothing else.")
]


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """The engine that does the work of a command, and the number of its workers."""

    engine: Annotated[Literal["local", "ray"], Option(help="Work on this machine, or on Ray's workers.")] = "local"
    address: RayAddress = None
    processes: Annotated[int | None, Option(min=1, help="Processes; by default 1, with Ray one per core.")] = None

    @contextmanager
    def workers(self) -> Iterator[Engine]:
        from subgnn.parallel.cluster import open_engine

        # Ray prints messages about lost machines on stdout, which is for results.
        messages = redirect_stdout(sys.stderr if self.engine == "ray" else sys.stdout)
        with open_engine(self.engine, address=self.address, processes=self.processes) as engine, messages:
            yield engine


@dataclass(frozen=True, slots=True, kw_only=True)
class DataOptions(TableOptions):
    """The data of a command: a dataset by its path, or tables; ``notes`` says what was guessed about these."""

    members: Annotated[
        Path | None, Argument(metavar="MEMBERS", help="After edges: the labelled subgraphs.", show_default=False)
    ] = None
    id_base: IdBase = None
    notes: list[str] = field(default_factory=list, init=False)

    def read(self, path: Path, command: str, *, seed: int = 0, problems: Problems | None = None) -> Dataset:
        """Read the dataset; messages name the ``command``, such as ``subgnn train EDGES MEMBERS``."""
        from subgnn.data.formats import read_dataset
        from subgnn.data.formats.bundle import is_bundle

        if self.members is not None:
            from subgnn.data.read_tables import read_tables

            reading = self.reading(self.id_base, self.notes.append, problems)
            return read_tables(path, self.members, nodes=self.nodes, options=reading, seed=seed)
        self.refuse_tables(command)
        try:
            return read_dataset(path, id_base=self.id_base)
        except DataError as error:
            if not path.is_file() or is_bundle(path):
                raise
            hint = f"{error.hint}; if these are edges, give their subgraphs too: {command}"
            raise DataError(error.what, where=error.where, hint=hint) from None

    def refuse_tables(self, command: str) -> None:
        if words := self._table_words():
            hint = f"use it with tables: {command}"
            raise UserError("this option is for tables, but a dataset is given", where=words[0], hint=hint)

    def words(self, path: Path) -> list[object]:
        """The arguments with which the next command reads the same data."""
        number = [] if self.id_base is None else ["--id-base", self.id_base]
        return [path, *filter(None, [self.members]), *self._table_words(), *number]

    def _table_words(self) -> list[str]:
        found = []
        for one in fields(TableOptions):
            value = getattr(self, one.name)
            if value != one.default:
                found += [f"--{one.name.replace('_', '-')}", *([] if value is True else [str(value)])]
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerOptions:
    """Options of commands about subgraphs from a file, and notes on what was guessed while reading the subgraphs."""

    subgraphs: Annotated[Path, Option(metavar="FILE", help="A table, gene sets (.gmt) or lines of nodes; - for stdin.")]
    subgraph_column: SubgraphColumn = None
    node_column: NodeColumn = None
    aliases: Aliases = None
    encoding: Encoding = None
    unknown: UnknownNodes = "error"
    data: DataPath = None
    graph: GraphPath = None
    force: ForceFlag = False
    excel_safe: Annotated[bool, Option("--excel-safe", help="Quote texts that Excel would take for formulas.")] = False
    memory: MemoryLimit = None
    json: JsonFlag = False
    notes: list[str] = field(default_factory=list, init=False)

    def check(self, run: Path | None, out: Path, *, json_on_stdout: bool = False) -> None:
        """Check the paths, and refuse to write both a table and a JSON object to stdout."""
        check_paths(run, self.subgraphs, out, force=self.force)
        if self.json and out == STANDARD_STREAM and not json_on_stdout:
            what = "the table and the JSON object would both go to the standard output"
            raise UserError(what, where="--out", hint="leave --json out, or write to a file")

    def files(self, out: Path) -> Files:
        from subgnn.data.formats.format import Columns, ReadOptions
        from subgnn.inference.answers import Files

        columns = Columns(subgraph=self.subgraph_column, node=self.node_column)
        reading = ReadOptions(columns=columns, encoding=self.encoding, unknown=self.unknown, on_note=self.notes.append)
        reading = replace(reading, aliases=self.aliases)
        return Files(self.subgraphs, out, reading, self.data, self.force, self.excel_safe, self.graph)

    def report(self, run: Path, out: Path, words: str, **numbers: int) -> None:
        """Print what was written and the notes; on stderr if the answers are on the standard output."""
        print_json({"run": str(run), "out": str(out), **numbers, "notes": self.notes})
        if out == STANDARD_STREAM:
            for note in self.notes:
                print_error(f"note: {note}")
        else:
            print_notes(self.notes)
            print_line(f"{out}: {words}")


def check_paths(run: Path | None, table: Path | None = None, out: Path | None = None, *, force: bool = False) -> None:
    """Check paths before numba and torch are imported, which takes a second or two."""
    from subgnn.result import read_result

    if run is not None and not run.is_file():
        read_result(run)
    if table is not None and table != STANDARD_STREAM and not table.exists():
        raise DataError("no such file", where=str(table), hint="check the path")
    if out is not None and out != STANDARD_STREAM:
        refuse_existing(out, overwrite=force)
