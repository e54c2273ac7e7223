"""UNSUPERVISED: vectors of subgraphs from the graph alone, and a linear probe of them; beyond the paper.

A vector has two parts, side by side. The first are 18 statistics of the subgraph and its border, standardised
(:func:`~subgnn.channels.topology.subgraph_statistics`): its structure. The second says where in the graph it is: views
of it (:mod:`subgnn.models.views`, by default where a random walk from it ends) are compared with those of reference
subgraphs, which are training subgraphs without their labels, and the vector holds the principal components

    z_S = sum over references T of K(S, T) u_T / sqrt(l)        for K = sum of l u u^T on the references

of the kernel of :mod:`subgnn.models.kernel_machine`, centred; a Gaussian one is sharper here, K = exp(3 (k - 1)). No
label is read. Labels are used by the probe alone, a logistic or ridge regression on the vectors, which makes a run of
them that is scored and predicts like any other.

*Relabelling.* Nothing depends on the numbers of nodes: statistics and kernel are functions of node sets, references are
drawn by their place among the subgraphs, and :func:`fix_directions` chooses signs, and a basis where eigenvalues are
equal, by the order of the references.

*Contrastive* vectors (``vectors.objective``) have a linear map of the second part in its place, trained to tell
subgraphs apart: two views of a reference, each with nodes dropped and border nodes added, are to be closer to each
other than to views of others (InfoNCE; van den Oord et al., 2018). The statistics stay, as they are what such views
differ in. Which nodes are dropped and added is a function of colours (:func:`node_colours`), not of their numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from subgnn.channels.topology import SUBGRAPH_STATISTICS, Standard, subgraph_statistics
from subgnn.config.method_settings import BaselineSettings, SubgraphVectorSettings
from subgnn.config.settings import Recipe
from subgnn.data.graph import Graph
from subgnn.models.examples import Examples
from subgnn.models.interface import Cost, Opening, Settings, SetUp, Sizes, TrainingData, View
from subgnn.models.kernel_machine import inverse_penalties, wrong_node_sets
from subgnn.models.regression import Floats, fit_outputs
from subgnn.models.spec import Checkpoint, Weights
from subgnn.models.tensor_model import TensorModel
from subgnn.models.view_kernel import Reference, draw_landmarks
from subgnn.models.view_names import TOPOLOGY, VIEWS, are_known, check_views, expand_views, used_by_view
from subgnn.models.views import CACHE, Diffusing, Rows, compute_view, multiply
from subgnn.ragged import Ragged
from subgnn.rng import stream, stream_key

_EXACT_NUMBERS = 2**27  # pairs of a reference and a node up to which diffusions are exact; their numbers take 512 MiB
_BLOCK_NUMBERS, _BLOCKS = 2**22, (32, 256)  # pairs of a subgraph and a node whose views are computed at once
_SHARPNESS = 3.0  # of the Gaussian kernel
_STATISTIC = 0.05  # a deviation of a statistic, beside rows of length one: distances are to see both
_FARTHEST = 4.0  # deviations
_SMALLEST = 1e-5  # of the largest eigenvalue: smaller components are rounding
_EQUAL = 1e-4  # relative distance of eigenvalues below which they count as equal
_NEAR_LARGEST = 0.9
_NO_DIRECTION = 1e-4  # squared length of vectors whose direction does not count


class UnsupervisedModel(TensorModel):
    """UNSUPERVISED."""

    is_fitted_in_one_go = True
    needs_edges = False
    vectors_need_labels = False

    def sees(self, settings: Settings) -> View:
        """Nodes, those around them, and the shape."""
        return "everything"

    def check(self, recipe: Recipe, graph: Graph) -> None:
        """Refuse views that do not exist, and statistics among them, as they are there anyway."""
        check_views(recipe.baseline.views, graph, [view for view in VIEWS if view != TOPOLOGY])

    def set_up(self, data: TrainingData, recipe: Recipe) -> SetUp:
        """Candidates, with the way that diffusions are computed recorded in their settings."""
        settings = replace(recipe.baseline, views=expand_views(recipe.baseline.views, data.graph))
        if settings.diffusion == "auto":
            exact = recipe.vectors.references * data.graph.num_nodes <= _EXACT_NUMBERS
            settings = replace(settings, diffusion="exact" if exact else "push")
        return super().set_up(data, replace(recipe, baseline=settings))

    def start(self, data: TrainingData, recipe: Recipe) -> Weights:
        """All that vectors are computed from; labels are not read."""
        known = data.subgraphs.indices("train")
        chosen = known[draw_landmarks(len(known), recipe.vectors.references, data.seed)]
        space = VectorSpace.of(data.graph, data.subgraphs.nodes.take(chosen), recipe)
        weights = space.weights()
        if recipe.vectors.objective == "contrastive":
            weights["map"] = train_map(space, data.graph, recipe, data.seed)
        return weights

    def inputs(self, checkpoint: Checkpoint, graph: Graph, nodes: Ragged) -> VectorRows:
        """The vector of each subgraph, computed when the first is asked for."""
        return VectorRows(checkpoint, graph, nodes)

    def network(self, checkpoint: Checkpoint) -> Probe:
        """The probe; its weights are 0 until it is solved or loaded."""
        return Probe(checkpoint)

    def on_open(self, network: Probe, graph: Graph, opening: Opening) -> None:
        """Compute the views of the references, or read them from the cache folder."""
        space = VectorSpace.from_checkpoint(network.checkpoint)
        space.reference_views(graph, stored=opening.cache)

    def candidates(self, recipe: Recipe) -> dict[str, Recipe]:
        """Every open choice of the penalty of the probe."""
        given = recipe.baseline
        return {
            f"inverse_penalty={c:g}": replace(recipe, baseline=replace(given, inverse_penalty=c))
            for c in inverse_penalties(given)
        }

    def uses(self, recipe: Recipe) -> frozenset[str]:
        """What its views use."""
        return frozenset().union(*(used_by_view(view, recipe.baseline) for view in recipe.baseline.views))

    def cost(self, recipe: Recipe, sizes: Sizes) -> Cost:
        """That of diffusions of references and subgraphs, once, and of a decomposition of a matrix of references."""
        references = min(sizes.subgraphs, recipe.vectors.references)
        each = 2e-3 + min(3e-9 * sizes.edges, 0.05)
        return Cost(0.1 + 1e-4 * sizes.subgraphs, (sizes.subgraphs + references) * each + 1e-10 * references**3)

    def problems(self, checkpoint: Checkpoint, graph: Graph) -> Iterator[str]:
        """References that are not sets of nodes of the graph, and settings that are left open."""
        settings, weights = checkpoint.spec.baseline, checkpoint.weights
        if settings.diffusion == "auto" or not are_known(settings.views, graph):
            yield "its views, or the way that diffusions are computed, are left open or unknown"
        yield from wrong_node_sets(weights, graph)
        components = checkpoint.spec.vectors.width - SUBGRAPH_STATISTICS
        per_view = (len(settings.views), len(weights["offsets"]) - 1)
        shapes: dict[str, tuple[int, ...]] = {"with_mean": per_view, "lengths": per_view}
        shapes |= dict.fromkeys(("mean", "deviation"), (SUBGRAPH_STATISTICS,))
        shapes["basis"] = (per_view[1], min(components, len(weights["centre"])))
        if checkpoint.spec.vectors.objective == "contrastive":
            shapes["map"] = (components, components)
        if any(weights[name].shape != shape for name, shape in shapes.items()):
            yield "its principal components, its statistics or their map are of another shape"
        if not bool((weights["lengths"] >= 0).all()) or not bool((weights["deviation"] > 0).all()):
            yield "the lengths of its references, or the deviations of its statistics, are not above 0"


class VectorRows:
    """Vectors of subgraphs, all of which are computed when the first batch is asked for."""

    def __init__(self, checkpoint: Checkpoint, graph: Graph, nodes: Ragged) -> None:
        self._checkpoint, self._graph, self._nodes = checkpoint, graph, nodes
        self.device = torch.device("cpu")

    def __len__(self) -> int:
        return len(self._nodes)

    def to(self, device: torch.device | str) -> Self:
        """Say where batches are to go."""
        self.device = torch.device(device)
        return self

    @cached_property
    def _rows(self) -> Tensor:
        rows = torch.from_numpy(VectorSpace.from_checkpoint(self._checkpoint)(self._graph, self._nodes))
        if "map" in self._checkpoint.weights:
            rows[:, SUBGRAPH_STATISTICS:] = rows[:, SUBGRAPH_STATISTICS:] @ self._checkpoint.weights["map"].cpu()
        return rows

    def batch(self, rows: NDArray[np.int64]) -> Tensor:
        """The chosen vectors, in the given order."""
        return self._rows[torch.from_numpy(rows)].to(self.device)


class Probe(nn.Module):
    """Outputs that are linear in the vectors of subgraphs.

    Shapes:
        buffers of :meth:`VectorSpace.weights`. map: (width - 18, width - 18), where the objective is contrastive.
        weight: (width, outputs). bias: (outputs,).
    """

    weight: Tensor
    bias: Tensor

    def __init__(self, checkpoint: Checkpoint) -> None:
        super().__init__()
        self.checkpoint = checkpoint
        spec, weights = checkpoint.spec, checkpoint.weights
        for name in (*_SPACE, *(["map"] if spec.vectors.objective == "contrastive" else [])):
            self.register_buffer(name, weights[name])
        self.register_buffer("weight", torch.zeros(spec.vectors.width, spec.num_outputs))
        self.register_buffer("bias", torch.zeros(spec.num_outputs))

    def solve(self, examples: Examples) -> None:
        """Fit the outputs on the training split."""
        rows = in_standard_units(examples.inputs.batch(examples.train).cpu().numpy().astype(np.float64))
        _, turn = np.linalg.eigh(rows.T @ rows)  # the regression takes principal components
        targets = examples.targets.cpu().numpy()[examples.train]
        settings = self.checkpoint.spec.baseline
        options: dict[str, Any] = {"loss": settings.loss, "inverse_penalty": settings.inverse_penalty}
        options["weights"] = examples.train_weights
        weight, bias = fit_outputs(rows @ turn, targets, examples.task, len(self.bias), **options)
        weight = in_standard_units((turn @ weight).T).T
        for name, value in {"weight": weight, "bias": bias}.items():
            setattr(self, name, torch.from_numpy(value.astype(np.float32)).to(self.bias.device))

    def embed(self, rows: Tensor) -> Tensor:
        """The vectors. Shapes: rows, returns: (n, width)."""
        return rows

    def forward(self, rows: Tensor) -> Tensor:
        """Shapes: rows: (n, width). returns: (n, outputs)."""
        return rows @ self.weight + self.bias


def in_standard_units(vectors: NDArray[Any]) -> NDArray[Any]:
    """Vectors with statistics in deviations from their mean, as a penalised regression should see them.

    In the vectors themselves they are smaller, so that distances are not those of statistics alone.

    Shapes:
        vectors, returns: (n, width).
    """
    found = vectors.copy()
    found[:, :SUBGRAPH_STATISTICS] /= _STATISTIC
    return found


_SPACE = ("nodes", "offsets", "with_mean", "lengths", "mean", "deviation", "basis", "centre")


@dataclass(frozen=True, slots=True, eq=False)
class VectorSpace:
    """Statistics of subgraphs, and their principal components among references.

    Shapes:
        references: m sets. basis: (m, components). centre: (components,), what is subtracted from all.
    """

    references: Ragged
    kernel: Reference
    standard: Standard
    basis: Floats
    centre: Floats
    settings: BaselineSettings
    width: int

    @classmethod
    def of(cls, graph: Graph, references: Ragged, recipe: Recipe) -> VectorSpace:
        """The space of a graph and references."""
        settings, width = recipe.baseline, recipe.vectors.width
        views = _reference_views(graph, references, settings)
        every = np.arange(len(references))
        products = [rows.products(every, every) for rows in views]
        squared = [rows.squared for rows in views]
        kernel = replace(Reference.of(squared, products, kernel=settings.kernel), sharpness=_SHARPNESS)
        whole = kernel(products, squared, None)
        own = whole.mean(axis=0)
        values, vectors = np.linalg.eigh(whole - own - own[:, None] + own.mean())
        values, vectors = fix_directions(values[::-1], vectors[:, ::-1], width - SUBGRAPH_STATISTICS)
        basis = vectors / np.sqrt(values)
        standard = Standard.of(subgraph_statistics(graph, references))
        return cls(references, kernel, standard, basis, own @ basis, settings, width)

    @classmethod
    def from_checkpoint(cls, checkpoint: Checkpoint) -> VectorSpace:
        """The space that a checkpoint holds."""
        spec = checkpoint.spec
        arrays = {name: checkpoint.weights[name].cpu().numpy() for name in _SPACE}
        kernel = Reference(spec.baseline.kernel, arrays["with_mean"], arrays["lengths"], sharpness=_SHARPNESS)
        return cls(
            Ragged(arrays["nodes"], arrays["offsets"]),
            kernel,
            Standard(arrays["mean"], arrays["deviation"]),
            arrays["basis"],
            arrays["centre"],
            spec.baseline,
            spec.vectors.width,
        )

    def weights(self) -> Weights:
        """The tensors of a checkpoint.

        Shapes:
            nodes: (entries,) int32. offsets: (m + 1,). with_mean, lengths: (views, m) float64, as in
            :func:`~subgnn.models.view_kernel.cosines`. mean, deviation: (18,) float64. basis, centre: float64.
        """
        kernel, standard = self.kernel, self.standard
        arrays = (self.references.values, self.references.offsets, kernel.with_mean, kernel.lengths)
        more = (standard.mean, standard.deviation, self.basis, self.centre)
        return {name: torch.from_numpy(np.array(array)) for name, array in zip(_SPACE, (*arrays, *more), strict=True)}

    def reference_views(self, graph: Graph, *, stored: bool = False) -> list[Rows]:
        """The views of the references, from the cache of this process if they are there."""
        return _reference_views(graph, self.references, self.settings, stored=stored)

    def __call__(self, graph: Graph, nodes: Ragged) -> NDArray[np.float32]:
        """Vectors of subgraphs, some at a time, whatever the memory at hand; columns that are not needed are 0.

        Shapes:
            returns: (n, width).
        """
        known, diffusing = self.reference_views(graph), Diffusing.of(self.settings)
        found = np.zeros((len(nodes), self.width), np.float32)
        step = int(np.clip(_BLOCK_NUMBERS // max(1, graph.num_nodes), *_BLOCKS))
        for begin in range(0, len(nodes), step):
            some = nodes.take(np.arange(begin, min(len(nodes), begin + step)))
            rows = found[begin : begin + step]
            views = [compute_view(graph, some, view, diffusing) for view in self.settings.views]
            products = [multiply(a.values, b.values).astype(np.float64) for a, b in zip(views, known, strict=True)]
            kernel = self.kernel(products, [view.squared for view in views], None)
            statistics = self.standard(subgraph_statistics(graph, some))
            rows[:, :SUBGRAPH_STATISTICS] = _STATISTIC * np.clip(statistics, -_FARTHEST, _FARTHEST)
            rows[:, SUBGRAPH_STATISTICS:][:, : self.basis.shape[1]] = kernel @ self.basis - self.centre
        return found


def _reference_views(
    graph: Graph, references: Ragged, settings: BaselineSettings, *, stored: bool = False
) -> list[Rows]:
    diffusing = Diffusing.of(settings)
    return [CACHE.get(graph, references, view, diffusing, keep=True, stored=stored) for view in settings.views]


def fix_directions(values: Floats, vectors: Floats, most: int) -> tuple[Floats, Floats]:
    """Eigenvectors whose signs follow from their entries, as does the basis where eigenvalues are equal.

    The eigenvectors of equal eigenvalues span a space that is unique, of which any basis would do. The one that is
    chosen begins with the projection of the first axis whose projection is nearly the longest, and goes on with what is
    left of the others. Exact ties are thus decided by the order of axes, not by rounding. For one eigenvector: the
    first of its nearly largest entries is positive.

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
    values, vectors = (
        array[..., : int((values > _SMALLEST * max(values[0], 1e-12)).sum())] for array in (values, vectors)
    )
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


def node_colours(graph: Graph, rounds: int = 3) -> NDArray[np.uint64]:
    """Hashes of nodes by the structure around them: of a node's own hash and the sum of those of its neighbours.

    Nodes that colour refinement does not tell apart have the same hash, whatever their numbers are.

    Example:
        >>> path = Graph.from_edges([0, 1, 2], [1, 2, 3])
        >>> ends = node_colours(path)
        >>> ends[0] == ends[3], ends[1] == ends[2], ends[0] == ends[1]
        (np.True_, np.True_, np.False_)
    """
    offsets, neighbors = graph.csr
    there = np.diff(offsets) > 0
    colours = np.ones(graph.num_nodes, np.uint64)
    for _ in range(rounds):
        sums = np.zeros(graph.num_nodes, np.uint64)
        if there.any():
            sums[there] = np.add.reduceat(mix(colours)[neighbors], offsets[:-1][there])
        colours = mix(mix(colours) + np.uint64(3) * sums)
    return colours


def mix(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Well spread hashes of 64 bits (the finaliser of splitmix64)."""
    found = numbers + np.uint64(0x9E3779B97F4A7C15)
    found = (found ^ (found >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    found = (found ^ (found >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return found ^ (found >> np.uint64(31))


def perturbed_sets(
    graph: Graph, nodes: Ragged, colours: NDArray[np.uint64], settings: SubgraphVectorSettings, key: int
) -> Ragged:
    """A view of each subgraph: nodes dropped, and border nodes added, at random.

    A node stays with probability 1 - ``drop``, and all do if none would. Of the nodes with an edge to the subgraph, as
    many as ``grow`` times its size are expected to be added. Nodes of one colour share their fate.

    Args:
        key: of the random numbers.
    """
    every, found = Ragged(graph.neighbors, graph.offsets), []
    keys = mix(np.arange(len(nodes), dtype=np.uint64) + np.uint64(key))
    for members, own in zip(nodes, keys, strict=True):
        border = np.setdiff1d(every.take(members).values, members)
        chance = min(1.0, settings.grow * len(members) / max(1, len(border)))
        kept = members[_uniform(colours[members] ^ own) >= settings.drop]
        added = border[_uniform(~colours[border] ^ own) < chance]
        found.append(np.sort(np.concatenate([kept if len(kept) else members, added])))
    return Ragged.from_rows(found)


def _uniform(hashes: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Numbers from 0 to below 1."""
    return np.asarray((mix(hashes) >> np.uint64(11)) * 2.0**-53)


def train_map(space: VectorSpace, graph: Graph, recipe: Recipe, seed: int) -> Tensor:
    """The linear map of principal components under which views of one subgraph are nearest to each other, by InfoNCE.

    Of a batch of references, each with two of its views, the loss is the cross-entropy of finding the other view of a
    subgraph among those of all, by cosines over ``temperature``. Training begins with the identity.

    Shapes:
        returns: (width - 18, width - 18).
    """
    settings, references = recipe.vectors, space.references
    colours = node_colours(graph)
    keys = [stream_key(seed, f"vectors/view {i}") for i in range(settings.views)]
    rows = np.stack([space(graph, perturbed_sets(graph, references, colours, settings, key)) for key in keys])
    views, draw = torch.from_numpy(rows[..., SUBGRAPH_STATISTICS:]), stream(seed, "vectors/batches")
    found = torch.eye(views.shape[-1], requires_grad=True)
    optimizer = torch.optim.Adam([found], lr=settings.lr)
    size = min(settings.batch_size, len(references))
    answers = torch.arange(size)
    for _ in range(settings.steps):
        chosen = torch.from_numpy(draw.choice(len(references), size, replace=False))
        first, second = draw.choice(settings.views, 2, replace=False).tolist()
        a, b = (_directions(views[i][chosen] @ found) for i in (first, second))
        logits = a @ b.T / settings.temperature
        loss = nn.functional.cross_entropy(logits, answers) + nn.functional.cross_entropy(logits.T, answers)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return found.detach()


def _directions(rows: Tensor) -> Tensor:
    """Rows of length one; those that are rounding, as of a view that is the whole graph, stay near 0."""
    return rows / (rows.square().sum(dim=1, keepdim=True) + _NO_DIRECTION).sqrt()
