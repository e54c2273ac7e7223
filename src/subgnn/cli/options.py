"""Arguments and options that several commands share, and checks of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from subgnn.errors import DataError, excerpt
from subgnn.parallel.memory import memory_limit
from subgnn.storage.files import STANDARD_STREAM, refuse_existing


def _limit_memory(context: typer.Context, memory: str | None) -> str | None:
    """Put the limit in force until the command is done."""
    context.with_resource(memory_limit(memory))
    return memory


def _recipes_beginning_with(incomplete: str) -> list[str]:
    """Names of recipes, for the completion of the shell."""
    from subgnn.config.recipes import recipe_names

    return [name for name in recipe_names() if name.startswith(incomplete)]


DatasetPath = Annotated[Path, Argument(metavar="DIR", help="A dataset folder or bundle.")]
RunPath = Annotated[Path, Argument(metavar="RUN", help="The folder of a finished run, or a file from subgnn export.")]
OutFolder = Annotated[Path, Option("--out", metavar="DIR", help="The folder to write.")]
SubgraphsFile = Annotated[
    Path,
    Option(
        "--subgraphs",
        metavar="FILE",
        help="A table (a row for each membership, or each subgraph), gene sets (.gmt), or lines of nodes; - for stdin.",
    ),
]
DataPath = Annotated[Path | None, Option("--data", metavar="DIR", help="The dataset; by default the run's own.")]
RecipeName = Annotated[
    str, Option("--recipe", help="A recipe by name, or a .toml file.", autocompletion=_recipes_beginning_with)
]
Settings = Annotated[
    list[str] | None,
    Option("--set", metavar="SECTION.KEY=VALUE", help="Override a setting of the recipe; may be repeated."),
]
KeyValues = Annotated[
    list[str] | None, Option("--set", metavar="KEY=VALUE", help="Any other setting of the dataset; may be repeated.")
]
IdBase = Annotated[
    int | None,
    Option(
        "--id-base", min=0, max=1, help="First node id in the files, 0 or 1; by default that of dataset.json, or 0."
    ),
]
MemoryLimit = Annotated[
    str | None,
    Option(
        "--memory",
        metavar="SIZE",
        callback=_limit_memory,
        help="Memory to stay within, such as 16GB; by default two thirds of the machine's. Results do not change.",
    ),
]
GzipFlag = Annotated[bool, Option("--gzip", help="Compress the edge list.")]
ForceFlag = Annotated[bool, Option("--force", help="Replace an existing output.")]
JsonFlag = Annotated[bool, Option("--json", help="Print one JSON object on stdout, and nothing else there.")]


def read_key_values(pairs: Sequence[str]) -> dict[str, str]:
    """KEY=VALUE texts as a mapping."""
    found = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not (key and equals and value):
            raise DataError(f"{excerpt(pair)} is not a setting", where="--set", hint="KEY=VALUE is accepted")
        found[key.strip().replace("-", "_")] = value.strip()
    return found


def check_paths(
    run: Path | None, subgraphs: Path | None = None, out: Path | None = None, *, force: bool = False
) -> None:
    """Refuse paths that cannot be right before numba and torch are imported, which takes a second or two."""
    from subgnn.result import read_result

    if run is not None and not run.is_file():
        read_result(run)
    if subgraphs is not None and subgraphs != STANDARD_STREAM and not subgraphs.exists():
        raise DataError("no such file", where=str(subgraphs), hint="check the path")
    if out is not None and out != STANDARD_STREAM:
        refuse_existing(out, overwrite=force)
