"""A map of vectors that is trained to tell subgraphs apart, on views with nodes dropped and border nodes added."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from subgnn.channels.topology import SUBGRAPH_STATISTICS
from subgnn.config.method_settings import SubgraphVectorSettings
from subgnn.config.settings import Recipe
from subgnn.data.graph import Graph
from subgnn.models.kernel_machines.vector_space import VectorSpace
from subgnn.ragged import Ragged
from subgnn.rng import stream, stream_key

_NO_DIRECTION = 1e-4  # squared length of vectors whose direction does not count


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
