"""Models with a vector for each subgraph of the dataset, made before training: the meta-node and Sub2Vec baselines.

They are transductive: a subgraph has a vector if it was in the dataset when the vectors were made, whatever its split,
and no other can be predicted. Trainable vectors are fine-tuned; only those of training subgraphs then change.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from subgnn.config.settings import Recipe
from subgnn.data.graph import Graph
from subgnn.errors import DataError
from subgnn.models.interface import TrainingData
from subgnn.models.spec import Checkpoint, Weights
from subgnn.models.tensor_model import (
    HeadedNetwork,
    PaperBaselineSettings,
    Rows,
    TensorModel,
    head_candidates,
    make_head,
)
from subgnn.ragged import Ragged


def distinct(nodes: Ragged) -> Ragged:
    """Each node set once, in the order of first appearance."""
    first: dict[bytes, int] = {}
    for i, row in enumerate(nodes):
        first.setdefault(row.tobytes(), i)
    return nodes.take(list(first.values()))


class KnownSubgraphs(HeadedNetwork):
    """A vector for each subgraph, and the head; a batch holds places in the table of vectors."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        super().__init__()
        spec, known = checkpoint.spec, checkpoint.weights
        for name in ("values", "offsets"):
            self.register_buffer(name, known[name])
        self.table = nn.Parameter(known["table"].clone(), requires_grad=spec.embeddings.trainable)
        self.head = make_head(spec, known["table"].shape[1])

    def embed(self, places: Tensor) -> Tensor:
        return self.table[places]


class KnownSubgraphsModel(TensorModel):
    """A model with a vector for each subgraph of the dataset that it was fitted to."""

    predicts_new_subgraphs = False
    settings = (PaperBaselineSettings,)

    @abstractmethod
    def embed(self, data: TrainingData, recipe: Recipe, nodes: Ragged) -> NDArray[np.float32]:
        """The vectors of distinct subgraphs (n, d); labels play no part."""

    def start(self, data: TrainingData, recipe: Recipe) -> Weights:
        """The distinct node sets of the dataset, of all splits, and their vectors."""
        nodes = distinct(data.subgraphs.nodes)
        arrays = {"values": nodes.values.astype(np.int32), "offsets": nodes.offsets}
        arrays["table"] = self.embed(data, recipe, nodes)
        return {name: torch.from_numpy(np.array(array)) for name, array in arrays.items()}

    def inputs(self, checkpoint: Checkpoint, graph: Graph, nodes: Ragged) -> Rows:
        """The place of each subgraph among the known ones; a subgraph without a vector is refused."""
        known = Ragged(checkpoint.weights["values"].numpy(), checkpoint.weights["offsets"].numpy())
        place = {row.tobytes(): i for i, row in enumerate(known)}
        found = [place.get(np.asarray(row, np.int32).tobytes(), -1) for row in nodes]
        if -1 in found:
            method, row = checkpoint.spec.method, nodes[found.index(-1)]
            shown = "-".join(map(str, row[:6])) + ("-..." if len(row) > 6 else "")
            what = f"{method} cannot predict new subgraphs, and {shown} is none of the {len(known)} it was trained with"
            hint = "add it to the dataset and train again, or use avg, gc, topology, bag or a SubGNN recipe"
            raise DataError(what, where=f"subgraph {found.index(-1)}", hint=hint)
        return Rows(torch.tensor(found, dtype=torch.int64))

    def network(self, checkpoint: Checkpoint) -> KnownSubgraphs:
        return KnownSubgraphs(checkpoint)

    def candidates(self, recipe: Recipe) -> dict[str, Recipe]:
        return head_candidates(recipe)

    def problems(self, checkpoint: Checkpoint, graph: Graph) -> Iterator[str]:
        values, offsets, table = (checkpoint.weights[name] for name in ("values", "offsets", "table"))
        if (values.dtype, offsets.dtype, table.dtype) != (torch.int32, torch.int64, torch.float32):
            yield "its subgraphs or their vectors have the wrong type"
        if (values.ndim, offsets.ndim, table.ndim) != (1, 1, 2):
            yield "its subgraphs or their vectors have the wrong shape"
        known = Ragged(values.numpy(), offsets.numpy())
        if not known.is_valid or len(known) != len(table):
            yield "its subgraphs do not fit their vectors"
        if len(values) and not 0 <= int(values.min()) <= int(values.max()) < graph.num_nodes:
            yield "it holds a node that is not in the graph"
