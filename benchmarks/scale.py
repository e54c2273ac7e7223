"""Growth of costs with the graph: generate, convert, prepare, train and predict at several sizes.

    python benchmarks/scale.py --sizes 1e6 5e6 --stages generate convert [--out results.jsonl] [--folder DIR]
    python benchmarks/scale.py --sizes 1e6 5e6 20e6 49e6 --prepare-flags "--memory 16GB" \
        --train-flags "--memory 16GB --set training.epochs=10"
    python benchmarks/scale.py --sizes 1e6 5e6 --recipe large diffusion --stages generate train predict \
        --train-flags "--set training.epochs=10"
    python benchmarks/scale.py --sizes 1e6 5e6 49e6 --recipe auto --stages generate train \
        --train-flags "--memory 16GB --time 25m"
    python benchmarks/scale.py --sizes 3e5 --subgraphs 120000 --recipe auto --stages generate train
    python benchmarks/scale.py --sizes 5e6 --subgraphs 1000000 --recipe unsupervised --stages generate embed
    python benchmarks/scale.py --sizes 1e6 --recipe glass ssnp s2n wlks --stages generate train predict
    python benchmarks/scale.py --sizes 1e6 5e6 --weights --directed --recipe diffusion diffusion-directed \
        --stages generate train predict --train-flags "--memory 8GB" --predict-flags "--memory 8GB"

A size is a number of nodes; there are four edges a node and as many subgraphs a node as Elliptic2 has (49.3 million
nodes, 196 million edges, 121,810 subgraphs), or ``--subgraphs``. Every stage is a separate process, one after the
other. Each result is printed as a line, and written to ``--out`` as a line of JSON; that of training has the AUPRC on
test of the rarer class, which has three of ten subgraphs, and the members of a portfolio. A recipe that fails leaves
the others to run. At the end, the slope of log cost on log edges is printed for each cost: 1 is linear.
"""

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import psutil

STAGES = ("generate", "convert", "prepare", "train", "predict", "embed")
OF_RECIPES = STAGES[2:]
COSTS = ("seconds", "cpu_seconds", "resident_mb", "anonymous_mb")
EDGES_PER_NODE = 4


def commands(folder: Path, options: argparse.Namespace, nodes: int, recipe: str) -> dict[str, list[str]]:
    """The command of each stage, with a recipe where it takes one."""
    subgnn = [sys.executable, "-m", "subgnn"]
    bundle, run = str(folder / "graph.subgnn"), str(folder / "run")
    text = ["--text"] if options.text or "convert" in options.stages else []
    flags = {stage: shlex.split(getattr(options, f"{stage}_flags")) for stage in STAGES if stage != "generate"}
    generate = ["--generate", str(nodes), "--folder", str(folder), "--seed", str(options.seed), *text]
    generate += ["--subgraphs", str(options.subgraphs)] * bool(options.subgraphs)
    embed = ["--subgraphs", str(folder / "text" / "subgraphs.tsv"), "--out", str(folder / "vectors.npy"), "--force"]
    generate += ["--weights"] * options.weights + ["--directed"] * options.directed
    convert = ["data", "convert", str(folder / "text"), "--out", str(folder / "converted.subgnn"), "--force", "--json"]
    predict = ["--subgraphs", str(folder / "new.tsv"), "--out", str(folder / "predictions.tsv"), "--force", "--json"]
    return {
        "generate": [sys.executable, __file__, *generate],
        "convert": [*subgnn, *convert, *flags["convert"]],
        "prepare": [*subgnn, "prepare", bundle, "--recipe", recipe, "--json", *flags["prepare"]],
        "train": [*subgnn, "train", bundle, "--recipe", recipe, "--out", run, "--json", *flags["train"]],
        "predict": [*subgnn, "predict", run, *predict, *flags["predict"]],
        "embed": [*subgnn, "embed", bundle, "--recipe", recipe, *embed, "--json", *flags["embed"]],
    }


def _unreclaimable(pid: int) -> int:
    """Bytes of a process and its descendants that the system cannot reclaim; files in memory count once."""
    total = 0
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        for one in (process, *process.children(recursive=True)):
            with suppress(psutil.Error):
                used = one.memory_info()
                total += used.rss - used.shared
        for path in Path("/dev/shm").glob(f"subgnn-{pid}-*/*"):
            with suppress(OSError):
                total += path.stat().st_size
    return total


def measure(words: list[str], environment: dict[str, str]) -> dict[str, Any]:
    """Run a command to its end; returns its costs, its standard output and the end of its standard error.

    *Resident* is all memory of its largest process, also pages of mapped files, which the system can reclaim;
    *anonymous* is the memory of all its processes that it cannot, and files that they share in memory. Both are peaks;
    the second is sampled five times a second.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as error:
        begin = time.perf_counter()
        process = subprocess.Popen(words, stdout=out, stderr=error, env={**os.environ, **environment})
        anonymous = 0
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            anonymous = max(anonymous, _unreclaimable(process.pid))
            time.sleep(0.2)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - begin
        out.seek(0)
        error.seek(0)
        # The kernel counts in kilobytes, but for macOS, which counts in bytes.
        scale = 1 if sys.platform == "darwin" else 1024
        return {
            "code": process.returncode,
            "seconds": round(seconds, 2),
            "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 2),
            "resident_mb": round(usage.ru_maxrss * scale / 1e6),
            "anonymous_mb": round(anonymous / 1e6),
            "out": out.read().decode(errors="replace"),
            "error": error.read().decode(errors="replace").strip()[-400:],
        }


def run_size(nodes: int, options: argparse.Namespace) -> list[dict[str, Any]]:
    """All stages at one size; those of recipes for each."""
    folder = options.folder / f"{nodes}"
    folder.mkdir(parents=True, exist_ok=True)
    jobs = [(stage, "") for stage in STAGES if stage not in OF_RECIPES]
    jobs += [(stage, recipe) for recipe in options.recipe for stage in OF_RECIPES]
    rows, generated, failed = [], "", set[str]()
    for stage, recipe in jobs:
        if stage not in options.stages or recipe in failed:
            continue
        if stage == "train":
            shutil.rmtree(folder / "run", ignore_errors=True)
        words = commands(folder, options, nodes, recipe)[stage]
        found = measure(words, {"SUBGNN_CACHE": str(folder / "cache")})
        out = found.pop("out").strip()
        row = {"stage": stage, "recipe": recipe, "nodes": nodes, "edges": EDGES_PER_NODE * nodes, **found}
        row["load"] = os.getloadavg()[0]
        row["result"] = json.loads(out) if out.startswith("{") else out[-400:]
        row["command"] = shlex.join(words[1:])
        if stage == "generate" and found["code"] == 0:
            generated = row["result"]["graph_hash"]
        if stage == "convert" and found["code"] == 0 and generated:
            row["same_graph"] = row["result"]["graph_hash"] == generated
        rows.append(row)
        show(row)
        if options.out is not None:
            with options.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
        if found["code"] and not recipe:
            break
        if found["code"]:
            failed.add(recipe)
    if not options.keep:
        shutil.rmtree(folder)
    return rows


def show(row: dict[str, Any]) -> None:
    costs = "  ".join(f"{name} {row[name]:>9,}" for name in COSTS)
    trouble = f"  exit {row['code']}: {row['error']}" if row["code"] else ""
    other = "" if row.get("same_graph", True) else "  ANOTHER GRAPH"
    test = row["result"].get("test", {}) if isinstance(row["result"], dict) else {}
    score = f"  test AUPRC {test['auprc']:.3f}" if "auprc" in test else ""
    what = f"{row['stage']:<9} {row['recipe']:<10} {row['nodes']:>12,} nodes"
    members = [one for one in row["result"].get("leaderboard") or () if one["weight"]] if test else []
    answer = "".join(f"  {one['name']} {one['weight']:.2f}" for one in members)
    print(f"{what}  {costs}  load {row['load']:.1f}{score}{answer}{trouble}{other}", flush=True)


def slopes(rows: list[dict[str, Any]]) -> None:
    """Print how each cost of each stage grows with the edges."""
    for stage, recipe in dict.fromkeys((row["stage"], row["recipe"]) for row in rows):
        done = [row for row in rows if (row["stage"], row["recipe"]) == (stage, recipe) and row["code"] == 0]
        if len({row["edges"] for row in done}) < 2:
            continue
        edges = np.log([row["edges"] for row in done])
        grown = {cost: np.polyfit(edges, np.log([max(row[cost], 1e-2) for row in done]), 1)[0] for cost in COSTS}
        print(
            f"{stage:<9} {recipe:<10} slope of log cost on log edges: "
            + ", ".join(f"{c} {g:.2f}" for c, g in grown.items())
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=float, nargs="+", default=[1e6], help="numbers of nodes")
    parser.add_argument("--stages", nargs="+", choices=STAGES, default=list(STAGES[:-1]))
    parser.add_argument("--folder", type=Path, default=Path("scale"), help="where graphs and runs are written")
    parser.add_argument("--out", type=Path, help="results, a line of JSON each, appended")
    parser.add_argument(
        "--recipe", nargs="+", default=["large"], help="names or files; large has all six subchannels, two layers"
    )
    parser.add_argument("--subgraphs", type=int, help="how many subgraphs there are, at every size")
    parser.add_argument("--text", action="store_true", help="write the edge list as text even if it is not converted")
    parser.add_argument("--weights", action="store_true", help="give edges weights, with a heavy tail")
    parser.add_argument("--directed", action="store_true", help="keep the direction in which edges are drawn")
    parser.add_argument("--keep", action="store_true", help="keep graphs and runs")
    parser.add_argument("--seed", type=int, default=0)
    for stage in STAGES[1:]:
        parser.add_argument(f"--{stage}-flags", default="", metavar="WORDS", help=f"further options of subgnn {stage}")
    parser.add_argument("--generate", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    bundle_alone = options.generate is None and (options.weights or options.directed)
    if bundle_alone and (options.text or "convert" in options.stages):
        parser.error("--weights and --directed are for bundles alone: leave out --text and the stage convert")
    if options.generate is not None:
        from scale_graph import generate

        nodes = options.generate
        edges = EDGES_PER_NODE * nodes
        kinds = {"weights": options.weights, "directed": options.directed, "text": options.text}
        sizes = {"nodes": nodes, "edges": edges, "count": options.subgraphs}
        print(json.dumps(generate(options.folder, seed=options.seed, **sizes, **kinds)))
        return 0
    rows = [row for size in options.sizes for row in run_size(int(size), options)]
    slopes(rows)
    return 0 if all(row["code"] == 0 and row.get("same_graph", True) for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
