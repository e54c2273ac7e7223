"""Baselines on datasets, over several seeds.

    python benchmarks/baselines.py --methods topology --data GLASS_DENSITY GLASS_CUT_RATIO --seeds 10
    python benchmarks/baselines.py --methods bag bag-1hop --data PPI_BP --split stored --seeds 1

Prints mean and population standard deviation of micro-F1 and AUROC, and the processor time of a run. A random split is
50/25/25 and follows the seed; a stored one is the dataset's own.
"""

from __future__ import annotations

import argparse
import logging
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path


def spread(values: list[float]) -> str:
    return f"{statistics.mean(values):.3f} ± {statistics.pstdev(values):.3f}"


def main() -> None:
    from subgnn.baselines import METHODS
    from subgnn.data.formats import read_dataset
    from subgnn.data.splits import split_subgraphs
    from subgnn.recipes import find_recipe
    from subgnn.training.run import train

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", type=Path, required=True, help="dataset folders")
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--split", choices=("random", "stored"), default="random")
    parser.add_argument("--set", action="append", metavar="SECTION.KEY=VALUE")
    parser.add_argument("--seeds", type=int, default=10)
    options = parser.parse_args()
    logging.getLogger("lightning").setLevel(logging.ERROR)
    print("| dataset | method | n | validation micro-F1 | test micro-F1 | test AUROC | CPU seconds |")
    print("|---|---|---|---|---|---|---|")
    for path in options.data:
        stored = read_dataset(path)
        for method in options.methods:
            runs, begin = [], time.process_time()
            for seed in range(options.seeds):
                dataset = stored
                if options.split == "random":
                    subgraphs = split_subgraphs(stored.subgraphs, method="random", seed=seed)
                    dataset = replace(stored, subgraphs=subgraphs)
                with tempfile.TemporaryDirectory() as folder:
                    recipe = find_recipe(method, options.set or ())
                    runs.append(train(dataset, recipe, Path(folder) / "run", seed=seed, device="cpu"))
            seconds = (time.process_time() - begin) / options.seeds
            cells = [
                spread([run[part][key] for run in runs])
                for part, key in (("val", "micro_f1"), ("test", "micro_f1"), ("test", "auroc"))
            ]
            print(f"| {stored.name} | {method} | {len(runs)} | {' | '.join(cells)} | {seconds:.1f} |", flush=True)


if __name__ == "__main__":
    main()
