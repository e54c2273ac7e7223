"""Vectors that belong to subgraphs, made before training: what the meta-node and Sub2Vec baselines share.

Such a method is transductive: a subgraph has a vector if it was there when the vectors were made, whatever its split,
and no other can be predicted. Trainable vectors are fine-tuned; only those of training subgraphs then move.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from subgnn.data.graph import Graph
from subgnn.errors import DataError
from subgnn.models.sources import Rows
from subgnn.models.spec import Checkpoint
from subgnn.models.subgnn import Head
from subgnn.ragged import Ragged
from subgnn.training.loop import State


def distinct(nodes: Ragged) -> Ragged:
    """Each node set once, in the order of first appearance.

    Example:
        >>> [row.tolist() for row in distinct(Ragged.from_rows([[1, 2], [3], [1, 2]]))]
        [[1, 2], [3]]
    """
    first: dict[bytes, int] = {}
    for i, row in enumerate(nodes):
        first.setdefault(row.tobytes(), i)
    return nodes.take(list(first.values()))


def state(nodes: Ragged, vectors: NDArray[np.float32]) -> State:
    """The sets that have a vector, and the vectors.

    Shapes:
        nodes: n distinct rows. vectors: (n, d).
    """
    return {
        "values": torch.from_numpy(np.array(nodes.values, np.int32)),
        "offsets": torch.from_numpy(np.array(nodes.offsets)),
        "table": torch.from_numpy(vectors),
    }


class KnownSubgraphs(nn.Module):
    """A vector a subgraph, and the head; what it takes are places in the table of vectors."""

    def __init__(self, known: State, head: Head, *, trainable: bool) -> None:
        super().__init__()
        for name in ("values", "offsets"):
            self.register_buffer(name, known[name])
        self.table = nn.Parameter(known["table"].clone(), requires_grad=trainable)
        self.head = head

    def embed(self, places: Tensor) -> Tensor:
        """Shapes: places: (n,). returns: (n, d)."""
        return self.table[places]

    def forward(self, places: Tensor) -> Tensor:
        """Shapes: returns: (n, outputs)."""
        out: Tensor = self.head(self.embed(places))
        return out


def inputs(checkpoint: Checkpoint, graph: Graph, nodes: Ragged) -> Rows:
    """The place of each subgraph among the known ones.

    Raises:
        DataError: for a subgraph that has no vector.
    """
    known = Ragged(checkpoint.weights["values"].numpy(), checkpoint.weights["offsets"].numpy())
    place = {row.tobytes(): i for i, row in enumerate(known)}
    found = [place.get(np.asarray(row, np.int32).tobytes(), -1) for row in nodes]
    if -1 in found:
        method, row = checkpoint.spec.method, nodes[found.index(-1)]
        shown = "-".join(map(str, row[:6])) + ("-..." if len(row) > 6 else "")
        what = f"{method} cannot predict new subgraphs, and {shown} is none of the {len(known)} it was trained with"
        hint = "put it into the dataset and train again, or take avg, gc, topology, bag or a SubGNN recipe"
        raise DataError(what, where=f"subgraph {found.index(-1)}", hint=hint)
    return Rows(torch.tensor(found, dtype=torch.int64))


def problems(checkpoint: Checkpoint, num_nodes: int) -> Iterator[str]:
    """What is wrong with the known subgraphs and their vectors, as they were read from a file."""
    values, offsets, table = (checkpoint.weights[name] for name in ("values", "offsets", "table"))
    if (values.dtype, offsets.dtype, table.dtype) != (torch.int32, torch.int64, torch.float32):
        yield "its subgraphs or their vectors are of another type"
    if (values.ndim, offsets.ndim, table.ndim) != (1, 1, 2):
        yield "its subgraphs or their vectors are of another shape"
    known = Ragged(values.numpy(), offsets.numpy())
    if not known.is_valid or len(known) != len(table):
        yield "its subgraphs do not fit their vectors"
    if len(values) and not 0 <= int(values.min()) <= int(values.max()) < num_nodes:
        yield "it holds a node that is not in the graph"


def module(checkpoint: Checkpoint) -> KnownSubgraphs:
    """The network over the checkpoint's vectors."""
    recipe, weights = checkpoint.spec, checkpoint.weights
    width = weights["table"].shape[1]
    head = Head(width, checkpoint.spec.num_outputs, hidden=recipe.model.head, dropout=recipe.model.dropout)
    return KnownSubgraphs(weights, head, trainable=recipe.embeddings.trainable)
