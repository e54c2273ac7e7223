"""Linear probes of vectors without labels, beside sums and means of node vectors.

Run from the repository, on dataset folders:

    python benchmarks/probe.py ppi_bp_rebuilt hpo_metab_rebuilt
    python benchmarks/probe.py ppi_bp --split published

Vectors are fitted to the node sets of train and val, without their labels. A probe is a logistic regression, one label
against the rest where there are several; its penalty is chosen by five-fold cross-validation on train and val, on which
it is then fitted, and test is scored once. Statistics are probed in standard units. Node vectors are eigenvectors of
D^-1/2 A D^-1/2, those of the largest eigenvalues, as many as vectors have columns.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import KFold
from sklearn.multiclass import OneVsRestClassifier

from subgnn import Graph, SubgraphSet, read_dataset
from subgnn.data.splits import NAMED_SPLITS, named_split
from subgnn.inference.open import fit_without_labels
from subgnn.models.kernel_machines.unsupervised import in_standard_units
from subgnn.models.kernel_machines.views import bag_of_nodes
from subgnn.models.recipes import find_recipe

_PENALTIES = (0.1, 1.0, 10.0, 100.0, 1000.0)
_FOLDS = 5


def label_free(name: str) -> Callable[[Graph, SubgraphSet, np.ndarray, int], np.ndarray]:

    def vectors(graph: Graph, subgraphs: SubgraphSet, known: np.ndarray, width: int) -> np.ndarray:
        recipe = find_recipe(name, [f"vectors.width={width}"])
        found = fit_without_labels(graph, subgraphs.nodes.take(known), recipe).predictor.embeddings(subgraphs.nodes)
        return in_standard_units(found)

    return vectors


@lru_cache(maxsize=1)
def spectral_table(graph: Graph, width: int) -> np.ndarray:
    """A vector for each node; every column has a mean square of one."""
    degrees = np.maximum(np.diff(graph.offsets), 1)
    offsets, neighbors = graph.csr
    rows = np.repeat(np.arange(graph.num_nodes), np.diff(offsets))
    entries = 1 / np.sqrt(degrees[rows] * degrees[neighbors])
    matrix = scipy.sparse.csr_array((entries, neighbors, offsets), shape=(graph.num_nodes,) * 2)
    start = np.random.default_rng(0).normal(size=graph.num_nodes)
    _, table = scipy.sparse.linalg.eigsh(matrix, width, which="LA", v0=start, tol=1e-3)
    return np.asarray(table * np.sqrt(graph.num_nodes))


def node_vectors(mean: bool) -> Callable[[Graph, SubgraphSet, np.ndarray, int], np.ndarray]:
    """Sums or means of spectral node vectors."""

    def vectors(graph: Graph, subgraphs: SubgraphSet, known: np.ndarray, width: int) -> np.ndarray:
        sums = bag_of_nodes(subgraphs.nodes, graph.num_nodes) @ spectral_table(graph, width)
        return np.asarray(sums / (subgraphs.nodes.lengths[:, None] if mean else 1))

    return vectors


VECTORS = {
    "unsupervised": label_free("unsupervised"),
    "sum of node vectors": node_vectors(mean=False),
    "mean of node vectors": node_vectors(mean=True),
}


def predict(vectors: np.ndarray, targets: np.ndarray, known: np.ndarray, new: np.ndarray, penalty: float) -> np.ndarray:
    """Predictions of a probe that is fitted to known subgraphs, for new ones."""
    probe: Any = LogisticRegression(C=penalty, max_iter=200)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        probe = (OneVsRestClassifier(probe) if targets.ndim == 2 else probe).fit(vectors[known], targets[known])
    return np.asarray(probe.predict(vectors[new]))


def probe(vectors: np.ndarray, subgraphs: SubgraphSet) -> tuple[float, float, float]:
    """Cross-validated micro-F1, the penalty it chooses, and micro-F1 on test."""
    targets = np.asarray(subgraphs.targets)
    known, test = np.flatnonzero(np.asarray(subgraphs.splits) < 2), subgraphs.indices("test")
    folds = list(KFold(_FOLDS, shuffle=True, random_state=0).split(known))

    def score(penalty: float) -> float:
        parts = [(known[a], known[b]) for a, b in folds]
        return float(np.mean([micro_f1(targets[b], predict(vectors, targets, a, b, penalty)) for a, b in parts]))

    best, penalty = max(((score(penalty), penalty) for penalty in _PENALTIES), key=lambda pair: (pair[0], -pair[1]))
    return best, penalty, micro_f1(targets[test], predict(vectors, targets, known, test, penalty))


def micro_f1(targets: np.ndarray, found: np.ndarray) -> float:
    return float(f1_score(targets, found, average="micro"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="+", type=Path, help="dataset folders or bundles")
    parser.add_argument("--split", choices=NAMED_SPLITS, default="stored")
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--vectors", nargs="+", choices=VECTORS, default=list(VECTORS))
    given = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{'dataset':<20} {'vectors':<22} {'folds':>6} {'C':>6} {'test':>6} {'seconds':>8}")
    for path in given.data:
        dataset = read_dataset(path)
        graph, subgraphs = dataset.graph.undirected(), named_split(dataset.subgraphs, given.split)
        known = np.flatnonzero(np.asarray(subgraphs.splits) < 2)
        for name in given.vectors:
            begin = time.perf_counter()
            vectors = VECTORS[name](graph, subgraphs, known, given.width)
            seconds = time.perf_counter() - begin
            folds, penalty, test = probe(vectors, subgraphs)
            line = f"{folds:>6.3f} {penalty:>6g} {test:>6.3f} {seconds:>8.1f}"
            print(f"{dataset.name:<20} {name:<22} {line}", flush=True)


if __name__ == "__main__":
    main()
