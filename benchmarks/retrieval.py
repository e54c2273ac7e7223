"""Precision of search: how many of the ten nearest known subgraphs have the label of a held-out one.

    python benchmarks/retrieval.py DATASET... [--recipes diffusion,bag,unsupervised] [--split stored] [--out FILE]

Prints a table for each dataset. Known are the subgraphs of training and validation. ``validation`` asks for those of
validation, each among all others that are known, and is what defaults were chosen by; ``test`` asks for those of test.
Rows: chance; simple baselines, which compare sets of nodes; then the vectors of runs. Of several
labels, a subgraph that is found counts if it shares one (precision), or by the Jaccard similarity of the sets of labels
(agreement). The standard error is over the queries of test.
"""

import argparse
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

import subgnn
from subgnn.channels.topology import SUBGRAPH_STATISTICS
from subgnn.inference.search import Nearest, Overlap
from subgnn.models.kernel_machines.views import bag_of_nodes

TOP = 10
Find = Callable[[NDArray[np.int64], NDArray[np.int64], int], NDArray[np.int64]]
"""Queries, known subgraphs and a number to the nearest of the known, (queries, number); all as rows of the dataset."""


def by_similarity(similarity: NDArray[np.float64]) -> Find:
    """The most similar, by a matrix of all pairs; equal ones by row."""

    def find(queries: NDArray[np.int64], known: NDArray[np.int64], top: int) -> NDArray[np.int64]:
        return known[np.argsort(-similarity[np.ix_(queries, known)], axis=1, kind="stable")[:, :top]]

    return find


def by_vectors(vectors: NDArray[np.float32]) -> Find:
    """The nearest, as subgnn search finds them."""

    def find(queries: NDArray[np.int64], known: NDArray[np.int64], top: int) -> NDArray[np.int64]:
        return known[Nearest(vectors[known]).find(vectors[queries], top)[0]]

    return find


def node_sets(data: subgnn.Dataset) -> Iterator[tuple[str, Find]]:
    """The searches that need no run, and a simple baseline."""
    nodes, graph = data.subgraphs.nodes, data.graph.undirected()

    def by(what: Literal["place", "nodes"]) -> Find:
        def find(queries: NDArray[np.int64], known: NDArray[np.int64], top: int) -> NDArray[np.int64]:
            return known[Overlap(graph, nodes.take(known), what).find(nodes.take(queries), top)[0]]

        return find

    yield "--by place", by("place")
    yield "--by nodes: Jaccard similarity of node sets", by("nodes")
    bag = bag_of_nodes(nodes, graph.num_nodes)
    sizes = nodes.lengths.astype(np.float64)
    yield "cosine of bags of nodes", by_similarity((bag @ bag.T).toarray() / np.sqrt(sizes[:, None] * sizes))


def agreements(data: subgnn.Dataset, queries: NDArray[np.int64], found: NDArray[np.int64]) -> NDArray[np.float64]:
    """Whether labels are shared, and the Jaccard similarity of sets of labels (2, queries, number)."""
    targets = data.subgraphs.targets
    assert targets is not None
    if targets.ndim == 1:
        same = (targets[queries][:, None] == targets[found]).astype(np.float64)
        return np.stack([same, same])
    own, others = targets[queries][:, None].astype(bool), targets[found].astype(bool)
    common, either = (own & others).sum(axis=2), (own | others).sum(axis=2)
    return np.stack([common > 0, common / np.maximum(either, 1)])


def measure(data: subgnn.Dataset, find: Find | None) -> dict[str, Any]:
    """Precision and agreement at ten on validation and test; those of all known subgraphs without a method."""
    subgraphs = data.subgraphs
    tested, held_out = subgraphs.indices("test"), subgraphs.indices("val")
    known = np.flatnonzero(~np.isin(np.arange(len(subgraphs)), tested))
    row: dict[str, Any] = {}
    for split, queries in (("validation", held_out), ("test", tested)):
        if find is None:
            found = np.broadcast_to(known, (len(queries), len(known)))
        else:
            more = find(queries, known, TOP + 1)
            # Without the query itself, where it is known.
            found = np.stack([some[some != query][:TOP] for query, some in zip(queries, more, strict=True)])
        shared, agreement = agreements(data, queries, found).mean(axis=2)
        row[split] = {"precision": float(shared.mean()), "agreement": float(agreement.mean())}
        row[split]["error"] = float(shared.std(ddof=1) / np.sqrt(len(queries)))
    return row


def evaluate(path: Path, recipes: list[str], split: str) -> list[dict[str, Any]]:
    rows = []
    with TemporaryDirectory() as folder:
        data = None
        for recipe in recipes:
            run = subgnn.train(path, Path(folder, recipe), recipe=recipe, split=split, report=False, progress=False)
            subgraphs = run._opened.subgraphs  # with the split of the run
            assert subgraphs is not None
            if data is None:
                data = subgnn.Dataset(path.name, run.graph, subgraphs)
                rows.append({"method": "chance", **measure(data, None)})
                rows += [{"method": name, **measure(data, find)} for name, find in node_sets(data)]
            vectors = run.predictor.embeddings(subgraphs.nodes)
            rows.append({"method": recipe, **measure(data, by_vectors(vectors))})
            if (
                not run.predictor.model.vectors_need_labels
            ):  # their first numbers are statistics, which outweigh the rest
                found = by_vectors(vectors[:, SUBGRAPH_STATISTICS:])
                rows.append({"method": f"{recipe} without statistics", **measure(data, found)})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", nargs="+", type=Path)
    parser.add_argument("--recipes", default="diffusion,diffusion-logistic,bag,unsupervised")
    parser.add_argument("--split", default="stored", choices=["stored", "published"])
    parser.add_argument("--out", type=Path, help="write the numbers as JSON")
    given = parser.parse_args()
    found = {}
    for path in given.datasets:
        found[path.name] = rows = evaluate(path, given.recipes.split(","), given.split)
        print(f"\n{path.name}\n\n| method | validation | test | agreement on test |\n|---|---|---|---|")
        for row in rows:
            test = row["test"]
            cells = f"{row['validation']['precision']:.3f} | {test['precision']:.3f} ± {test['error']:.3f}"
            print(f"| {row['method']} | {cells} | {test['agreement']:.3f} |", flush=True)
    if given.out is not None:
        given.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
