"""S2V-N, S2V-S and S2V-NS: random walks inside a subgraph as documents for doc2vec (Adhikari et al., 2018).

A walk starts at a uniform node of the subgraph and steps to a uniform neighbour inside it; one that starts at a node
without neighbours is that node alone. For S2V-N its words are the nodes; for S2V-S each node is replaced by the bin of
its internal degree over the size of the subgraph, so that shape is all that is left; S2V-NS puts both vectors side by
side. All subgraphs are documents, whatever their split; labels play no part.

*Differs from the paper:* it runs the Sub2Vec authors' program with its defaults (section 5, appendix D); here walks are
ours, bins are of equal width, and doc2vec is gensim's PV-DBOW.

The draws of walk ``w`` are the same for all subgraphs: walks are a function of the seed and the induced subgraph, and
two subgraphs of the same shape get the same walks.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from subgnn.config.settings import Recipe
from subgnn.errors import extra_package
from subgnn.models.baselines.induced_graphs import InducedGraphs, induced_graphs
from subgnn.models.baselines.known_subgraphs import KnownSubgraphsModel
from subgnn.models.interface import TrainingData
from subgnn.ragged import Ragged
from subgnn.rng import stream, stream_key

_END = -1
_WINDOW = 5
_WALKS, _WALK_LENGTH = 20, 20  # walks in a subgraph, and nodes of each
_BINS = 20  # of degrees
_EPOCHS = 20  # of doc2vec


class Sub2VecModel(KnownSubgraphsModel):
    """S2V-N, S2V-S or S2V-NS.

    Args:
        words: what walks are made of: ``n`` for nodes, ``s`` for bins of degrees, ``ns`` for both.
    """

    extra = "paper"

    def __init__(self, words: str) -> None:
        self.words = words

    def embed(self, data: TrainingData, recipe: Recipe, nodes: Ragged) -> NDArray[np.float32]:
        induced = induced_graphs(data.graph, nodes)
        walks = inside_walks(induced, _WALKS, _WALK_LENGTH, seed=data.seed)
        words = {"n": nodes.values, "s": degree_bins(induced, _BINS)}
        parts = [
            document_vectors(documents(walks, words[kind]), recipe.embeddings.dim, seed=data.seed)
            for kind in self.words
        ]
        return np.concatenate(parts, axis=1)


def inside_walks(induced: InducedGraphs, walks: int, length: int, *, seed: int) -> NDArray[np.int64]:
    """Uniform random walks (n, walks, length) inside every subgraph, as members of it; -1 after a walk has ended."""
    draws = stream(seed, "baselines/walks").random((length, walks))
    sizes, first = induced.nodes.lengths[:, None], induced.nodes.offsets[:-1, None]
    out = np.full((len(induced.nodes), walks, length), _END, np.int64)
    at = first + (draws[0] * sizes).astype(np.int64)  # (n, walks)
    out[:, :, 0] = at
    alone = induced.degrees[at] == 0
    for step in range(1, length):
        chosen = induced.offsets[at] + (draws[step] * induced.degrees[at]).astype(np.int64)
        at = np.where(alone, at, induced.neighbors[np.where(alone, 0, chosen)]) if len(induced.neighbors) else at
        out[:, :, step] = np.where(alone, _END, at)
    return out


def degree_bins(induced: InducedGraphs, bins: int) -> NDArray[np.int64]:
    """floor(bins * internal degree / size) of every member (total,), from 0 to bins - 1."""
    return bins * induced.degrees // induced.nodes.lengths[induced.nodes.row_ids]


def documents(walks: NDArray[np.int64], words: NDArray[np.integer]) -> list[list[list[str]]]:
    """For each subgraph its walks, each a list of words; ``words`` (total,) has that of each member."""
    return [[[str(words[member]) for member in walk if member != _END] for walk in of_one] for of_one in walks]


def stable_hash(word: str) -> int:
    """A hash that is the same in every process, as Python's own is not."""
    return zlib.crc32(word.encode())


def document_vectors(texts: Sequence[Sequence[list[str]]], dim: int, *, seed: int) -> NDArray[np.float32]:
    """A vector (n, dim) for each subgraph by doc2vec; every walk is a piece of the subgraph's document."""
    with extra_package("gensim", extra="paper", feature="the Sub2Vec baselines"):
        from gensim.models.doc2vec import Doc2Vec, TaggedDocument

    class Corpus:
        def __iter__(self) -> Iterator[TaggedDocument]:
            return (TaggedDocument(walk, [i]) for i, of_one in enumerate(texts) for walk in of_one)

    # One worker and a fixed hash: more workers would race, and the result would not repeat.
    model = Doc2Vec(
        Corpus(),
        dm=0,
        vector_size=dim,
        window=_WINDOW,
        min_count=1,
        epochs=_EPOCHS,
        workers=1,
        seed=stream_key(seed, "baselines/doc2vec") % 2**31,
        hashfxn=stable_hash,
    )
    return np.array(model.dv.vectors, np.float32)
