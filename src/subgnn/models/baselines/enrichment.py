"""ENRICHMENT: the class whose nodes a subgraph has more of than chance would give it; beyond the paper.

This is the test by which a biologist compares a set of genes with known ones. Of the N nodes of the graph, K are in at
least m training subgraphs of class c. A subgraph has n nodes that occur in training subgraphs, k of them among the K.
If its nodes were drawn at random, it would have as many with probability

    p = P(X >= k), with X hypergeometric (N, K, n)

and its score is -log10 p. There are four tests a class, with m = 1, 2, 4 and 8: a single annotation counts where
subgraphs are few, and nodes that come up again count where they are many. Logits are a weighted sum of the four
scores, plus a share of the log of the class's frequency; the weights are fitted to scores of five
folds of the training split, each from counts of the other four. A label of several has the scores of subgraphs with it
less those of subgraphs without it, and real values those of subgraphs above the mean less those of subgraphs below it.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import scipy
from numpy.typing import NDArray

from subgnn.config.settings import Recipe
from subgnn.data.graph import Graph
from subgnn.data.node_match import NodeMatch
from subgnn.models.examples import Examples
from subgnn.models.interface import TrainingData, Vectors
from subgnn.models.kernel_machines.newton import Floats
from subgnn.models.kernel_machines.regression import draw_inner_folds, fit_scales, indicators
from subgnn.models.kernel_machines.views import bag_of_nodes
from subgnn.models.spec import Checkpoint, Weights
from subgnn.models.tensor_model import ArrayModel, ArrayNetwork, Rows, is_sorted_below
from subgnn.ragged import Ragged
from subgnn.task import task_of

TIMES = (1, 2, 4, 8)
"""m: in how many training subgraphs of a class a node must be to count as one of its nodes."""
_NUMBERS_AT_A_TIME = 2**20
_ROUNDING = 1e-17

Levels = NDArray[np.uint8]


class EnrichmentNetwork(ArrayNetwork):
    """sum over m of a_m times -log10 p_m, plus b.

    Shapes:
        columns: (F,) the nodes that training knows. background: () N. levels: (1, F, outputs), or (2, F, outputs) with
            those of subgraphs without the label: how many of the four sets a node is in. scale: (4, outputs). bias:
            (outputs,).
    """

    def __init__(self, checkpoint: Checkpoint) -> None:
        weights, outputs = checkpoint.weights, checkpoint.spec.num_outputs
        self.seed, sides = checkpoint.spec.seed, 1 if task_of(checkpoint.spec.task).one_class else 2
        super().__init__({name: weights[name] for name in ("columns", "background")})
        self.arrays["levels"] = np.zeros((sides, len(weights["columns"]), outputs), np.uint8)
        self.arrays |= {"scale": np.zeros((len(TIMES), outputs)), "bias": np.zeros(outputs, np.float32)}

    def solve(self, examples: Examples) -> None:
        rows, total = examples.inputs.batch(examples.train), int(self.background)
        targets = examples.targets.cpu().numpy()[examples.train]
        high = indicators(targets, examples.task, len(self.bias))
        sides = [high] if len(self.levels) == 1 else [high, 1 - high]
        fold = draw_inner_folds(len(targets), self.seed, "enrichment/folds")
        scores = np.zeros((len(TIMES), len(targets), len(self.bias)))
        for i in np.unique(fold):
            held = fold == i
            rest = ~held if len(targets) > 1 else held
            fitted = rows[rest]
            known = np.flatnonzero(fitted.sum(axis=0))
            levels = [set_levels(fitted[:, known], side[rest]) for side in sides]
            scores[:, held] = enrichment_scores(rows[held][:, known], levels, total)
        scale, bias = fit_scales(scores, targets, examples.task, examples.train_weights)
        self.arrays["levels"] = np.stack([set_levels(rows, side) for side in sides])
        self.arrays["scale"][:], self.arrays["bias"][:] = scale, bias

    def embed(self, rows: scipy.sparse.csr_array) -> NDArray[np.float32]:
        scores = enrichment_scores(rows, list(self.levels), int(self.background))
        return np.asarray((scores * self.scale[:, None]).sum(axis=0).astype(np.float32) + self.bias)


class EnrichmentModel(ArrayModel):
    """ENRICHMENT."""

    network = EnrichmentNetwork
    on_new_graph = "a new node is in no training subgraph, and counts for nothing; there are more nodes to draw from"
    needs_edges = False
    view = "nodes"

    def start(self, data: TrainingData, recipe: Recipe) -> Weights:
        """``columns``: the nodes of training subgraphs; ``background``: the number of nodes of the graph."""
        subgraphs = data.subgraphs
        columns = np.unique(subgraphs.nodes.take(subgraphs.indices("train")).values).astype(np.int64)
        return {"columns": columns, "background": np.array(data.graph.num_nodes)}

    def inputs(self, checkpoint: Checkpoint, graph: Graph, nodes: Ragged) -> Rows:
        """The nodes of each subgraph that training knows, as rows of 0 and 1."""
        return Rows(bag_of_nodes(nodes, graph.num_nodes)[:, checkpoint.weights["columns"]].astype(np.float32))

    def moved(self, checkpoint: Checkpoint, match: NodeMatch, vectors: Vectors) -> Checkpoint:
        """Renumber the nodes that training knows, without those that are gone."""
        weights, places = checkpoint.weights, match.rows(checkpoint.weights["columns"])
        match.tell_gone(int((places < 0).sum()), "nodes of training subgraphs that are gone")
        kept = np.flatnonzero(places >= 0)
        kept = kept[np.argsort(places[kept])]
        moved = {"columns": places[kept], "background": np.array(match.graph.num_nodes)}
        return replace(checkpoint, weights=weights | moved | {"levels": weights["levels"][:, kept]})

    def problems(self, checkpoint: Checkpoint, graph: Graph) -> Iterator[str]:
        columns = checkpoint.weights["columns"]
        if not is_sorted_below(columns, graph.num_nodes, np.int64):
            yield "the columns of its node sets are not in order, or are not nodes of the graph"
        if not len(columns) <= int(checkpoint.weights["background"]) < 2**53:
            yield "its background is smaller than its node sets"


def set_levels(rows: scipy.sparse.csr_array, indicators: Floats) -> Levels:
    """How many of the sets of a class each node is in (F, K): in that of m, if m subgraphs of the class have it.

    Shapes:
        rows: (n, F), 1 where a subgraph has a node. indicators: (n, K), 1 where it is of the class.
    """
    return np.searchsorted(np.array(TIMES), np.asarray(rows.T @ indicators), side="right").astype(np.uint8)


def enrichment_scores(rows: scipy.sparse.csr_array, levels: list[Levels], total: int) -> Floats:
    """-log10 p of each test (4, n, K); with two lists of sets, those of the first less those of the second.

    Shapes:
        rows: (n, F), 1 where a subgraph has a node. levels: (F, K) each.
    """
    found = np.zeros((len(TIMES), rows.shape[0], levels[0].shape[1]))
    drawn = np.asarray(rows.sum(axis=1), np.float64)
    step = max(1, _NUMBERS_AT_A_TIME // max(1, found.shape[2]))
    for sign, level in zip((1, -1), levels, strict=False):
        for i in range(len(TIMES)):
            members = (level > i).astype(np.float32)
            marked = members.sum(axis=0, dtype=np.float64)
            for begin in range(0, len(drawn), step):
                part = slice(begin, begin + step)
                hits = np.asarray(rows[part] @ members, np.float64)
                found[i, part] -= sign * log_tail(hits, drawn[part, None], marked, total) / np.log(10)
    return found


def log_tail(hits: Floats, drawn: Floats, marked: Floats, total: int) -> Floats:
    """The log of P(X >= hits), if ``drawn`` of ``total`` nodes are drawn at random and ``marked`` of them are hits.

    The terms of the shorter tail are summed from the largest on, so that their number is about that of deviations, and
    a tiny probability keeps its digits. scipy.stats.hypergeom.logsf sums all of them, for one cell after another.
    """
    k, n, m = (array.reshape(-1) for array in np.broadcast_arrays(hits, drawn, marked))
    above = k * total > n * m  # the mean is n m / total
    # The largest term of the tail from k upwards, or of the rest from k - 1 downwards.
    start = np.where(above, k, k - 1)
    possible = (start >= np.maximum(0, n + m - total)) & (start <= np.minimum(n, m))
    found = np.where(above, -np.inf, 0.0)
    k, n, m, above = start[possible], n[possible], m[possible], above[possible]
    first = _log_choose(m, k) + _log_choose(total - m, n - k) - _log_choose(np.float64(total), n)
    tail, term, active, x = np.ones_like(k), np.ones_like(k), np.arange(len(k)), k.copy()
    while len(active):
        at, drawn_at, marked_at = x[active], n[active], m[active]
        others = total - marked_at - drawn_at + at
        up = (marked_at - at) * (drawn_at - at) / ((at + 1) * (others + 1))
        down = at * others / ((marked_at - at + 1) * (drawn_at - at + 1))
        term[active] *= np.where(above[active], up, down)
        tail[active] += term[active]
        x[active] += np.where(above[active], 1, -1)
        active = active[term[active] > _ROUNDING * tail[active]]
    logs = np.minimum(first + np.log(tail), 0.0)
    found[possible] = np.where(above, logs, np.log1p(-np.exp(np.minimum(logs, -np.finfo(np.float64).eps))))
    return found.reshape(np.broadcast_shapes(hits.shape, drawn.shape, marked.shape))


def _log_choose(n: Floats | np.float64, k: Floats) -> Floats:
    return np.asarray(-scipy.special.betaln(n - k + 1, k + 1) - np.log(n + 1))
