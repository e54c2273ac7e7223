"""Costs of training: an epoch and slower implementations of it, preparation, memory against N.

    python benchmarks/train.py [--data DIR] [--recipe alsentzer2020_ppi_bp] [--threads 2] [--skip memory naive ...]

Without ``--data``, a random graph and subgraphs of the size of the paper's PPI-BP are generated. Every part runs in a
separate process, one after the other; figures are seconds of that one run, and their ratios.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

PARTS = ("prepare", "epoch", "messages", "naive", "memory")
ROOT = Path(__file__).resolve().parents[1]
RANDOM = ("embeddings.source=random",)  # pretraining is not measured here


def ppi_like(nodes: int = 17_080, edges: int = 316_951, subgraphs: int = 1_591, seed: int = 0) -> Any:
    """A random graph with a heavy tail of degrees, and subgraphs of about ten nodes in several components."""
    from subgnn import Dataset, Graph, SubgraphSet

    rng = np.random.default_rng(seed)
    weights = rng.permutation(np.arange(1, nodes + 1) ** -0.6)
    ends = rng.choice(nodes, (2, int(1.2 * edges)), p=weights / weights.sum())
    keys = np.unique(np.sort(ends, axis=0)[:, ends[0] != ends[1]].astype(np.int64).T @ [nodes, 1])
    keys = rng.permutation(keys)[:edges]
    rows = [rng.choice(nodes, size=rng.integers(5, 30), replace=False).tolist() for _ in range(subgraphs)]
    labels = [f"class {i}" for i in rng.integers(0, 6, subgraphs)]
    splits = rng.choice(["train", "val", "test"], subgraphs, p=[0.8, 0.1, 0.1]).tolist()
    graph = Graph.from_edges(keys // nodes, keys % nodes, num_nodes=nodes)
    return Dataset("ppi-like", graph, SubgraphSet.from_lists(rows, labels=labels, splits=splits, num_nodes=nodes))


def load(options: argparse.Namespace) -> tuple[Any, Any]:
    """The dataset and the recipe."""
    from subgnn import read_dataset
    from subgnn.models.recipes import find_recipe

    dataset = ppi_like() if options.data is None else read_dataset(options.data)
    return dataset, find_recipe(options.recipe, [*RANDOM, *(options.set or ())])


def larger(dataset: Any, times: int) -> Any:
    """The same subgraphs, with the same distances among their nodes, in a graph of ``times`` as many nodes and edges.

    Copies of the graph hang on it by one edge each.
    """
    from subgnn import Dataset, Graph, SubgraphSet

    offsets, neighbors = dataset.graph.csr
    n = dataset.graph.num_nodes
    tails = np.repeat(np.arange(n), np.diff(offsets))
    once = tails < neighbors
    shift = np.arange(times)[:, None] * n
    joins = np.arange(1, times) * n
    graph = Graph.from_edges(
        np.concatenate([(tails[once] + shift).ravel(), np.zeros(times - 1, np.int64)]),
        np.concatenate([(neighbors[once] + shift).ravel(), joins]),
        num_nodes=times * n,
    )
    old = dataset.subgraphs
    names = np.array(old.classes)[old.targets].tolist()
    splits = [("train", "val", "test")[i] for i in old.splits]
    rows = [row.tolist() for row in old.nodes]
    subgraphs = SubgraphSet.from_lists(rows, labels=names, splits=splits, num_nodes=times * n)
    return Dataset(f"{dataset.name} x {times}", graph, subgraphs)


def time_prepare(options: argparse.Namespace) -> dict[str, Any]:
    """Seconds of preparation without a cache, compiled code excepted."""
    from subgnn.prepare.measure import Plan, prepare

    dataset, recipe = load(options)
    graph = dataset.graph.undirected()
    plan = Plan(recipe.channels, recipe.model.layers, recipe.prepare, seed=0)
    prepare(graph, dataset.subgraphs.nodes.take(range(3)), plan)  # compiled code is loaded here
    begin = time.perf_counter()
    prepared = prepare(graph, dataset.subgraphs.nodes, plan)
    seconds = time.perf_counter() - begin
    return {"seconds": seconds, "components": len(prepared.components.nodes), "touched": len(prepared.touched())}


def time_epoch(options: argparse.Namespace, *, epochs: int = 6) -> dict:
    """Median seconds of an epoch with its validation, the first ones left out."""
    from subgnn.api.train_recipe import train
    from subgnn.models.recipes import find_recipe
    from subgnn.training.options import Callbacks

    dataset, _ = load(options)
    recipe = find_recipe(options.recipe, [*RANDOM, *(options.set or ()), f"training.epochs={epochs}"])
    with tempfile.TemporaryDirectory() as folder:
        seen = []
        train(
            dataset,
            recipe,
            Path(folder) / "run",
            device="cpu",
            callbacks=Callbacks(on_epoch=lambda record: seen.append((time.perf_counter(), record["train_loss"]))),
        )
    times = np.diff([t for t, _ in seen])[2:]
    steps = -(-len(dataset.subgraphs.indices("train")) // recipe.training.batch_size)
    return {"seconds": float(median(times)), "steps": steps, "loss": seen[-1][1]}


def _set_up(options: argparse.Namespace) -> tuple[Any, Any, Any, Any]:
    """Dataset, recipe, prepared subgraphs and a network over them, random vectors for its nodes."""
    import torch

    from subgnn.models.subgnn import SubGNN
    from subgnn.prepare.measure import Plan, prepare

    dataset, recipe = load(options)
    graph = dataset.graph.undirected()
    prepared = prepare(
        graph, dataset.subgraphs.nodes, Plan(recipe.channels, recipe.model.layers, recipe.prepare, seed=0)
    )
    table = prepared.touched()
    model = SubGNN(
        0.1 * torch.randn(len(table), recipe.embeddings.dim),
        table,
        channels=recipe.channels,
        shared=prepared.frame.shared,
        settings=recipe.model,
        num_outputs=len(dataset.subgraphs.classes),
    )
    return dataset, recipe, prepared, model


def time_messages(options: argparse.Namespace) -> dict[str, Any]:
    """An epoch with every message built, as whole tensors: components x anchors x width."""
    import torch

    from subgnn.models.subgnn import Inputs, layer

    dataset, recipe, prepared, model = _set_up(options)

    def forward(self: Any, gamma: Any, anchors: Any, own: Any, h: Any, present: Any = None) -> Any:
        messages = gamma[:, :, None] * (anchors if own is None else anchors[own])  # (C, n_A, d)
        state = output = None
        if self.update is not None:
            state = torch.relu(self.update(torch.cat([messages.sum(dim=1), h], dim=1)))
        if self.score is not None:
            output = torch.relu(self.score(messages).squeeze(2))
        return state, output

    layer.SubchannelLayer.forward = forward
    inputs = Inputs(prepared, prepared.touched())
    targets = torch.from_numpy(np.array(dataset.subgraphs.targets)).long()
    optimizer = torch.optim.Adam(model.parameters(), lr=recipe.training.lr)
    train, size = dataset.subgraphs.indices("train"), recipe.training.batch_size
    seconds = []
    for begin in range(0, 6 * size, size):
        rows = train[begin : begin + size]
        start = time.perf_counter()
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(inputs.batch(rows)), targets[rows]).backward()
        optimizer.step()
        seconds.append(time.perf_counter() - start)
    steps = -(-len(train) // size)
    return {"seconds": median(seconds[1:]) * steps, "steps": steps, "of": len(seconds) - 1}


def time_naive(options: argparse.Namespace, subgraphs: int = 2) -> dict[str, Any]:
    """An epoch of the tests' implementation, which loops over components and anchors: a few subgraphs, scaled up."""
    import torch

    sys.path.insert(0, str(ROOT))
    from tests.models.subgnn import naive

    dataset, _, prepared, model = _set_up(options)
    train = dataset.subgraphs.indices("train")
    sizes = np.bincount(prepared.components.subgraph)[train]
    rows = train[np.argsort(sizes, kind="stable")[len(train) // 2 :][:subgraphs]]  # of median size
    components = np.flatnonzero(np.isin(prepared.components.subgraph, rows))
    place = {int(node): i for i, node in enumerate(prepared.touched())}
    begin = time.perf_counter()
    total = torch.zeros(())
    for c in components[:2]:
        z, _ = naive.component_output(model, prepared, int(c), lambda node: model.table[place[int(node)]], None)
        total = total + z.sum()
    total.backward()
    each = (time.perf_counter() - begin) / len(components[:2])
    return {"seconds": each * int(sizes.sum()), "of": len(components[:2]), "components": int(sizes.sum())}


def time_memory(options: argparse.Namespace, times: int) -> dict[str, Any]:
    """Memory of training in addition to the graph, from the first epoch on."""
    from subgnn.api.train_recipe import train
    from subgnn.training.options import Callbacks

    dataset, recipe = load(options)
    if times > 1:
        dataset = larger(dataset, times)
    recipe = replace(recipe, training=replace(recipe.training, epochs=4))
    seen: list[int] = []

    def after(record: dict[str, Any]) -> None:
        if record["epoch"] == 0:
            Path("/proc/self/clear_refs").write_text("5")  # restarts the peak at the memory in use
        seen.append(_memory("VmHWM"))

    before = _memory("VmRSS")
    with tempfile.TemporaryDirectory() as folder:
        train(dataset, recipe, Path(folder) / "run", device="cpu", callbacks=Callbacks(on_epoch=after))
    return {"nodes": dataset.graph.num_nodes, "graph_mb": before, "peak_mb": seen[-1]}


def _memory(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) // 1024
    return 0


def run_part(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """One part, in this process."""
    import logging

    import torch

    logging.getLogger("lightning").setLevel(logging.ERROR)
    torch.set_num_threads(options.threads)
    parts = {"prepare": time_prepare, "epoch": time_epoch, "messages": time_messages, "naive": time_naive}
    if name.startswith("memory"):
        return time_memory(options, int(name.removeprefix("memory")))
    return parts[name](options)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="a dataset; by default a random one of the size of PPI-BP")
    parser.add_argument("--recipe", default="alsentzer2020_ppi_bp")
    parser.add_argument("--set", action="append", metavar="SECTION.KEY=VALUE")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--times", type=int, default=100, help="how much larger the larger graph is")
    parser.add_argument("--skip", nargs="*", default=[], choices=PARTS)
    parser.add_argument("--part", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        print(json.dumps(run_part(options.part, options)))
        return
    found = {}
    for part in [p for p in PARTS if p not in options.skip]:
        for name in ("memory1", f"memory{options.times}") if part == "memory" else (part,):
            found[name] = _in_process(name, options.threads)
            print(f"{name:>10}  {found[name]}", flush=True)
    for slow in ("messages", "naive"):
        if slow in found and "epoch" in found:
            print(f"epoch: {found[slow]['seconds'] / found['epoch']['seconds']:,.1f} times as fast as {slow}")


def _in_process(name: str, threads: int) -> dict[str, Any]:
    environment = os.environ | {"OMP_NUM_THREADS": str(threads), "NUMBA_NUM_THREADS": str(threads)}
    environment = {"GOMP_SPINCOUNT": "1000"} | environment  # as the command line sets it
    with tempfile.TemporaryDirectory() as cache:
        environment["SUBGNN_CACHE"] = cache
        command = [sys.executable, __file__, *sys.argv[1:], "--part", name]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{name}: {done.stderr}")
    measured: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return measured


if __name__ == "__main__":
    main()
