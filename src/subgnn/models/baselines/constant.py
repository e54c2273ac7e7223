"""CONSTANT: the frequencies of classes or labels, or the mean, whatever the subgraph.

What a portfolio answers with if there is no time for any other model, and what all others are compared with.
"""

import numpy as np
from numpy.typing import NDArray

from subgnn.config.settings import Recipe
from subgnn.data.graph import Graph
from subgnn.models.examples import Examples
from subgnn.models.interface import TrainingData
from subgnn.models.spec import Checkpoint, Weights
from subgnn.models.tensor_model import ArrayModel, ArrayNetwork, Rows
from subgnn.ragged import Ragged
from subgnn.task import task_of


class ConstantNetwork(ArrayNetwork):
    """Outputs (n, outputs) that are all the same."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        super().__init__({"output": np.zeros(checkpoint.spec.num_outputs, np.float32)})

    def solve(self, examples: Examples) -> None:
        task, targets = task_of(examples.task), examples.targets.cpu().numpy()[examples.train]
        mean = task.indicators(targets, len(self.output)).mean(axis=0)
        self.arrays["output"] = np.array(mean if task.real else task.outputs(mean), np.float32)

    def embed(self, rows: NDArray[np.float64]) -> NDArray[np.float32]:
        return np.repeat(self.output[None], len(rows), axis=0)


class ConstantModel(ArrayModel):
    """CONSTANT."""

    network = ConstantNetwork
    on_new_graph = "the answer is the same on every graph"
    needs_edges = False
    view = "nothing"

    def start(self, data: TrainingData, recipe: Recipe) -> Weights:
        return {}

    def inputs(self, checkpoint: Checkpoint, graph: Graph, nodes: Ragged) -> Rows:
        return Rows(np.zeros((len(nodes), 1)))
