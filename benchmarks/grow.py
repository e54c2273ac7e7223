"""How well runs answer on graphs that have grown: part of the nodes is held out at random, and comes back.

The old graph lacks a share of the nodes, with their edges. A run is trained there, on four fifths of the training
subgraphs (--later 0: on all) and the whole validation split, as far as their nodes are known. Test subgraphs are then
scored

    drop      on the old graph, without the nodes it does not know
    graph     on the whole graph, by the same run (subgnn predict --graph)
    update    on the whole graph, by the run fitted again, with the other fifth of the training labels (subgnn update)
    scratch   on the whole graph, by a run that is trained there on the same labels as the update

Labelled subgraphs of before keep the nodes they had: who was a member is known as of their labelling.

    python benchmarks/grow.py data/ppi_bp data/mag10_venue --shares 0.1 0.3 0.5 --recipes bag-1hop topology

A folder of ``examples/fraud.py FOLDER --months`` is divided by time instead: the old graph has January's payments, with
directions and amounts, the new one also February's, and the labels that come later are those of its first alerts. The
score is AUPRC, on the other alerts of February.

    python benchmarks/grow.py fraud --recipes auto
"""

import argparse
import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.metrics import average_precision_score

import subgnn
from subgnn.api.update import joined, update_run
from subgnn.data.dataset import Dataset
from subgnn.data.formats import read_dataset
from subgnn.data.graph import Graph
from subgnn.data.node_match import NodeMatch, matchable
from subgnn.data.strings import NodeNames
from subgnn.data.subgraphs import SubgraphSet
from subgnn.inference.open import open_run, score

WAYS = ("drop", "graph", "update", "scratch")
RECIPES = ("bag-1hop", "profiles", "diffusion-topology", "topology")
SMALL = {"surroundings": {"training.epochs": 20}, "topology": {"topology.classifier": "forest"}}
"""Settings that make recipes quick."""
_READ = ("--directed", "--weight", "amount", "--repeated", "sum")
_SOLVED = ("bag", "topology", "topology-weighted")


def without_nodes(graph: Graph, share: float, rng: np.random.Generator) -> Graph:
    """The graph without a share of its nodes, drawn at random; names tell which are left."""
    names = [str(i) for i in range(graph.num_nodes)] if graph.names is None else list(graph.names.primary)
    kept = np.flatnonzero(rng.random(graph.num_nodes) >= share)
    place = np.full(graph.num_nodes, -1)
    place[kept] = np.arange(len(kept))
    columns = graph.edge_columns()
    tails, heads = place[columns["tail"]], place[columns["head"]]
    both = (tails >= 0) & (heads >= 0)
    weights = columns["weight"][both] if "weight" in columns else None
    left = NodeNames.of(names[int(i)] for i in kept)
    return Graph.from_edges(
        tails[both], heads[both], num_nodes=len(kept), names=left, weights=weights, directed=graph.directed
    )


def scores(dataset: Dataset, recipe: str, share: float, seed: int, *, later_share: float = 0.2) -> dict[str, float]:
    """Headline scores on test, in the four ways."""
    rng = np.random.default_rng(seed)
    whole = dataset.graph
    if whole.names is None:
        whole = replace(whole, names=NodeNames.of(map(str, range(whole.num_nodes))))
    old = without_nodes(whole, share, rng)
    empty = SubgraphSet.from_lists([], num_nodes=whole.num_nodes)
    match = NodeMatch.of(matchable(Dataset("whole", whole, empty)), old)
    given = dataset.subgraphs
    train = rng.permutation(given.indices("train"))
    number = round(later_share * len(train))
    later, test = given.take(np.sort(train[:number])), given.take(given.indices("test"))
    first = given.take(np.sort(np.concatenate([train[number:], given.indices("val")])))
    known = match.subgraphs(first)
    held = match.subgraphs(test)
    settings = SMALL.get(recipe, {})
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        some = known.take(np.arange(len(known)))
        before = subgnn.train(
            Dataset(dataset.name, old, some), out / "run", recipe=recipe, settings=settings, seed=seed, report=False
        )
        back = NodeMatch.of(matchable(Dataset("old", old, some)), whole)
        found = {"drop": _score(before.predictor, held, len(test))}
        found["graph"] = _score(open_run(out / "run", graph=whole).predictor, test, len(test))
        path = out / "more.parquet"
        if number:
            _write(later, whole, path)
        update_run(out / "run", whole, out / "updated", subgraphs=path if number else None)
        found["update"] = _score(open_run(out / "updated").predictor, test, len(test))
        labelled = joined(back.subgraphs(some), later) if number else back.subgraphs(some)
        scratch = subgnn.train(
            Dataset(dataset.name, whole, labelled),
            out / "new",
            recipe=recipe,
            settings=settings,
            seed=seed,
            report=False,
        )
        found["scratch"] = _score(scratch.predictor, test, len(test))
    return found


def _score(predictor: object, subgraphs: SubgraphSet, number: int) -> float:
    """The headline score; subgraphs that have lost all nodes count as wrong."""
    metrics, _ = score(predictor, subgraphs)  # type: ignore[arg-type]
    name = "r2" if "r2" in metrics else "micro_f1"
    return metrics[name] * len(subgraphs) / number


def months(folder: Path, recipe: str) -> dict[str, float]:
    """AUPRC on the later alerts of February, in the four ways."""
    january, february = folder / "january", folder / "february"
    alerts = pd.read_csv(february / "alerts.csv")
    truth = alerts.groupby("alert").outcome.first() == "fraud"
    early, later = (pd.read_csv(path) for path in (january / "alerts.csv", february / "labels.csv"))
    for table in (early, later):  # the same split of all runs
        table["split"] = np.array(["test", "val", *["train"] * 8])[pd.factorize(table.alert)[0] % 10]
    with tempfile.TemporaryDirectory() as made:
        out = Path(made)
        for name, table in (("early", early), ("later", later), ("labels", pd.concat([early, later]))):
            table.to_csv(out / f"{name}.csv", index=False)

        def command(*words: object) -> None:
            subprocess.run([sys.executable, "-m", "subgnn", *map(str, words)], check=True, capture_output=True)

        def train(payments: Path, labels: Path, name: str) -> None:
            told = ["--recipe", recipe, *_READ]
            if recipe == "auto":
                told += ["--set", f"auto.only={list(_SOLVED)}"]
            command("train", payments, labels, *told, "--out", out / name)

        def auprc(name: str, run: str, *words: object) -> float:
            asked = ["--subgraphs", february / "alerts.csv", "--min-known", 0, *words]
            command("predict", out / run, *asked, "--out", out / f"{name}.csv")
            found = pd.read_csv(out / f"{name}.csv").set_index("name").fraud.reindex(truth.index).fillna(0.0)
            return float(average_precision_score(truth, found))

        command("data", "convert", february / "payments.csv", *_READ, "--out", out / "now")
        train(january / "payments.csv", out / "early.csv", "old")
        command("update", out / "old", "--graph", out / "now", "--subgraphs", out / "later.csv", "--out", out / "new")
        train(february / "payments.csv", out / "labels.csv", "again")
        return {
            "drop": auprc("drop", "old", "--unknown", "drop"),
            "graph": auprc("graph", "old", "--graph", out / "now"),
            "update": auprc("update", "new"),
            "scratch": auprc("scratch", "again"),
        }


def _write(subgraphs: SubgraphSet, graph: Graph, path: Path) -> None:
    """Subgraphs as a table that ``subgnn update --subgraphs`` reads."""
    names = list(graph.names.primary) if graph.names is not None else []
    rows = [
        {"subgraph": f"later{i}", "node": names[int(node)], "label": subgraphs.label_text(i), "split": "train"}
        for i, nodes in enumerate(subgraphs.nodes)
        for node in nodes
    ]
    pd.DataFrame(rows).to_parquet(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="+", type=Path)
    parser.add_argument("--recipes", nargs="+", default=list(RECIPES))
    parser.add_argument("--shares", nargs="+", type=float, default=[0.1, 0.3, 0.5])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--later", type=float, default=0.2, help="share of the training labels that come later")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print("dataset\trecipe\theld out\tseed\tdrop\tgraph\tupdate\tscratch\tCPU s")
    for path in options.data:
        if (path / "february").is_dir():
            for recipe in options.recipes:
                found = months(path, recipe)
                shown = "\t".join(f"{found[name]:.3f}" for name in WAYS)
                print(f"{path.name}\t{recipe}\tFebruary\t0\t{shown}", flush=True)
            continue
        dataset = read_dataset(path)
        for recipe in options.recipes:
            for share in options.shares:
                for seed in range(options.seeds):
                    begin = time.process_time()
                    try:
                        found = scores(dataset, recipe, share, seed, later_share=options.later)
                    except Exception as error:
                        print(f"{path.name}\t{recipe}\t{share}\t{seed}\tfailed: {error}", flush=True)
                        continue
                    shown = "\t".join(f"{found[name]:.3f}" for name in WAYS)
                    seconds = time.process_time() - begin
                    print(f"{path.name}\t{recipe}\t{share}\t{seed}\t{shown}\t{seconds:.0f}", flush=True)


if __name__ == "__main__":
    main()
