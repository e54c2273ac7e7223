"""Which channel sees which property: P, N, S and all of them on the synthetic datasets, over several seeds.

    python benchmarks/channels.py --seeds 10 --processes 16
    python benchmarks/channels.py --data DIR --channels S --set model.topology=true

Prints mean and population standard deviation of micro-F1 and AUROC. Splits are random 50/25/25 and follow the seed, as
do anchors, weights and batches. The recipe is ``structure`` with its channels replaced, unless another is given.
"""

from __future__ import annotations

import argparse
import json
import logging
import multiprocessing
import os
import statistics
import tempfile
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

ANCHORS = {"P": ("position", 50, 100), "N": ("neighborhood", 20, 50), "S": ("structure", 25, 25)}
SYNTHETIC = ("density", "cut-ratio", "coreness", "component")


def one_run(job: tuple[str, str, int, argparse.Namespace]) -> dict[str, Any]:
    """Train one set of channels on one dataset under one seed, on one thread."""
    import numba
    import torch

    from subgnn.config.recipes import find_recipe
    from subgnn.config.settings import ChannelSettings
    from subgnn.data.formats import read_dataset
    from subgnn.data.splits import split_subgraphs
    from subgnn.data.synthetic import generate
    from subgnn.experiments.train import train

    name, channels, seed, options = job
    numba.set_num_threads(1)
    torch.set_num_threads(1)
    logging.getLogger("lightning").setLevel(logging.ERROR)
    dataset = generate(name, seed=0) if name in SYNTHETIC else read_dataset(name)
    dataset = replace(dataset, subgraphs=split_subgraphs(dataset.subgraphs, method="random", seed=seed))
    chosen = tuple(
        ChannelSettings(kind, side, max(1, round(count * options.anchors)))
        for kind, internal, border in (ANCHORS[letter] for letter in channels)
        for side, count in (("internal", internal), ("border", border))
    )
    recipe = replace(find_recipe(options.recipe, options.set or ()), channels=chosen)
    with tempfile.TemporaryDirectory() as folder:
        results = train(dataset, recipe, Path(folder) / "run", seed=seed, device="cpu")
    return {
        "dataset": dataset.name,
        "channels": channels,
        "seed": seed,
        "val_micro_f1": results["val"]["micro_f1"],
        "micro_f1": results["test"]["micro_f1"],
        "auroc": results["test"]["auroc"],
    }


def spread(values: list[float]) -> str:
    return f"{statistics.mean(values):.3f} ± {statistics.pstdev(values):.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="*", default=list(SYNTHETIC), help="generators by name, or dataset folders")
    parser.add_argument("--channels", nargs="*", default=["P", "N", "S", "PNS"])
    parser.add_argument("--recipe", default="structure")
    parser.add_argument("--set", action="append", metavar="SECTION.KEY=VALUE")
    parser.add_argument("--anchors", type=float, default=1.0, help="factor on the number of anchors")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--out", type=Path, help="write every run to this JSON file")
    options = parser.parse_args()
    jobs = [(d, c, s, options) for s in range(options.seeds) for d in options.data for c in options.channels]
    with multiprocessing.get_context("spawn").Pool(options.processes) as pool:
        rows = list(pool.imap_unordered(one_run, jobs))
    groups = defaultdict(list)
    for row in rows:
        groups[row["dataset"], row["channels"]].append(row)
    print("| dataset | channels | n | validation micro-F1 | test micro-F1 | test AUROC |\n|---|---|---|---|---|---|")
    for (dataset, channels), runs in sorted(groups.items()):
        cells = [spread([run[key] for run in runs]) for key in ("val_micro_f1", "micro_f1", "auroc")]
        print(f"| {dataset} | {channels} | {len(runs)} | {' | '.join(cells)} |")
    if options.out is not None:
        options.out.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
