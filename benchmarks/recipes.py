"""Train recipes on datasets over several seeds, optionally with some of SubGNN's channels, and compare their scores.

    python benchmarks/recipes.py --recipes topology --data GLASS_DENSITY density --seeds 10
    python benchmarks/recipes.py --recipes bag avg subgnn --data PPI_BP --split stored --processes 8 --device cuda
    python benchmarks/recipes.py --recipes subgnn --data PPI_BP --split stored --hide-test --variant "gin:
        embeddings.source=gin model.dropout=0.5" --variant "random: "
    python benchmarks/recipes.py --recipes structure --channels P N S PNS --data density coreness --processes 16

Prints mean and population standard deviation of micro-F1 and AUROC, and the seconds of a run. A random split is
50/25/25 by seed; a stored one is the dataset's own. A dataset is a folder, or the name of a generated one. Variants are
overrides with a name; to choose among them, hide the test scores.
"""

import argparse
import json
import logging
import multiprocessing
import os
import statistics
import tempfile
import time
from collections import defaultdict
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

GENERATED = ("density", "cut-ratio", "coreness", "component")
ANCHORS = {"P": ("position", 50, 100), "N": ("neighborhood", 20, 50), "S": ("structure", 25, 25)}


def one_run(job: dict[str, Any]) -> dict[str, Any]:
    import numba
    import torch

    from subgnn.api.train_recipe import train
    from subgnn.config.settings import ChannelSettings
    from subgnn.data.formats import read_dataset
    from subgnn.data.splits import split_subgraphs
    from subgnn.data.synthetic import generate
    from subgnn.models.recipes import find_recipe

    numba.set_num_threads(job["threads"])
    torch.set_num_threads(job["threads"])
    logging.getLogger("lightning").setLevel(logging.ERROR)
    name, seed = job["data"], job["seed"]
    dataset = generate(name, seed=0) if name in GENERATED else read_dataset(Path(name))
    if job["split"] == "random":
        dataset = replace(dataset, subgraphs=split_subgraphs(dataset.subgraphs, method="random", seed=seed))
    recipe = find_recipe(job["recipe"], job["set"])
    if job["channels"]:
        chosen = (
            ChannelSettings(kind, side, max(1, round(count * job["anchors"])))
            for kind, *counts in (ANCHORS[letter] for letter in job["channels"])
            for side, count in zip(("internal", "border"), counts, strict=True)
        )
        recipe = replace(recipe, channels=tuple(chosen))
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        run = train(dataset, recipe, Path(folder) / "run", seed=seed, device=job["device"], report=False)
    found = run.to_json()
    kept = {key: found.get(key) for key in ("val", "test", "candidate", "selected_epoch", "epochs", "peak_memory_mb")}
    return {**job, "dataset": dataset.name, **kept, "seconds": time.perf_counter() - begin, "of": found["seconds"]}


def spread(values: list[float]) -> str:
    return f"{statistics.mean(values):.3f} ± {statistics.pstdev(values):.3f}"


def rows(found: list[dict[str, Any]], *, hide_test: bool) -> list[str]:
    """A line for each dataset, recipe, set of channels and variant."""
    groups = defaultdict(list)
    for run in found:
        groups[run["dataset"], f"{run['recipe']} {run['channels']} {run['variant']}"].append(run)
    parts = [("val", "micro_f1"), *([] if hide_test else [("test", "micro_f1"), ("test", "auroc")])]
    lines = []
    for (dataset, name), runs in sorted(groups.items()):
        cells = [spread([run[part][key] for run in runs]) for part, key in parts]
        seconds = statistics.mean(run["seconds"] for run in runs)
        lines.append(f"| {dataset} | {' '.join(name.split())} | {len(runs)} | {' | '.join(cells)} | {seconds:.1f} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", required=True, help=f"folders, or of {', '.join(GENERATED)}")
    parser.add_argument("--recipes", nargs="+", required=True)
    parser.add_argument("--variant", action="append", metavar="NAME: SECTION.KEY=VALUE ...")
    parser.add_argument("--set", action="append", metavar="SECTION.KEY=VALUE")
    parser.add_argument("--channels", nargs="+", default=[""], help="replace the recipe's: letters of PNS, as P PNS")
    parser.add_argument("--anchors", type=float, default=1.0, help="factor of the number of anchors of --channels")
    parser.add_argument("--split", choices=("random", "stored"), default="random")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--hide-test", action="store_true", help="to choose on validation without seeing test scores")
    parser.add_argument("--out", type=Path, help="a file for all runs, a line of JSON each")
    options = parser.parse_args()
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")  # waiting threads would spin against each other
    variants = [text.partition(":") for text in options.variant or [":"]]
    same = {name: getattr(options, name) for name in ("anchors", "split", "device", "threads")}
    jobs = [
        {
            "data": data,
            "recipe": recipe,
            "channels": channels,
            "variant": name.strip(),
            "set": [*(options.set or ()), *overrides.split()],
            "seed": seed,
            **same,
        }
        for seed, data, recipe, channels, (name, _, overrides) in product(
            range(options.seeds), options.data, options.recipes, options.channels, variants
        )
    ]
    found = []
    with multiprocessing.get_context("spawn").Pool(options.processes) as pool:
        for run in pool.imap_unordered(one_run, jobs):
            found.append(run)
            if options.out is not None:
                with options.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(run) + "\n")
    scores = "validation micro-F1" + ("" if options.hide_test else " | test micro-F1 | test AUROC")
    print(f"| dataset | recipe | n | {scores} | seconds |")
    print("|---|---|---|---" + ("" if options.hide_test else "|---|---") + "|---|")
    print("\n".join(rows(found, hide_test=options.hide_test)))


if __name__ == "__main__":
    main()
