"""Cost of the peers at the size of PPI-BP: an epoch, a fit, and the prediction of one new subgraph.

    python benchmarks/peers.py [--data PPI_BP] [--recipes glass_ppi_bp wlks_ppi_bp] [--threads 2] [--epochs 5]

Without ``--data``, a random graph and subgraphs of the size of the paper's PPI-BP are generated. Every recipe runs in a
separate process, one after the other, from random embeddings: pretraining is not measured. An epoch is the median, with
its validation. A fit is the longest that the recipe allows, at that pace; most stop earlier. That of a model without
epochs is measured whole, with what a run reads and writes. Predictions are of subgraphs that the run has not seen, by a
run that is open: the first one, and the median of twenty more.

Beside them stands the authors' figure, where there is one, brought to this machine by the ratio of memory bandwidths:
these models move more numbers than they multiply. The bandwidth here is measured with as many threads.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from epoch import ppi_like

NODES, EDGES, TRAINING_SUBGRAPHS = 21_521, 338_625, 1_272
V100 = 900.0
"""GB/s; GLASS names this GPU, S2N and SSNP none."""


@dataclass(frozen=True, slots=True)
class Published:
    """Seconds of an epoch on PPI-BP by the authors' account; None if they give none."""

    seconds: float | None
    source: str
    bandwidth: float = V100


SUBGNN_SECONDS = TRAINING_SUBGRAPHS / 680
AUTHORS = {
    "glass_ppi_bp": Published(0.37 * SUBGNN_SECONDS, "37 % of SubGNN, whose code does at most 680 subgraphs a second"),
    "ssnp_ppi_bp": Published(0.376, "seconds an epoch, five pre-computed views"),
    "s2n_ppi_bp": Published(TRAINING_SUBGRAPHS / 140_000, "at most 140,000 training subgraphs a second"),
    "s2n_a_ppi_bp": Published(TRAINING_SUBGRAPHS / 140_000, "the same"),
    "s2n_gcnii_ppi_bp": Published(TRAINING_SUBGRAPHS / 140_000, "the same"),
    "s2n_gcnii_a_ppi_bp": Published(TRAINING_SUBGRAPHS / 140_000, "the same"),
    "wlks_ppi_bp": Published(None, "a hundredth to a quarter of the fastest network's training, on a CPU"),
}


def run_recipe(options: argparse.Namespace) -> dict[str, Any]:
    """Train with a recipe, open the run, and predict new subgraphs."""
    import torch

    from subgnn import Ragged, read_dataset
    from subgnn.api.train_recipe import train
    from subgnn.inference.predictor import Predictor
    from subgnn.models.recipes import find_recipe
    from subgnn.models.registry import trainable_model_of
    from subgnn.training.options import Callbacks
    from subgnn.training.run_dir import CHECKPOINT

    torch.set_num_threads(options.threads)
    dataset = ppi_like(NODES, EDGES) if options.data is None else read_dataset(options.data)
    published = find_recipe(options.part)
    recipe = find_recipe(options.part, ["embeddings.source=random", f"training.epochs={options.epochs}"])
    rng = np.random.default_rng(1)
    new = [np.sort(rng.choice(dataset.graph.num_nodes, rng.integers(5, 30), replace=False)) for _ in range(21)]
    clock, ends = time.process_time if options.cpu else time.perf_counter, []
    with tempfile.TemporaryDirectory() as folder:
        begin = clock()
        run = train(
            dataset,
            recipe,
            Path(folder) / "run",
            device="cpu",
            report=False,
            callbacks=Callbacks(on_epoch=lambda record: ends.append(clock())),
        )
        whole = clock() - begin
        predictor = Predictor(Path(folder) / "run" / CHECKPOINT, dataset.graph)
        times = [_seconds(lambda row=row: predictor.outputs(Ragged.from_rows([row])), clock) for row in new]
    solved = trainable_model_of(recipe).is_fitted_in_one_go
    epoch = None if solved else median(np.diff(ends).tolist())
    return {
        "epoch": epoch,
        "fit": whole if solved else epoch * published.training.epochs,
        "first": times[0],
        "later": median(times[1:]),
        "memory_mb": run.peak_memory_mb,
    }


def _seconds(call: Any, clock: Callable[[], float]) -> float:
    begin = clock()
    call()
    return clock() - begin


def bandwidth(threads: int, clock: Callable[[], float]) -> float:
    """GB/s that reading two arrays and writing a third moves here."""
    import torch

    torch.set_num_threads(threads)
    a, b, c = (torch.ones(2**25) for _ in range(3))
    return 3 * 4 * 2**25 / min(_seconds(lambda: torch.add(a, b, out=c), clock) for _ in range(5)) / 1e9


def row(name: str, found: dict[str, Any], here: float) -> str:
    authors = AUTHORS.get(name, Published(None, ""))
    theirs = scaled = "-"
    if authors.seconds is not None:
        theirs, scaled = f"{authors.seconds:.3f}", f"{authors.seconds * authors.bandwidth / here:.2f}"
    epoch = "-" if found["epoch"] is None else f"{found['epoch']:.3f}"
    cells = [epoch, f"{found['fit']:.1f}", theirs, scaled, f"{found['first']:.3f}", f"{found['later']:.3f}"]
    return f"| `{name}` | {' | '.join(cells)} | {found['memory_mb']:.0f} | {authors.source} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="a dataset; by default a random one of the size of PPI-BP")
    parser.add_argument("--recipes", nargs="+", default=list(AUTHORS))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=5, help="of each fit")
    parser.add_argument("--cpu", action="store_true", help="count processor seconds: for a machine with other work")
    parser.add_argument("--part", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        print(json.dumps(run_recipe(options)))
        return
    here = bandwidth(options.threads, time.process_time if options.cpu else time.perf_counter)
    print(f"{options.threads} threads, {here:.1f} GB/s, load {os.getloadavg()[0]:.1f}\n")
    print(
        "| recipe | epoch, s | longest fit, s | authors' epoch | scaled | first new subgraph, s | later | MB | figure |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    threads = {name: str(options.threads) for name in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS")}
    for name in options.recipes:
        command = [sys.executable, __file__, *sys.argv[1:], "--part", name]
        environment = {"GOMP_SPINCOUNT": "1000", **os.environ, **threads}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"{name}: {done.stderr}")
        print(row(name, json.loads(done.stdout.splitlines()[-1]), here), flush=True)


if __name__ == "__main__":
    main()
