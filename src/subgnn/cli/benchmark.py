"""``subgnn benchmark``: train several recipes and compare them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer import Argument, Option

from subgnn.cli.engine import Address, EngineChoice, EngineKind, cluster
from subgnn.cli.options import CacheFlag, DeviceChoice, IdBase, JsonFlag, MemoryLimit, Settings
from subgnn.cli.output import print_error, print_json, print_line, print_table
from subgnn.cli.progress import progress_bar
from subgnn.data.formats import read_dataset
from subgnn.errors import UserError
from subgnn.experiments.suites import suite_names

if TYPE_CHECKING:
    from subgnn.experiments.suites.plan import Request

SUITES = ("quick", *suite_names())
_WHERE = "benchmark run"
benchmark = typer.Typer(no_args_is_help=True, help="Train several recipes and compare them.")


@benchmark.callback()
def benchmark_verbs() -> None:
    """Train several recipes and compare them."""


@benchmark.command("run")
def run_benchmark(
    context: typer.Context,
    suite: Annotated[
        str, Argument(metavar="SUITE", help=f"The suite: {', '.join(SUITES)}, or a .toml file of your own.")
    ],
    out: Annotated[Path, Option(metavar="FOLDER", help="The folder for results and runs.")],
    path: Annotated[Path | None, Argument(metavar="[DIR]", help="quick: a dataset folder or bundle.")] = None,
    epochs: Annotated[int, Option(min=1, help="quick: epochs of models trained by gradient descent.")] = 30,
    seeds: Annotated[
        int | None, Option(min=1, help="Runs of each model, with seeds 0, 1 and so on; by default as the suite says.")
    ] = None,
    data: Annotated[
        list[str] | None, Option(metavar="NAME=DIR", help="A dataset of the suite; may be repeated.")
    ] = None,
    models: Annotated[list[str] | None, Option(metavar="LABELS", help="Only these models, joined by commas.")] = None,
    datasets: Annotated[
        list[str] | None, Option(metavar="NAMES", help="Only these datasets, joined by commas.")
    ] = None,
    processes: Annotated[
        int | None, Option(min=1, help="Parallel runs, with a thread each; by default 1, with Ray one per core.")
    ] = None,
    split: Annotated[
        Literal["random", "stored", "published"] | None,
        Option(help="The split of all datasets; by default as the suite says. published: as train --split."),
    ] = None,
    engine: EngineChoice = EngineKind.local,
    address: Address = None,
    settings: Settings = None,
    device: DeviceChoice = "auto",
    cache: CacheFlag = True,
    id_base: IdBase = None,
    memory: MemoryLimit = None,
    json: JsonFlag = False,
) -> None:
    """Run a suite: its models on its datasets over several seeds, with a report beside the published numbers.

    quick examines a dataset of your own: which kind of signal its labels carry, and whether a simple model is enough.
    The same command continues, and skips finished runs.
    Exit code 1 if some runs failed, 2 if all did.

    Examples:
    subgnn benchmark run synthetic --out results --processes 8

    subgnn benchmark run quick my_folder --out look
    """
    from subgnn.experiments.suites.page import failure_text
    from subgnn.experiments.suites.plan import Request
    from subgnn.experiments.suites.remote import RemoteEngine
    from subgnn.experiments.suites.run import run_suite
    from subgnn.experiments.suites.spec import find_suite
    from subgnn.parallel.engine import LocalEngine

    sources = {name: context.get_parameter_source(name) for name in context.params}
    given = {name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"}
    overrides = tuple(settings or ())
    request = Request(seeds=seeds or 1, overrides=overrides, device=device, cache=cache, id_base=id_base)
    if suite == "quick":
        for name in ("data", "models", "datasets", "processes", "split", "engine", "address"):
            if name in given:
                raise UserError(f"quick takes no --{name}", where=_WHERE, hint="leave it out, or name another suite")
        _run_quick(path, out, request, epochs=epochs, json=json)
        return
    found = find_suite(suite)
    if split is not None:
        found = replace(found, protocol=replace(found.protocol, split=split))
    if path is not None:
        hint = f"give folders by name, as --data {found.datasets[0].name}={path}"
        raise UserError(f"'{path}': only quick takes a dataset by its path", where=_WHERE, hint=hint)
    if "epochs" in given:
        raise UserError("only quick takes --epochs", where=_WHERE, hint=f"use --set training.epochs={epochs}")
    repeated = {"--data": data, "--models": models, "--datasets": datasets, "--set": settings}
    command = ["subgnn", "benchmark", "run", suite, "--out", str(out)]
    command += [word for option, values in repeated.items() for value in values or () for word in (option, value)]
    command += ["--seeds", str(seeds)] if seeds else []
    command += ["--split", split] if split else []
    command += ["--engine", "ray"] if engine is EngineKind.ray else ["--processes", str(processes or 1)]
    command += ["--device", device, *([] if cache else ["--no-cache"])]
    with (
        progress_bar() as bar,
        cluster(engine, address, processes=processes, device=device) as workers,
        LocalEngine(processes or 1) as here,
    ):
        report = run_suite(
            found,
            out,
            data=_folders(data or []),
            models=_names(models or []),
            datasets=_names(datasets or []),
            request=replace(request, seeds=seeds or found.protocol.seeds, command=shlex.join(command)),
            engine=here if workers is None else RemoteEngine(workers),
            on_progress=bar.prepare,
        )
    _print_report(report, out, json)
    failed = {failure["run"]: failure_text(failure) for failure in report["failures"]}
    _exit_if_failed(list(failed.values()), report["runs"])


@benchmark.command("report")
def report_suite(
    out: Annotated[Path, Argument(metavar="DIR", help="The folder that benchmark run wrote.")],
    json: JsonFlag = False,
) -> None:
    """Write the report of a suite again from the folders of its runs: report.html, report.md and report.json.

    Runs of the same suite on another machine can be copied into DIR/runs first.

    Example: subgnn benchmark report results
    """
    from subgnn.experiments.suites.report import write_suite_report

    _print_report(write_suite_report(out), out, json)


def _print_report(report: dict[str, Any], out: Path, json: bool) -> None:
    if json:
        print_json(report)
        return
    from subgnn.experiments.suites.page import failure_text
    from subgnn.experiments.suites.tables import by_dataset, change_table, short_table, short_title

    for rows in by_dataset(report["rows"]).values():
        print_table(short_title(rows), *short_table(rows))
    for dataset, rows in by_dataset(report["settings"]).items():
        print_table(f"{dataset}: change of validation micro-F1, one setting at a time", *change_table(rows))
    for failure in report["failures"]:
        print_line(f"failed: {failure_text(failure)}")
    for words in report["missing"]:
        print_line(f"fewer seeds: {words}")
    print_line(f"the report: {out / 'report.html'}, report.md and report.json")


def _exit_if_failed(failures: Sequence[str], finished: int) -> None:
    """Print how many runs failed, and why the first did; exit with 1 if some failed, with 2 if all did."""
    if failures:
        count = f"{len(failures)} of {len(failures) + finished} runs failed"
        print_error(f"{_WHERE}: {count}; the first: {failures[0]}; the same command runs the failed ones again")
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


def _run_quick(path: Path | None, out: Path, request: Request, *, epochs: int, json: bool) -> None:
    """Examine a dataset with a few quick models."""
    if path is None:
        hint = "as in: subgnn benchmark run quick DIR --out FOLDER"
        raise UserError("no dataset is given", where=_WHERE, hint=hint)
    from subgnn.experiments.quick import run_quick
    from subgnn.experiments.quick_page import HEADER, quick_table, quick_title, quick_words
    from subgnn.training.devices import quiet_lightning

    quiet_lightning()
    dataset = read_dataset(path, id_base=request.id_base)
    with progress_bar() as bar:
        found = run_quick(
            dataset,
            out,
            epochs=epochs,
            seeds=request.seeds,
            overrides=request.overrides,
            device=request.device,
            source=str(path.resolve()),
            cache=request.cache,
            on_progress=bar.prepare,
        )
    if json:
        print_json(found)
    else:
        print_table(quick_title(found), HEADER, quick_table(found))
        for words in quick_words(found):
            print_line(words)
        print_line(f"all of it: {out / 'quick.md'} and {out / 'quick.json'}")
        recipe = found["verdict"]["enough"] or "subgnn"
        print_line(f"next: subgnn train {path} --recipe {recipe} --out runs/{recipe}")
    failures = [f"{name}: {message}" for name, message in found["failures"].items()]
    _exit_if_failed(failures, len(found["rows"]) - 1)  # without the row of the constant prediction
