"""``subgnn pretrain``: node embeddings by link prediction."""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from subgnn.cli.output import IdBase, JsonFlag, print_json, print_line, print_table, unused_line
from subgnn.cli.train import Device
from subgnn.config.files import parse_recipe
from subgnn.data.formats import read_dataset
from subgnn.errors import DataError, UserError
from subgnn.parallel.locks import locked_file


class Method(StrEnum):
    """What learns the embeddings."""

    gin = "gin"
    graphsaint = "graphsaint"


@contextmanager
def _progress(epochs: int) -> Iterator[Callable[[dict[str, Any]], None]]:
    """A bar on stderr, where that is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("pretraining"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    state = TextColumn("{task.fields[state]}")
    with Progress(*columns, state, console=Console(stderr=True), disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task("pretraining", total=epochs, state="")

        def advance(record: dict[str, Any]) -> None:
            text = f"loss {record['loss']:.3f}, val auroc {record['val_auroc']:.3f}"
            bar.update(task, completed=record["epoch"] + 1, state=text)

        yield advance


def pretrain_nodes(
    path: Annotated[Path, typer.Argument(metavar="DIR", help="A dataset folder or bundle.")],
    out: Annotated[Path, typer.Option("--out", metavar="EMB", help="The .safetensors file to write.")],
    method: Annotated[Method, typer.Option("--method", help="What learns them.")] = Method.gin,
    dim: Annotated[int, typer.Option("--dim", min=1, help="Numbers a node.")] = 64,
    seed: Annotated[int | None, typer.Option("--seed", help="The same as --set pretrain.seed.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="pretrain.KEY=VALUE", help="Override a setting; repeat.")
    ] = None,
    device: Annotated[Device, typer.Option("--device", help="Where to compute.")] = Device.auto,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a pretraining that was interrupted.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace what is at EMB.")] = False,
    id_base: IdBase = None,
    json: JsonFlag = False,
) -> None:
    """Learn node embeddings by link prediction, for recipes to start from.

    Example: subgnn pretrain my_folder --method gin --out vectors.safetensors
    """
    from subgnn.embeddings.cached import about
    from subgnn.embeddings.pretrain import pretrain
    from subgnn.embeddings.stored import write_vectors
    from subgnn.training.devices import quiet_lightning

    quiet_lightning()

    given = list(settings or ()) + ([f"pretrain.seed={seed}"] if seed is not None else [])
    for text in given:
        if not text.strip().startswith("pretrain."):
            raise UserError(
                f"'{text}' is no setting of pretraining", where="--set", hint="accepted: pretrain.KEY=VALUE"
            )
    chosen = parse_recipe({}, "--set", given).pretrain
    if out.suffix != ".safetensors":
        raise DataError(f"unknown kind of file '{out.suffix}'", where=str(out), hint="accepted: .safetensors")
    if out.exists() and not force:
        raise DataError("exists already", where=str(out), hint="choose another place, or pass --force to replace it")
    graph = read_dataset(path, id_base=id_base).graph
    with locked_file(out, doing="pretraining into this file"), _progress(chosen.epochs) as advance:
        found = pretrain(
            graph.undirected(),
            method.value,
            dim=dim,
            settings=chosen,
            device=device.value,
            state=out.with_suffix(".state.pt"),
            resume=resume,
            on_epoch=advance,
        )
        write_vectors(out, found.vectors, about(found), graph_hash=found.graph_hash, overwrite=force)
    unused = ["edge weights"] * (graph.weights is not None) + ["direction of edges"] * graph.directed
    results = {
        "method": method.value,
        "dim": dim,
        "val_auroc": found.val_auroc,
        "val_matched_auroc": found.val_matched_auroc,
        "epochs": found.epochs,
        "selected_epoch": found.selected_epoch,
        "seconds": found.seconds,
        "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "unused": unused,
        "graph_hash": found.graph_hash,
        "out": str(out),
    }
    if json:
        print_json(results)
        return
    row = (
        f"{found.val_auroc:.3f}",
        f"{found.val_matched_auroc:.3f}",
        f"{found.selected_epoch} of {found.epochs}",
        f"{found.seconds:.0f}",
        f"{results['peak_memory_mb']:.0f}",
    )
    title = f"{out}: {graph.num_nodes:,} vectors of {dim} numbers, {method.value}"
    print_table(title, ("val auroc", "the same, ends by degree", "selected epoch", "seconds", "peak memory, MB"), [row])
    if unused:
        print_line(unused_line("pretraining", unused))
    print_line(f"next: subgnn train {path} --set embeddings.source={out} --set embeddings.dim={dim} --out RUN")
