"""WLKS: Weisfeiler-Lehman kernels of subgraphs and of the whole graph, and a support vector machine (ICLR 2025).

*Colour refinement* (1-WL) gives all nodes one colour. In every round the new colour of a node stands for its signature:
its own colour, and the sorted colours of its neighbours with their repetitions. A table numbers the signatures, so two
nodes have one colour if and only if 1-WL cannot tell them apart after as many rounds. Subgraphs are compared by sharing
tables. Prediction uses those of training: a new signature gets a number beyond them, which matches nothing.

*Kernel*. With g_S the histogram of the nodes' colours in the whole graph after round i, and h_S that of their colours
in the subgraph refined by itself, K(S, T) = a <g_S, g_T> + (1 - a) <h_S, h_T>. If ``cumulative``, histograms are those
after rounds 1 to i side by side; with ``normalize``, each is scaled to length one. A support vector machine separates
every two classes, and the class with most votes is predicted; several labels have one machine each; real values are
fitted by support vector regression. As K is linear in the histograms, a machine is kept as one weight a colour. Colours
that no training subgraph has match nothing, but count in the length of a histogram.

*Probabilities*. Outputs are the scores of the machines times one factor (one per label), which minimises the logistic
loss of three folds of the training split, each scored by machines fitted to the others. A factor changes no prediction.

*Differs from the paper:* self loops are not part of a graph; classes with equally many votes are ordered by the sum of
their decisions, where libsvm takes the first; more than 8,000 training subgraphs are fitted by a linear machine.
"""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import scipy
from numpy.typing import NDArray

from subgnn.config.files import Bounds, Probability
from subgnn.config.settings import MethodSettings, Recipe
from subgnn.data.graph import Graph
from subgnn.data.node_match import NodeMatch
from subgnn.data.subgraphs import with_absent
from subgnn.errors import DataError, UserError
from subgnn.kernels.induced import induced_graph
from subgnn.models.examples import Examples, HostSource
from subgnn.models.interface import Settings, TrainingData, Vectors, View
from subgnn.models.kernel_machines.kernel_machine import moved_landmarks, set_arrays, wrong_node_sets
from subgnn.models.kernel_machines.newton import Floats
from subgnn.models.kernel_machines.regression import minimise_in_box
from subgnn.models.spec import Checkpoint, Weights
from subgnn.models.tensor_model import ArrayModel, ArrayNetwork, is_sorted_below
from subgnn.ragged import Ragged
from subgnn.rng import stream
from subgnn.task import TaskName, task_of

Colours = NDArray[np.int32]
Table = dict[bytes, int]
"""The colour of each signature, numbered from 0; a signature is its numbers as the bytes of an int32 array."""

_AT_ONCE = 2**20  # nodes of subgraphs that are refined together
_OF_START = ("graph_", "subgraph_", "signature")
_FOLDS = 3
_LARGEST_MATRIX = 8_000  # training subgraphs
_STEPS, _MATRIX_STEPS = 2_000, 1_000_000  # of a linear machine, and of one on the matrix
_PENALISED_OFFSET = 10.0  # the larger, the smaller the penalty of the offset


def refine(offsets: NDArray[np.int64], neighbors: NDArray[np.integer], colours: Colours, table: Table) -> Colours:
    """The colours of all nodes in the next round (n,); new signatures are added to the table.

    Example:
        The ends of the path 0 - 1 - 2 have one neighbour, its middle two.

        >>> same = np.zeros(3, np.int32)
        >>> refine(np.array([0, 1, 3, 4]), np.array([1, 0, 2, 1]), same, {}).tolist()
        [0, 1, 0]
    """
    n = len(colours)
    width = int(colours.max(initial=0)) + 1
    owner = np.repeat(np.arange(n, dtype=np.int64), np.diff(offsets))
    in_order = np.sort(owner * width + colours[neighbors])  # by node, then by colour
    bounds = offsets + np.arange(n + 1)  # a signature is one longer than a row of neighbours
    signatures = np.empty(bounds[-1], np.int32)
    own = np.zeros(len(signatures), np.bool_)
    own[bounds[:-1]] = True
    signatures[own], signatures[~own] = colours, in_order % width
    text, ends = signatures.tobytes(), (4 * bounds).tolist()
    return np.fromiter((table.setdefault(text[ends[i] : ends[i + 1]], len(table)) for i in range(n)), np.int32, n)


def graph_colours(graph: Graph, rounds: int) -> list[Colours]:
    """The colours of all nodes of the graph (N,) after 1, 2, ... rounds."""
    found, colours = [], np.zeros(graph.num_nodes, np.int32)
    for _ in range(rounds):
        colours = refine(*graph.csr, colours, {})
        found.append(colours)
    return found


def subgraph_colours(graph: Graph, nodes: Ragged, tables: list[Table]) -> list[Colours]:
    """The colours of ``nodes.values`` after each round, each subgraph refined by itself; adds to each round's table."""
    found: list[list[Colours]] = [[np.empty(0, np.int32)] for _ in tables]
    for members in nodes.batches(_AT_ONCE) if tables else ():
        induced = induced_graph(*graph.csr, members)
        colours = np.zeros(len(members.values), np.int32)
        for table, of_round in zip(tables, found, strict=True):
            colours = refine(*induced, colours, table)
            of_round.append(colours)
    return [np.concatenate(of_round) for of_round in found]


def table_rows(table: Table) -> Ragged:
    """The signatures of a table in the order of their colours."""
    return Ragged.from_lengths(np.frombuffer(b"".join(table), np.int32), [len(key) // 4 for key in table])


def table_of(rows: Ragged) -> Table:
    """The inverse of :func:`table_rows`."""
    text, ends = np.ascontiguousarray(rows.values, np.int32).tobytes(), (4 * rows.offsets).tolist()
    return {text[ends[i] : ends[i + 1]]: i for i in range(len(rows))}


def machine_scores(decisions: NDArray[Any], task: TaskName, outputs: int) -> NDArray[Any]:
    """Scores of classes from the decisions between every two; those of labels and values are the decisions themselves.

    A class has one for each class that it is preferred to, and less than a third more or less for the sum of its
    decisions, which orders classes with equally many votes. Of two classes the decision itself is the score.

    Shapes:
        decisions: (n, machines), above 0 for the second class of a pair. returns: (n, outputs).
    """
    if not task_of(task).one_class:
        return decisions
    if outputs == 2:
        return np.concatenate([-decisions / 2, decisions / 2], axis=1)
    votes, sums = np.zeros((2, len(decisions), outputs))
    for (first, second), decision in zip(combinations(range(outputs), 2), decisions.T, strict=True):
        votes[:, first] += decision <= 0
        votes[:, second] += decision > 0
        sums[:, first] -= decision
        sums[:, second] += decision
    return np.asarray(votes + sums / (3 * (np.abs(sums) + 1)))


@dataclass(frozen=True, slots=True)
class Fit:
    """Support vector machines for a task: one per label, one per pair of classes, or one regression."""

    task: TaskName
    outputs: int
    inverse_penalty: float

    def __call__(self, rows: Any, gram: Floats | None, targets: NDArray[Any], weights: Any = None) -> tuple[Any, ...]:
        """Weights of features (F, machines), offsets (machines,), and weights of rows (n, machines) if there are any.

        With ``gram``, the products (n, n) of rows (n, F), weights of features are sums over rows by these; without,
        there are no such weights. ``weights`` say how much rows, or pairs of a row and a label, count; not for
        regression.
        """
        from sklearn import svm

        if task_of(self.task).real:
            found = [self._machine(rows, gram, targets, None)]
        elif task_of(self.task).several:
            each = [None] * self.outputs if weights is None else weights.T.copy()
            found = [self._separate(rows, gram, targets[:, i] > 0, each[i]) for i in range(self.outputs)]
        elif gram is not None and len(np.unique(targets)) == self.outputs:
            # One call fits the machine of each pair to the subgraphs of its two classes.
            unfitted = svm.SVC(kernel="precomputed", C=self.inverse_penalty, max_iter=_MATRIX_STEPS)
            machine = _fitted(unfitted, gram, targets, weights)
            # Row j - 1 of the coefficients of class i, and row i of those of class j > i, belong to the pair; of more
            # than two classes, a decision above 0 is for the first.
            coefficients, pairs = machine.dual_coef_, list(combinations(range(self.outputs), 2))
            bounds = np.concatenate([[0], np.cumsum(machine.n_support_)])
            dual, sign = np.zeros((len(machine.support_), len(pairs))), 1 if self.outputs == 2 else -1
            for place, (i, j) in enumerate(pairs):
                for side, row in ((i, j - 1), (j, i)):
                    part = slice(bounds[side], bounds[side + 1])
                    dual[part, place] = sign * coefficients[row, part]
            dual = _at(machine.support_, dual, len(targets))
            return rows.T @ dual, sign * machine.intercept_, dual
        else:
            found = []
            for first, second in combinations(range(self.outputs), 2):
                either = np.flatnonzero((targets == first) | (targets == second))
                inner = None if gram is None else gram[np.ix_(either, either)]
                own = None if weights is None else weights[either]
                column, bias = self._separate(rows[either], inner, targets[either] == second, own)
                if gram is not None:
                    column = _at(either, column, len(targets))
                found.append((column, bias))
        columns, biases = (np.stack(part, axis=-1) for part in zip(*found, strict=True))
        return (columns, biases, None) if gram is None else (rows.T @ columns, biases, columns)

    def _separate(self, rows: Any, gram: Floats | None, positive: NDArray[np.bool_], weights: Any) -> tuple[Any, float]:
        """One machine, above 0 for the positive; the side that alone is there is always decided for."""
        if positive.all() or not positive.any():
            size = rows.shape[1] if gram is None else len(positive)
            return np.zeros(size), float(positive.any()) - float((~positive).any())
        return self._machine(rows, gram, positive, weights)

    def _machine(self, rows: Any, gram: Floats | None, targets: NDArray[Any], weights: Any) -> tuple[Any, float]:
        from sklearn import svm

        real, c = task_of(self.task).real, self.inverse_penalty
        if gram is None:
            options = {"C": c, "max_iter": _STEPS, "random_state": 0, "intercept_scaling": _PENALISED_OFFSET}
            unfitted = svm.LinearSVR(**options) if real else svm.LinearSVC(loss="hinge", **options)
            linear = _fitted(unfitted, rows, targets, weights)
            return linear.coef_.reshape(-1), float(np.reshape(linear.intercept_, -1)[0])
        make = svm.SVR if real else svm.SVC
        machine = _fitted(make(kernel="precomputed", C=c, max_iter=_MATRIX_STEPS), gram, targets, weights)
        return _at(machine.support_, machine.dual_coef_[0], len(targets)), float(machine.intercept_[0])


def _at(places: NDArray[Any], values: NDArray[Any], size: int) -> Floats:
    """Values at their places among ``size``; 0 elsewhere."""
    found = np.zeros((size, *values.shape[1:]))
    found[places] = values
    return found


def _fitted(machine: Any, rows: Any, targets: NDArray[Any], weights: Any) -> Any:
    """Fit a machine; one with a weak penalty may run out of steps, and validation judges what came of it."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*(failed to converge|terminated early).*")
        return machine.fit(rows, targets, sample_weight=weights)


@dataclass(frozen=True, slots=True)
class WLKSSettings(MethodSettings):
    """WLKS; every listed value of rounds, mix (a) and inverse_penalty (C) is tried, and validation selects.

    cumulative takes all rounds up to the number; normalize scales histograms to length one (``auto``: tries both).
    """

    section: ClassVar[str] = "wlks"
    rounds: tuple[Annotated[int, Bounds(1, 100)], ...] = (1, 2)
    cumulative: bool = False
    normalize: Literal["auto", "rows", "none"] = "auto"
    mix: tuple[Probability, ...] = (0.99, 0.5, 0.01)
    inverse_penalty: tuple[Annotated[float, Bounds(1e-9, 10**9)], ...] = (0.08, 0.64, 5.12)


class WLKS(ArrayNetwork):
    """Support vector machines on the mixture of kernels, as one weight for each colour.

    A histogram is as wide as the graph, so the vector of a subgraph is the decisions of the machines.

    Shapes:
        weight_*: (columns, machines). bias: (machines,). scale: (outputs,) for multi-label, else (1,).
        nodes, offsets: the training subgraphs. dual: (n, machines) float64, their weights; none of more than 8,000.
    """

    def __init__(self, checkpoint: Checkpoint) -> None:
        spec, given = checkpoint.spec, checkpoint.weights
        self.settings, self.seed = spec.of(WLKSSettings), spec.seed
        self.task, self.outputs = spec.task, spec.num_outputs
        machines = self.outputs * (self.outputs - 1) // 2 if task_of(spec.task).one_class else self.outputs
        last, a = self.settings.rounds[-1], self.settings.mix[-1]
        rounds = range(1 if self.settings.cumulative else last, last + 1)
        self.parts = {f"{kind}_{i}": part for kind, part in (("graph", a), ("subgraph", 1 - a)) if part for i in rounds}
        kept = [f"graph_{what}_{i}" for what in ("colours", "columns") for i in rounds if a > 0]
        kept += [f"subgraph_columns_{i}" for i in rounds if a < 1]
        kept += [f"{name}_{i}" for name in ("signatures", "signature_offsets") for i in range(1, last + 1) if a < 1]
        super().__init__({name: given[name] for name in ("nodes", "offsets", *kept)})
        self.arrays["dual"] = given.get("dual", np.zeros((0, machines)))
        for part in self.parts:
            columns = given["_columns_".join(part.rsplit("_", 1))]
            self.arrays[f"weight_{part}"] = np.zeros((len(columns), machines), np.float32)
        self.arrays["bias"] = np.zeros(machines, np.float32)
        self.arrays["scale"] = np.ones(self.outputs if task_of(spec.task).several else 1, np.float32)

    def features(self, batch: dict[str, "Histogram"]) -> list[scipy.sparse.csr_array]:
        """Histograms whose products sum to the kernel: each part times the root of its weight."""
        found = []
        for name, share in self.parts.items():
            part = batch[name]
            scaled = (part.lengths > 0) & (self.settings.normalize == "rows")
            lengths = np.where(scaled, part.lengths, 1.0)
            found.append(part.counts * (np.sqrt(share) / lengths)[:, None])
        return found

    def solve(self, examples: Examples) -> None:
        rows: Any = scipy.sparse.hstack(self.features(examples.inputs.batch(examples.train)), format="csr")
        targets = examples.targets.cpu().numpy()[examples.train]
        gram = (rows @ rows.T).toarray() if len(targets) <= _LARGEST_MATRIX else None
        fit = Fit(self.task, self.outputs, self.settings.inverse_penalty[-1])
        weights = examples.train_weights
        weight, bias, dual = fit(rows, gram, targets, weights)
        self.set_weights(weight)
        source: Any = examples.inputs
        self.arrays |= set_arrays(with_absent(source.nodes.take(examples.train), None))
        self.arrays |= {"dual": np.zeros((0, len(bias))) if dual is None else dual, "bias": bias.astype(np.float32)}
        if task_of(self.task).has_classes and len(targets) > 1:
            self.arrays["scale"] = self._fit_scale(fit, rows, gram, targets, weights)

    def set_weights(self, weight: Any) -> None:
        """Set the weights of colours of all parts, one above the other (columns, machines)."""
        names = [f"weight_{name}" for name in self.parts]
        ends = np.cumsum([len(self.arrays[name]) for name in names])[:-1]
        self.arrays |= dict(zip(names, np.split(np.asarray(weight, np.float32), ends), strict=True))

    def _fit_scale(self, fit: Fit, rows: Any, gram: Any, targets: NDArray[Any], weights: Any) -> Any:
        """The factor of the scores that minimises the logistic loss of held-out folds of the training split."""
        n, several = len(targets), task_of(self.task).several
        order = stream(self.seed, "wlks/folds").permutation(n)
        if not several:
            order = order[np.argsort(targets[order], kind="stable")]  # classes in equal shares
        folds, scores = np.empty(n, np.int64), np.zeros((n, self.outputs))
        folds[order] = np.arange(n) % _FOLDS
        for fold in np.unique(folds):
            out, rest = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
            inner = None if gram is None else gram[np.ix_(rest, rest)]
            weight, bias, _ = fit(rows[rest], inner, targets[rest], None if weights is None else weights[rest])
            scores[out] = machine_scores(rows[out] @ weight + bias, self.task, self.outputs)
        parts = [(scores[:, [i]], targets[:, i]) for i in range(self.outputs)] if several else [(scores, targets)]
        return np.array([_best_factor(*part) for part in parts], np.float32)

    def embed(self, batch: dict[str, "Histogram"]) -> NDArray[np.float32]:
        weights = (self.arrays[f"weight_{name}"] for name in self.parts)
        parts = [part @ weight for part, weight in zip(self.features(batch), weights, strict=True)]
        return np.asarray(np.asarray(sum(parts), np.float32) + self.bias)

    def forward(self, batch: dict[str, "Histogram"]) -> NDArray[np.float32]:
        return np.asarray(machine_scores(self.embed(batch), self.task, self.outputs).astype(np.float32) * self.scale)


class WLKSModel(ArrayModel):
    """WLKS."""

    network = WLKS
    measures_at_own_time = False
    on_new_graph = "the colours of the training subgraphs are refined on the new graph; their weights stay as they are"
    settings = (WLKSSettings,)

    def check(self, recipe: Recipe, graph: Graph) -> None:
        for name in ("rounds", "mix", "inverse_penalty"):
            if not getattr(recipe.of(WLKSSettings), name):
                hint = f"accepted: a list of values to try, e.g. wlks.{name}={list(getattr(WLKSSettings(), name))}"
                raise UserError(f"wlks.{name} is an empty list", where="recipe", hint=hint)

    def start(self, data: TrainingData, recipe: Recipe) -> Weights:
        train = data.subgraphs.nodes.take(data.subgraphs.indices("train"))
        return self._start(data.graph, train, recipe.of(WLKSSettings))

    def _start(self, graph: Graph, train: Ragged, settings: WLKSSettings) -> Weights:
        """Colours of the graph, tables of signatures, and the colours that training subgraphs have."""
        last, found = max(settings.rounds), set_arrays(with_absent(train, None))
        if max(settings.mix) > 0:
            for i, colours in enumerate(graph_colours(graph, last), 1):
                found[f"graph_colours_{i}"] = colours
                found[f"graph_columns_{i}"] = np.unique(colours[train.values])
        if min(settings.mix) < 1:
            tables: list[Table] = [{} for _ in range(last)]
            for i, (table, colours) in enumerate(zip(tables, subgraph_colours(graph, train, tables), strict=True), 1):
                rows = table_rows(table)
                found[f"signatures_{i}"], found[f"signature_offsets_{i}"] = rows.values, rows.offsets
                found[f"subgraph_columns_{i}"] = np.unique(colours)
        return found

    def inputs(self, checkpoint: Checkpoint, graph: Graph, nodes: Ragged) -> "Histograms":
        """The histograms of each subgraph, of all rounds that the checkpoint has colours for."""
        known = {name: array for name, array in checkpoint.weights.items() if name.startswith(_OF_START)}
        rounds = range(1, 1 + sum(name.startswith("signatures_") for name in known))
        tables = [table_of(Ragged(known[f"signatures_{i}"], known[f"signature_offsets_{i}"])) for i in rounds]
        colours = {f"subgraph_{i}": found for i, found in enumerate(subgraph_colours(graph, nodes, tables), 1)}
        for name, of_graph in known.items():
            if name.startswith("graph_colours_"):
                colours[name.replace("colours_", "")] = of_graph[nodes.values]
        # A machine that is not cumulative has columns for its last round alone.
        columns = {part: known.get("_columns_".join(part.rsplit("_", 1))) for part in colours}
        found = {part: histogram(nodes, colours[part], kept) for part, kept in columns.items() if kept is not None}
        return Histograms(nodes, found)

    def moved(self, checkpoint: Checkpoint, match: NodeMatch, vectors: Vectors) -> Checkpoint:
        """Refine colours on the new graph; a machine is the sum of its training subgraphs' histograms there."""
        graph, weights = match.graph, checkpoint.weights
        nodes, kept = moved_landmarks(weights, match)
        if not len(weights["dual"]):
            what = f"wlks was fitted to more than {_LARGEST_MATRIX:,} subgraphs, and does not know the weight of each"
            raise DataError(what, where="--graph", hint="train again on this graph")
        dual = weights["dual"][kept]
        start = self._start(graph, nodes, checkpoint.spec.of(WLKSSettings)) | {"dual": dual}
        unfitted = replace(checkpoint, weights=start)
        network = self.network(unfitted)
        histograms = self.inputs(unfitted, graph, nodes).batch(np.arange(len(nodes)))
        network.set_weights(scipy.sparse.hstack(network.features(histograms), format="csr").T @ dual)
        return replace(checkpoint, weights=network.arrays | {name: weights[name] for name in ("bias", "scale")})

    def candidates(self, recipe: Recipe) -> dict[str, Recipe]:
        given = recipe.of(WLKSSettings)
        ways: tuple[Any, ...] = ("rows", "none") if given.normalize == "auto" else (given.normalize,)
        found = {}
        for way, i, a, c in product(ways, given.rounds, given.mix, given.inverse_penalty):
            chosen = replace(given, normalize=way, rounds=(i,), mix=(a,), inverse_penalty=(c,))
            name = f"normalize={way}, rounds={i}, mix={a:g}, inverse_penalty={c:g}"
            found[name] = recipe.with_method_settings(chosen)
        return found

    def sees(self, settings: Settings) -> View:
        return "everything" if max(settings.of(WLKSSettings).mix) > 0 else "shape"

    def problems(self, checkpoint: Checkpoint, graph: Graph) -> Iterator[str]:
        yield from wrong_node_sets(checkpoint.weights, graph)
        dual, number = checkpoint.weights["dual"], len(checkpoint.weights["offsets"]) - 1
        shape = (len(dual), len(checkpoint.weights["bias"]))
        if dual.dtype != np.float64 or dual.shape != shape or len(dual) not in (0, number):
            yield "the weights of its training subgraphs have the wrong shape or type"
        for name, array in checkpoint.weights.items():
            kind, _, i = name.rpartition("_")
            if not name.startswith(_OF_START):
                continue
            if array.ndim != 1 or array.dtype != (np.int64 if kind == "signature_offsets" else np.int32):
                yield f"its colours {name!r} have the wrong shape or type"
            elif kind == "graph_colours" and (len(array) != graph.num_nodes or not (array >= 0).all()):
                yield f"its colours {name!r} are not one for each node"
            elif kind.endswith("_columns") and not is_sorted_below(array, 2**31 - 1):
                yield f"its colours {name!r} are not in order"
            elif kind == "signatures":
                offsets = checkpoint.weights[f"signature_offsets_{i}"]
                if offsets.ndim != 1 or not Ragged(array, offsets).is_valid:
                    yield f"its signatures {name!r} have invalid offsets"


@dataclass(frozen=True, slots=True, eq=False)
class Histogram:
    """How many nodes of each subgraph have each colour of training (n, columns); lengths (n,) over all colours."""

    counts: scipy.sparse.csr_array
    lengths: NDArray[np.float64]


def histogram(nodes: Ragged, colours: Colours, columns: NDArray[np.int32]) -> Histogram:
    """Count the colours of each subgraph's nodes; colours that are not in ``columns`` enter the lengths alone.

    Example:
        >>> found = histogram(Ragged.from_rows([[0, 1, 2], [3]]), np.array([5, 5, 7, 9]), np.array([5, 9]))
        >>> found.counts.toarray().tolist(), (found.lengths**2).round(6).tolist()
        ([[2.0, 0.0], [0.0, 1.0]], [5.0, 1.0])
    """
    size = (len(nodes), 1 + int(max(colours.max(initial=0), columns.max(initial=0))))
    # 32-bit places: the only ones all solvers take.
    places = nodes.row_ids.astype(np.int32), colours
    every = scipy.sparse.csr_array((np.ones(len(colours)), places), shape=size)
    every.sum_duplicates()
    return Histogram(every[:, columns], np.sqrt(every.multiply(every).sum(axis=1)))


class Histograms(HostSource):
    """Histograms of subgraphs by kind and round."""

    def __init__(self, nodes: Ragged, parts: dict[str, Histogram]) -> None:
        self.nodes, self.parts = nodes, parts

    def batch(self, rows: NDArray[np.int64]) -> dict[str, Histogram]:
        return {name: Histogram(part.counts[rows], part.lengths[rows]) for name, part in self.parts.items()}


def _best_factor(scores: NDArray[np.float64], targets: NDArray[Any]) -> float:
    """The factor, from a hundredth to a hundred, of the least logistic loss."""
    # A label is the second of two classes, of which the first has score 0.
    given = np.hstack([np.zeros_like(scores), scores]) if scores.shape[1] == 1 else scores
    y = np.eye(given.shape[1])[np.asarray(targets, np.int64)]

    def loss(log_factor: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        logits = np.exp(log_factor) * given
        logs = scipy.special.log_softmax(logits, axis=1)
        return -float((y * logs).sum(axis=1).mean()), ((np.exp(logs) - y) * logits).sum(axis=1).mean(keepdims=True)

    return float(np.exp(minimise_in_box(loss, [0.0], [(np.log(1e-2), np.log(1e2))])[0]))
