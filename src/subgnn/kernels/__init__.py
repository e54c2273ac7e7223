"""Compiled loops over CSR arrays: plain arrays in, plain arrays out, no Python objects and no N x N arrays.

A graph is ``offsets`` (N + 1, int64) and ``neighbors`` (int32, each row sorted); a family of node sets is a
:class:`~subgnn.ragged.Ragged` whose rows are sorted and free of repeats. The kernels trust their input: it is checked
once, where data enters the library.

Results are a function of the input alone, whatever the number of threads: work is split by source or by subgraph, and
random draws are keyed by their purpose, never by the thread that makes them. Numba caches the compiled code on disk
beside the package, or in ``NUMBA_CACHE_DIR``.
"""

from subgnn.kernels.borders import border_sets, heaviest_borders, sample_borders
from subgnn.kernels.distances import hop_distances, pair_distances
from subgnn.kernels.draws import node_set_keys
from subgnn.kernels.dtw import dtw
from subgnn.kernels.induced import Components, induced_components
from subgnn.kernels.statistics import (
    Shape,
    clustering,
    core_numbers,
    induced_clustering,
    induced_core_numbers,
    inside_degrees,
    shapes,
)
from subgnn.kernels.walks import border_walks, graph_walks, inside_walks

__all__ = [
    "Components",
    "Shape",
    "border_sets",
    "border_walks",
    "clustering",
    "core_numbers",
    "dtw",
    "graph_walks",
    "heaviest_borders",
    "hop_distances",
    "induced_clustering",
    "induced_components",
    "induced_core_numbers",
    "inside_degrees",
    "inside_walks",
    "node_set_keys",
    "pair_distances",
    "sample_borders",
    "shapes",
]
