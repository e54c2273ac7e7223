"""GLASS: message passing over the whole graph, with labels that tell the nodes of a subgraph from others (ICLR 2022).

The layers are those of :mod:`subgnn.models.peers.message_passing` with two sets of weights; a node is labelled if it is
in the subgraph. The vector of a subgraph pools those of its nodes, and a linear layer gives the outputs.

*Differs from the paper:* there, all nodes of a batch's subgraphs are labelled at once, also in prediction, and
GraphNorm takes its moments from that pass. Here this is so in training alone: a subgraph is predicted by itself, with
the moments of one reference pass, in which the nodes of a fixed batch of training subgraphs are labelled. So the labels
of S change the L-hop neighbourhood of S alone, and its output is computed by correcting that neighbourhood in a pass
without labels, done once: with B_k the nodes within k hops of S, layer l changes messages of B_b, b = min(l - 1, L - l
+ 1), and is computed again for B_a, a = min(l, L - l), the only nodes that both changed and can still reach S:

    A m' = A m + A (m' - m),    m' - m being 0 outside of B_b
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from subgnn.config.settings import Recipe
from subgnn.data.graph import Graph
from subgnn.data.node_match import NodeMatch
from subgnn.embeddings.link_prediction import Adjacency
from subgnn.models.interface import TrainingData, Vectors
from subgnn.models.peers.message_passing import LayerPass, MessagePassing, MessagePassingModel, NodeSetBatch, pool
from subgnn.models.spec import Checkpoint, Weights
from subgnn.models.tensor_model import is_sorted_below
from subgnn.ragged import Ragged
from subgnn.rng import stream

ENTRIES_AT_A_TIME = 2**17
"""Nodes of neighbourhoods, as far as degrees tell, that are in memory at the same time."""
KEPT_ENTRIES = {"cpu": 2**26, "cuda": 2**29}
"""Numbers of neighbourhoods that are kept between epochs, of 4 to 8 bytes each."""
_MAX_MET = 2**12  # pieces of batches that are remembered


class GLASS(MessagePassing):
    """The network; ``reference`` (nodes,) are those labelled in the reference pass."""

    reference: Tensor

    def __init__(self, checkpoint: Checkpoint) -> None:
        spec = checkpoint.spec
        super().__init__(checkpoint, labels=True, width=spec.model.layers * spec.embeddings.dim)
        self.register_buffer("reference", checkpoint.weights["reference"])
        self._corrections: dict[bytes, _Correction | None] = {}  # by a hash of the subgraphs; None if met once

    def embed(self, batch: NodeSetBatch) -> Tensor:
        if not len(batch.nodes):
            return self.table.new_zeros(0, self.output.in_features)
        if self.training:  # the nodes of all subgraphs are labelled together
            whole, _ = self.whole_pass(batch.graph, batch.graph.labels(batch.places))
            return self._pool(self.vectors_at(whole, batch.places), batch)

        def without_labels() -> list[LayerPass]:
            """The pass without labels, with the moments of the reference pass; outputs of layers are left out."""
            _, moments = self.whole_pass(batch.graph, batch.graph.labels(self.reference.long()))
            found, _ = self.whole_pass(batch.graph, batch.graph.labels(), moments=moments)
            return [replace(layer, out=layer.out.new_empty(0)) for layer in found]

        found = self.kept(without_labels)
        # Consecutive subgraphs whose neighbourhoods have about as many nodes as are in memory at the same time.
        degrees, nodes, radius = np.diff(batch.graph.graph.offsets), batch.nodes, len(self.layers) // 2
        sizes = nodes.lengths.astype(np.float64)
        if radius:
            sizes += np.bincount(nodes.row_ids, degrees[nodes.values], len(nodes)) * degrees.mean() ** (radius - 1)
        ends = np.cumsum(np.minimum(sizes, len(degrees))) // ENTRIES_AT_A_TIME
        pieces = np.split(np.arange(len(nodes)), np.flatnonzero(np.diff(ends)) + 1)
        return torch.cat([self._label_apart(replace(batch, nodes=nodes.take(piece)), found) for piece in pieces])

    def _label_apart(self, batch: NodeSetBatch, found: list[LayerPass]) -> Tensor:
        """The vectors of subgraphs, each with its own nodes labelled alone."""
        # Where labels change the pass is kept for subgraphs that are met again, as in validation.
        arrays = (batch.nodes.offsets, batch.nodes.values)
        key = hashlib.sha256(b"".join([str(batch.graph.device).encode(), *(a.tobytes() for a in arrays)])).digest()
        around = self._corrections.get(key)
        if around is None:
            around = _Correction.of(batch, len(self.layers))
            total = around.size + sum(one.size for one in self._corrections.values() if one is not None)
            if key in self._corrections and total <= KEPT_ENTRIES.get(batch.graph.device.type, 0):
                self._corrections[key] = around
            elif len(self._corrections) < _MAX_MET:
                self._corrections[key] = None
        changed, vectors = found[0].x[around.members], []
        for layer, whole, part in zip(self.stack, found, around.layers, strict=True):
            before = layer.messages(whole.x[part.tails], torch.zeros_like(part.labelled_tails))
            difference = layer.messages(changed, part.labelled_tails) - before
            sent = batch.graph.send(difference, part.block, tails=part.tails, heads=part.heads)
            arrived = whole.arrived[part.heads] + sent
            if len(part.heads) < len(part.tails):
                x = changed[part.inner]
            else:
                x = whole.x[part.heads].index_copy(0, part.inner, changed)
            out = layer.update(arrived, x, part.labelled_heads, whole.norm)
            vectors.append(layer.jump(out[part.inside], whole.jump))
            if whole.between is not None:
                changed = layer.onward(out, whole.between)
        return self._pool(torch.cat(vectors, dim=1), batch)

    def _pool(self, rows: Tensor, batch: NodeSetBatch) -> Tensor:
        return pool(rows, torch.arange(len(rows), device=rows.device), batch, self.settings.pool)


@dataclass(frozen=True, slots=True, eq=False)
class _LayerPart:
    """The part of one layer that labels change: messages of the nodes ``tails``, which arrive at ``heads``.

    ``block`` has the edges between them; ``inner`` the places of heads among tails if there are fewer
    heads, and of tails among heads otherwise; ``inside`` the places of members among heads.
    """

    tails: Tensor
    heads: Tensor
    labelled_tails: Tensor
    labelled_heads: Tensor
    block: Adjacency
    inner: Tensor
    inside: Tensor


@dataclass(frozen=True, slots=True, eq=False)
class _Correction:
    """Where the labels of subgraphs, each by itself, change a pass over the whole graph.

    ``members`` are the nodes of all subgraphs, one after the other; ``size`` is about the entries of all arrays.
    """

    members: Tensor
    layers: list[_LayerPart]
    size: int

    @classmethod
    def of(cls, batch: NodeSetBatch, count: int) -> Self:
        graph, layers = batch.graph, list[_LayerPart]()

        def put(values: NDArray[Any]) -> Tensor:
            return torch.from_numpy(values).to(graph.device)

        around = Neighborhoods.of(graph.graph, batch.nodes, count // 2)
        nodes, labelled = around.nodes, around.hops == 0
        members = columns = around.within(0)
        size = 0
        for i in range(count):
            rows = around.within(min(i + 1, count - i - 1))
            block = around.edges(rows, columns)
            above, below = rows.entries, columns.entries
            inner = columns.places[above] if len(above) < len(below) else rows.places[below]
            size += 4 * (len(above) + len(below)) + 4 * block.matrix._nnz()
            ends = put(nodes[below]), put(nodes[above]), put(labelled[below]), put(labelled[above])
            layers.append(_LayerPart(*ends, block.to(graph.device), put(inner), put(rows.places[members.entries])))
            columns = rows
        return cls(put(nodes[labelled]), layers, size)


class GLASSModel(MessagePassingModel):
    """GLASS."""

    network = GLASS

    def start(self, data: TrainingData, recipe: Recipe) -> Weights:
        """``table``, and ``reference``: the nodes of a batch of training subgraphs."""
        nodes, train = data.subgraphs.nodes, data.subgraphs.indices("train")
        chosen = stream(data.seed, "glass/reference").permutation(train)[: recipe.training.batch_size]
        reference = np.unique(nodes.take(chosen).values).astype(np.int32)
        return super().start(data, recipe) | {"reference": torch.from_numpy(reference)}

    def moved(self, checkpoint: Checkpoint, match: NodeMatch, vectors: Vectors) -> Checkpoint:
        """As of any model that passes messages; the reference nodes are renumbered, without those that are gone."""
        found = super().moved(checkpoint, match, vectors)
        places = match.rows(checkpoint.weights["reference"].numpy())
        match.tell_gone(int((places < 0).sum()), "nodes of the reference pass that are gone")
        reference = np.sort(places[places >= 0]).astype(np.int32)
        return replace(found, weights=found.weights | {"reference": torch.from_numpy(reference)})

    def problems(self, checkpoint: Checkpoint, graph: Graph) -> Iterator[str]:
        yield from super().problems(checkpoint, graph)
        if not is_sorted_below(checkpoint.weights["reference"].numpy(), graph.num_nodes):
            yield "its reference nodes are not in order, or not in the graph"


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """B_k(S) of each subgraph: places in the neighbourhoods (part,), and their inverse (total,), -1 beyond k."""

    entries: NDArray[np.int64]
    places: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Neighborhoods:
    """B_r(S) of each subgraph, one after the other: keys (total,), subgraph x N + node, rising, and hops from S."""

    graph: Graph
    keys: NDArray[np.int64]
    hops: NDArray[np.int64]

    @classmethod
    def of(cls, graph: Graph, subgraphs: Ragged, radius: int) -> Self:
        """The neighbourhoods of sorted node sets.

        Example:
            >>> path = Graph.from_edges([0, 1, 2], [1, 2, 3])
            >>> found = Neighborhoods.of(path, Ragged.from_rows([[0], [2]]), 1)
            >>> found.nodes.tolist(), found.hops.tolist()
            ([0, 1, 1, 2, 3], [0, 1, 1, 0, 1])
        """
        keys = subgraphs.row_ids * graph.num_nodes + subgraphs.values
        hops, last = np.zeros(len(keys), np.int64), keys
        for hop in range(1, radius + 1):
            last = np.setdiff1d(_neighbor_keys(graph, last)[0], keys)
            joined = np.concatenate([keys, last])
            order = np.argsort(joined, kind="stable")
            keys, hops = joined[order], np.concatenate([hops, np.full(len(last), hop)])[order]
        return cls(graph, keys, hops)

    @property
    def nodes(self) -> NDArray[np.int64]:
        return self.keys % self.graph.num_nodes

    def within(self, radius: int) -> Part:
        inside = self.hops <= radius
        return Part(np.flatnonzero(inside), np.where(inside, np.cumsum(inside) - 1, -1))

    def edges(self, rows: Part, columns: Part) -> Adjacency:
        """The edges over which the entries of ``columns`` reach those of ``rows``; one part contains the other."""
        inner, outer = (rows, columns) if len(rows.entries) <= len(columns.entries) else (columns, rows)
        ends, lengths = _neighbor_keys(self.graph, self.keys[inner.entries])
        at = np.minimum(np.searchsorted(self.keys, ends), max(0, len(self.keys) - 1))
        place = np.where(self.keys[at] == ends, outer.places[at], -1) if len(ends) else at
        there = place >= 0
        counts = np.bincount(np.repeat(np.arange(len(lengths)), lengths), there, len(lengths)).astype(np.int64)
        offsets, places, number = np.append(0, np.cumsum(counts)), place[there].astype(np.int32), len(outer.entries)
        given, own = np.ones(len(places), np.float32), slice(0, len(inner.entries))
        found = Adjacency.of(offsets, places, given, num_columns=number, rows=own)
        assert found.back is not None
        return found if inner is rows else Adjacency(found.back, found.matrix, slice(0, number))


def _neighbor_keys(graph: Graph, keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The neighbours of entries, as keys of the same subgraph, and how many each has."""
    subgraph, nodes = np.divmod(keys, graph.num_nodes)
    found = Ragged(graph.neighbors, graph.offsets).take(nodes)
    return np.repeat(subgraph, found.lengths) * graph.num_nodes + found.values, found.lengths
