"""Rank nodes by the probability that they are missing members of a subgraph.

The model is a logistic regression on features of a subgraph and a node. It learns by leaving members out: a fifth of
the nodes, at least one, of up to 500 known subgraphs (training and validation, never test) are positives, and features
are computed from the rest, without the subgraph itself and its group. Negatives are 150 nodes near the subgraph and 50
elsewhere.

Each negative stands for w >= 1 nodes like it. Weights of sqrt(w) rank best (docs/gene_sets.md); the bias is then set so
that the expected number of members, over all nodes, is the number left out. So a score is the probability that a node
belongs to a subgraph that has lost a fifth of its members. Its log odds are the bias plus one term per feature,
w_i (x_i - mean of x_i over nodes).

These are the features of a subgraph S and a node v outside of it. f_v is the number of known subgraphs t = 1, ..., T
that contain v; :mod:`subgnn.channels.diffusion` defines p_S, pi and the lift l_S.

=========== ==========================================================================================================
name        value
=========== ==========================================================================================================
diffusion   log(p_S(v) + 10^-7): how often a random walk from S ends at v
lift        l_S(v) = log(1 + p_S(v) / pi(v)): the same, compared with chance
degree      log(1 + d_v)
paths       log(1 + sum over neighbours w of v of |N(w) & S| / log(2 + d_w)): common neighbours, as by Adamic and Adar
frequency   log(1 + f_v)
together    log(1 + 10 / (|S| sqrt(1 + f_v)) sum over u in S of |{t: u, v in t}| / sqrt(max(1, f_u)))
overlap     log(10^-3 + sum over t with v of |S & t|^2 / (|S| |t|)): known subgraphs that overlap S
nearby      log(1 + sum over t with v of max(0, mean of l_S over t - mean of l_S)^2): known subgraphs near S
=========== ==========================================================================================================

The last four ignore a known subgraph if S is a part of it with at least half of its nodes: it is taken for S itself, so
that a known subgraph that lost some members is completed as if it were unknown. While the model is fitted, they ignore
the group of S as well.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import scipy
from numpy.typing import NDArray

from subgnn.channels import diffusion
from subgnn.data.formats.format import ReadOptions
from subgnn.data.formats.members import Members
from subgnn.data.formats.text import read_lines
from subgnn.data.graph import Graph
from subgnn.data.read_tables import match_nodes
from subgnn.errors import DataError
from subgnn.inference.answers import AnswerTable, Files, Query
from subgnn.inference.open import OpenedRun
from subgnn.models.kernel_machines.newton import fit_linear
from subgnn.ragged import Ragged, runs
from subgnn.rng import stream
from subgnn.storage.arrays import ArrayFile, Format
from subgnn.storage.cache import cache_path, cached
from subgnn.storage.files import json_digest
from subgnn.storage.tables import Column

Floats = NDArray[np.float64]

GROUPS: dict[str, tuple[str, ...]] = {
    "diffusion": ("diffusion", "lift", "degree"),
    "common_neighbours": ("paths",),
    "known_subgraphs": ("frequency", "together", "overlap", "nearby"),
}
"""Features, in order, grouped by what they are computed from."""
NAMES = tuple(name for names in GROUPS.values() for name in names)
DAMPING = 0.5
_SMALLEST_P, _SMALLEST_OVERLAP, _TOGETHER_SCALE = 1e-7, 1e-3, 10.0
_REACHED = 1000
_GATHERED = 2**22  # neighbours to gather at once
_NONE = np.empty(0, np.int64)
_AT_ONCE = 32  # subgraphs
_LEFT_OUT, _MOST_SUBGRAPHS, _NEAR, _ELSEWHERE = 0.2, 500, 150, 50
_BLOCK = 2**18  # candidates whose features are computed at once
_OWN = [Column("rank", int), Column("node"), Column("probability", float), Column("neighbours", int), Column("reason")]
_OWN += [Column(name, float) for name in GROUPS]
_FORMAT = Format("subgnn-completion", "file of a completion model", "subgnn complete writes one", "remove it")


@dataclass(frozen=True, slots=True, eq=False)
class DiffusedSubgraph:
    """A subgraph, p_S / pi of all nodes, and the nodes where a walk ends most often, or that local push finds."""

    nodes: NDArray[np.int32]
    ratios: NDArray[np.float32]
    reached: NDArray[np.int64]


class PairFeatures:
    """Computes features of pairs of a subgraph and a node, in an undirected graph with known subgraphs."""

    def __init__(self, graph: Graph, known: Ragged) -> None:
        self.graph, self.known = graph, known
        self.degrees = np.diff(graph.offsets)
        ones = np.ones(len(known.values), np.float32)
        shape = (len(known), graph.num_nodes)
        self._known = scipy.sparse.csr_array((ones, known.values.astype(np.int32), known.offsets), shape=shape)
        self._containing = self._known.T.tocsr()  # (N, T)
        self._frequency = np.bincount(known.values, minlength=graph.num_nodes)
        self._chance = diffusion.walks_of(graph).chance(DAMPING)

    @cached_property
    def _edges(self) -> scipy.sparse.csr_array:
        ones = np.ones(len(self.graph.neighbors), np.float32)
        shape = self.graph.num_nodes, self.graph.num_nodes
        return scipy.sparse.csr_array((ones, self.graph.neighbors, self.graph.offsets), shape=shape)

    def diffuse(self, subgraphs: Ragged) -> Iterator[DiffusedSubgraph]:
        walks, num_nodes = diffusion.walks_of(self.graph), self.graph.num_nodes
        for begin in range(0, len(subgraphs), _AT_ONCE):
            some = subgraphs.take(np.arange(begin, min(begin + _AT_ONCE, len(subgraphs))))
            if self.is_exact:
                for nodes, ratios in zip(some, diffusion.diffuse(walks, some, DAMPING), strict=True):
                    yield DiffusedSubgraph(nodes, ratios, np.argsort(-ratios * self._chance, kind="stable")[:_REACHED])
                continue
            edges, most = diffusion.PUSH_EDGES, diffusion.PUSH_NODES
            near, values = diffusion.diffuse_nearby(walks, some, DAMPING, edges=edges, most=most)
            for i, nodes in enumerate(some):
                ratios = np.zeros(num_nodes, np.float32)
                ratios[near[i]] = values[near.offsets[i] : near.offsets[i + 1]]
                yield DiffusedSubgraph(nodes, ratios, near[i].astype(np.int64))

    @property
    def is_exact(self) -> bool:
        """Whether diffusions are computed at all nodes, and all nodes are candidates."""
        return self.graph.num_nodes <= diffusion.EXACT_NODES

    def candidates(self, query: DiffusedSubgraph) -> NDArray[np.int64]:
        """The candidates, sorted: all nodes outside of S or, in a large graph, those near S."""
        nodes = np.arange(self.graph.num_nodes) if self.is_exact else self.near(query)
        return nodes[~np.isin(nodes, query.nodes)]

    def near(self, query: DiffusedSubgraph, *, unused: NDArray[np.int64] = _NONE) -> NDArray[np.int64]:
        """The nodes that a walk from S reaches and those of known subgraphs that overlap S, unless unused; sorted."""
        overlaps = self._overlaps(query.nodes)
        overlaps[unused] = 0
        members = self.known.take(np.flatnonzero(overlaps)).values
        return np.unique(np.concatenate([query.reached, members.astype(np.int64)]))

    def links(self, subgraph: NDArray[np.int32]) -> NDArray[np.int64]:
        rows = Ragged(self.graph.neighbors, self.graph.offsets).take(subgraph)
        return np.bincount(rows.values, minlength=self.graph.num_nodes)

    def table(self, query: DiffusedSubgraph, nodes: NDArray[np.int64], *, unused: NDArray[np.int64] = _NONE) -> Floats:
        """The features of nodes outside of S (nodes, features), as :data:`NAMES`, without the unused subgraphs."""
        size, ratios, sizes = len(query.nodes), query.ratios.astype(np.float64), np.maximum(self.known.lengths, 1)
        overlaps = self._overlaps(query.nodes)
        unused = np.union1d(unused, np.flatnonzero((overlaps == size) & (2 * size >= sizes)))
        frequency = self._frequency - np.bincount(self.known.take(unused).values, minlength=self.graph.num_nodes)
        rare = self._overlaps(query.nodes, 1 / np.sqrt(np.maximum(frequency[query.nodes], 1)))
        lifts = np.log1p(ratios)
        near = np.maximum(0, self._known @ lifts / sizes - lifts.mean()) ** 2
        for values in (overlaps, rare, near):
            values[unused] = 0
        shared = self._containing[nodes] @ np.stack([rare, overlaps**2 / (size * sizes), near], axis=1)  # (nodes, 3)
        columns = {
            "diffusion": np.log(ratios[nodes] * self._chance[nodes] + _SMALLEST_P),
            "lift": lifts[nodes],
            "degree": np.log1p(self.degrees[nodes]),
            "paths": np.log1p(self._over_neighbours(self.links(query.nodes) / np.log(2 + self.degrees), nodes)),
            "frequency": np.log1p(frequency[nodes]),
            "together": np.log1p(_TOGETHER_SCALE * shared[:, 0] / (size * np.sqrt(1 + frequency[nodes]))),
            "overlap": np.log(_SMALLEST_OVERLAP + shared[:, 1]),
            "nearby": np.log1p(shared[:, 2]),
        }
        return np.stack([columns[name] for name in NAMES], axis=1)

    def _overlaps(self, nodes: NDArray[np.int32], weights: Floats | None = None) -> Floats:
        """The number of nodes, or the sum of their weights, in each known subgraph (T,)."""
        given = np.ones(len(nodes)) if weights is None else weights
        return np.asarray(given @ self._containing[nodes], np.float64)

    def _over_neighbours(self, values: Floats, nodes: NDArray[np.int64]) -> Floats:
        """The sum of values (N,) over the neighbours of each node (nodes,)."""
        if self.is_exact:
            return np.asarray((self._edges @ values.astype(np.float32))[nodes], np.float64)
        found = np.empty(len(nodes))
        for run in runs(self.degrees[nodes], _GATHERED):
            rows = Ragged(self.graph.neighbors, self.graph.offsets).take(nodes[run])
            found[run] = np.bincount(rows.row_ids, values[rows.values], minlength=len(rows))
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Ranker:
    """A fitted logistic regression: log odds = bias + sum over i of weights_i (x_i - means_i)."""

    weights: Floats
    means: Floats
    bias: float

    def terms(self, table: Floats) -> Floats:
        return (table - self.means) * self.weights

    def arrays(self) -> dict[str, Any]:
        return {"weights": self.weights, "means": self.means, "bias": np.array([self.bias])}

    @classmethod
    def read(cls, file: ArrayFile) -> Self:
        shapes, arrays = {"weights": (len(NAMES),), "means": (len(NAMES),), "bias": (1,)}, file.arrays
        numbers = all(array.dtype == np.float64 and np.isfinite(array).all() for array in arrays.values())
        if not numbers or {name: array.shape for name, array in arrays.items()} != shapes:
            raise DataError("its arrays are not those of a completion model", where=file.where, hint=_FORMAT.again)
        return cls(arrays["weights"].copy(), arrays["means"].copy(), float(arrays["bias"][0]))


@dataclass(frozen=True, slots=True, eq=False)
class Completion:
    """The best candidates for one subgraph, the likeliest first; ties by row number."""

    nodes: NDArray[np.int64]
    probabilities: Floats
    links: NDArray[np.int64]  # (k,) numbers of neighbours in the subgraph
    contributions: Floats  # (k, groups) terms of the log odds by :data:`GROUPS`

    @property
    def reasons(self) -> list[str]:
        return [list(GROUPS)[i] for i in self.contributions.argmax(axis=1)]


class Completer:
    """Known subgraphs of a graph, and a model of which nodes belong to a subgraph."""

    def __init__(self, features: PairFeatures, ranker: Ranker) -> None:
        self.features, self.ranker = features, ranker

    @classmethod
    def fit(cls, graph: Graph, known: Ragged, *, groups: NDArray[np.int64] | None = None, seed: int = 0) -> Self:
        """Fit to known subgraphs of an undirected graph, or read the model from the cache folder.

        ``groups`` has a number for each known subgraph. Subgraphs of one group are too similar to complete each other
        while the model is fitted. By default each is a group of its own.
        """
        features = PairFeatures(graph, known)
        groups = np.arange(len(known)) if groups is None else groups
        path = cache_path("completion", json_digest([graph.content_hash, known.digest, groups.tolist(), seed]))
        ranker = cached(
            path, _FORMAT, compute=lambda: _fit(features, groups, seed), arrays=Ranker.arrays, read=Ranker.read
        )
        return cls(features, ranker)

    @classmethod
    def of_run(cls, opened: OpenedRun, where: str) -> Self:
        """Fit to the training and validation subgraphs of a run's dataset."""
        subgraphs = opened.subgraphs
        if subgraphs is None:
            what = "an exported run contains no known subgraphs to learn from"
            raise DataError(what, where=where, hint="give the dataset with --data, or the folder of the run")
        rows = np.arange(len(subgraphs))
        if subgraphs.splits is not None:
            rows = np.sort(np.concatenate([subgraphs.indices("train"), subgraphs.indices("val")]))
        some = subgraphs.take(rows)
        groups = None if some.groups is None else np.unique(list(some.groups), return_inverse=True)[1]
        return cls.fit(opened.predictor.graph, some.nodes, groups=groups, seed=opened.predictor.spec.seed)

    def complete(self, subgraphs: Ragged, *, top: int, among: NDArray[np.int64] | None = None) -> Iterator[Completion]:
        """The likeliest missing members of each subgraph, at most ``top``, of all candidates or of those ``among``."""
        ends = np.cumsum([len(names) for names in GROUPS.values()])[:-1]
        for query in self.features.diffuse(subgraphs):
            nodes = self.features.candidates(query) if among is None else among[~np.isin(among, query.nodes)]
            best, terms = nodes[:0], np.empty((0, len(NAMES)))
            for begin in range(0, len(nodes), _BLOCK):
                some = nodes[begin : begin + _BLOCK]
                best = np.concatenate([best, some])
                terms = np.concatenate([terms, self.ranker.terms(self.features.table(query, some))])
                order = np.argsort(-terms.sum(axis=1), kind="stable")[:top]
                best, terms = best[order], terms[order]
            odds = np.clip(self.ranker.bias + terms.sum(axis=1), -700, 700)
            parts = [part.sum(axis=1) for part in np.split(terms, ends, axis=1)]
            links = self.features.links(query.nodes)[best]
            yield Completion(best, 1 / (1 + np.exp(-odds)), links, np.stack(parts, axis=1))


def _fit(features: PairFeatures, groups: NDArray[np.int64], seed: int) -> Ranker:
    """Fit to pairs of a subgraph and a node, each of which stands for a number of pairs like it."""
    draws, known, num_nodes = stream(seed, "completion"), features.known, features.graph.num_nodes
    usable = np.flatnonzero((known.lengths > 1) & (known.lengths < num_nodes))
    if not len(usable):
        what = "no known subgraph has two or more nodes, with others outside it, to learn from"
        raise DataError(what, where="complete", hint="give a dataset with other subgraphs")
    chosen = np.sort(draws.permutation(usable)[:_MOST_SUBGRAPHS])
    pairs = []
    for row in chosen:
        mixed = draws.permutation(known[row])
        count = max(1, round(_LEFT_OUT * len(mixed)))
        pairs.append((np.sort(mixed[count:]), np.sort(mixed[:count])))
    tables, belongs, counts = [], [], []
    queries = features.diffuse(Ragged.from_rows(rest for rest, _ in pairs))
    for row, (_, left), query in zip(chosen, pairs, queries, strict=True):
        unused = np.flatnonzero(groups == groups[row])
        place = np.zeros(num_nodes, np.int8)  # 0 elsewhere, 1 near, 2 in the subgraph
        place[features.near(query, unused=unused)] = 1
        place[known[row]] = 2
        near, elsewhere = np.flatnonzero(place == 1), np.flatnonzero(place == 0)
        some, others = (
            nodes if len(nodes) <= most else draws.choice(nodes, most, replace=False)
            for nodes, most in ((near, _NEAR), (elsewhere, _ELSEWHERE))
        )
        tables.append(features.table(query, np.concatenate([left, some, others]), unused=unused))
        belongs.append(np.repeat([True, False], [len(left), len(some) + len(others)]))
        stands = [1, len(near) / max(1, len(some)), len(elsewhere) / max(1, len(others))]
        counts.append(np.repeat(stands, [len(left), len(some), len(others)]))
    table, positive, weights = np.concatenate(tables), np.concatenate(belongs), np.concatenate(counts)
    means = np.average(table[~positive], axis=0, weights=weights[~positive])
    deviations = table.std(axis=0)
    deviations[deviations < 1e-9] = 1  # a feature that is constant, as overlaps of disjoint subgraphs, has no weight
    table = (table - means) / deviations
    targets, roots = positive[:, None].astype(np.float64), np.sqrt(weights)[:, None]
    weight = fit_linear(table, targets, 1.0, loss="logistic", weights=roots)[0][:, 0]
    scores, wanted = table @ weight, np.count_nonzero(positive)
    surplus = lambda constant: weights @ scipy.special.expit(scores + constant) - wanted  # noqa: E731
    return Ranker(weight / deviations, means, float(scipy.optimize.brentq(surplus, -1000, 1000)))


def read_candidates(
    source: Path | Iterable[Any], graph: Graph, options: ReadOptions = ReadOptions()
) -> NDArray[np.int64]:
    """The distinct nodes of a list, or of a file with one node per line (up to the first tab); sorted."""
    where = str(source) if isinstance(source, Path) else "among"
    if isinstance(source, Path):
        texts = [line.split("\t")[0].strip() for _, line in read_lines(source, encoding=options.encoding)]
    else:
        texts = [str(node) for node in source]
    texts = list(dict.fromkeys(text for text in texts if text))
    members = Members(where, [where], texts, Ragged.from_rows([np.arange(len(texts))]), rows=[1], unit="line")
    matched = match_nodes(members, graph, options)
    matched.warn()
    if not len(matched.nodes[0]):
        raise DataError("no nodes to choose from", where=where, hint="give one node per line")
    return matched.nodes[0].astype(np.int64)


def completion_table(
    completer: Completer, query: Query, *, top: int, among: NDArray[np.int64] | None = None
) -> AnswerTable:
    """One row per suggested node, the likeliest first; a row without a node if there is no suggestion."""
    names = completer.features.graph.names
    shown = None if names is None else names.readable()

    def rows_of(found: Completion) -> list[Sequence[Any]]:
        nodes = [str(node) if shown is None else shown.written(node) for node in found.nodes.tolist()]
        numbers = (found.probabilities.tolist(), found.links.tolist(), found.reasons, *found.contributions.T.tolist())
        return list(zip(range(1, len(nodes) + 1), nodes, *numbers, strict=True))

    answers = query.answered(_AT_ONCE, lambda nodes: completer.complete(nodes, top=top, among=among))
    return AnswerTable.of_lists(query, _OWN, ((row, rows_of(one) if one else []) for row, one in answers))


def complete_file(run: Path, files: Files, *, top: int, among: Path | None = None) -> tuple[AnswerTable, int]:
    """:func:`completion_table` for a file of subgraphs, and their number."""
    opened = files.open(run)
    graph = opened.predictor.graph
    query = files.read(graph)
    if opened.predictor.as_of_step is not None:
        files.reading.on_note("nodes are suggested on the graph as it is now, not as of the times of subgraphs")
    candidates = None if among is None else read_candidates(among, graph, files.reading)
    return completion_table(Completer.of_run(opened, str(run)), query, top=top, among=candidates), len(query)
