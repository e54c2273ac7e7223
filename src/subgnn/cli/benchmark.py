"""``subgnn benchmark ...``: several runs side by side."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated

import typer

from subgnn.cli.output import CacheFlag, IdBase, JsonFlag, print_json, print_line, print_table
from subgnn.cli.progress import progress_bar
from subgnn.cli.train import Device
from subgnn.data.formats import read_dataset
from subgnn.errors import UserError, choices

SUITES = ("quick",)
benchmark = typer.Typer(no_args_is_help=True, help="Train several recipes side by side, and compare them.")


@benchmark.callback()
def benchmark_verbs() -> None:
    """Train several recipes side by side, and compare them."""


@benchmark.command("run")
def run_suite(
    suite: Annotated[str, typer.Argument(metavar="SUITE", help=f"What to run: {', '.join(SUITES)}.")],
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="Where results and runs go.")],
    path: Annotated[Path | None, typer.Argument(metavar="[DIR]", help="A dataset folder or bundle.")] = None,
    epochs: Annotated[int, typer.Option("--epochs", min=1, help="Of the recipes that are trained by gradient.")] = 30,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Runs of each recipe, of seeds 0, 1 and so on.")] = 1,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="SECTION.KEY=VALUE", help="Override a setting of all recipes; repeat."),
    ] = None,
    device: Annotated[Device, typer.Option("--device", help="Where to compute.")] = Device.auto,
    cache: CacheFlag = True,
    id_base: IdBase = None,
    json: JsonFlag = False,
) -> None:
    """Look closer at a dataset: what kind of signal its labels carry, and whether a simple model is enough.

    quick trains topology, bag, avg and default (SubGNN) for few epochs and judges them on validation. Given again,
    the command skips what is finished.

    Example: subgnn benchmark run quick my_folder --out look
    """
    if suite not in SUITES:
        raise UserError(f"unknown suite '{suite}'", where="benchmark run", hint=choices(suite, SUITES))
    if path is None:
        hint = f"as in: subgnn benchmark run {suite} DIR --out FOLDER"
        raise UserError("no dataset is given", where="benchmark run", hint=hint)
    logging.getLogger("lightning").setLevel(logging.ERROR)
    from subgnn.experiments.quick import run_quick
    from subgnn.experiments.quick_page import HEADER, quick_table, quick_title, quick_words

    dataset = read_dataset(path, id_base=id_base)
    with progress_bar() as bar:
        found = run_quick(
            dataset,
            out,
            epochs=epochs,
            seeds=seeds,
            overrides=settings or (),
            device=device.value,
            source=str(path.resolve()),
            cache=cache,
            on_progress=bar.prepare,
        )
    if json:
        print_json(found)
        return
    print_table(quick_title(found), HEADER, quick_table(found))
    for words in quick_words(found):
        print_line(words)
    print_line(f"all of it: {out / 'quick.md'} and {out / 'quick.json'}")
    recipe = found["verdict"]["enough"] or "default"
    print_line(f"next: subgnn train {path} --recipe {recipe} --out runs/{recipe}")
