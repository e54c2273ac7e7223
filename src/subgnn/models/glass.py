"""GLASS: message passing over the whole graph, with labels that tell the nodes of a subgraph from others.

Wang and Zhang, "GLASS: GNN with labeling tricks for subgraph representation learning", ICLR 2022. The layers are those
of :mod:`subgnn.models.message_passing` with two sets of weights; a node is labelled if it is in the subgraph. The
vector of a subgraph pools those of its nodes, and a linear layer gives the outputs.

*Differs from the paper:* there, all nodes of a batch's subgraphs are labelled at once, also in prediction, and
GraphNorm takes its moments from that pass, so that a prediction depends on the other subgraphs of its batch. Here a
subgraph is predicted by itself: its nodes alone are labelled, and the moments are those of one reference pass, in which
the nodes of a fixed batch of training subgraphs are labelled (none, if training labels each subgraph by itself). So the
labels of S change the L-hop neighbourhood of S alone. Its output is computed from a pass over the whole graph without
labels, done once, by correcting that neighbourhood: with B_k the nodes within k hops of S, layer l changes messages of
B_b, b = min(l - 1, L - l + 1), and is computed again for B_a, a = min(l, L - l), the only nodes that both changed and
can still reach S:

    A m' = A m + A (m' - m),    m' - m being 0 outside of B_b

This equals a pass over the whole graph for each subgraph. ``message_passing.labelled_together`` brings the published
behaviour back in prediction; training has it unless ``message_passing.training_labels`` is "subgraph".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.checkpoint import checkpoint as recompute

from subgnn.config.settings import Recipe
from subgnn.data.graph import Graph
from subgnn.embeddings.link_prediction import Adjacency
from subgnn.models.interface import TrainingData
from subgnn.models.message_passing import MessagePassing, MessagePassingModel, Pass, pool
from subgnn.models.neighborhoods import Neighborhoods, Part
from subgnn.models.spec import Checkpoint, ModelSpec, Weights
from subgnn.models.tensor_model import is_sorted_below
from subgnn.models.whole_graph import NodeSetBatch, WholeGraph
from subgnn.rng import stream

ENTRIES_AT_A_TIME = 2**17
"""Nodes of neighbourhoods, as far as degrees tell, that are in memory at the same time."""


class GLASS(MessagePassing):
    """The network.

    Shapes:
        reference: (nodes,) int32, the nodes labelled in the reference pass.
    """

    reference: Tensor

    def __init__(self, start: Weights, spec: ModelSpec) -> None:
        settings = spec.message_passing
        super().__init__(start, spec, ratio=settings.ratio, width=spec.model.layers * spec.embeddings.dim)
        self.register_buffer("reference", start["reference"])
        self.pool, self.training_labels = settings.pool, settings.training_labels
        self.together = settings.labelled_together

    def embed(self, batch: NodeSetBatch) -> Tensor:
        """Shapes: returns: (n, L d)."""
        if not len(batch.nodes):
            return self.table.new_zeros(0, self.output.in_features)
        if self.training and self.training_labels == "batch":
            return self._label_together(batch)
        if not self.training and self.together > 1:
            cuts = np.arange(self.together, len(batch.nodes), self.together)
            return torch.cat([self._label_together(piece) for piece in _cut(batch, cuts)])
        found, pieces = self.kept(lambda: self._without_labels(batch.graph)), _pieces(batch, len(self.layers) // 2)
        if len(pieces) > 1 and torch.is_grad_enabled():
            return torch.cat([recompute(self._label_apart, piece, found, use_reentrant=False) for piece in pieces])
        return torch.cat([self._label_apart(piece, found) for piece in pieces])

    def _label_together(self, batch: NodeSetBatch) -> Tensor:
        """The vectors of subgraphs, with the nodes of all of them labelled."""
        found = self.whole_pass(batch.graph, _marked(batch.places, batch.graph))
        return pool(self.vectors_at(found, batch.places), batch.subgraph, len(batch.nodes), self.pool)

    def _without_labels(self, graph: WholeGraph) -> Pass:
        """The pass without labels; in prediction, with the moments of the reference pass."""
        nobody, moments_of = torch.zeros(graph.graph.num_nodes, dtype=torch.bool, device=graph.device), None
        if len(self.reference) and not self.training:
            labelled = _marked(self.reference.long(), graph)
            moments_of = self.whole_pass(graph, labelled).without("x", "arrived", "out")
        return self.whole_pass(graph, nobody, moments_of=moments_of).without("out")

    def _label_apart(self, batch: NodeSetBatch, found: Pass) -> Tensor:
        """The vectors of subgraphs, each with its own nodes labelled alone."""
        graph, count = batch.graph, len(self.layers)
        around = Neighborhoods.of(graph.graph, batch.nodes, count // 2)
        nodes, labelled = (torch.from_numpy(a).to(graph.device) for a in (around.nodes, around.hops == 0))
        members = columns = around.within(0)
        changed, vectors = found.layers[0].x[nodes[labelled]], []
        for i, (layer, whole) in enumerate(zip(self.stack, found.layers, strict=True)):
            rows = around.within(min(i + 1, count - i - 1))
            above, below, inside = (
                torch.from_numpy(part).to(graph.device)
                for part in (rows.entries, columns.entries, rows.places[members.entries])
            )
            before = layer.messages(whole.x[nodes[below]], torch.zeros_like(labelled[below]))
            difference = layer.messages(changed, labelled[below]) - before
            arrived = whole.arrived[nodes[above]]
            scales = None if self.type_scales is None else self.type_scales[i]
            for one, r in [(graph, None)] if scales is None else zip(graph.of_types, scales, strict=True):
                block = _edges(replace(around, graph=one.graph), rows, columns, one.weights).to(graph.device)
                sent = difference if r is None else difference * r
                arrived = arrived + one.send(sent, block, tails=nodes[below], heads=nodes[above])
            if len(rows.entries) < len(columns.entries):
                x = changed[torch.from_numpy(columns.places[rows.entries]).to(graph.device)]
            else:
                at = torch.from_numpy(rows.places[columns.entries]).to(graph.device)
                x = whole.x[nodes[above]].index_copy(0, at, changed)
            out = layer.update(arrived, x, labelled[above], whole.norm)
            vectors.append(layer.jump(out[inside], whole.jump))
            if whole.between is not None:
                columns, changed = rows, layer.onward(out, whole.between)
        return pool(torch.cat(vectors, dim=1), batch.subgraph, len(batch.nodes), self.pool)


def _marked(places: Tensor, graph: WholeGraph) -> Tensor:
    marked = torch.zeros(graph.graph.num_nodes, dtype=torch.bool, device=graph.device)
    marked[places] = True
    return marked


def _cut(batch: NodeSetBatch, cuts: NDArray[np.int64]) -> list[NodeSetBatch]:
    """Consecutive subgraphs, cut where the pieces begin."""
    pieces = np.split(np.arange(len(batch.nodes)), cuts)
    return [replace(batch, nodes=batch.nodes.take(piece)) for piece in pieces] if len(cuts) else [batch]


def _pieces(batch: NodeSetBatch, radius: int) -> list[NodeSetBatch]:
    """Consecutive subgraphs whose neighbourhoods have about :data:`ENTRIES_AT_A_TIME` nodes."""
    degrees, nodes = np.diff(batch.graph.graph.offsets), batch.nodes
    sizes = nodes.lengths.astype(np.float64)
    if radius:
        sizes += np.bincount(nodes.row_ids, degrees[nodes.values], len(nodes)) * degrees.mean() ** (radius - 1)
    ends = np.cumsum(np.minimum(sizes, len(degrees))) // ENTRIES_AT_A_TIME
    return _cut(batch, np.flatnonzero(np.diff(ends)) + 1)


def _edges(around: Neighborhoods, rows: Part, columns: Part, weights: NDArray[np.float32] | None = None) -> Adjacency:
    """The edges over which the entries of ``columns`` reach those of ``rows``; one part contains the other."""
    inner, outer = (rows, columns) if len(rows.entries) <= len(columns.entries) else (columns, rows)
    offsets, places, entries = around.edges(inner, outer)
    given, number = np.ones(len(places), np.float32) if weights is None else weights[entries], len(outer.entries)
    found = Adjacency.of(offsets, places, given, num_columns=number, rows=slice(0, len(inner.entries)))
    assert found.back is not None
    return found if inner is rows else Adjacency(found.back, found.matrix, slice(0, number))


class GLASSModel(MessagePassingModel):
    """GLASS."""

    def start(self, data: TrainingData, recipe: Recipe) -> Weights:
        """``table``, and ``reference``: the nodes of a batch of training subgraphs, if training labels batches."""
        nodes, train = data.subgraphs.nodes, data.subgraphs.indices("train")
        size = recipe.training.batch_size if recipe.message_passing.training_labels == "batch" else 0
        chosen = stream(data.seed, "glass/reference").permutation(train)[:size]
        reference = np.unique(nodes.take(chosen).values).astype(np.int32)
        return super().start(data, recipe) | {"reference": torch.from_numpy(reference)}

    def network(self, checkpoint: Checkpoint) -> GLASS:
        """The network over the checkpoint's table."""
        return GLASS(checkpoint.weights, checkpoint.spec)

    def problems(self, checkpoint: Checkpoint, graph: Graph) -> Iterator[str]:
        """A table that does not fit the graph, or nodes that it does not have."""
        yield from super().problems(checkpoint, graph)
        nodes = checkpoint.weights["reference"].numpy()
        if nodes.dtype != np.int32 or nodes.ndim != 1 or not is_sorted_below(nodes, graph.num_nodes):
            yield "its reference nodes are not in order, or not in the graph"
