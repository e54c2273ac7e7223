"""BAG: which nodes a subgraph has, and a linear model; with ``bag-1hop``, also how much of it is near each node.

The views ``bag`` and ``one-hop`` of ``kernel_machines/views.py``, side by side, each with rows of length one. Logistic
regression with an L2 penalty, several labels one against the rest, real values by ridge regression. Everything is
sparse. The nodes that were looked for and not found, if subgraphs have such, are a bag of their own beside these.

The weights of nodes are W = X^T a, with X the rows of the training subgraphs. A checkpoint holds a and the subgraphs,
too: on another graph, X is measured again, and a stays.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from types import MappingProxyType
from typing import Any, ClassVar, Literal, cast

import numpy as np
import scipy
from numpy.typing import NDArray

from subgnn.config.files import Probability
from subgnn.config.settings import MethodSettings, Recipe
from subgnn.data.graph import Graph
from subgnn.data.node_match import NodeMatch
from subgnn.data.own_times import at_own_times, join_rows, times_of
from subgnn.data.subgraphs import absent_of, absent_rows
from subgnn.models.examples import Examples, HostSource
from subgnn.models.interface import Settings, SetUp, TrainingData, Vectors
from subgnn.models.kernel_machines.kernel_machine import SET_ARRAYS, moved_landmarks, set_arrays, wrong_node_sets
from subgnn.models.kernel_machines.newton import Gram, Path, fit_linear
from subgnn.models.kernel_machines.regression import fit_balanced, fit_outputs
from subgnn.models.kernel_machines.rows import PRODUCT_ROWS, Piece, Rows, shared_pieces, view_of
from subgnn.models.kernel_machines.views import (
    ABSENT,
    WAYS,
    DiffusionSettings,
    bag_of_nodes,
    scaled_rows,
    spread_one_hop,
)
from subgnn.models.spec import Checkpoint, Weights
from subgnn.models.tensor_model import ArrayModel, ArrayNetwork, is_sorted_below
from subgnn.ragged import Ragged
from subgnn.task import task_of

_FEW_ROWS = 4
_INVERSE_PENALTIES = {"none": (1.0, 10.0, 100.0, 1_000.0), "classes": (0.01, 0.1, 1.0, 10.0, 100.0)}


@dataclass(frozen=True, slots=True)
class BagSettings(MethodSettings):
    """Settings of bag and bag-1hop; ``auto``, and 0 of inverse_penalty, select among all values on validation.

    normalize scales the rows of a bag to length one, balance lets all classes count the same, and inverse_penalty is C
    of the regression. weighted and directed say whether the bag is spread by the weights and the direction of edges,
    where the graph has these (bag-1hop). absent is the weight of the absent nodes of a subgraph, beside 1 of its nodes.
    """

    section: ClassVar[str] = "bag"
    normalize: Literal["auto", "rows", "none"] = "auto"
    balance: Literal["auto", "classes", "none"] = "auto"
    inverse_penalty: float = 0.0
    weighted: bool = False
    directed: bool = False
    absent: Probability = 0.5


class LinearBag(ArrayNetwork):
    """x_S W + b over sparse rows; as a bag is as wide as the graph, this is also a subgraph's vector.

    Shapes:
        columns: (F,) which columns of the features there are weights for. weight: (F, outputs). bias: (outputs,).
        nodes: (entries,) int32, offsets: (n + 1,), the training subgraphs. duals: (n, outputs) float64, with
        weight = rows^T duals.
    """

    def __init__(self, checkpoint: Checkpoint) -> None:
        known, outputs, settings = checkpoint.weights, checkpoint.spec.num_outputs, checkpoint.spec.of(BagSettings)
        self.unit, self.balanced = settings.normalize == "rows", settings.balance == "classes"
        self.inverse_penalty = settings.inverse_penalty
        super().__init__({name: known[name] for name in ("columns", *SET_ARRAYS) if name in known})
        self.arrays |= {"weight": np.zeros((len(known["columns"]), outputs), np.float32)}
        self.arrays |= {"bias": np.zeros(outputs, np.float32), "duals": np.zeros((len(known["offsets"]) - 1, outputs))}

    def solve(self, examples: Examples) -> None:
        inputs: Any = examples.inputs
        given, rows = inputs.rows_to_fit(examples.train, unit=self.unit)
        targets = examples.targets.cpu().numpy()[examples.train]
        balanced = self.balanced and task_of(examples.task).one_class
        options: dict[str, Any] = {"inverse_penalty": self.inverse_penalty, "path": inputs.paths[balanced]}
        if task_of(examples.task).real:
            weight, bias = fit_linear(rows, np.asarray(targets, np.float64)[:, None], **options, loss="squared")
        elif balanced:
            weight, bias = fit_balanced(rows, targets, examples.task, len(self.bias), **options)
        else:
            options |= {"loss": "logistic", "weights": examples.train_weights}
            weight, bias = fit_outputs(rows, targets, examples.task, len(self.bias), **options)
        duals = weight if isinstance(rows, Gram) else inputs.paths[balanced].duals_of(weight, len(targets))
        state = set_arrays(inputs.nodes.take(examples.train)) | {"duals": duals, "bias": bias.astype(np.float32)}
        state["weight"] = np.asarray(given.T @ weight if isinstance(rows, Gram) else weight, np.float32)
        self.arrays |= state

    def embed(self, batch: tuple[Any, Any]) -> NDArray[np.float32]:
        return np.asarray(batch[self.unit] @ self.weight + self.bias, np.float32)


class BagModel(ArrayModel):
    """BAG; with ``one_hop``, the bag spread one hop stands beside it."""

    network = LinearBag
    settings = (BagSettings,)
    switches = MappingProxyType({"weights": "bag.weighted=true", "direction": "bag.directed=true"})

    def __init__(self, *, one_hop: bool = False) -> None:
        self.one_hop = self.needs_edges = one_hop
        self.view = "surroundings" if one_hop else "nodes"
        self.on_new_graph = "a new node has no weight of its own, and counts for nothing"
        if one_hop:
            what = "the training subgraphs are spread over the new graph"
            self.on_new_graph = f"{what}; new nodes near them get weights, others have none"

    def uses(self, recipe: Recipe) -> frozenset[str]:
        settings = recipe.of(BagSettings)
        given = {"weights": settings.weighted, "direction": settings.directed}
        found = frozenset(name for name, used in given.items() if used and self.one_hop)
        return found | {"absent"} if settings.absent else found

    def set_up(self, data: TrainingData, recipe: Recipe) -> SetUp:
        """As any model; fits to few rows take inner products, which all splits share."""
        found = super().set_up(data, recipe)
        if len(data.subgraphs) <= PRODUCT_ROWS:
            nodes, settings = data.subgraphs.nodes, DiffusionSettings(weighted=recipe.of(BagSettings).weighted)
            weights = dict.fromkeys(self._views(recipe, data.graph), 1.0)
            if absent_of(nodes) is not None and (absent := recipe.of(BagSettings).absent):
                weights[ABSENT + "bag"] = absent
            views = {name: view_of(data.graph, nodes, name, settings, keep=True) for name in weights}
            cast(Bags, found.source).views = [(weight, views[name]) for name, weight in weights.items()]
        return found

    def shared_pieces(self, recipe: Recipe, graph: Graph, nodes: Ragged) -> list[list[Piece]]:
        spread, settings = 2 * graph.num_edges / max(1, graph.num_nodes), recipe.of(BagSettings)
        # Whether inner products are used depends on the split; a bag alone is seldom dense enough.
        if not self.one_hop or len(nodes) ** 2 > _FEW_ROWS * len(nodes.values) * (1 + spread):
            return []
        return shared_pieces(graph, nodes, self._views(recipe, graph), DiffusionSettings(weighted=settings.weighted))

    def _views(self, settings: Settings, graph: Graph) -> list[str]:
        return ["bag", *(f"one-hop-{way}" if way else "one-hop" for way in self._ways(settings, graph))]

    def _ways(self, settings: Settings, graph: Graph) -> tuple[str, ...]:
        """The ways that the bag is spread over edges; an empty one is that of both directions."""
        directed = settings.of(BagSettings).directed and graph.oriented is not None
        return (WAYS if directed else ("",)) if self.one_hop else ()

    def start(self, data: TrainingData, recipe: Recipe) -> Weights:
        """``columns``: those of the features that some training subgraph has a value in; and these subgraphs."""
        known = data.subgraphs.nodes.take(data.subgraphs.indices("train"))
        rows, _ = self._measured(recipe, data.graph, known)
        return {"columns": np.unique(rows.indices).astype(np.int64)} | set_arrays(known)

    def inputs(self, checkpoint: Checkpoint, graph: Graph, nodes: Ragged) -> "Bags":
        """The features of each subgraph; rows are scaled before columns without a weight are left out."""
        columns: NDArray[np.int64] = checkpoint.weights["columns"]
        values, unit = self._measured(checkpoint.spec, graph, nodes)
        return Bags(values[:, columns], unit[:, columns], nodes)

    def _measured(self, given: Settings, graph: Graph, nodes: Ragged) -> tuple[Any, Any]:
        """The features of each subgraph, with absent nodes last, as they are and scaled."""
        settings = given.of(BagSettings)
        values, unit = features(graph, nodes, ways=self._ways(given, graph), weighted=settings.weighted)
        if not settings.absent:
            return values, unit
        absent = settings.absent * bag_of_nodes(absent_rows(nodes), graph.num_nodes)
        values = scipy.sparse.hstack([values, absent], format="csr")
        return values, scipy.sparse.hstack([unit, scaled_rows(absent, settings.absent)], format="csr")

    def moved(self, checkpoint: Checkpoint, match: NodeMatch, vectors: Vectors) -> Checkpoint:
        """Measure the training subgraphs on the new graph; their weights stay as they are."""
        weights, spec = checkpoint.weights, checkpoint.spec
        nodes, kept = moved_landmarks(weights, match)
        rows = self._measured(spec, match.graph, nodes)[spec.of(BagSettings).normalize == "rows"]
        columns, duals = np.unique(rows.indices).astype(np.int64), weights["duals"][kept]
        moved = {"columns": columns, "weight": (rows[:, columns].T @ duals).astype(np.float32), "duals": duals}
        return replace(checkpoint, weights=weights | moved | set_arrays(nodes))

    def candidates(self, recipe: Recipe) -> dict[str, Recipe]:
        """Every open choice of scaling, balance and penalty.

        The bias is not penalised. Where classes are of different sizes, a strong penalty therefore predicts the
        largest; if all classes count the same, strong penalties are often the best.
        """
        given, found = recipe.of(BagSettings), {}
        ways = ("rows", "none") if given.normalize == "auto" else (given.normalize,)
        balances = ("none", "classes") if given.balance == "auto" else (given.balance,)
        if given.balance == "auto" and (recipe.training.class_weights or given.inverse_penalty):
            balances = ("none",)  # the weights of classes, or the penalty of a plain fit, are settled
        for way, balance in product(ways, balances):
            for c in (given.inverse_penalty,) if given.inverse_penalty else _INVERSE_PENALTIES[balance]:
                options: dict[str, Any] = {"normalize": way, "balance": balance, "inverse_penalty": c}
                chosen = replace(given, **options)
                name = f"normalize={way}, inverse_penalty={c:g}{', balanced' if balance == 'classes' else ''}"
                found[name] = recipe.with_method_settings(chosen)
        return found

    def problems(self, checkpoint: Checkpoint, graph: Graph) -> Iterator[str]:
        columns = checkpoint.weights["columns"]
        if not is_sorted_below(columns, (2 + len(self._ways(checkpoint.spec, graph))) * graph.num_nodes, np.int64):
            yield "the columns of its bag are not in order, or are not nodes of the graph"
        yield from wrong_node_sets(checkpoint.weights, graph)


def features(
    graph: Graph, nodes: Ragged, *, ways: Sequence[str] = (), weighted: bool = False
) -> tuple[scipy.sparse.csr_array, scipy.sparse.csr_array]:
    """What the linear model sees (n, (1 + ways) N), as it is and with the rows of each part scaled to length one.

    Each subgraph is seen as of its own time, if it has one. The bag is spread one hop along each of the ``ways``
    (``views.spread_one_hop``). Both results have the same places.
    """
    if times_of(nodes) is not None:

        def join(found: list[Any], order: NDArray[np.int64]) -> Any:
            return tuple(join_rows(list(part), order) for part in zip(*found, strict=True))

        found: tuple[Any, Any] = at_own_times(graph, nodes, partial(features, ways=ways, weighted=weighted), join)
        return found
    bag = bag_of_nodes(nodes, graph.num_nodes)
    parts = [bag, *(spread_one_hop(bag, graph, weighted=weighted, way=way) for way in ways)]
    return scipy.sparse.hstack(parts, format="csr"), scipy.sparse.hstack(list(map(scaled_rows, parts)), format="csr")


class Bags(HostSource):
    """The rows of the subgraphs over the columns that training knows."""

    def __init__(self, values: scipy.sparse.csr_array, unit: scipy.sparse.csr_array, nodes: Ragged) -> None:
        self.values, self.unit, self.nodes = values, unit, nodes
        self.views: list[tuple[float, Rows]] = []
        self._fitted: tuple[Any, tuple[Any, Any]] = None, (None, None)
        self.paths = defaultdict[bool, Path](Path)

    def rows_to_fit(self, train: NDArray[np.int64], *, unit: bool) -> tuple[Any, Any]:
        """Rows to fit to, and these as inner products if they are few, else as they are; kept for further penalties."""
        key = unit, train.tobytes()
        if self._fitted[0] != key:
            rows = (self.unit if unit else self.values)[train]
            self._fitted = key, (rows, rows)
            if self.views and len(train) ** 2 <= _FEW_ROWS * rows.nnz:
                found = np.zeros((len(train), len(train)))  # the sum of the inner products of all parts
                for weight, view in self.views:
                    scale = np.sqrt(np.where(unit & (view.squared[train] > 0), view.squared[train], 1.0)) / weight
                    found += view.products(train, train) / (scale[:, None] * scale)
                self._fitted = key, (rows, Gram(found))
            self.paths.clear()
        return self._fitted[1]

    def batch(self, rows: NDArray[np.int64]) -> tuple[Any, Any]:
        return self.values[rows], self.unit[rows]
