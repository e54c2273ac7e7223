"""UNSUPERVISED: vectors of subgraphs from the graph alone, and a linear probe of them; beyond the paper.

A vector has two parts, side by side. The first are 18 statistics of the subgraph and its border, standardised
(:func:`~subgnn.channels.topology.subgraph_statistics`): its structure. The second says where in the graph it is: views
of it (by default where a random walk from it ends) are compared with those of reference subgraphs, which are training
subgraphs without their labels, and the vector holds the principal components

    z_S = sum over references T of K(S, T) u_T / sqrt(l)        for K = sum of l u u^T on the references

of the kernel of ``kernel_machines/kernel_machine.py``, centred; a Gaussian one is sharper here, K = exp(3 (k - 1)).
Labels are used by the probe alone, a logistic or ridge regression on the vectors. Nothing depends on the numbers of
nodes: :func:`fix_directions` chooses signs, and a basis where eigenvalues are equal, by the order of the references.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from subgnn.channels.topology import SUBGRAPH_STATISTICS, subgraph_statistics
from subgnn.config.files import Bounds
from subgnn.config.settings import MethodSettings, Recipe
from subgnn.data.graph import Graph
from subgnn.data.node_match import NodeMatch
from subgnn.models.examples import Examples
from subgnn.models.interface import LoadContext, SetUp, TrainingData, Vectors
from subgnn.models.kernel_machines.kernel_machine import Reference, draw_landmarks, moved_landmarks, wrong_node_sets
from subgnn.models.kernel_machines.newton import Floats
from subgnn.models.kernel_machines.regression import fit_regression
from subgnn.models.kernel_machines.rows import subgraph_blocks, views_of
from subgnn.models.kernel_machines.views import TOPOLOGY, VIEWS, DiffusionSettings, are_known, check_views
from subgnn.models.spec import Checkpoint, Weights
from subgnn.models.tensor_model import ArrayModel, ArrayNetwork, Rows
from subgnn.ragged import Ragged
from subgnn.task import Standard

REFERENCES = 2048
"""Training subgraphs that others are compared with; of more, as many are drawn."""
_EXACT_NUMBERS = 2**27  # pairs of a reference and a node up to which diffusions are exact; their numbers take 512 MiB
_SHARPNESS = 3.0  # of the Gaussian kernel
_STATISTIC = 0.05  # a deviation of a statistic, beside rows of length one: distances are to see both
_FARTHEST = 4.0  # deviations
_SMALLEST = 1e-5  # of the largest eigenvalue: smaller components are rounding
_EQUAL = 1e-4  # relative distance of eigenvalues below which they count as equal
_NEAR_LARGEST = 0.9


def in_standard_units(vectors: NDArray[Any]) -> NDArray[Any]:
    """Vectors (n, width) with statistics in deviations from their mean, as a penalised regression should see them.

    In the vectors themselves they are smaller, so that distances are not those of statistics alone.
    """
    found = vectors.copy()
    found[:, :SUBGRAPH_STATISTICS] /= _STATISTIC
    return found


SPACE = ("nodes", "offsets", "with_mean", "lengths", "mean", "deviation", "basis", "centre")
"""Names of the tensors of a vector space in a checkpoint."""


@dataclass(frozen=True, slots=True)
class VectorSettings(MethodSettings):
    """Vectors that no label is needed for; width is the length of a vector, 18 numbers of which are statistics."""

    section: ClassVar[str] = "vectors"
    width: Annotated[int, Bounds(19, 65_536)] = 256


def fit_space(graph: Graph, nodes: Ragged, settings: DiffusionSettings, basis: Callable[[Floats], Floats]) -> Weights:
    """The tensors of a :class:`VectorSpace`, whose ``basis`` (m, components) follows from the centred kernel (m, m)."""
    views = list(views_of(graph, nodes, settings, keep=True).values())
    squared, every = [rows.squared for rows in views], np.arange(len(nodes))
    products = [rows.products(every, every) for rows in views]
    kernel = replace(Reference.of(settings, squared, products), sharpness=_SHARPNESS)
    whole = kernel(products, squared, None)
    own = whole.mean(axis=0)
    components = basis(whole - own - own[:, None] + own.mean())
    standard = Standard.of(subgraph_statistics(graph, nodes))
    arrays: list[NDArray[Any]] = [nodes.values, nodes.offsets, kernel.with_mean, kernel.lengths]
    arrays += [standard.mean, standard.deviation, components, own @ components]
    return dict(zip(SPACE, arrays, strict=True))


class VectorSpace:
    """Statistics of subgraphs, and their principal components among references.

    Shapes:
        references: m sets. basis: (m, components). centre: (components,), what is subtracted from all.
    """

    def __init__(self, checkpoint: Checkpoint, graph: Graph, *, stored: bool = False) -> None:
        spec, arrays = checkpoint.spec, (checkpoint.weights[name] for name in SPACE)
        nodes, offsets, with_mean, lengths, mean, deviation, self.basis, self.centre = arrays
        self.references, self.standard = Ragged(nodes, offsets), Standard(mean, deviation)
        self.settings, self.width = spec.of(DiffusionSettings), spec.of(VectorSettings).width
        self.kernel = Reference(self.settings, with_mean, lengths, sharpness=_SHARPNESS)
        self.graph = graph
        self.known = list(views_of(graph, self.references, self.settings, keep=True, stored=stored).values())

    def __call__(self, nodes: Ragged) -> NDArray[np.float32]:
        """Vectors of subgraphs (n, width), in blocks that do not depend on memory; unneeded columns are 0."""
        graph, known = self.graph, self.known
        found = np.zeros((len(nodes), self.width), np.float32)
        for block in subgraph_blocks(nodes, graph, self.settings):
            some, rows = nodes.take(block), found[block[0] : block[-1] + 1]
            views = list(views_of(graph, some, self.settings).values())
            triples = zip(views, known, self.kernel.with_mean, strict=True)
            products = [b.products_with(a.values, with_mean) for a, b, with_mean in triples]
            kernel = self.kernel(products, [view.squared for view in views], None)
            statistics = self.standard(subgraph_statistics(graph, some))
            rows[:, :SUBGRAPH_STATISTICS] = _STATISTIC * np.clip(statistics, -_FARTHEST, _FARTHEST)
            rows[:, SUBGRAPH_STATISTICS:][:, : self.basis.shape[1]] = kernel @ self.basis - self.centre
        return found


_space_of = lru_cache(maxsize=1)(VectorSpace)


def fix_directions(values: Floats, vectors: Floats, most: int) -> tuple[Floats, Floats]:
    """Eigenvectors whose signs follow from their entries, as does the basis where eigenvalues are equal.

    The eigenvectors of equal eigenvalues span a unique space, of which any basis would do. The chosen one begins with
    the projection of the first axis whose projection is nearly the longest, and goes on with what is left of the
    others: the order of axes decides exact ties, not rounding. A single eigenvector gets the sign that makes the first
    of its nearly largest entries positive.

    Args:
        values: falling; those that are rounding are left out.
        most: how many to keep; equal ones are kept together or not at all.

    Shapes:
        values: (m,). vectors: (m, m), by column. returns: (k,), (m, k), k up to ``most``.

    Example:
        >>> turned = np.array([[0.6, -0.8, 0], [0.8, 0.6, 0], [0, 0, -1]])
        >>> fix_directions(np.array([2.0, 2.0, 1.0]), turned, 3)[1].round(9) + 0
        array([[1., 0., 0.],
               [0., 1., 0.],
               [0., 0., 1.]])
    """
    count = int((values > _SMALLEST * max(values[0], 1e-12)).sum())
    values, vectors = values[:count], vectors[:, :count]
    ends = np.append(np.flatnonzero(values[1:] < (1 - _EQUAL) * values[:-1]) + 1, len(values))
    ends = ends[ends <= most]
    fixed = np.empty((len(vectors), ends[-1] if len(ends) and len(values) else 0))
    for begin, end in zip([0, *ends[:-1]], ends, strict=True):
        rest = vectors[:, begin:end].copy()  # axes, as the space of these eigenvalues sees them
        for column in range(begin, end):
            lengths = np.linalg.norm(rest, axis=1)
            axis = int(np.argmax(lengths >= _NEAR_LARGEST * lengths.max()))
            direction = rest[axis] / lengths[axis]
            fixed[:, column] = vectors[:, begin:end] @ direction
            rest -= np.outer(rest @ direction, direction)
    return values[: fixed.shape[1]], fixed


class Probe(ArrayNetwork):
    """Outputs that are linear in the vectors of subgraphs: weight (width, outputs) float64, bias (outputs,)."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.checkpoint, spec = checkpoint, checkpoint.spec
        super().__init__({name: checkpoint.weights[name] for name in SPACE})
        self.arrays["weight"] = np.zeros((spec.of(VectorSettings).width, spec.num_outputs))
        self.arrays["bias"] = np.zeros(spec.num_outputs, np.float32)

    def solve(self, examples: Examples) -> None:
        rows = in_standard_units(examples.inputs.batch(examples.train).astype(np.float64))
        weight, bias = fit_regression(rows, examples, self.checkpoint.spec.of(DiffusionSettings), len(self.bias))
        self.arrays |= {"weight": in_standard_units(weight.T).T, "bias": bias.astype(np.float32)}

    def embed(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        return rows

    def forward(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.asarray((rows.astype(np.float64) @ self.weight).astype(np.float32) + self.bias)


class UnsupervisedModel(ArrayModel):
    """UNSUPERVISED."""

    network = Probe
    measures_at_own_time = False
    on_new_graph = "the references are measured again on the new graph; the directions of the space stay as they are"
    needs_edges = False
    vectors_need_labels = False
    settings = (DiffusionSettings, VectorSettings)

    def check(self, recipe: Recipe, graph: Graph) -> None:
        """Refuse views that do not exist, and statistics among them, as they are there anyway."""
        check_views(recipe.of(DiffusionSettings).views, graph, [view for view in VIEWS if view != TOPOLOGY])

    def set_up(self, data: TrainingData, recipe: Recipe) -> SetUp:
        settings = recipe.of(DiffusionSettings).expanded(data.graph)
        if settings.algorithm == "auto":
            exact = REFERENCES * data.graph.num_nodes <= _EXACT_NUMBERS
            settings = replace(settings, algorithm="exact" if exact else "push")
        return super().set_up(data, recipe.with_method_settings(settings))

    def start(self, data: TrainingData, recipe: Recipe) -> Weights:
        known = data.subgraphs.indices("train")
        chosen = known[draw_landmarks(len(known), REFERENCES, data.seed)]
        most = recipe.of(VectorSettings).width - SUBGRAPH_STATISTICS

        def principal_components(centred: Floats) -> Floats:
            values, vectors = np.linalg.eigh(centred)
            values, vectors = fix_directions(values[::-1], vectors[:, ::-1], most)
            return vectors / np.sqrt(values)

        references = data.subgraphs.nodes.take(chosen)
        return fit_space(data.graph, references, recipe.of(DiffusionSettings), principal_components)

    def inputs(self, checkpoint: Checkpoint, graph: Graph, nodes: Ragged) -> "VectorRows":
        return VectorRows(lambda: _space_of(checkpoint, graph)(nodes))

    def moved(self, checkpoint: Checkpoint, match: NodeMatch, vectors: Vectors) -> Checkpoint:
        """Measure the references on the new graph; a reference that has lost all nodes is dropped."""
        settings, weights = checkpoint.spec.of(DiffusionSettings), checkpoint.weights
        check_views(settings.views, match.graph)
        nodes, kept = moved_landmarks(weights, match)
        basis = weights["basis"][kept]
        return replace(checkpoint, weights=weights | fit_space(match.graph, nodes, settings, lambda _: basis))

    def on_open(self, network: Probe, graph: Graph, context: LoadContext) -> None:
        """Compute the views of the references, or read them from the cache folder."""
        VectorSpace(network.checkpoint, graph, stored=context.cache)

    def candidates(self, recipe: Recipe) -> dict[str, Recipe]:
        given = recipe.of(DiffusionSettings)
        tried = {c: replace(given, inverse_penalty=c) for c in given.inverse_penalties}
        return {f"inverse_penalty={c:g}": recipe.with_method_settings(chosen) for c, chosen in tried.items()}

    def uses(self, recipe: Recipe) -> frozenset[str]:
        return recipe.of(DiffusionSettings).used

    def problems(self, checkpoint: Checkpoint, graph: Graph) -> Iterator[str]:
        settings, weights = checkpoint.spec.of(DiffusionSettings), checkpoint.weights
        if settings.algorithm == "auto" or not are_known(settings.views, graph):
            yield "its views, or the way that diffusions are computed, are left open or unknown"
        yield from wrong_node_sets(weights, graph)
        components = checkpoint.spec.of(VectorSettings).width - SUBGRAPH_STATISTICS
        per_view = (len(settings.views), len(weights["offsets"]) - 1)
        shapes: dict[str, tuple[int, ...]] = {"with_mean": per_view, "lengths": per_view}
        shapes |= dict.fromkeys(("mean", "deviation"), (SUBGRAPH_STATISTICS,))
        shapes["basis"] = (per_view[1], min(components, len(weights["centre"])))
        if any(weights[name].shape != shape for name, shape in shapes.items()):
            yield "its principal components or its statistics have the wrong shape"
        if not (weights["lengths"] >= 0).all() or not (weights["deviation"] > 0).all():
            yield "the lengths of its references, or the deviations of its statistics, are not above 0"


class VectorRows(Rows):
    """Vectors of subgraphs, computed when the first batch is asked for: a fit without labels asks for none."""

    def __init__(self, compute: Callable[[], NDArray[np.float32]]) -> None:
        self._compute = compute

    @cached_property
    def rows(self) -> NDArray[np.float32]:
        return self._compute()
