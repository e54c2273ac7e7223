"""Fit the recipes that are solved, not trained, and write their probabilities: a child process of test_processors.

python -m tests.models.fit_recipes OUT.npz
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

from subgnn import Dataset, Graph, SubgraphSet
from subgnn.api.train_recipe import train
from subgnn.inference.predictor import Predictor
from subgnn.models.recipes import find_recipe
from subgnn.training.run_dir import CHECKPOINT

SOLVED = (
    *("bag", "bag-1hop", "diffusion", "diffusion-topology", "diffusion-logistic", "diffusion-bag", "diffusion-root"),
    *("enrichment", "profiles", "topology", "unsupervised", "wlks"),
)


def datasets() -> dict[str, Dataset]:
    """Node sets of a random graph, with classes, labels and values: some follow from the nodes, others are noise."""
    rng = np.random.default_rng(0)
    ends = np.repeat(np.arange(5, 600), 5)
    graph = Graph.from_edges(ends, (ends * rng.random(len(ends)) ** 2).astype(np.int64))
    nodes = [
        np.unique([seed, *rng.choice(graph.neighbors_of(seed), 4), *rng.choice(600, rng.integers(2, 12))])
        for seed in rng.integers(0, 600, 90)
    ]
    labels = {
        "classes": [f"{len(row) // 4}" if rng.random() < 0.7 else "0" for row in nodes],
        "labels": [[f"part{part}" for part in np.unique(row // 100)] for row in nodes],
        "values": [float(row.mean()) for row in nodes],
    }
    splits = (["train"] * 3 + ["val", "test"]) * 18
    return {
        task: Dataset(task, graph, SubgraphSet.from_lists(nodes, num_nodes=600, labels=given, splits=splits))
        for task, given in labels.items()
    }


def main(path: str) -> None:
    """Fit and predict."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for task, data in datasets().items():
            for name in SOLVED if task == "classes" else SOLVED[:3]:
                # Of the three classifiers of topology, the head is trained by gradient steps. A weak penalty is harder.
                settings = {
                    "topology": ["topology.classifier=boosting"],
                    "unsupervised": ["diffusion.inverse_penalty=1000.0"],
                    "diffusion-logistic": ["diffusion.inverse_penalty=1000.0"],
                }.get(name, [])
                run = Path(folder) / f"{task} {name}"
                train(data, find_recipe(name, settings), run, report=False, cache=False, device="cpu")
                predictor = Predictor(run / CHECKPOINT, data.graph)
                found[f"{task} {name}"] = predictor.probabilities(data.subgraphs.nodes)
    np.savez(path, **found)


if __name__ == "__main__":
    main(sys.argv[1])
