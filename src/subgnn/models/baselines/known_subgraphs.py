"""Models with a vector for each subgraph of the dataset, made before training: meta nodes and Sub2Vec.

They are transductive: a subgraph has a vector if it was in the dataset when the vectors were made, whatever its split,
and no other can be predicted; labels play no part. Trainable vectors are fine-tuned.

*MN-GIN and MN-GAT* (paper, section 5 and appendix D): one meta node for each subgraph, joined to exactly its nodes. The
graph with all meta nodes is embedded by link prediction, and the vector of its meta node stands for a subgraph. Each
step draws edges to predict, and others to send messages over. Two layers of GIN or GAT over a learned table; the score
of a pair is the dot product of its vectors; as many uniform pairs of nodes stand for absent edges.

*S2V-N, S2V-S and S2V-NS* (Adhikari et al., 2018): random walks inside a subgraph as documents for doc2vec. A walk
starts at a uniform node of the subgraph and steps to a uniform neighbour inside it. For S2V-N its words are the nodes;
for S2V-S the bins of their internal degrees over the size of the subgraph; S2V-NS puts both vectors side by side. Walks
are a function of the seed and the induced subgraph.

*Differs from the paper:* it runs the Sub2Vec authors' program with its defaults (section 5, appendix D); here walks are
ours, bins are of equal width, and doc2vec is gensim's PV-DBOW.
"""

import zlib
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from subgnn.channels.structure import distinct_rows
from subgnn.config.settings import Recipe
from subgnn.data.graph import Graph
from subgnn.errors import DataError, UserError, extra_package
from subgnn.kernels.arrays import Csr
from subgnn.kernels.induced import induced_graph
from subgnn.models.heads import HeadedNetwork
from subgnn.models.interface import TrainingData
from subgnn.models.spec import Checkpoint, Weights
from subgnn.models.tensor_model import PaperBaselineSettings, Rows, TensorModel
from subgnn.ragged import Ragged
from subgnn.rng import stream, stream_key

GAT_HEADS = 4
_STEPS, _RATE = 300, 1e-2  # of link prediction
_BATCH = 4096  # edges to predict in one step
_EDGES = 200_000  # edges to send messages over in one step
_MOST_PREDICTED = 0.1  # of all edges, in one step

_END = -1
_WALKS, _WALK_LENGTH = 20, 20  # walks in a subgraph, and nodes of each
_BINS = 20  # of degrees
_WINDOW, _EPOCHS = 5, 20  # of doc2vec


class KnownSubgraphs(HeadedNetwork):
    """A vector for each subgraph, and the head; a batch holds places in the table of vectors."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        spec, known = checkpoint.spec, checkpoint.weights
        super().__init__(spec, known["table"].shape[1])
        for name in ("values", "offsets"):
            self.register_buffer(name, known[name])
        self.table = nn.Parameter(known["table"].clone(), requires_grad=spec.embeddings.trainable)

    def embed(self, places: Tensor) -> Tensor:
        return self.table[places]


class KnownSubgraphsModel(TensorModel):
    """A model with a vector for each subgraph of the dataset that it was fitted to."""

    network = KnownSubgraphs
    predicts_new_subgraphs = False
    settings = (PaperBaselineSettings,)

    @abstractmethod
    def embed(self, data: TrainingData, recipe: Recipe, nodes: Ragged) -> NDArray[np.float32]:
        """The vectors of distinct subgraphs (n, d); labels play no part."""

    def start(self, data: TrainingData, recipe: Recipe) -> Weights:
        nodes = data.subgraphs.nodes.take(distinct_rows(data.subgraphs.nodes)[0])
        table, values = self.embed(data, recipe, nodes), nodes.values.astype(np.int32)
        arrays = {"values": values, "offsets": nodes.offsets, "table": table}
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

    def problems(self, checkpoint: Checkpoint, graph: Graph) -> Iterator[str]:
        values, offsets, table = (checkpoint.weights[name] for name in ("values", "offsets", "table"))
        kinds = [(array.dtype, array.ndim) for array in (values, offsets, table)]
        if kinds != [(torch.int32, 1), (torch.int64, 1), (torch.float32, 2)]:
            yield "its subgraphs or their vectors have the wrong type or shape"
        known = Ragged(values.numpy(), offsets.numpy())
        if not known.is_valid or len(known) != len(table):
            yield "its subgraphs do not fit their vectors"
        if len(values) and not 0 <= int(values.min()) <= int(values.max()) < graph.num_nodes:
            yield "it holds a node that is not in the graph"


class MetaNodeModel(KnownSubgraphsModel):
    """MN-GIN, or MN-GAT with attention."""

    extra = "paper"

    def __init__(self, *, attention: bool) -> None:
        self.attention = attention

    def embed(self, data: TrainingData, recipe: Recipe, nodes: Ragged) -> NDArray[np.float32]:
        edges, number = with_meta_nodes(data.graph, nodes), data.graph.num_nodes
        dim, key = recipe.embeddings.dim, stream_key(data.seed, "baselines/links")
        found = link_vectors(edges, number + len(nodes), dim=dim, attention=self.attention, key=key, device=data.device)
        return cast("NDArray[np.float32]", found[number:].numpy())


def with_meta_nodes(graph: Graph, nodes: Ragged) -> NDArray[np.int64]:
    """The edges of G, and of each meta node N + s to the nodes of subgraph s; every edge once (2, edges).

    Example:
        >>> with_meta_nodes(Graph.from_edges([0, 1], [1, 2]), Ragged.from_rows([[0, 2], [1]])).T.tolist()
        [[0, 1], [1, 2], [3, 0], [3, 2], [4, 1]]
    """
    tails, heads, _ = graph.edges()
    metas = np.stack([graph.num_nodes + nodes.row_ids, nodes.values])
    return np.concatenate([np.stack([tails, heads]), metas], axis=1, dtype=np.int64)


class LinkEncoder(nn.Module):
    """Two layers of GIN, or of GAT with four heads side by side, over a learned table.

    Batch normalisation takes the statistics of the pass at hand, never running ones: sums over a sample of the edges
    are smaller than sums over all, so that the last pass, over all of them, stays comparable with training.
    """

    def __init__(self, num_nodes: int, dim: int, *, attention: bool) -> None:
        super().__init__()
        with extra_package("torch_geometric", extra="paper", feature="the meta-node baselines"):
            from torch_geometric.nn import GATConv, GINConv
        if attention and dim % GAT_HEADS:
            hint = f"accepted: a multiple of {GAT_HEADS}, the number of heads"
            raise UserError(f"embeddings.dim is {dim}", where="mn-gat", hint=hint)

        def mlp() -> nn.Sequential:
            norm = nn.BatchNorm1d(dim, track_running_stats=False)
            return nn.Sequential(nn.Linear(dim, dim), norm, nn.ReLU(), nn.Linear(dim, dim))

        self.table = nn.Parameter(torch.randn(num_nodes, dim) / dim**0.5)
        self.layers = nn.ModuleList(
            GATConv(dim, dim // GAT_HEADS, heads=GAT_HEADS) if attention else GINConv(mlp(), train_eps=True)
            for _ in range(2)
        )
        self.norm = nn.BatchNorm1d(dim, track_running_stats=False)

    def forward(self, edges: Tensor) -> Tensor:
        return cast(Tensor, self.layers[1](self.norm(torch.relu(self.layers[0](self.table, edges))), edges))


def link_vectors(
    pairs: NDArray[np.int64], num_nodes: int, *, dim: int, attention: bool, key: int, device: torch.device
) -> Tensor:
    """Vectors of all nodes of an undirected graph with edges (2, edges), each once (num_nodes, dim), on the CPU.

    ``key`` seeds the table, the layers and all draws.
    """
    edges = torch.from_numpy(pairs).to(device)

    def both_ways(some: Tensor) -> Tensor:
        return torch.cat([some, some.flip(0)], dim=1)

    count = edges.shape[1]
    predicted = max(1, min(_BATCH, int(_MOST_PREDICTED * count)))
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(key)
        encoder = LinkEncoder(num_nodes, dim, attention=attention).to(device)
        optimizer = torch.optim.Adam(encoder.parameters(), lr=_RATE)
        for _ in range(_STEPS):
            order = torch.randperm(count, device=device)
            there = edges[:, order[:predicted]]
            messages = edges[:, order[predicted : predicted + _EDGES]]
            absent = torch.randint(num_nodes, there.shape, device=device)
            optimizer.zero_grad()
            vectors, (first, second) = encoder(both_ways(messages)), torch.cat([there, absent], dim=1)
            scores = (vectors[first] * vectors[second]).sum(dim=1) / dim**0.5
            wanted = torch.zeros_like(scores)
            wanted[:predicted] = 1.0
            functional.binary_cross_entropy_with_logits(scores, wanted).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        with torch.no_grad():
            return cast(Tensor, encoder(both_ways(edges))).cpu()


class Sub2VecModel(KnownSubgraphsModel):
    """S2V-N, S2V-S or S2V-NS; ``words`` of walks are ``n`` for nodes, ``s`` for bins of degrees, ``ns`` for both."""

    extra = "paper"

    def __init__(self, words: str) -> None:
        self.words = words

    def embed(self, data: TrainingData, recipe: Recipe, nodes: Ragged) -> NDArray[np.float32]:
        induced = induced_graph(*data.graph.csr, nodes)
        walks = inside_walks(nodes, induced, _WALKS, _WALK_LENGTH, seed=data.seed)
        words = {"n": nodes.values, "s": degree_bins(nodes, induced, _BINS)}
        texts = [documents(walks, words[kind]) for kind in self.words]
        return np.concatenate([document_vectors(of, recipe.embeddings.dim, seed=data.seed) for of in texts], axis=1)


def inside_walks(nodes: Ragged, induced: Csr, walks: int, length: int, *, seed: int) -> NDArray[np.int64]:
    """Uniform random walks (n, walks, length) inside every subgraph, as members of it; -1 after a walk has ended."""
    (offsets, neighbors), draws = induced, stream(seed, "baselines/walks").random((length, walks))
    degrees, out = np.diff(offsets), np.full((len(nodes), walks, length), _END, np.int64)
    at = nodes.offsets[:-1, None] + (draws[0] * nodes.lengths[:, None]).astype(np.int64)  # (n, walks)
    out[:, :, 0] = at
    alone = degrees[at] == 0
    for step in range(1, length):
        chosen = offsets[at] + (draws[step] * degrees[at]).astype(np.int64)
        at = np.where(alone, at, neighbors[np.where(alone, 0, chosen)]) if len(neighbors) else at
        out[:, :, step] = np.where(alone, _END, at)
    return out


def degree_bins(nodes: Ragged, induced: Csr, bins: int) -> NDArray[np.int64]:
    """floor(bins * internal degree / size) of every member (total,), from 0 to bins - 1."""
    return np.asarray(bins * np.diff(induced[0]) // nodes.lengths[nodes.row_ids])


def documents(walks: NDArray[np.int64], words: NDArray[np.integer]) -> list[list[list[str]]]:
    """For each subgraph its walks, each a list of words; ``words`` (total,) has that of each member."""
    return [[[str(words[member]) for member in walk if member != _END] for walk in of_one] for of_one in walks]


def document_vectors(texts: Sequence[Sequence[list[str]]], dim: int, *, seed: int) -> NDArray[np.float32]:
    """A vector (n, dim) for each subgraph by doc2vec; every walk is a piece of the subgraph's document."""
    with extra_package("gensim", extra="paper", feature="the Sub2Vec baselines"):
        from gensim.models.doc2vec import Doc2Vec, TaggedDocument

    corpus = [TaggedDocument(walk, [i]) for i, of_one in enumerate(texts) for walk in of_one]
    options = {"vector_size": dim, "window": _WINDOW, "min_count": 1, "epochs": _EPOCHS}
    key = stream_key(seed, "baselines/doc2vec") % 2**31
    # One worker, and a hash that is the same in every process: otherwise the result would not repeat.
    model = Doc2Vec(corpus, dm=0, workers=1, seed=key, hashfxn=lambda word: zlib.crc32(word.encode()), **options)
    return np.array(model.dv.vectors, np.float32)
