"""Accuracy at 1, 5 and 10 with and without absent nodes, on the stored split and on folds by group.

    python benchmarks/absent.py DATASET --recipe bag --recipe profiles --folds 5

The dataset has absent nodes and groups (``subgnn data build patients``). A fold is the test split of a run, the next
one its validation split. ``auto`` is fitted for ``--time`` at most.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np

import subgnn
from subgnn.data.formats import read_dataset
from subgnn.data.subgraphs import SubgraphSet, with_absent
from subgnn.rng import stream


def by_group(subgraphs: SubgraphSet, folds: int) -> np.ndarray:
    """The fold (n,) of each subgraph; groups in random order fill one fold after the other."""
    groups, codes = np.unique(np.array(list(subgraphs.groups or ())), return_inverse=True)
    order = stream(0, "absent/folds").permutation(len(groups))
    before = np.cumsum(np.bincount(codes)[order]) - np.bincount(codes)[order]
    place = np.empty(len(groups), np.int64)
    place[order] = before * folds // len(codes)
    return place[codes]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--recipe", action="append", required=True)
    parser.add_argument("--folds", type=int, default=0)
    parser.add_argument("--time", default="5m")
    given = parser.parse_args()
    dataset = read_dataset(given.data)
    subgraphs = dataset.subgraphs
    splits = [subgraphs.splits]
    if given.folds:
        fold = by_group(subgraphs, given.folds)
        splits = [
            np.where(fold == i, 2, np.where(fold == (i + 1) % given.folds, 1, 0)).astype(np.int8)
            for i in range(given.folds)
        ]
    for recipe in given.recipe:
        for absent in (None, subgraphs.absent):
            found = []
            for split in splits:
                chosen = replace(subgraphs, splits=split, nodes=with_absent(subgraphs.nodes, absent))
                time = given.time if recipe == "auto" else None
                run = subgnn.train(
                    replace(dataset, subgraphs=chosen), recipe=recipe, time=time, report=False, progress=False
                )
                held = chosen.take(chosen.indices("test"))
                scores = run.predictor.probabilities(held)
                rank = (scores > scores[np.arange(len(held)), held.targets][:, None]).sum(axis=1)
                found.append([(rank < k).mean() for k in (1, 5, 10)])
            at = "  ".join(f"{number:.3f}" for number in np.mean(found, axis=0))
            print(f"{recipe}, {'without' if absent is None else 'with'} absent nodes: {at}", flush=True)


if __name__ == "__main__":
    main()
