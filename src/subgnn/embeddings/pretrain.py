"""Node embeddings by link prediction: one loop for GIN and GraphSAINT, on a CPU or a GPU, and the cache of results.

Vectors z are learned so that sigma(z_u . z_v / sqrt(d) + b) separates edges from other pairs (binary cross entropy). A
part of the edges is held out. The epoch with the best mean of two values of AUROC is selected: of held-out edges
against uniform non-edges, and against those whose ends are drawn by degree. In a graph of hubs and leaves degrees alone
give the former above .98.

*Differs from the paper:* weight decay is decoupled from the gradient (AdamW), as a decay added to the small gradient of
a row of the table can outweigh it.
"""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from subgnn.config.files import parse_table
from subgnn.config.settings import EmbeddingSettings, PretrainSettings, Recipe
from subgnn.data.graph import Graph
from subgnn.embeddings.encoders import GINSampler, GraphSAINTSampler, gcn_encoder, gin_encoder
from subgnn.embeddings.link_prediction import EdgeSplit, Encoder, embed_all, split_edges
from subgnn.embeddings.sources import encode_vectors, read_vectors
from subgnn.errors import MemoryLimitError, UserError, choices
from subgnn.parallel.device import OneDevice
from subgnn.parallel.memory import limit
from subgnn.parallel.progress import OnEpoch, ignore
from subgnn.ranking import roc_area
from subgnn.rng import stream_key
from subgnn.storage.cache import cache_limit, cache_path, lookup, store
from subgnn.storage.files import json_digest

ALGORITHM = 1
_HELD_OUT = 0.05  # of the edges, to select the epoch
_PATIENCE = 5  # epochs without an improvement before it stops
Sampler = GINSampler | GraphSAINTSampler
Makers = tuple[Callable[..., Encoder], Callable[..., Sampler]]
METHODS: dict[str, Makers] = {"gin": (gin_encoder, GINSampler), "graphsaint": (gcn_encoder, GraphSAINTSampler)}


def pretrain(
    graph: Graph,
    method: str,
    *,
    dim: int,
    settings: PretrainSettings | None = None,
    device: str = "auto",
    on_epoch: OnEpoch = ignore,
) -> tuple[NDArray[np.float32], dict[str, Any]]:
    """Vectors of all nodes (N, dim) by ``gin`` or ``graphsaint``, and how they were computed: AUROC, epochs, seconds.

    Directions and weights of edges are ignored.
    """
    settings = settings or PretrainSettings()
    check_settings(method, dim, settings)
    if graph.features is None and (device == "cpu" or not torch.cuda.is_available()):
        needed = 6 * 4 * graph.num_nodes * dim  # a learned table, its gradient and two moments, and the vectors twice
        if needed > limit():
            what = f"pretraining {graph.num_nodes:,} nodes x {dim} numbers needs {needed / 1e9:.1f} GB"
            hint = "raise --memory, set a smaller embeddings.dim, or use fewer --processes or a GPU"
            raise MemoryLimitError(what, where="--memory", hint=hint)
    split = split_edges(graph.undirected(), val_fraction=_HELD_OUT, seed=settings.seed)
    features = None if graph.features is None else np.array(graph.features, np.float32)
    make_encoder, make_sampler = METHODS[method]
    with torch.random.fork_rng():
        torch.manual_seed(stream_key(settings.seed, f"pretrain/initialisation/{method}"))
        encoder = make_encoder(graph.num_nodes, dim, settings, features)
    begin, best, chosen, vectors = time.perf_counter(), -math.inf, dict[str, Any](), torch.empty(0)
    for record, found in fit_epochs(encoder, make_sampler(split, settings), split, settings, OneDevice(device).device):
        on_epoch(record)
        if (score := record["val_auroc"] + record["val_matched_auroc"]) > best:
            best, chosen, vectors = score, record, found.cpu()
        if record["epoch"] - chosen["epoch"] >= _PATIENCE:
            break
    scores = {name: chosen[name] for name in ("val_auroc", "val_matched_auroc")}
    about = {"method": method, "settings": asdict(settings), **scores, "epochs": record["epoch"] + 1}
    about |= {"selected_epoch": chosen["epoch"], "seconds": time.perf_counter() - begin}
    return vectors.numpy(), about


def check_settings(method: str, dim: int, settings: PretrainSettings) -> None:
    """Refuse an unknown method, and settings out of range."""
    if method not in METHODS:
        raise UserError(f"unknown method '{method}'", where="pretrain", hint=choices(method, METHODS))
    # Refuses what is out of the bounds of each setting.
    parse_table(PretrainSettings, asdict(settings), "pretrain", "pretrain")
    parse_table(EmbeddingSettings, {"dim": dim}, "pretrain", "embeddings")
    for name, refused in {"fraction": 0, "dropout": 1}.items():
        if (value := getattr(settings, name)) == refused:
            raise UserError(f"pretrain.{name} is {value}", where="pretrain", hint="accepted: a number between 0 and 1")


def fit_epochs(
    encoder: Encoder, sampler: Sampler, split: EdgeSplit, settings: PretrainSettings, device: torch.device
) -> Iterator[tuple[dict[str, Any], Tensor]]:
    """Train an encoder: after each epoch its loss and the two AUROC, and the vectors of all nodes."""
    encoder = encoder.to(device)
    optimizer = torch.optim.AdamW(encoder.parameters(), lr=settings.lr, weight_decay=settings.weight_decay)
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        for epoch in range(settings.epochs):
            torch.manual_seed(stream_key(settings.seed, f"pretrain/dropout/{epoch}"))
            encoder.train()
            total = torch.zeros((), device=device)
            for step in range(epoch * settings.steps, (epoch + 1) * settings.steps):
                batch = sampler.batch(step).to(device)
                optimizer.zero_grad()
                scores = encoder.score(encoder(batch.nodes, batch.adjacencies), batch.pairs)
                value = functional.binary_cross_entropy_with_logits(scores, batch.targets, batch.weights)
                value.backward()  # type: ignore[no-untyped-call]
                optimizer.step()
                total += value.detach()
            loss = float(total) / settings.steps
            vectors = embed_all(encoder, sampler.rows, split.offsets, device).float()
            if not (math.isfinite(loss) and vectors.isfinite().all()):
                what = f"the loss became {loss}, or vectors are no longer finite, in epoch {epoch}"
                raise UserError(what, where="pretrain", hint="lower pretrain.lr")
            uniform = link_auroc(vectors, split.val, split.val_non_edges)
            matched = link_auroc(vectors, split.val, split.val_matched)
            yield {"epoch": epoch, "loss": loss, "val_auroc": uniform, "val_matched_auroc": matched}, vectors


def link_auroc(vectors: Tensor, edges: NDArray[np.int32], non_edges: NDArray[np.int32]) -> float:
    """AUROC of dot products of vectors (N, d): edges (2, m) against other pairs (2, n); one half without any."""
    if not non_edges.shape[1]:
        return 0.5
    tails, heads = torch.from_numpy(np.concatenate([edges, non_edges], axis=1).astype(np.int64)).to(vectors.device)
    scores = (vectors.index_select(0, tails) * vectors.index_select(0, heads)).sum(dim=1)
    return roc_area(scores.cpu().numpy(), np.arange(len(scores)) < edges.shape[1])


def pretrained_vectors(
    recipe: Recipe, graph: Graph, *, device: str = "auto", cache: bool = True, on_epoch: OnEpoch = ignore
) -> NDArray[np.float32]:
    """Embeddings (N, dim) from the cache, or pretrained and stored there."""
    method, dim, settings = recipe.embeddings.source, recipe.embeddings.dim, recipe.pretrain
    check_settings(method, dim, settings)
    source = {"graph": graph.content_hash, "method": method, "dim": dim, "algorithm": ALGORITHM}
    file = cache_path("embeddings", json_digest(source | asdict(settings)))
    cache = cache and cache_limit() > 0
    if cache and (known := lookup(file, lambda: read_vectors(file, graph))) is not None:
        return known
    vectors, about = pretrain(graph, method, dim=dim, settings=settings, device=device, on_epoch=on_epoch)
    if cache:
        store(file, encode_vectors(vectors, about, graph_hash=graph.content_hash))
    return vectors
