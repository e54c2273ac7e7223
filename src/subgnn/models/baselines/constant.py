"""CONSTANT: the frequencies of classes or labels, or the mean, whatever the subgraph.

What a portfolio answers with if there is no time for any other model, and what all others are compared with.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from subgnn.config.settings import Recipe
from subgnn.data.graph import Graph
from subgnn.models.examples import Examples
from subgnn.models.interface import Settings, TrainingData, View
from subgnn.models.spec import Checkpoint, Weights
from subgnn.models.tensor_model import Rows, TensorModel
from subgnn.ragged import Ragged
from subgnn.task import task_of


class ConstantModel(TensorModel):
    """CONSTANT."""

    is_fitted_in_one_go = True
    measures_at_own_time = True
    on_new_graph = "the answer is the same on every graph"
    needs_edges = False

    def sees(self, settings: Settings) -> View:
        return "nothing"

    def start(self, data: TrainingData, recipe: Recipe) -> Weights:
        return {}

    def inputs(self, checkpoint: Checkpoint, graph: Graph, nodes: Ragged) -> Rows:
        return Rows(torch.zeros(len(nodes), 1))

    def network(self, checkpoint: Checkpoint) -> ConstantNetwork:
        return ConstantNetwork(checkpoint.spec.num_outputs)


class ConstantNetwork(nn.Module):
    """Outputs (n, outputs) that are all the same."""

    output: Tensor

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.register_buffer("output", torch.zeros(outputs))

    def solve(self, examples: Examples) -> None:
        task, targets = task_of(examples.task), examples.targets.cpu().numpy()[examples.train]
        mean = task.indicators(targets, len(self.output)).mean(axis=0)
        found = mean if task.real else task.outputs(mean)
        self.output.copy_(torch.from_numpy(np.asarray(found, np.float32)))

    def embed(self, rows: Tensor) -> Tensor:
        return self.output.expand(len(rows), -1)

    forward = embed
