"""Cost and error of bounded hop distances to the anchors of single components, compared with exact ones.

    python benchmarks/bounded_hops.py [--nodes 20000] [--out FILE]

Three kinds of graphs, with subgraphs grown along random walks, a tenth of them in two parts. Prints, for both channels
whose components have anchors of their own, the seconds of CPU of each setting, the share of similarities that are
exact, and the error of the others.
"""

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from subgnn import Graph, Ragged
from subgnn.channels import distances
from subgnn.channels.channel import Work
from subgnn.channels.distances import own_hops
from subgnn.channels.table import channel_of
from subgnn.config.settings import ChannelSettings, PrepareSettings
from subgnn.kernels.induced import induced_components
from subgnn.kernels.walks import graph_walks

CHANNELS = (ChannelSettings("position", "internal", 50), ChannelSettings("neighborhood", "border", 50))
SETTINGS = {  # hops up to which distances are exact, edges that a search may visit, landmarks; None for exact distances
    "exact": None,
    "cutoff 2": (2, 1024, 64),
    "cutoff 4, 256 edges": (4, 256, 64),
    "cutoff 4, 1,024 edges": (4, 1024, 64),
    "cutoff 6, 16,384 edges": (6, 16_384, 64),
    "cutoff 4, 8 landmarks": (4, 1024, 8),
}


def heavy_tailed(n: int, rng: np.random.Generator) -> Graph:
    """Four edges a node; one end is uniform, the other is node i with a probability of about i^-0.7."""
    tails, heads = rng.integers(0, n, 4 * n), (n * rng.random(4 * n) ** 3.2).astype(np.int64)
    return _simple(tails, heads, n)


def uniform(n: int, rng: np.random.Generator) -> Graph:
    """Four edges a node, at random: no hubs."""
    return _simple(rng.integers(0, n, 4 * n), rng.integers(0, n, 4 * n), n)


def lattice(n: int, rng: np.random.Generator) -> Graph:
    """A square lattice with a few long edges: large distances, no hubs; hard for landmarks."""
    side = int(n**0.5)
    ids = np.arange(side * side).reshape(side, side)
    extra = rng.integers(0, side * side, (2, n // 50))
    tails = np.concatenate([ids[:, :-1].reshape(-1), ids[:-1].reshape(-1), extra[0]])
    heads = np.concatenate([ids[:, 1:].reshape(-1), ids[1:].reshape(-1), extra[1]])
    return _simple(tails, heads, side * side)


def _simple(tails: np.ndarray, heads: np.ndarray, n: int) -> Graph:
    pairs = np.unique(np.sort(np.stack([tails, heads], axis=1)[tails != heads], axis=1), axis=0)
    return Graph.from_edges(pairs[:, 0], pairs[:, 1], num_nodes=n)


def subgraphs(graph: Graph, count: int, rng: np.random.Generator) -> Ragged:
    """Nodes of random walks, of heavy-tailed length, median about 3; every tenth has those of two walks."""
    lengths = np.minimum((2 + 2 * rng.pareto(1.6, count)).astype(int), 200)
    walks = list(graph_walks(*graph.csr, walks=2 * count, length=200, beta=0.3, key=7))
    rows = [walks[i][: lengths[i]] for i in range(count)]
    rows = [np.concatenate([row, walks[count + i][:2]]) if i % 10 == 0 else row for i, row in enumerate(rows)]
    return Ragged.from_rows([np.unique(row) for row in rows])


def compare(graph: Graph, sets: Ragged) -> list[dict[str, object]]:
    components = induced_components(*graph.csr, sets)
    found = []
    for channel in CHANNELS:
        work = Work(graph, PrepareSettings(), channel, layers=2, seed=0)
        own = channel_of(channel).sample(work, sets, components)
        exact = None
        for name, bounds in SETTINGS.items():
            if bounds is not None:
                distances.HOP_CUTOFF, distances.HOP_EDGES, distances.LANDMARKS = bounds
            settings = PrepareSettings(own_hops="exact" if bounds is None else "bounded")
            begin = time.process_time()
            near = own_hops(replace(work, settings=settings), components.nodes, own)
            seconds = time.process_time() - begin
            similarity = np.stack(near)[:, own[0].present]
            exact = similarity if exact is None else exact
            error = np.abs(similarity - exact)
            found.append(
                {
                    "channel": channel.name,
                    "setting": name,
                    "cpu_seconds": round(seconds, 2),
                    "exact": float((error == 0).mean()),
                    "mean_error": float(error.mean()),
                    "error_99": float(np.quantile(error, 0.99)),
                    "mean_similarity": float(exact.mean()),
                }
            )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=20_000)
    parser.add_argument("--subgraphs", type=int, default=2_000)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    rows = []
    for kind in (heavy_tailed, uniform, lattice):
        rng = np.random.default_rng(0)
        graph = kind(given.nodes, rng)
        sets = subgraphs(graph, given.subgraphs, rng)
        compare(graph, sets.take([0]))  # compiles
        for row in compare(graph, sets):
            rows.append({"graph": kind.__name__, **row})
            print(
                f"{kind.__name__:13} {row['channel']:20} {row['setting']:24} {row['cpu_seconds']:8} s"
                f"  exact {row['exact']:6.1%}  error mean {row['mean_error']:.4f}  99% {row['error_99']:.4f}"
                f"  (mean similarity {row['mean_similarity']:.3f})",
                flush=True,
            )
    if given.out is not None:
        given.out.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
