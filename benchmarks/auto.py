"""CPU seconds and out-of-fold scores of the candidates of ``auto`` that are fitted in one go.

    python benchmarks/auto.py DIR [DIR ...] [--only NAME] [--out FILE.npz]

A row for each dataset and candidate: CPU seconds of its first fit beyond the others (work that fits share), of a fit to
four of five folds, of the final fit, and of all together; micro-F1 (for values, R^2) and log-loss out of fold. Nothing
is fitted to, or scored on, the test split. Threads are as the environment says (``OMP_NUM_THREADS=1`` for one).
``--out`` writes the out-of-fold predictions.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import torch

from subgnn.channels.diffusion import walks_of
from subgnn.data.formats import read_dataset
from subgnn.models.recipes import find_recipe, portfolio
from subgnn.models.registry import trainable_model_of
from subgnn.task import task_of
from subgnn.training.cross_validation import CrossValidation
from subgnn.training.fit import HELD_OUT, fit


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, nargs="+")
    parser.add_argument("--only", action="append", help="candidates to fit; by default all that are solved")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    chosen, saved = find_recipe("auto"), {}
    auto = chosen.auto
    print(f"{'set':16} {'candidate':20} shared  fold final total  score log-loss")
    for folder in options.folder:
        pool = CrossValidation.of(read_dataset(folder), auto, 0)
        walks_of(pool.dataset.graph)
        everything = 0.0
        for name, recipe in portfolio(chosen, pool.dataset.graph.attributes).items():
            wanted = options.only is None or name in options.only
            if not wanted or not trainable_model_of(recipe).is_fitted_in_one_go:
                continue
            found = np.zeros((len(pool.judged), max(1, pool.subgraphs.num_classes)), np.float32)
            seconds = []
            for splits in [*pool.folds(0, auto.folds), pool.whole()]:
                begin = time.process_time()
                fitted = fit(recipe, pool.dataset, splits, device="cpu", cache=False, join=True, outputs=("test",))
                seconds.append(time.process_time() - begin)
                held_out = np.isin(pool.judged, np.flatnonzero(splits == HELD_OUT))
                if held_out.any():
                    found[held_out] = fitted.predictions
            fold, total = float(np.median(seconds[1:-1])), sum(seconds)
            saved[f"{folder.name}/{name}"] = found
            everything += total
            task, targets = task_of(pool.subgraphs.task), pool.subgraphs.require_labels("train")
            outputs, truth = torch.from_numpy(task.outputs(found.clip(1e-7, 1 - 1e-7))), torch.from_numpy(targets)
            score, loss = task.metrics(outputs, truth)[task.headline], float(task.loss(outputs, truth))
            times = f"{seconds[0] - fold:6.1f} {fold:5.1f} {seconds[-1]:5.1f} {total:5.1f}"
            print(f"{folder.name:16} {name:20} {times} {score:6.4f} {loss:8.4f}", flush=True)
        print(f"{folder.name:16} {'all':20} {everything:25.1f}", flush=True)
    if options.out:
        np.savez_compressed(options.out, **saved)


if __name__ == "__main__":
    main()
