"""Rare labels: what class weights and thresholds do on generated sets with 3 % positive subgraphs.

    python benchmarks/imbalance.py --sets 5

Subgraphs of 4 to 8 nodes of a random graph; those of the positive class have on average a third of their nodes among
60 of the 1,500 nodes, the others a thirtieth. Prints the tables of docs/alerts.md: means over sets, on test.
"""

import argparse
import warnings

import numpy as np

import subgnn

NODES, RISKY, SUBGRAPHS, SHARE = 1500, 60, 4000, 0.03
MICRO_F1 = {"training.select_by": "micro_f1"}
BALANCED = {"training.class_weights": "balanced"}
NETWORK = {"training.epochs": 30, "baseline.tune_embeddings": False, "embeddings.dim": 16, "embeddings.scale": 0.01}


def make(seed: int) -> subgnn.Dataset:
    """A graph and labelled subgraphs: half for training, a fifth for validation, the rest for test."""
    rng = np.random.default_rng(seed)
    tails, heads = rng.integers(0, NODES, (2, 4 * NODES))
    sets, labels = [], np.where(rng.random(SUBGRAPHS) < SHARE, "rare", "other").tolist()
    for label in labels:
        size = int(rng.integers(4, 9))
        risky = rng.binomial(size, 1 / 3 if label == "rare" else 1 / 30)
        others = RISKY + rng.choice(NODES - RISKY, size - risky, replace=False)
        sets.append([*rng.choice(RISKY, risky, replace=False).tolist(), *others.tolist()])
    splits = np.array(["train", "val", "test"])[np.searchsorted([0.5, 0.7], rng.random(SUBGRAPHS))].tolist()
    subgraphs = subgnn.SubgraphSet.from_lists(sets, num_nodes=NODES, labels=labels, splits=splits)
    return subgnn.Dataset("rare", subgnn.Graph.from_edges(tails, heads, num_nodes=NODES), subgraphs)


def alerts(run: subgnn.Run, data: subgnn.Dataset) -> dict[str, float]:
    """Precision, recall and the cost of 1 a false alert and 20 a missed one, for a thousand test subgraphs."""
    rows = data.subgraphs.indices("test")
    found = np.array(run.predictor.predict(data.subgraphs.nodes.take(rows))) == "rare"
    truth = np.array(run.classes)[np.asarray(data.subgraphs.targets)[rows]] == "rare"
    hits, cost = (found & truth).sum(), (found & ~truth).sum() + 20 * (~found & truth).sum()
    return {
        "alerts": found.sum(),
        "precision": hits / found.sum() if found.any() else np.nan,
        "recall": hits / truth.sum(),
        "cost": 1000 * cost / len(rows),
        **{name: run.result.test[name] for name in ("accuracy", "auprc")},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=5, help="generated sets")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    cases: dict[str, tuple[str, dict[str, object], str | None]] = {
        "bag, by micro-F1": ("bag", MICRO_F1, None),
        "bag, balanced, by micro-F1": ("bag", MICRO_F1 | BALANCED, None),
        "bag": ("bag", {}, None),
        "bag, balanced": ("bag", BALANCED, None),
        "bag, rare=5": ("bag", {"training.class_weights": "rare=5"}, None),
        "avg": ("avg", NETWORK, None),
        "avg, balanced": ("avg", NETWORK | BALANCED, None),
    }
    for aim in ("precision=0.5", "recall=0.8", "cost=fp:1,fn:20"):
        cases[f"bag, {aim}"] = ("bag", {}, aim)
    sets = [make(seed) for seed in range(options.sets)]
    print("| | alerts | precision | recall | cost | accuracy | AUPRC |\n|---|---|---|---|---|---|---|")
    for name, (recipe, settings, aim) in cases.items():
        rows = [
            alerts(subgnn.train(data, recipe=recipe, settings=settings, threshold=aim, device="cpu"), data)
            for data in sets
        ]
        mean = {key: np.nanmean([row[key] for row in rows]) for key in rows[0]}
        decimals = {"alerts": 0, "cost": 0}
        print(f"| {name} | " + " | ".join(f"{value:.{decimals.get(key, 3)}f}" for key, value in mean.items()) + " |")


if __name__ == "__main__":
    main()
