"""CORENESS: the label is a quantile of the mean core number of the nodes inside the induced subgraph.

A duplication-divergence graph; duplication-divergence pieces are planted on nodes of like degree, around an edge that
they share with the graph. No two subgraphs share a node.

*Differs from the paper:* the base graph is drawn until it has about the wanted number of edges, and a piece is drawn
again where its mean core number is equal to one of another class, or outside the range asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from subgnn.data.graph import Graph
from subgnn.data.synthetic.base_graphs import duplication_divergence
from subgnn.data.synthetic.cores import CorePiece, draw_core_piece
from subgnn.data.synthetic.degree_blocks import DegreeBlocks
from subgnn.data.synthetic.labels import class_sizes, numbered, quantile_bins
from subgnn.data.synthetic.pieces import Pieces
from subgnn.data.synthetic.placement import plant
from subgnn.data.synthetic.recipe import Draft, Recipe
from subgnn.data.synthetic.settings import check_counts, check_range, require
from subgnn.errors import DataError
from subgnn.kernels import induced_core_numbers
from subgnn.kernels.arrays import Array
from subgnn.ragged import Ragged
from subgnn.rng import stream

_PAPER_NODES, _PAPER_RETENTION, _PAPER_BASE_EDGES = 5_000, 0.7, 111_000


@dataclass(frozen=True, slots=True)
class CorenessSettings:
    """Sizes and targets of CORENESS; the defaults give the paper's tables.

    Args:
        num_nodes: nodes of the base graph.
        retention: probability that a copy keeps an edge, in the base graph.
        base_edges: edges of the base graph, to within 2 %; by default the paper's for its size and retention, and any
            number otherwise.
        num_subgraphs, subgraph_size: how many subgraphs, of how many nodes.
        bins: classes.
        subgraph_retention: probability that a copy keeps an edge, in the planted graphs.
        min_core, max_core: mean core numbers that are accepted; by default all that there are.
        mixing: spread of the noise on the logarithm of the degree by which nodes are brought together; 0 puts
            neighbours in degree into one subgraph, a large number any nodes.
    """

    num_nodes: int = 5_000
    retention: float = 0.7
    base_edges: int | None = None
    num_subgraphs: int = 221
    subgraph_size: int = 20
    bins: int = 3
    subgraph_retention: float = 0.7
    min_core: float = 1.0
    max_core: float | None = None
    mixing: float = 0.1

    def __post_init__(self) -> None:
        check_counts(self.num_nodes, self.num_subgraphs, self.subgraph_size, self.bins)
        check_range(self.min_core, self.highest_core, where="core number", least=1.0, most=self.subgraph_size - 1)
        most = self.num_nodes // self.subgraph_size
        require(
            self.num_subgraphs <= most,
            f"{self.num_subgraphs:,} subgraphs of {self.subgraph_size} nodes in a graph of {self.num_nodes:,}",
            where="num_subgraphs",
            hint=f"they share no node, so at most {most:,} are possible",
        )
        require(self.mixing >= 0, f"mixing is {self.mixing}", where="mixing", hint="0 or more is accepted")

    @property
    def highest_core(self) -> float:
        """The largest mean core number that is accepted."""
        return self.subgraph_size - 1 if self.max_core is None else self.max_core

    @property
    def wanted_edges(self) -> int | None:
        """Edges of the base graph; None for any number."""
        if self.base_edges is None and (self.num_nodes, self.retention) == (_PAPER_NODES, _PAPER_RETENTION):
            return _PAPER_BASE_EDGES
        return self.base_edges


def _plan(graph: Graph, settings: CorenessSettings, seed: int) -> tuple[list[Array], list[CorePiece]]:
    """Sites, and for each a piece whose mean core number is accepted."""
    rng = stream(seed, "synthetic/coreness/sites")
    pieces_rng = stream(seed, "synthetic/coreness/pieces")
    low, high = _core_sums(settings)
    blocks = DegreeBlocks(graph, settings.subgraph_size, rng, mixing=settings.mixing)
    sites: list[Array] = []
    pieces: list[CorePiece] = []
    least, most = high, low
    order = rng.permutation(len(blocks))
    chosen, spare = np.split(order, [settings.num_subgraphs])
    # Nodes of low degree have few neighbours to take in: they go first, while all are free.
    for block in [*np.sort(chosen).tolist(), *np.sort(spare).tolist()]:
        site = blocks.site(block)
        if site is None:
            continue
        piece = draw_core_piece(graph, site, retention=settings.subgraph_retention, low=low, high=high, rng=pieces_rng)
        least, most = min(least, piece.seen[0]), max(most, piece.seen[1])
        if len(piece.tails):
            blocks.settle(block)
            sites.append(site)
            pieces.append(piece)
        if len(sites) == settings.num_subgraphs:
            shuffled = rng.permutation(len(sites)).tolist()
            return [sites[i] for i in shuffled], [pieces[i] for i in shuffled]
    size = settings.subgraph_size
    raise DataError(
        f"{len(sites):,} of {settings.num_subgraphs:,} subgraphs could be planted with mean core numbers from "
        f"{settings.min_core:g} to {settings.highest_core:g}",
        where="core number",
        hint=f"pieces drawn here have {least / size:g} to {most / size:g}; widen the range, change "
        "subgraph_retention, or ask for fewer subgraphs",
    )


def _core_sums(settings: CorenessSettings) -> tuple[int, int]:
    size = settings.subgraph_size
    return int(np.ceil(settings.min_core * size)), int(settings.highest_core * size)


def _separate(
    graph: Graph, sites: list[Array], pieces: list[CorePiece], settings: CorenessSettings, seed: int
) -> list[CorePiece]:
    """Draw pieces again until no two classes share a mean core number."""
    rng = stream(seed, "synthetic/coreness/separation")
    sums = np.array([piece.core_sum for piece in pieces])
    order = np.argsort(sums, kind="stable")
    bounds = np.cumsum(class_sizes(len(sums), settings.bins)).tolist()
    out = list(pieces)
    for cut, end in pairwise(bounds):
        below, highest = int(sums[order[cut - 1]]), int(sums[order[end - 1]])
        for i in order[cut:end][sums[order[cut:end]] == below].tolist():
            top = highest if end < len(sums) else _core_sums(settings)[1]
            piece = draw_core_piece(
                graph, sites[i], retention=settings.subgraph_retention, low=below + 1, high=top, rng=rng
            )
            if not len(piece.tails):
                size = settings.subgraph_size
                raise DataError(
                    f"too many subgraphs have the mean core number {below / size:g} for {settings.bins} classes",
                    where="core number",
                    hint="use fewer bins, larger subgraphs, or widen the range",
                )
            out[i] = piece
    return out


def make_coreness(settings: CorenessSettings, seed: int) -> Draft:
    """Draw a CORENESS graph and its subgraphs."""
    base = duplication_divergence(
        settings.num_nodes,
        settings.retention,
        stream(seed, "synthetic/coreness/base"),
        num_edges=settings.wanted_edges,
    )
    sites, pieces = _plan(base, settings, seed)
    pieces = _separate(base, sites, pieces, settings, seed)
    size = settings.subgraph_size
    graph = plant(base, Pieces.of((size, p.tails, p.heads) for p in pieces), np.concatenate(sites))
    subgraphs = Ragged.from_rows([np.sort(site) for site in sites])
    cores = induced_core_numbers(*graph.csr, subgraphs)
    mean_core = np.bincount(cores.row_ids, cores.values) / size
    labels = numbered(quantile_bins(mean_core, settings.bins, where="core number"))
    return Draft(graph, subgraphs, labels, {"mean_core_number": mean_core})


CORENESS = Recipe(
    "coreness",
    CorenessSettings,
    make_coreness,
    "label: quantile bin of the mean core number inside the induced subgraph, 0 the lowest; "
    "subgraphs are duplication-divergence graphs, planted",
    version=2,
)
