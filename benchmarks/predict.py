"""CPU seconds of a prediction: one subgraph from a cold start, and many from a warm run, by member of a portfolio.

    python benchmarks/predict.py RUN [--count 10000] [--tree DIR ...]

Subgraphs are those of the run's dataset with a fifth of the nodes exchanged at random. A run is warm when it has its
table of walks, which is read or computed first. ``--tree`` names source trees, whose speed and outputs are compared
with those of the first.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

ROOT = Path(__file__).resolve().parents[1]


def measure(run: Path, count: int, outputs: Path) -> dict[str, float]:
    """CPU seconds of opening a run and of predicting, in one thread; probabilities go to a file."""
    import numba
    import torch

    # Threads that wait for others use CPU time.
    numba.set_num_threads(1)
    torch.set_num_threads(1)
    threadpool_limits(1)
    from subgnn.channels.walk_table import advance_tables
    from subgnn.inference.open import open_run
    from subgnn.ragged import Ragged

    warnings.simplefilter("ignore")
    found, begin = {}, time.process_time()
    opened = open_run(run)
    found["open"] = time.process_time() - begin
    predictor, known, rng = opened.predictor, opened.subgraphs, np.random.default_rng(0)
    if known is None:
        sys.exit(f"{run}: its dataset has no subgraphs")
    rows = [known.nodes[i % len(known)].copy() for i in range(count)]
    for row in rows:
        exchanged = rng.random(len(row)) < 0.2
        row[exchanged] = rng.integers(0, predictor.graph.num_nodes, exchanged.sum())
    nodes = Ragged.from_rows([np.unique(row) for row in rows])
    predictor.probabilities(nodes.take(np.arange(10)))
    begin = time.process_time()
    while not advance_tables():
        pass
    found["table of walks"] = time.process_time() - begin
    members: dict[str, Any] = {} if predictor.portfolio is None else dict(predictor.portfolio.parts)
    for name, member in members.items():
        begin = time.process_time()
        member.outputs(nodes)
        found[name] = time.process_time() - begin
    begin = time.process_time()
    np.save(outputs, predictor.probabilities(nodes))
    return found | {"all": time.process_time() - begin}


def cold_start(run: Path) -> float:
    """CPU seconds of ``subgnn predict`` for one subgraph."""
    from subgnn.inference.open import open_run
    from subgnn.inference.predictor import names_of

    with tempfile.TemporaryDirectory() as folder:
        one = Path(folder) / "one.txt"
        one.write_text(" ".join(names_of(open_run(run).predictor.graph, (1, 2, 3))) + "\n")
        words = [sys.executable, "-m", "subgnn", "predict", str(run), "--subgraphs", str(one), "--out"]
        before = os.times()
        subprocess.run([*words, str(Path(folder) / "out.csv")], check=True, capture_output=True)
        after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--tree", nargs="+", type=Path, default=[ROOT])
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        found = {"cold start": min(cold_start(options.run) for _ in range(3))}
        print(json.dumps(found | measure(options.run, options.count, options.one)))
        return
    results, outputs = [], []
    with tempfile.TemporaryDirectory() as folder:
        for i, tree in enumerate(options.tree):
            out = Path(folder) / f"{i}.npy"
            words = [sys.executable, __file__, str(options.run), "--count", str(options.count), "--one", str(out)]
            done = subprocess.run(words, env={**os.environ, "PYTHONPATH": str(tree / "src")}, stdout=-1, check=True)
            results.append(json.loads(done.stdout))
            outputs.append(np.load(out))
            print(
                f"{tree.resolve().name}: CPU seconds, {options.count:,} subgraphs; largest difference of probabilities"
            )
            print(f"to the first tree {np.abs(outputs[i] - outputs[0]).max():.1e}")
            for name, seconds in results[i].items():
                print(f"    {name:20} {seconds:8.2f}, {results[0][name] / max(seconds, 1e-9):8.2f} times the speed")


if __name__ == "__main__":
    main()
