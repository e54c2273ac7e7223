"""A graph with hubs, and small connected subgraphs of two classes, at any size, straight into a bundle.

Edges are drawn one after another from a counter, so that memory does not grow with their number. Half of them join two
nodes drawn by rank, with probability proportional to rank ** -EXPONENT (degrees then have a heavy tail: with 49 million
nodes and 196 million edges the largest is about 380,000); half join a uniform node to one of the REACH ids after it.
Subgraphs are walks: their sizes have a median of 3 and a tail of hundreds. Those of class 1 turn away from hubs.
"""

import json
import time
from collections.abc import Iterator
from math import gcd
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from subgnn import Dataset, SubgraphSet, write_bundle
from subgnn.data.edge_store import EdgeStore
from subgnn.data.subgraphs import SPLITS
from subgnn.ragged import Ragged
from subgnn.storage.files import scratch_folder

EXPONENT, REACH = 0.65, 64
TAIL, LARGEST = 1.7, 500
CLASS_1, JUMP = 0.3, 0.05
PIECE = 2**22
PER_NODE = 121_810 / 49.3e6
"""Subgraphs a node, as Elliptic2 has them."""

_compiled = numba.njit(cache=True, nogil=True, error_model="numpy")


@_compiled
def _uniform(seed: int, counter: int) -> float:
    """A number in [0, 1) that depends on both arguments alone (splitmix64)."""
    z = np.uint64(seed) * np.uint64(0xD1342543DE82EF95) + np.uint64(counter) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return np.float64(z >> np.uint64(11)) * 2.0**-53


@_compiled
def _by_rank(u: float, n: int, step: int) -> int:
    """A node by rank; ranks are scattered over the ids."""
    rank = min(n - 1, np.int64(n * u ** (1.0 / (1.0 - EXPONENT))))
    return (rank * step) % n


@_compiled
def _draw(begin: int, end: int, n: int, step: int, seed: int) -> tuple[Any, Any]:
    tails, heads = np.empty(end - begin, np.int32), np.empty(end - begin, np.int32)
    for i in range(begin, end):
        first, second = _uniform(seed, 3 * i), _uniform(seed, 3 * i + 1)
        if _uniform(seed, 3 * i + 2) < 0.5:
            tails[i - begin], heads[i - begin] = _by_rank(first, n, step), _by_rank(second, n, step)
        else:
            tail = np.int64(first * n)
            tails[i - begin], heads[i - begin] = tail, (tail + 1 + np.int64(second * REACH)) % n
    return tails, heads


def draw_edges(nodes: int, edges: int, seed: int) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """Edges in pieces; a few percent of them are repeats or self loops."""
    step = int(nodes * 0.6180339887) | 1
    while gcd(step, nodes) > 1:
        step += 2
    for begin in range(0, edges, PIECE):
        yield _draw(begin, min(edges, begin + PIECE), nodes, step, seed)


@_compiled
def _write_number(out: Any, at: int, value: int) -> int:
    width, rest = 1, value // 10
    while rest:
        width, rest = width + 1, rest // 10
    for place in range(at + width - 1, at - 1, -1):
        out[place], value = 48 + value % 10, value // 10
    return at + width


@_compiled
def as_text(tails: Any, heads: Any) -> Any:
    """``u v`` a line, as bytes."""
    out, at = np.empty(22 * len(tails), np.uint8), 0
    for i in range(len(tails)):
        at = _write_number(out, at, tails[i])
        out[at] = 32
        at = _write_number(out, at + 1, heads[i])
        out[at] = 10
        at += 1
    return out[:at]


@_compiled
def _walk(offsets: Any, neighbors: Any, size: int, shy: bool, seed: int) -> Any:
    """Up to ``size`` nodes; a shy walk takes the node of lower degree of two that it draws."""
    n, counter, tries, count = len(offsets) - 1, 0, 0, 0
    nodes = np.empty(size, np.int32)
    node = -1
    while count < size and tries < 20 * size:
        tries += 1
        counter += 4
        if node < 0 or _uniform(seed, counter) < JUMP:
            node = np.int64(_uniform(seed, counter + 1) * n)
        else:
            first, degree = offsets[node], offsets[node + 1] - offsets[node]
            chosen = neighbors[first + np.int64(_uniform(seed, counter + 2) * degree)]
            if shy:
                other = neighbors[first + np.int64(_uniform(seed, counter + 3) * degree)]
                if offsets[other + 1] - offsets[other] < offsets[chosen + 1] - offsets[chosen]:
                    chosen = other
            node = np.int64(chosen)
        if offsets[node] == offsets[node + 1]:
            node = -1
        elif not np.any(nodes[:count] == node):
            nodes[count] = node
            count += 1
    return np.sort(nodes[:count])


def draw_subgraphs(graph: Any, count: int, seed: int) -> SubgraphSet:
    """Walks with classes and an 80/10/10 split."""
    rng = np.random.default_rng(seed)
    sizes = np.minimum(LARGEST, 2 * (1 - rng.random(count)) ** (-1 / TAIL)).astype(np.int64)
    targets = (rng.random(count) < CLASS_1).astype(np.int32)
    rows = [_walk(*graph.csr, int(sizes[i]), bool(targets[i]), seed + 1 + i) for i in range(count)]
    splits = rng.permutation(np.repeat(np.arange(3, dtype=np.int8), [count - 2 * (count // 10), *[count // 10] * 2]))
    return SubgraphSet(nodes=Ragged.from_rows(rows), task="binary", targets=targets, classes=("0", "1"), splits=splits)


@_compiled
def _weights(begin: int, count: int, seed: int) -> Any:
    """Weights with a heavy tail, from 1 on."""
    out = np.empty(count, np.float32)
    for i in range(count):
        out[i] = (1 - _uniform(seed + 1, begin + i)) ** -0.5
    return out


def generate(
    folder: Path,
    *,
    nodes: int,
    edges: int,
    count: int | None = None,
    seed: int = 0,
    text: bool = False,
    weights: bool = False,
    directed: bool = False,
) -> dict[str, Any]:
    """Write ``graph.subgnn``, ``new.tsv`` with subgraphs to predict and, optionally, the same as text in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    begin, drawn_in_text = time.process_time(), 0.0
    with scratch_folder(folder / "graph.subgnn") as scratch:
        store = EdgeStore(scratch)
        (folder / "text").mkdir(exist_ok=True)
        with (folder / "text" / "edge_list.txt").open("wb") as file:
            for tails, heads in draw_edges(nodes, edges, seed):
                store.append(tails, heads, _weights(store.num_edges, len(tails), seed) if weights else None)
                if text:
                    started = time.process_time()
                    file.write(as_text(tails, heads).data)
                    drawn_in_text += time.process_time() - started
        graph = store.build(nodes, directed=directed)
        card = {"name": "scale", "num_nodes": nodes, "task": "binary"}
        subgraphs = draw_subgraphs(graph, count or max(300, round(PER_NODE * nodes)), seed)
        write_bundle(Dataset("scale", graph, subgraphs, card), folder / "graph.subgnn", overwrite=True)
    lines = [
        f"{'-'.join(map(str, row.tolist()))}\t{subgraphs.targets[i]}\t{SPLITS[subgraphs.splits[i]]}\n"
        for i, row in enumerate(subgraphs.nodes)
    ]
    (folder / "new.tsv").write_text("".join(lines[:1000]))
    (folder / "text" / "subgraphs.tsv").write_text("".join(lines))
    (folder / "text" / "dataset.json").write_text(json.dumps(card))
    return _facts(graph, subgraphs) | {
        "cpu_seconds_text": drawn_in_text,
        "cpu_seconds_all": time.process_time() - begin,
    }


def _facts(graph: Any, subgraphs: SubgraphSet) -> dict[str, Any]:
    degrees = np.diff(graph.offsets)
    sizes = subgraphs.nodes.lengths
    return {
        "num_nodes": graph.num_nodes,
        "num_edges": graph.num_edges,
        "largest_degree": int(degrees.max()),
        "median_degree": float(np.median(degrees)),
        "num_subgraphs": len(subgraphs),
        "median_size": float(np.median(sizes)),
        "largest_size": int(sizes.max()),
        "graph_hash": graph.content_hash,
    }
