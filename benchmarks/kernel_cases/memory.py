"""Peak memory of a search from 256 sources to all nodes of the large graph, in a separate process.

Run alone from benchmarks/: ``python -m kernel_cases.memory`` prints one JSON object.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

from kernel_cases.workloads import LARGE, draw_graph
from subgnn.kernels.distances import hop_distances
from subgnn.rng import stream

NUM_SOURCES = 256


def peak_bytes() -> int:
    """The most memory this process has held; Linux counts it in kilobytes, macOS in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def measure_here(seed: int) -> dict[str, Any]:
    """Draw the graph, search, and report the peak before and after, the whole process counted."""
    graph = draw_graph(*LARGE, seed)
    sources = stream(seed, "benchmark/memory").choice(graph.num_nodes, NUM_SOURCES, replace=False)
    before = peak_bytes()
    distances = hop_distances(*graph.csr, sources)
    return {
        "sources": NUM_SOURCES,
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "graph_peak_bytes": before,
        "answer_bytes": distances.nbytes,
        "peak_bytes": peak_bytes(),
    }


def measure_apart(seed: int) -> dict[str, Any]:
    """The same in a fresh process.

    Call it while the caller is small: on Linux a child inherits the caller's peak.
    """
    done = subprocess.run(
        [sys.executable, "-m", "kernel_cases.memory", str(seed)],
        cwd=Path(__file__).parent.parent,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    measured: dict[str, Any] = json.loads(done.stdout)
    return measured


if __name__ == "__main__":
    print(json.dumps(measure_here(int(sys.argv[1]) if len(sys.argv) > 1 else 0)))
