"""Time every kernel and other packages on the same graphs, and check that their results agree.

    python benchmarks/kernels.py                 both graphs, about six minutes on two idle cores with 4 GB
    python benchmarks/kernels.py --quick         the small graph alone, about a minute

Prints a table of ratios and the targets, and writes both to a JSON file. The best of several calls counts, ours and
theirs; compilation (our first call) and building each package's graph are not included. A package that is too slow for
the whole task is timed on part of it and scaled, and the table says on which part. Exits with 1 if any results differ.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numba
from rich.console import Console
from rich.table import Table

from kernel_cases.distances import distance_cases
from kernel_cases.measure import Case, Report, Row
from kernel_cases.memory import measure_apart
from kernel_cases.sequences import sequence_cases
from kernel_cases.structure import structure_cases
from kernel_cases.text import text_cases
from kernel_cases.walks import walk_cases
from kernel_cases.workloads import LARGE, SMALL, Workload, draw_graph

PACKAGES = (
    "subgnn",
    "numpy",
    "numba",
    "scipy",
    "networkx",
    "igraph",
    "fastdtw",
    "dtaidistance",
    "pandas",
    "pyarrow",
)
MEMORY_LIMIT = 2e9  # bytes


@dataclass(frozen=True, slots=True)
class Target:
    """A ratio to reach on two cores; of several functions of one package, the fastest counts."""

    kernel: str
    package: str
    ratio: float


TARGETS = (
    Target("hop_distances, all targets", "networkx", 300),
    Target("hop_distances, all targets", "scipy", 15),
    Target("dtw, absolute cost", "fastdtw", 1000),
    Target("dtw, absolute cost", "dtaidistance", 3),
    Target("induced_components", "scipy", 20),
)


def cases(load: Workload, folder: Path) -> Iterator[Case]:
    yield from distance_cases(load)
    yield from structure_cases(load)
    yield from sequence_cases(load)
    yield from walk_cases(load)
    yield from text_cases(load, folder)


def measure(sizes: list[tuple[int, int]], seed: int, progress: Console) -> Report:
    report = Report()
    with tempfile.TemporaryDirectory() as folder:
        for num_nodes, num_edges in sizes:
            name = f"{_short(num_nodes)} / {_short(num_edges)}"
            load = Workload(name, draw_graph(num_nodes, num_edges, seed), seed)
            for case in cases(load, Path(folder)):
                progress.print(f"{case.kernel}, {case.graph}")
                report.run(case)
    return report


def check_targets(rows: list[Row], memory: dict[str, Any] | None) -> list[dict[str, Any]]:
    """Each target on each graph, with the measured ratio."""
    checked = []
    for target in TARGETS:
        for graph in dict.fromkeys(row.graph for row in rows):
            fitting = [
                row
                for row in rows
                if row.graph == graph and row.kernel == target.kernel and row.rival.startswith(target.package)
            ]
            if fitting:
                nearest = min(fitting, key=lambda row: row.ratio)
                checked.append(
                    {
                        "target": f"{target.kernel}: at least {target.ratio:,.0f}x {target.package}",
                        "graph": graph,
                        "measured": f"{_ratio(nearest.ratio)}x {nearest.rival}",
                        "met": nearest.ratio >= target.ratio,
                    }
                )
    if memory is not None:
        checked.append(
            {
                "target": f"hop_distances, {memory['sources']} sources to all nodes: peak under 2 GB",
                "graph": f"{_short(memory['nodes'])} / {_short(memory['edges'])}",
                "measured": f"{memory['peak_bytes'] / 1e9:.2f} GB, the answer being {memory['answer_bytes'] / 1e9:.2f}",
                "met": memory["peak_bytes"] < MEMORY_LIMIT,
            }
        )
    return checked


def show(console: Console, report: Report, checked: list[dict[str, Any]]) -> None:
    table = Table(title="Seconds, best of several calls; theirs scaled to all items where timed on a part")
    for heading in ("kernel", "graph", "work"):
        table.add_column(heading)
    for heading in ("first call", "ours"):
        table.add_column(heading, justify="right")
    table.add_column("rival")
    for heading in ("timed on", "theirs", "ratio"):
        table.add_column(heading, justify="right")
    table.add_column("answers")
    previous = None
    for row in report.rows:
        same = previous is not None and (row.kernel, row.graph) == (previous.kernel, previous.graph)
        if previous is not None and not same:
            table.add_section()
        ours = [row.kernel, row.graph, row.work, _digits(row.ours_first_call_seconds), _digits(row.ours_seconds)]
        theirs = [row.rival, row.timed_on, _digits(row.rival_seconds), f"{_ratio(row.ratio)}x", row.agreement]
        table.add_row(*([""] * len(ours) if same else ours), *theirs)
        previous = row
    console.print(table)
    for line in report.skipped:
        console.print(f"skipped: {line}")
    targets = Table(title="Targets, on two cores")
    for heading in ("target", "graph", "measured", ""):
        targets.add_column(heading)
    for entry in checked:
        targets.add_row(entry["target"], entry["graph"], entry["measured"], "met" if entry["met"] else "NOT MET")
    console.print(targets)


def machine() -> dict[str, Any]:
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = None
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpu_count": os.cpu_count(),
        "threads": numba.get_num_threads(),
        "load_average": os.getloadavg()[0],
        "versions": versions,
    }


def _short(count: int) -> str:
    return f"{count / 1e6:g} M" if count >= 1_000_000 else f"{count:,}"


def _ratio(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.3g}"


def _digits(seconds: float) -> str:
    return f"{seconds:,.0f}" if seconds >= 100 else f"{seconds:.3g}" if seconds >= 0.001 else f"{seconds:.1e}"


def main() -> int:
    parser = argparse.ArgumentParser(description="Time the kernels and networkx, scipy, igraph and others.")
    parser.add_argument("--quick", action="store_true", help="the small graph alone, and no memory measurement")
    parser.add_argument("--out", type=Path, default=Path("results/kernels.json"), help="the JSON file")
    parser.add_argument("--seed", type=int, default=0, help="of the graphs and node sets")
    arguments = parser.parse_args()
    begin, before = time.perf_counter(), machine()
    progress = Console(stderr=True, style="dim")
    # First, while this process is small: a child starts with its parent's peak.
    memory = None if arguments.quick else measure_apart(arguments.seed)
    report = measure([SMALL] if arguments.quick else [SMALL, LARGE], arguments.seed, progress)
    checked = check_targets(report.rows, memory)
    console = Console() if sys.stdout.isatty() else Console(width=190)
    show(console, report, checked)
    seconds = time.perf_counter() - begin
    record = {
        "quick": arguments.quick,
        "seed": arguments.seed,
        "seconds": seconds,
        "machine": before,
        "load_average_after": os.getloadavg()[0],
        "rows": [row.as_dict() for row in report.rows],
        "skipped": report.skipped,
        "memory": memory,
        "targets": checked,
    }
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(record, indent=2) + "\n")
    load = f"load average {before['load_average']:.1f} before and {record['load_average_after']:.1f} after"
    console.print(f"{before['threads']} threads, {load}, {seconds:.0f} s in all; written to {arguments.out}")
    differing = [row for row in report.rows if not row.agrees]
    for row in differing:
        print(f"kernels.py: {row.kernel} and {row.rival} differ on {row.graph}", file=sys.stderr)
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
