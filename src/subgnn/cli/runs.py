"""Commands about finished runs: evaluate, export, report, runs and serve."""

import sys
from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Argument, Exit, Option

from subgnn.cli.options import DataPath, ForceFlag, GraphPath, JsonFlag, RecordFile, RunPath, check_paths
from subgnn.cli.output import print_error, print_json, print_line, print_next, print_notes, print_table
from subgnn.cli.train import print_result


def evaluate_run(
    run: RunPath,
    split: Annotated[Literal["train", "val", "test"], Option(help="The split to score.")] = "test",
    data: DataPath = None,
    graph: GraphPath = None,
    json: JsonFlag = False,
) -> None:
    """Score a run on a split of its dataset.

    Example:
    $ subgnn evaluate run --split test
    run: bag on members, seed 0
      split   micro-f1   macro-f1   accuracy   auroc
    ...
      test       0.875      0.867      0.875   1.000
    ...
    """
    check_paths(run)
    from subgnn.inference.open import evaluate_split

    notes: list[str] = []
    result = evaluate_split(run, split, data, graph=graph, on_note=notes.append)
    print_json(result.to_json() | ({"notes": notes} if notes else {}))
    print_notes(notes)
    print_result(result)


def verify_records(
    file: Annotated[Path, Argument(metavar="FILE", help="Answers that --record of predict, explain or serve wrote.")],
    run: Annotated[Path | None, Option(metavar="RUN", help="The run; by default the one the records name.")] = None,
    data: DataPath = None,
    graph: GraphPath = None,
    json: JsonFlag = False,
) -> None:
    """Compute recorded answers again, and list those that differ; exit 2 if there are any.

    Example:
    $ subgnn predict run --subgraphs new.tsv --record answers.jsonl --out new.csv
    new.csv: predictions for 2 subgraphs
    $ subgnn verify answers.jsonl
    answers.jsonl: 2 of 2 answers come out as recorded
    """
    from subgnn.inference.verify import verify

    checked = verify(file, run=run, data=data, graph=graph)
    wrong = [{"line": line, "problem": problem} for line, problem in checked if problem]
    print_json({"file": str(file), "records": len(checked), "differ": wrong})
    for one in wrong:
        print_error(f"{file}:{one['line']}: {one['problem']}")
    print_line(f"{file}: {len(checked) - len(wrong):,} of {len(checked):,} answers come out as recorded")
    if wrong:
        raise Exit(2)


def export_run_file(
    run: RunPath,
    out: Annotated[Path, Option(metavar="FILE", help="The file to write.")],
    with_graph: Annotated[bool, Option("--with-graph", help="Include the graph: no other file is needed.")] = False,
    data: DataPath = None,
    force: ForceFlag = False,
    json: JsonFlag = False,
) -> None:
    """Pack a run into one file that other commands accept instead of RUN, and write its model card.

    Example:
    $ subgnn export run --with-graph --out model.safetensors
    model.safetensors: ... bytes; its model card: model.card.md
    next: subgnn predict model.safetensors --subgraphs FILE --out predictions.tsv
    """
    card = out.with_suffix(".card.md")
    for path in (out, card):
        check_paths(run, out=path, force=force)
    from subgnn.inference.open import export_run, open_run
    from subgnn.render import write_page
    from subgnn.reports.run_page import model_card

    opened = open_run(run, data)
    about = export_run(opened, out, with_graph=with_graph, overwrite=force)
    write_page(model_card(opened.result), card, overwrite=force)
    print_json({"run": str(run), "out": str(out), "card": str(card), **about})
    print_line(f"{out}: {about['bytes']:,} bytes; its model card: {card}")
    more = () if with_graph else ("--data", "DIR")
    print_next("predict", out, *more, "--subgraphs", "FILE", "--out", "predictions.tsv")


def report_run(
    run: Annotated[Path, Argument(metavar="RUN", help="The folder of a finished run.")],
    out: Annotated[
        Path | None, Option(metavar="FILE", help="The page to write; by default RUN/report.html, which is replaced.")
    ] = None,
    data: DataPath = None,
    force: ForceFlag = False,
    json: JsonFlag = False,
) -> None:
    """Write the page of a run: scores, curves, mistakes and drawings, in one HTML file.

    Example:
    $ subgnn report run --out page.html
    page.html: open it in a browser
    """
    check_paths(run, out=out, force=force)
    from subgnn.reports.run_page import write_report

    written = write_report(run, out, data=data, overwrite=force)
    print_json({"run": str(run), "out": str(written)})
    print_line(f"{written}: open it in a browser")


def list_runs(
    folder: Annotated[Path, Argument(metavar="DIR", help="A folder with runs, at any depth.")],
    page: Annotated[Path | None, Option(metavar="FILE", help="Write an HTML page that compares them.")] = None,
    force: ForceFlag = False,
    json: JsonFlag = False,
) -> None:
    """List the runs in a folder with their scores, or compare them on a page.

    Example:
    $ subgnn runs . --page compare.html
    members: micro-F1 with its 95 % interval, the best on validation first
    ...
    compare.html: open it in a browser
    """
    from subgnn.reports.compare import HEADER, by_dataset, read_runs, write_comparison
    from subgnn.task import metric_name

    runs, problems = read_runs(folder)
    for problem in problems:
        print_error(f"warning: {problem}")
    if page is not None:
        write_comparison(runs, page, title=f"Comparison of runs: {folder.resolve().name}", overwrite=force)
    written = {} if page is None else {"page": str(page)}
    print_json({"runs": [run.to_json() for run in runs], "problems": problems} | written)
    for (dataset, metric), some in by_dataset(runs).items():
        title = f"{dataset}: {metric_name(metric)} with its 95 % interval, the best on validation first"
        header, *rows = ([*row[:2], *row[3:]] for row in (HEADER, *(run.cells() for run in some)))  # without the data
        print_table(title, header, rows)
    if page is None:
        print_next("runs", folder, "--page", "compare.html")
    else:
        print_line(f"{page}: open it in a browser")


def serve_runs(
    runs: Annotated[
        list[str],
        Argument(metavar="RUN...", help="Finished runs, or files from subgnn export; NAME=RUN sets a different name."),
    ],
    host: Annotated[str, Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, Option(min=0, max=65535, help="The port; 0 for any free one.")] = 8000,
    token_file: Annotated[Path | None, Option(metavar="FILE", help="File with the access token.")] = None,
    allowed_host: Annotated[
        list[str] | None, Option(metavar="NAME", help="Host name that requests may use; may be repeated.")
    ] = None,
    max_body: Annotated[int, Option(min=1, help="Maximum request body, in bytes.")] = 1_000_000,
    max_subgraphs: Annotated[int, Option(min=1, help="Maximum number of subgraphs per request.")] = 256,
    max_nodes: Annotated[int, Option(min=1, help="Maximum number of nodes per request.")] = 10_000,
    timeout: Annotated[float, Option(min=0.1, help="Timeout for answering a request, in seconds.")] = 30.0,
    body_timeout: Annotated[float, Option(min=0.1, help="Timeout for receiving a request, in seconds.")] = 10.0,
    data: DataPath = None,
    graph: GraphPath = None,
    record: RecordFile = None,
    json: JsonFlag = False,
) -> None:
    """Serve runs over HTTP: predictions and explanations as JSON, and a web page to explore them.

    Example:
    $ subgnn serve run --port 8000
    http://127.0.0.1:8000/: serving run; press Ctrl-C to stop
    """
    from subgnn.serve import serve

    def on_ready(found: dict[str, Any]) -> None:
        print_json(found)
        print_line(f"{found['url']}: serving {', '.join(found['runs'])}; press Ctrl-C to stop")
        sys.stdout.flush()  # a process that waits for this line behind a pipe may send requests now

    access: dict[str, Any] = {"host": host, "port": port, "token_file": token_file, "names": allowed_host or ()}
    limits: dict[str, float] = {"body_bytes": max_body, "subgraphs": max_subgraphs, "nodes": max_nodes}
    limits |= {"seconds": timeout, "body_seconds": body_timeout}
    serve(runs, **access, data=data, graph=graph, record=record, limits=limits, on_ready=on_ready)
