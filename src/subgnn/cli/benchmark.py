"""``subgnn benchmark ...``: several runs side by side."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from subgnn.cli.engine import Address, EngineChoice, EngineKind, cluster
from subgnn.cli.output import CacheFlag, IdBase, JsonFlag, MemoryLimit, print_error, print_json, print_line, print_table
from subgnn.cli.progress import progress_bar
from subgnn.cli.train import Device
from subgnn.data.formats import read_dataset
from subgnn.errors import UserError
from subgnn.experiments.suites import suite_names

SUITES = ("quick", *suite_names())
_WHERE = "benchmark run"
benchmark = typer.Typer(no_args_is_help=True, help="Train several recipes side by side, and compare them.")


@benchmark.callback()
def benchmark_verbs() -> None:
    """Train several recipes side by side, and compare them."""


@benchmark.command("run")
def run_benchmark(
    context: typer.Context,
    suite: Annotated[
        str, typer.Argument(metavar="SUITE", help=f"What to run: {', '.join(SUITES)}, or a .toml file of yours.")
    ],
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="Where results and runs go.")],
    path: Annotated[Path | None, typer.Argument(metavar="[DIR]", help="quick: a dataset folder or bundle.")] = None,
    epochs: Annotated[int, typer.Option("--epochs", min=1, help="quick: of what is trained by gradient.")] = 30,
    seeds: Annotated[
        int | None,
        typer.Option("--seeds", min=1, help="Runs of each model, of seeds 0, 1 and so on; by default the suite's."),
    ] = None,
    data: Annotated[
        list[str] | None, typer.Option("--data", metavar="NAME=DIR", help="A dataset of the suite; repeat.")
    ] = None,
    models: Annotated[
        list[str] | None, typer.Option("--models", metavar="LABELS", help="These alone, with commas; repeat.")
    ] = None,
    datasets: Annotated[
        list[str] | None, typer.Option("--datasets", metavar="NAMES", help="These alone, with commas; repeat.")
    ] = None,
    processes: Annotated[
        int | None,
        typer.Option("--processes", min=1, help="Runs at once, a thread each: 1; of Ray, as many as there are cores."),
    ] = None,
    engine: EngineChoice = EngineKind.local,
    address: Address = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="SECTION.KEY=VALUE", help="Override a setting of all recipes; repeat."),
    ] = None,
    device: Annotated[Device, typer.Option("--device", help="Where to compute.")] = Device.auto,
    cache: CacheFlag = True,
    id_base: IdBase = None,
    memory: MemoryLimit = None,
    json: JsonFlag = False,
) -> None:
    """Run a suite: its models on its datasets over seeds, and report them beside the published numbers.

    quick looks closer at a dataset of yours: what kind of signal its labels carry, and whether a simple model is
    enough. Given again, the command skips what is finished.
    Exit 1 where some runs failed, 2 where all did.

    Examples:
    subgnn benchmark run synthetic --out results --processes 8

    subgnn benchmark run quick my_folder --out look
    """
    given = {name: context.get_parameter_source(name) for name in context.params}
    told = {name for name, source in given.items() if source is not None and source.name == "COMMANDLINE"}
    if suite == "quick":
        for name in ("data", "models", "datasets", "processes", "engine", "address"):
            if name in told:
                raise UserError(f"quick takes no --{name}", where=_WHERE, hint="leave it out, or name another suite")
        _run_quick(path, out, epochs, seeds or 1, settings or [], device, cache, id_base, json)
        return
    from subgnn.experiments.suite import Request, find_suite, run_suite
    from subgnn.experiments.suite.away import AwayEngine
    from subgnn.experiments.suite.page import failure_text
    from subgnn.parallel.engine import LocalEngine

    found = find_suite(suite)
    if path is not None:
        hint = f"give folders by name, as --data {found.datasets[0].name}={path}"
        raise UserError(f"'{path}': only quick takes a dataset by its place", where=_WHERE, hint=hint)
    if "epochs" in told:
        raise UserError("only quick takes --epochs", where=_WHERE, hint=f"use --set training.epochs={epochs}")
    words = {"--data": data, "--models": models, "--datasets": datasets, "--set": settings}
    command = ["subgnn", "benchmark", "run", suite, "--out", str(out)]
    command += [word for option, values in words.items() for value in values or () for word in (option, value)]
    command += ["--seeds", str(seeds)] if seeds else []
    command += ["--engine", "ray"] if engine is EngineKind.ray else ["--processes", str(processes or 1)]
    command += ["--device", device.value, *([] if cache else ["--no-cache"])]
    request = Request(
        seeds=seeds or found.protocol.seeds,
        overrides=tuple(settings or ()),
        device=device.value,
        cache=cache,
        id_base=id_base,
        command=shlex.join(command),
    )
    with (
        progress_bar() as bar,
        cluster(engine, address, processes=processes, device=device.value) as workers,
        LocalEngine(processes or 1) as here,
    ):
        report = run_suite(
            found,
            out,
            data=_folders(data or []),
            models=_names(models or []),
            datasets=_names(datasets or []),
            request=request,
            engine=here if workers is None else AwayEngine(workers),
            on_progress=bar.prepare,
        )
    _print_report(report, out, json)
    failed = {failure["run"]: failure_text(failure) for failure in report["failures"]}
    _leave_if_failed(list(failed.values()), report["runs"])


@benchmark.command("report")
def report_suite(
    out: Annotated[Path, typer.Argument(metavar="DIR", help="What benchmark run wrote.")],
    json: JsonFlag = False,
) -> None:
    """Write the report of a suite again: report.html, report.md and report.json, from the folders of its runs.

    Runs of the same suite from another machine may be copied into DIR/runs before.

    Example: subgnn benchmark report results
    """
    from subgnn.experiments.suite import write_suite_report

    _print_report(write_suite_report(out), out, json)


def _print_report(report: dict[str, Any], out: Path, json: bool) -> None:
    if json:
        print_json(report)
        return
    from subgnn.experiments.suite.cells import by_dataset, change_table, short_table, short_title
    from subgnn.experiments.suite.page import failure_text

    for rows in by_dataset(report["rows"]).values():
        print_table(short_title(rows), *short_table(rows))
    for dataset, rows in by_dataset(report["settings"]).items():
        print_table(f"{dataset}: change of validation micro-F1, one setting at a time", *change_table(rows))
    for failure in report["failures"]:
        print_line(f"failed: {failure_text(failure)}")
    for words in report["missing"]:
        print_line(f"fewer seeds: {words}")
    print_line(f"the report: {out / 'report.html'}, report.md and report.json")


def _leave_if_failed(failures: Sequence[str], finished: int) -> None:
    """Say how many runs failed and why the first did; exit 1 where some failed, 2 where all did."""
    if failures:
        count = f"{len(failures)} of {len(failures) + finished} runs failed"
        print_error(
            f"{_WHERE}: {count}; the first: {failures[0]}; given again, the command runs those that failed again"
        )
        raise typer.Exit(1 if finished else 2)


def _folders(pairs: Sequence[str]) -> dict[str, Path]:
    found = {}
    for pair in pairs:
        name, sign, folder = pair.partition("=")
        if not sign or not name or not folder:
            raise UserError(f"'{pair}'", where="--data", hint="accepted: NAME=DIR, as hpo-metab=data/hpo_metab")
        found[name] = Path(folder)
    return found


def _names(texts: Sequence[str]) -> list[str]:
    return [name.strip() for text in texts for name in text.split(",") if name.strip()]


def _run_quick(
    path: Path | None,
    out: Path,
    epochs: int,
    seeds: int,
    settings: Sequence[str],
    device: Device,
    cache: bool,
    id_base: int | None,
    json: bool,
) -> None:
    """A closer look at a dataset."""
    if path is None:
        hint = "as in: subgnn benchmark run quick DIR --out FOLDER"
        raise UserError("no dataset is given", where=_WHERE, hint=hint)
    from subgnn.experiments.quick import run_quick
    from subgnn.experiments.quick_page import HEADER, quick_table, quick_title, quick_words
    from subgnn.training.devices import quiet_lightning

    quiet_lightning()
    dataset = read_dataset(path, id_base=id_base)
    with progress_bar() as bar:
        found = run_quick(
            dataset,
            out,
            epochs=epochs,
            seeds=seeds,
            overrides=settings,
            device=device.value,
            source=str(path.resolve()),
            cache=cache,
            on_progress=bar.prepare,
        )
    if json:
        print_json(found)
    else:
        print_table(quick_title(found), HEADER, quick_table(found))
        for words in quick_words(found):
            print_line(words)
        print_line(f"all of it: {out / 'quick.md'} and {out / 'quick.json'}")
        recipe = found["verdict"]["enough"] or "default"
        print_line(f"next: subgnn train {path} --recipe {recipe} --out runs/{recipe}")
    failures = [f"{name}: {message}" for name, message in found["failures"].items()]
    _leave_if_failed(failures, len(found["rows"]) - 1)  # without the row of the constant answer
