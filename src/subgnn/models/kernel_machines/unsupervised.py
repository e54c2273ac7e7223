"""UNSUPERVISED: vectors of subgraphs from the graph alone, and a linear probe of them; beyond the paper.

A vector has two parts, side by side. The first are 18 statistics of the subgraph and its border, standardised
(:func:`~subgnn.channels.topology.subgraph_statistics`): its structure. The second says where in the graph it is: views
of it (``kernel_machines/views.py``, by default where a random walk from it ends) are compared with those of reference
subgraphs, which are training subgraphs without their labels, and the vector holds the principal components

    z_S = sum over references T of K(S, T) u_T / sqrt(l)        for K = sum of l u u^T on the references

of the kernel of ``kernel_machines/kernel_machine.py``, centred; a Gaussian one is sharper here, K = exp(3 (k - 1)). No
label is read. Labels are used by the probe alone, a logistic or ridge regression on the vectors, which makes a run of
them that is scored and predicts like any other.

*Relabelling.* Nothing depends on the numbers of nodes: statistics and kernel are functions of node sets, references are
drawn by their place among the subgraphs, and ``vector_space.fix_directions`` chooses signs, and a
basis where eigenvalues are equal, by the order of the references.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from subgnn.channels.topology import SUBGRAPH_STATISTICS
from subgnn.config.settings import Recipe
from subgnn.data.graph import Graph
from subgnn.models.examples import Examples
from subgnn.models.interface import Cost, Opening, Settings, SetUp, Sizes, TrainingData, View
from subgnn.models.kernel_machines.kernel_machine import inverse_penalties, wrong_node_sets
from subgnn.models.kernel_machines.regression import fit_outputs
from subgnn.models.kernel_machines.vector_space import SPACE, VectorSpace, in_standard_units
from subgnn.models.kernel_machines.view_kernel import draw_landmarks
from subgnn.models.kernel_machines.view_names import (
    TOPOLOGY,
    VIEWS,
    are_known,
    check_views,
    expand_views,
    used_by_views,
)
from subgnn.models.spec import Checkpoint, Weights
from subgnn.models.tensor_model import TensorModel
from subgnn.ragged import Ragged

REFERENCES = 2048
"""Training subgraphs that others are compared with; of more, as many are drawn."""
_EXACT_NUMBERS = 2**27  # pairs of a reference and a node up to which diffusions are exact; their numbers take 512 MiB


class UnsupervisedModel(TensorModel):
    """UNSUPERVISED."""

    is_fitted_in_one_go = True
    needs_edges = False
    vectors_need_labels = False

    def sees(self, settings: Settings) -> View:
        return "everything"

    def check(self, recipe: Recipe, graph: Graph) -> None:
        """Refuse views that do not exist, and statistics among them, as they are there anyway."""
        check_views(recipe.baseline.views, graph, [view for view in VIEWS if view != TOPOLOGY])

    def set_up(self, data: TrainingData, recipe: Recipe) -> SetUp:
        settings = replace(recipe.baseline, views=expand_views(recipe.baseline.views, data.graph))
        if settings.diffusion == "auto":
            exact = REFERENCES * data.graph.num_nodes <= _EXACT_NUMBERS
            settings = replace(settings, diffusion="exact" if exact else "push")
        return super().set_up(data, replace(recipe, baseline=settings))

    def start(self, data: TrainingData, recipe: Recipe) -> Weights:
        """All that vectors are computed from; labels are not read."""
        known = data.subgraphs.indices("train")
        chosen = known[draw_landmarks(len(known), REFERENCES, data.seed)]
        return VectorSpace.of(data.graph, data.subgraphs.nodes.take(chosen), recipe).weights()

    def inputs(self, checkpoint: Checkpoint, graph: Graph, nodes: Ragged) -> VectorRows:
        return VectorRows(checkpoint, graph, nodes)

    def network(self, checkpoint: Checkpoint) -> Probe:
        return Probe(checkpoint)

    def on_open(self, network: Probe, graph: Graph, opening: Opening) -> None:
        """Compute the views of the references, or read them from the cache folder."""
        space = VectorSpace.from_checkpoint(network.checkpoint)
        space.reference_views(graph, stored=opening.cache)

    def candidates(self, recipe: Recipe) -> dict[str, Recipe]:
        given = recipe.baseline
        return {
            f"inverse_penalty={c:g}": replace(recipe, baseline=replace(given, inverse_penalty=c))
            for c in inverse_penalties(given)
        }

    def uses(self, recipe: Recipe) -> frozenset[str]:
        return used_by_views(recipe.baseline)

    def cost(self, recipe: Recipe, sizes: Sizes) -> Cost:
        references = min(sizes.subgraphs, REFERENCES)
        each = 2e-3 + min(3e-9 * sizes.edges, 0.05)
        return Cost(0.1 + 1e-4 * sizes.subgraphs, (sizes.subgraphs + references) * each + 1e-10 * references**3)

    def problems(self, checkpoint: Checkpoint, graph: Graph) -> Iterator[str]:
        settings, weights = checkpoint.spec.baseline, checkpoint.weights
        if settings.diffusion == "auto" or not are_known(settings.views, graph):
            yield "its views, or the way that diffusions are computed, are left open or unknown"
        yield from wrong_node_sets(weights, graph)
        components = checkpoint.spec.vectors.width - SUBGRAPH_STATISTICS
        per_view = (len(settings.views), len(weights["offsets"]) - 1)
        shapes: dict[str, tuple[int, ...]] = {"with_mean": per_view, "lengths": per_view}
        shapes |= dict.fromkeys(("mean", "deviation"), (SUBGRAPH_STATISTICS,))
        shapes["basis"] = (per_view[1], min(components, len(weights["centre"])))
        if any(weights[name].shape != shape for name, shape in shapes.items()):
            yield "its principal components or its statistics are of another shape"
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
        self.device = torch.device(device)
        return self

    @cached_property
    def _rows(self) -> Tensor:
        return torch.from_numpy(VectorSpace.from_checkpoint(self._checkpoint)(self._graph, self._nodes))

    def batch(self, rows: NDArray[np.int64]) -> Tensor:
        return self._rows[torch.from_numpy(rows)].to(self.device)


class Probe(nn.Module):
    """Outputs that are linear in the vectors of subgraphs.

    Shapes:
        buffers of ``VectorSpace.weights``. weight: (width, outputs) float64. bias: (outputs,).
    """

    weight: Tensor
    bias: Tensor

    def __init__(self, checkpoint: Checkpoint) -> None:
        super().__init__()
        self.checkpoint = checkpoint
        spec, weights = checkpoint.spec, checkpoint.weights
        for name in SPACE:
            self.register_buffer(name, weights[name])
        self.register_buffer("weight", torch.zeros(spec.vectors.width, spec.num_outputs, dtype=torch.float64))
        self.register_buffer("bias", torch.zeros(spec.num_outputs))

    def solve(self, examples: Examples) -> None:
        rows = in_standard_units(examples.inputs.batch(examples.train).cpu().numpy().astype(np.float64))
        _, turn = np.linalg.eigh(rows.T @ rows)  # the regression takes principal components
        targets = examples.targets.cpu().numpy()[examples.train]
        settings = self.checkpoint.spec.baseline
        options: dict[str, Any] = {"loss": settings.loss, "inverse_penalty": settings.inverse_penalty}
        options["weights"] = examples.train_weights
        weight, bias = fit_outputs(rows @ turn, targets, examples.task, len(self.bias), **options)
        weight = in_standard_units((turn @ weight).T).T
        for name, value in {"weight": weight, "bias": bias.astype(np.float32)}.items():
            setattr(self, name, torch.from_numpy(value).to(self.bias.device))

    def embed(self, rows: Tensor) -> Tensor:
        return rows

    def forward(self, rows: Tensor) -> Tensor:
        return (rows.double() @ self.weight).float() + self.bias
