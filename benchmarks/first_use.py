"""CPU seconds that the first command after an installation spends compiling kernels.

    python benchmarks/first_use.py [--tree DIR ...] [--kernels] [--json] [-- COMMAND ...]

Generates 60 subgraphs, then runs each command in a new process with an empty cache of compiled code, and again with
the code that it left. The commands are three trainings, of ``auto`` and the recipes ``subgnn`` and ``bag``, unless one
is given after ``--``, with ``{data}`` and ``{run}`` for the dataset and the run. ``--tree`` names source trees to
compare in turn; by default, this one. ``--kernels`` lists every compiled function, its signature and its seconds,
those of the functions it calls excluded.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
COMMANDS = (
    ("train", "{data}", "--out", "{run}", "--time", "20s"),
    ("train", "{data}", "--out", "{run}", "--recipe", "subgnn", "--set", "training.epochs=3"),
    ("train", "{data}", "--out", "{run}", "--recipe", "bag"),
)


def record(report: Path) -> None:
    """Run the command line in this process, and write what was compiled to ``report``."""
    from numba.core import event

    compiled: list[dict[str, Any]] = []
    open_calls: list[list[float]] = []  # CPU seconds at the start, and those of inner calls

    class Recorder(event.Listener):  # type: ignore[misc]
        def on_start(self, _: Any) -> None:
            open_calls.append([time.thread_time(), 0.0])

        def on_end(self, done: Any) -> None:
            start, inner = open_calls.pop()
            seconds = time.thread_time() - start
            if open_calls:
                open_calls[-1][1] += seconds
            function = done.data["dispatcher"].py_func
            parallel = bool(done.data["dispatcher"].targetoptions.get("parallel"))
            name = f"{function.__module__}.{function.__name__}"
            row = {"name": name, "parallel": parallel, "signature": str(done.data["args"]), "seconds": seconds - inner}
            compiled.append(row)

    from subgnn.cli.app import main

    event.register("numba:compile", Recorder())
    start = time.perf_counter()
    code = main()
    wall, cpu = time.perf_counter() - start, sum(os.times()[:4])
    report.write_text(json.dumps({"code": code, "wall": wall, "cpu": cpu, "compiled": compiled}))


def measure(tree: Path, command: list[str], cache: Path, report: Path) -> dict[str, Any]:
    """What one command compiled, and its time."""
    folders = {"NUMBA_CACHE_DIR": str(cache), "SUBGNN_CACHE": str(cache / "prepared"), "PYTHONPATH": str(tree / "src")}
    words = [sys.executable, __file__, "--record", str(report), "--", *command]
    done = subprocess.run(words, env={**os.environ, **folders}, check=False, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed: {done.stderr}")
    result: dict[str, Any] = json.loads(report.read_text())
    return {**result, "stderr": done.stderr}


def main() -> None:
    """Print the seconds of each command and tree."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tree", type=Path, nargs="+", default=[ROOT])
    parser.add_argument("--kernels", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--record", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("command", nargs="*")
    options = parser.parse_args()
    if options.record:
        sys.argv = ["subgnn", *options.command]
        record(options.record)
        return
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        sizes = ["--num-nodes", "1000", "--num-subgraphs", "60"]
        generate = [sys.executable, "-m", "subgnn", "data", "generate", "density", "--out", str(data), *sizes]
        here = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
        subprocess.run(generate, env=here, check=True, capture_output=True)
        for i, command in enumerate([options.command] if options.command else COMMANDS):
            for j, tree in enumerate(options.tree):
                cache = Path(folder) / f"cache {i} {j}"
                for state in ("empty", "filled"):
                    words = [word.format(data=data, run=Path(folder) / f"run {i} {j} {state}") for word in command]
                    got = measure(tree, words, cache, Path(folder) / "report.json")
                    show(options, tree, command, state, got)


def show(options: argparse.Namespace, tree: Path, command: Any, state: str, got: dict[str, Any]) -> None:
    """Print one measurement."""
    rows = sorted(got["compiled"], key=lambda row: -row["seconds"])
    total = sum(row["seconds"] for row in rows)
    if options.json:
        print(json.dumps({"tree": str(tree), "command": command, "cache": state, **got}), flush=True)
        return
    parallel = sum(row["parallel"] for row in rows)
    print(
        f"{tree.name}: {' '.join(command)}: cache {state}: {total:.1f} CPU s for {len(rows)} functions"
        f" ({parallel} parallel); whole command {got['cpu']:.1f} CPU s, {got['wall']:.1f} s",
        flush=True,
    )
    for row in rows if options.kernels else ():
        kind = "parallel" if row["parallel"] else ""
        print(f"  {row['seconds']:6.2f} {kind:8} {row['name']} {row['signature'][:160]}")


if __name__ == "__main__":
    main()
