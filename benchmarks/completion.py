"""How well ``subgnn complete`` finds members that were left out of test subgraphs, beside simple rankings.

    python benchmarks/completion.py DIR... [--split published] [--queries 300] [--on val]

Of each test subgraph of two nodes or more (at most ``--queries`` of them, drawn at random), a fifth of the nodes, at
least one, is left out. Each of these is ranked among all nodes that are not in the subgraph, by the rest of it; the
others that were left out do not count (filtered ranks), and ties count half. Printed are hits at 1, 10 and 50 and the
mean reciprocal rank with its standard error, all as means over subgraphs of the means over their members. The model is
fitted to the training and validation subgraphs (to training alone with ``--on val``, with which it was designed).
"""

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn import read_dataset
from subgnn.data.splits import named_split
from subgnn.data.subgraphs import SubgraphSet
from subgnn.inference.complete import NAMES, Completer, leave_out
from subgnn.ragged import Ragged
from subgnn.rng import stream

SIMPLE = {
    "diffusion": "diffusion",
    "lift": "diffusion over chance",
    "paths": "common neighbours",
    "degree": "degree",
    "overlap": "overlapping known subgraphs",
}


def filtered_ranks(scores: NDArray[Any], left: NDArray[np.bool_]) -> NDArray[np.float64]:
    """The rank of each node that was left out among all others that were not."""
    others = np.sort(scores[~left])
    above = len(others) - np.searchsorted(others, scores[left], side="right")
    equal = np.searchsorted(others, scores[left], side="right") - np.searchsorted(others, scores[left], side="left")
    return 1 + above + equal / 2


def measure(folder: Path, split: str, queries: int, on: str) -> None:
    dataset = read_dataset(folder)
    subgraphs: SubgraphSet = named_split(dataset.subgraphs, split)
    parts = ("train", "val") if on == "test" else ("train",)
    known = subgraphs.take(np.sort(np.concatenate([subgraphs.indices(part) for part in parts])))
    groups = None if known.groups is None else np.unique(list(known.groups), return_inverse=True)[1]
    began = time.perf_counter()
    completer = Completer.fit(dataset.graph.undirected(), known.nodes, groups=groups, cache=False)
    seconds = time.perf_counter() - began
    draws = stream(0, "benchmark/completion")
    asked = subgraphs.indices(on)
    asked = np.sort(draws.permutation(asked[subgraphs.nodes.lengths[asked] > 1])[:queries])
    pairs = [leave_out(subgraphs.nodes[row], draws) for row in asked]
    features, found, expected = completer.features, {}, 0.0
    began = time.perf_counter()
    for (_, left), query in zip(pairs, features.diffuse(Ragged.from_rows(rest for rest, _ in pairs)), strict=True):
        nodes = features.candidates(query)
        table = features.table(query, nodes)
        odds = completer.ranker.bias + completer.ranker.terms(table).sum(axis=1)
        expected += float((1 / (1 + np.exp(-odds))).sum())
        scores = {"complete": odds, "neighbours in the subgraph": features.links(query.nodes)[nodes]}
        scores |= {title: table[:, NAMES.index(name)] for name, title in SIMPLE.items()}
        for title, values in scores.items():
            ranks = filtered_ranks(values, np.isin(nodes, left))
            hits = [float((ranks <= k).mean()) for k in (1, 10, 50)]
            found.setdefault(title, []).append([*hits, float((1 / ranks).mean())])
    each = (time.perf_counter() - began) / len(pairs)
    members = sum(len(left) for _, left in pairs)
    print(f"\n{folder.name} ({split} split): {len(pairs)} subgraphs of {on}, {members} members left out", end="; ")
    print(f"{expected:.0f} expected; fit {seconds:.1f} s, {1000 * each:.0f} ms a subgraph\n")
    print("| ranking | hits@1 | hits@10 | hits@50 | MRR |\n|---|---|---|---|---|")
    for title, rows in found.items():
        mean, error = np.mean(rows, axis=0), np.std(rows, axis=0) / np.sqrt(len(rows))
        cells = " | ".join(f"{value:.3f}".lstrip("0") for value in mean[:3])
        print(f"| {title} | {cells} | {mean[3]:.3f} ± {error[3]:.3f} |".replace(" 0.", " ."))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--split", default="stored", choices=["stored", "published"])
    parser.add_argument("--queries", default=300, type=int)
    parser.add_argument("--on", default="test", choices=["val", "test"])
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    for folder in given.folders:
        measure(folder, given.split, given.queries, given.on)


if __name__ == "__main__":
    main()
