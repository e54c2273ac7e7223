"""``subgnn benchmark``: train several recipes and compare them."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer import Argument, Option

from subgnn.api.progress import progress_bar
from subgnn.cli.options import IdBase, JsonFlag, MemoryLimit, Settings
from subgnn.cli.output import command_line, print_error, print_json, print_line, print_table
from subgnn.errors import UserError
from subgnn.lab.suites import suite_names
from subgnn.training.options import CacheFlag, DeviceName

PAGE = "report.html"
_MOST_COLUMNS, _MOST_LINES = 4, 10
benchmark = typer.Typer(no_args_is_help=True, help="Compare models on several datasets, as the paper's tables do.")


@benchmark.command("run")
def run_benchmark(
    *,
    context: typer.Context,
    suite: Annotated[str, Argument(metavar="SUITE", help=f"{', '.join(suite_names())}, or a .toml file of your own.")],
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
    plan: Annotated[
        bool, Option("--plan", help="Print what the missing runs cost; models of unknown cost are run once.")
    ] = False,
    job_seconds: Annotated[
        float | None, Option(min=1, help="Stop a run after this time; it counts as failed. By default never.")
    ] = None,
    gpu_processes: Annotated[
        int | None, Option(min=1, help="Networks on the GPU at a time, beside the other processes; by default 2.")
    ] = None,
    processes: Annotated[int, Option(min=1, help="Runs at a time.")] = 1,
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
    the page: table/report.html
    """
    from subgnn.config.plugins import allow_plugin, is_plugin
    from subgnn.lab.suites.run import Request, run_suite
    from subgnn.lab.suites.spec import ModelSpec, find_suite
    from subgnn.parallel.engine import LocalEngine

    found = find_suite(suite)
    labels = [model.label for model in found.models]
    wanted = _names(models or [], labels)
    own = [name for name in wanted if is_plugin(name) and name not in labels]
    for name in own:  # to name one is to allow it
        allow_plugin(name)
    found = replace(found, models=(*found.models, *(ModelSpec(name, name) for name in own)))
    apart = plan or job_seconds is not None or gpu_processes is not None
    with progress_bar() as bar, LocalEngine(processes, apart=apart, gpu_jobs=gpu_processes or 2) as engine:
        report = run_suite(
            found,
            out,
            data=_folders(data or [], [dataset.folder_of or dataset.name for dataset in found.datasets]),
            models=wanted,
            datasets=_names(datasets or [], [dataset.name for dataset in found.datasets]),
            request=Request(
                seeds=seeds or found.protocol.seeds,
                overrides=tuple(settings or ()),
                split=split or "",
                device=device,
                cache=cache,
                id_base=id_base,
                command=command_line(context.obj),
            ),
            engine=engine,
            on_progress=bar.prepare,
            plan=plan,
            job_seconds=job_seconds or math.inf,
        )
    if plan:
        _print_plan(report["plan"], processes, gpu_processes or 2)
        return
    _print_report(report, out / PAGE)
    failed = report["failures"]
    if failed:
        count = f"{len(failed)} of {len(failed) + report['runs']} runs failed"
        first = "{label} on {dataset}, seed {seed:.0f}: {failure}".format(**failed[0])
        print_error(f"benchmark run: {count}; the first: {first}; run the same command again to retry them")
        raise typer.Exit(1 if report["runs"] else 2)


@benchmark.command("report")
def report_benchmark(
    sources: Annotated[
        list[Path] | None,
        Argument(
            metavar="[DIR|TABLE]...",
            help="The folder of a suite, or tables of runs (.csv, .csv.gz, .parquet); by default our own runs.",
        ),
    ] = None,
    out: Annotated[
        Path | None, Option(metavar="FILE", help="The page; by default report.html, in the folder where one is given.")
    ] = None,
    table: Annotated[Path | None, Option(metavar="FILE", help="Also write all runs as a table: .csv, .csv.gz.")] = None,
    json: JsonFlag = False,
) -> None:
    """Write the page of a benchmark from its runs: one HTML file that needs no network.

    Runs of the same suite on another machine can be copied into DIR/runs first, or given as a second table.

    Example:
    $ subgnn benchmark report table
    ...
    the page: table/report.html
    """
    from subgnn.lab.suites.page import benchmark_page
    from subgnn.lab.suites.report import open_benchmark, write_table
    from subgnn.render import write_page

    places = sources or []
    found = open_benchmark(places)
    page = out or (places[0] / PAGE if len(places) == 1 and places[0].is_dir() else Path(PAGE))
    write_page(benchmark_page(found), page)
    if table is not None:
        write_table(found.runs, table)
    _print_report(found.to_json(), page)


@benchmark.command("compare")
def compare_benchmark(
    results: Annotated[
        list[Path], Argument(metavar="TABLE...", help="Tables of runs (.csv, .csv.gz, .parquet), or folders of suites.")
    ],
    against: Annotated[Path | None, Option(metavar="DIR|TABLE", help="Runs to compare with; by default ours.")] = None,
    out: Annotated[Path, Option(metavar="FILE", help="The page.")] = Path("compare.html"),
    json: JsonFlag = False,
) -> None:
    """Compare results from elsewhere with those of the benchmark, paired over datasets.

    Example:
    $ subgnn benchmark compare theirs.csv --out compare.html
    ...
    the page: compare.html
    """
    from subgnn.lab.suites.page import benchmark_page
    from subgnn.lab.suites.report import open_benchmark, paired_rows, put_beside
    from subgnn.render import write_page

    found = put_beside(open_benchmark([] if against is None else [against]), results)
    rows = paired_rows(found)
    write_page(benchmark_page(found), out)
    print_json({"pairs": rows, "page": str(out)})
    tables: dict[str, list[list[str]]] = {}
    for row in rows:
        counts = [str(row["datasets"]), f"{row['difference']:+.3f}", f"{row['wins']}/{row['losses']}"]
        tests = ["" if p is None else f"{p:.3g}" for p in (row["p"], row["sign_p"])]
        tables.setdefault(f"{row['model']}, {row['protocol']}", []).append([row["against"], *counts, *tests])
    for title, lines in tables.items():
        print_table(title, ["against", "sets", "difference", "won/lost", "Wilcoxon p", "sign p"], lines)
    print_line(f"the page: {out}")


def _print_report(report: dict[str, Any], page: Path) -> None:
    """Scores where few datasets fit a terminal, ranks over more, and the page."""
    print_json(report)
    rows = report["rows"]
    for protocol, ranking in report["ranks"].items():
        mine = [row for row in rows if row["protocol"] == protocol]
        datasets, models = (list(dict.fromkeys(row[name] for row in mine)) for name in ("dataset", "model"))
        shown = datasets if len(datasets) <= _MOST_COLUMNS else []
        scores = {(row["model"], row["dataset"]): f"{row['micro_f1']['mean']:.3f} ({row['n']})" for row in mine}
        ranks, header, cells = ranking["models"], ["model", *shown], []
        for model in sorted(models, key=lambda name: ranks.get(name, len(models) + 1)):
            cells.append([model, *(scores.get((model, name), "missing") for name in shown)])
            if len(datasets) > 1:
                cells[-1].append(f"{ranks[model]:.1f}" if model in ranks else "")
        header += ["mean rank"] if len(datasets) > 1 else []
        print_table(f"micro-F1, {protocol}", header, cells)
    for words in report["incomplete"][:_MOST_LINES]:
        print_line(f"incomplete: {words}")
    if len(report["incomplete"]) > _MOST_LINES:
        print_line(f"and {len(report['incomplete']) - _MOST_LINES} more, which the page lists")
    print_line(f"the page: {page}")


def _print_plan(plan: list[dict[str, Any]], processes: int, gpu_processes: int) -> None:
    costs = [[row["runs"] * (row["seconds"] or 0.0) for row in plan if row["on_gpu"] is gpu] for gpu in (False, True)]
    minutes = max(sum(costs[0]) / processes, sum(costs[1]) / gpu_processes) / 60
    print_json({"plan": plan, "minutes": minutes})
    cells = []
    for row in plan:
        sign = "> " if row["at_least"] else ""
        each = "unknown" if row["seconds"] is None else f"{sign}{row['seconds']:.1f}"
        whole = "unknown" if row["seconds"] is None else f"{sign}{row['runs'] * row['seconds']:.0f}"
        cells.append([row["dataset"], row["model"], "GPU" if row["on_gpu"] else "CPU", str(row["runs"]), each, whole])
    print_table("Runs that are missing", ["dataset", "model", "on", "runs", "s each", "s in all"], cells)
    print_line(f"about {minutes:.1f} minutes with --processes {processes} --gpu-processes {gpu_processes}")


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
