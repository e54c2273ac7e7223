"""``subgnn benchmark``: train several recipes and compare them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer import Argument, Option

from subgnn.api.options import with_options
from subgnn.api.progress import progress_bar
from subgnn.cli.options import IdBase, JsonFlag, MemoryLimit, Settings, WorkerOptions
from subgnn.cli.output import command_line, print_error, print_json, print_line, print_table
from subgnn.errors import UserError
from subgnn.lab.suites import suite_names
from subgnn.training.options import CacheFlag, DeviceName

if TYPE_CHECKING:
    from subgnn.lab.suites.spec import Suite

benchmark = typer.Typer(no_args_is_help=True, help="Train several recipes and compare them.")


@benchmark.command("run")
@with_options(WorkerOptions)
def run_benchmark(
    *,
    context: typer.Context,
    suite: Annotated[
        str, Argument(metavar="SUITE", help=f"The suite: {', '.join(suite_names())}, or a .toml file of your own.")
    ],
    out: Annotated[Path, Option(metavar="FOLDER", help="The folder for results and runs.")],
    seeds: Annotated[int | None, Option(min=1, help="Runs per model; by default as many as the suite says.")] = None,
    data: Annotated[
        list[str] | None,
        Option(metavar="NAME=DIR", help="A dataset, or a folder of datasets by their names; may be repeated."),
    ] = None,
    models: Annotated[
        list[str] | None,
        Option(metavar="LABELS", help="Only these models, joined by commas; package.module:NAME is one of your own."),
    ] = None,
    datasets: Annotated[list[str] | None, Option(metavar="NAMES", help="Only these datasets.")] = None,
    split: Annotated[
        Literal["random", "stored", "published", "folds"] | None,
        Option(help="Split of all datasets; by default as the suite says. published: see train --split."),
    ] = None,
    as_published: Annotated[
        bool,
        Option(
            "--as-published", help="Add scores by other authors' selection rules, some of which use the test split."
        ),
    ] = False,
    plan: Annotated[
        bool, Option("--plan", help="Print what the missing runs cost; models of unknown cost are run once.")
    ] = False,
    job_seconds: Annotated[
        float | None, Option(min=1, help="Stop a run after this time; it counts as failed. By default never.")
    ] = None,
    gpu_processes: Annotated[
        int | None, Option(min=1, help="Networks on the GPU at a time, beside the other processes; by default 2.")
    ] = None,
    workers: WorkerOptions,
    settings: Settings = None,
    device: DeviceName = "auto",
    cache: CacheFlag = True,
    id_base: IdBase = None,
    memory: MemoryLimit = None,
    json: JsonFlag = False,
) -> None:
    """Train the models of a suite on its datasets with several seeds, and compare them with published numbers.

    The same command continues, and skips finished runs. Exit code 1 if some runs failed, 2 if all did.

    Example:
    $ subgnn benchmark run synthetic --out table
    ...
    the report: table/report.html, report.md and report.json
    """
    from subgnn.lab.suites.page import failure_text
    from subgnn.lab.suites.plan import Request
    from subgnn.lab.suites.run import RemoteEngine, run_suite
    from subgnn.lab.suites.spec import find_suite
    from subgnn.parallel.engine import LocalEngine

    found = find_suite(suite)
    if split is not None:
        found = replace(found, protocol=replace(found.protocol, split=split))
    found, wanted = _with_plugins(found, _names(models or [], [model.label for model in found.models]))
    processes = workers.processes
    apart = plan or job_seconds is not None or gpu_processes is not None
    with (
        progress_bar() as bar,
        workers.open(processes=processes, device=device) as remote,
        LocalEngine(processes or 1, apart=apart, gpu_jobs=gpu_processes or 2) as here,
    ):
        report = run_suite(
            found,
            out,
            data=_folders(data or [], [dataset.folder_of or dataset.name for dataset in found.datasets]),
            models=wanted,
            datasets=_names(datasets or [], [dataset.name for dataset in found.datasets]),
            request=Request(
                seeds=seeds or found.protocol.seeds,
                overrides=tuple(settings or ()),
                device=device,
                cache=cache,
                id_base=id_base,
                as_published=as_published,
                command=command_line(context.obj),
            ),
            engine=here if remote is None else RemoteEngine(remote),
            on_progress=bar.prepare,
            plan=plan,
            job_seconds=job_seconds or math.inf,
        )
    if plan:
        _print_plan(report["plan"], processes or 1, gpu_processes or 2, json)
        return
    _print_report(report, out, json)
    failed = {failure["run"]: failure_text(failure) for failure in report["failures"]}
    if failed:
        count = f"{len(failed)} of {len(failed) + report['runs']} runs failed"
        first = next(iter(failed.values()))
        print_error(f"benchmark run: {count}; the first: {first}; run the same command again to retry them")
        raise typer.Exit(1 if report["runs"] else 2)


@benchmark.command("report")
def report_suite(
    out: Annotated[Path, Argument(metavar="DIR", help="The folder that benchmark run wrote.")],
    json: JsonFlag = False,
) -> None:
    """Write the report of a suite again from its run folders: report.html, report.md and report.json.

    Runs of the same suite on another machine can be copied into DIR/runs first.

    Example:
    $ subgnn benchmark report table
    ...
    the report: table/report.html, report.md and report.json
    """
    from subgnn.lab.suites.report import write_suite_report

    _print_report(write_suite_report(out), out, json)


def _print_report(report: dict[str, Any], out: Path, json: bool) -> None:
    if json:
        print_json(report)
        return
    from subgnn.lab.suites.page import failure_text
    from subgnn.lab.suites.tables import by_dataset, change_table, short_table, short_title, standings_table

    for rows in by_dataset(report["rows"]).values():
        print_table(short_title(rows), *short_table(rows))
    if report["standings"]:
        print_table(*standings_table(report["standings"]))
    for dataset, rows in by_dataset(report["settings"]).items():
        print_table(f"{dataset}: change of validation micro-F1, one setting at a time", *change_table(rows))
    for failure in report["failures"]:
        print_line(f"failed: {failure_text(failure)}")
    for words in report["missing"]:
        print_line(f"incomplete: {words}")
    print_line(f"the report: {out / 'report.html'}, report.md and report.json")


def _print_plan(plan: list[dict[str, Any]], processes: int, gpu_processes: int, json: bool) -> None:
    """The costs of the missing runs, by dataset and model, and the time that they take side by side."""
    costs = {
        on_gpu: sum(row["runs"] * (row["seconds"] or 0.0) for row in plan if row["on_gpu"] is on_gpu)
        for on_gpu in (False, True)
    }
    minutes = max(costs[False] / processes, costs[True] / gpu_processes) / 60
    if json:
        print_json({"plan": plan, "minutes": minutes})
        return
    cells = []
    for row in plan:
        sign = "> " if row["at_least"] else ""
        each = "unknown" if row["seconds"] is None else f"{sign}{row['seconds']:.1f}"
        whole = "unknown" if row["seconds"] is None else f"{sign}{row['runs'] * row['seconds']:.0f}"
        cells.append([row["dataset"], row["model"], "GPU" if row["on_gpu"] else "CPU", str(row["runs"]), each, whole])
    print_table("Runs that are missing", ["dataset", "model", "on", "runs", "s each", "s in all"], cells)
    print_line(f"about {minutes:.1f} minutes with --processes {processes} --gpu-processes {gpu_processes}")


def _with_plugins(suite: Suite, wanted: list[str]) -> tuple[Suite, list[str]]:
    """The suite with the models of plug-ins that the user names; to name one is to allow it."""
    from subgnn.config.plugins import allow_plugin, is_plugin
    from subgnn.lab.suites.spec import ModelSpec

    added = [name for name in wanted if is_plugin(name) and name not in [model.label for model in suite.models]]
    for name in added:
        allow_plugin(name)
    return replace(suite, models=(*suite.models, *(ModelSpec(name, name) for name in added))), wanted


def _folders(texts: Sequence[str], known: Sequence[str]) -> dict[str, Path]:
    """Folders by the names of their datasets; those of a folder of datasets that the suite knows."""
    found = {}
    for text in texts:
        name, sign, folder = text.partition("=")
        if sign and name and folder:
            found[name] = Path(folder)
            continue
        inside = {one: Path(text) / one.replace("-", "_") for one in known}
        here = {one: path for one, path in inside.items() if path.is_dir()}
        if sign or not here:
            hint = "accepted: NAME=DIR, such as hpo-metab=data/hpo_metab, or a folder of datasets with these names"
            raise UserError(f"'{text}'", where="--data", hint=hint)
        found |= here
    return found


def _names(texts: Sequence[str], known: Sequence[str]) -> list[str]:
    """Split names at commas, but keep a known name that contains commas whole."""
    pieces = [piece for text in texts for piece in ([text] if text in known else text.split(","))]
    return [name.strip() for name in pieces if name.strip()]
