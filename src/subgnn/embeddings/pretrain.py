"""Node embeddings by link prediction: one loop for GIN and GraphSAINT, on a CPU or a GPU.

Vectors z are learned so that sigma(z_u . z_v / sqrt(d) + b) tells edges from other pairs (binary cross entropy). A part
of the edges is held out, of the examples and of message passing, in both directions; after every epoch z of all nodes
is computed from all neighbours, and the epoch with the best AUROC on held-out edges is kept: the mean of that against
uniform non-edges and that against non-edges whose ends are drawn by degree. In a graph of hubs and leaves the first is
above .98 for degrees alone and selects nothing.

*Differs from the paper:* weight decay is decoupled from the gradient (AdamW). A row of the table of node vectors has a
small gradient, as few pairs of a step touch it, which a decay added to it can outweigh.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from lightning.fabric import Fabric
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional
from torchmetrics.functional.classification import binary_auroc

from subgnn.config.settings import PretrainSettings
from subgnn.data.graph import Graph
from subgnn.embeddings.edges import EdgeSplit, split_edges
from subgnn.embeddings.encoder import Batch, Encoder, embed_all
from subgnn.embeddings.gin import GINSampler, gin_encoder
from subgnn.embeddings.graphsaint import GraphSAINTSampler, gcn_encoder
from subgnn.errors import DataError, DataWarning, UserError, choices
from subgnn.rng import stream_key
from subgnn.storage.tensor_file import CHECKSUM, Damaged, load, save

ALGORITHM = 1
SECONDS_BETWEEN_SAVES = 10.0
Sampler = GINSampler | GraphSAINTSampler
Makers = tuple[Callable[..., Encoder], Callable[..., Sampler]]
METHODS: dict[str, Makers] = {"gin": (gin_encoder, GINSampler), "graphsaint": (gcn_encoder, GraphSAINTSampler)}
OnEpoch = Callable[[dict[str, Any]], None]


@dataclass(frozen=True, slots=True, eq=False)
class Pretrained:
    """Vectors of all nodes, and how they were had.

    Shapes:
        vectors: (N, dim) float32.
    """

    vectors: NDArray[np.float32]
    method: str
    settings: PretrainSettings
    graph_hash: str
    val_auroc: float
    val_matched_auroc: float
    epochs: int
    selected_epoch: int
    seconds: float


@dataclass(slots=True)
class Progress:
    """How far pretraining has come; all of it is in the file that resuming reads."""

    epoch: int = 0
    best_epoch: int = -1
    best: tuple[float, float] = (-math.inf, -math.inf)
    best_vectors: Tensor = field(default_factory=lambda: torch.empty(0))
    seconds: float = 0.0


def pretrain(
    graph: Graph,
    method: str,
    *,
    dim: int,
    settings: PretrainSettings | None = None,
    device: str = "auto",
    state: Path | None = None,
    resume: bool = False,
    on_epoch: OnEpoch | None = None,
) -> Pretrained:
    """Learn a vector for every node.

    Edges count without weight or direction. Nodes start from one-hot features, that is from a learned table, or from
    the features of the graph where it has any.

    Args:
        method: ``gin`` or ``graphsaint``.
        device: ``auto``, ``cpu`` or ``cuda``.
        state: a file to keep what resuming needs, every few seconds; removed in the end. Where it cannot be written, a
            warning says so.
        resume: go on from ``state`` where it is there; on a CPU the result is the same bit for bit.
        on_epoch: called with epoch, loss, val_auroc (uniform non-edges) and val_matched_auroc after every epoch.

    Raises:
        UserError: for an unknown method, settings out of range, or a loss that is no number.
        DataError: for a graph with too few edges or non-edges, or a state of other settings.
    """
    settings = settings or PretrainSettings()
    check_settings(method, dim, settings)
    undirected = graph.undirected()
    split = split_edges(undirected, val_fraction=settings.val_fraction, seed=settings.seed)
    features = None if graph.features is None else np.array(graph.features, np.float32)
    make_encoder, make_sampler = METHODS[method]
    with torch.random.fork_rng():
        torch.manual_seed(stream_key(settings.seed, f"pretrain/initialisation/{method}"))
        encoder = make_encoder(graph.num_nodes, dim, settings, features)
    fabric = Fabric(accelerator=device, devices=1, precision=settings.precision)
    owner = {"graph_hash": graph.content_hash, "method": method, "dim": dim, **asdict(settings), "algorithm": ALGORITHM}
    before = _read_state(state, owner) if resume and state is not None and state.is_file() else None
    saved_at = time.monotonic()

    def after_epoch(record: dict[str, Any], everything: Callable[[], dict[str, Any]]) -> None:
        nonlocal saved_at
        if state is not None and time.monotonic() - saved_at >= SECONDS_BETWEEN_SAVES:
            try:
                save({"owner": owner, **everything()}, state)
            except DataError as error:
                what = f"{error.where}: {error.what}; pretraining goes on, but cannot be resumed from here"
                warnings.warn(what, DataWarning, stacklevel=2)
            saved_at = time.monotonic()
        if on_epoch is not None:
            on_epoch(record)

    progress = _fit(encoder, make_sampler(split, settings), split, settings, fabric, before, after_epoch)
    if state is not None:
        state.unlink(missing_ok=True)
    return Pretrained(
        vectors=progress.best_vectors.numpy(),
        method=method,
        settings=settings,
        graph_hash=graph.content_hash,
        val_auroc=progress.best[0],
        val_matched_auroc=progress.best[1],
        epochs=progress.epoch,
        selected_epoch=progress.best_epoch,
        seconds=progress.seconds,
    )


def check_settings(method: str, dim: int, settings: PretrainSettings) -> None:
    """Refuse what no pretraining can be made of."""
    if method not in METHODS:
        raise UserError(f"unknown method '{method}'", where="pretrain", hint=choices(method, METHODS))
    positive = {
        name: getattr(settings, name) for name in ("hidden", "layers", "batch_size", "epochs", "steps", "roots")
    }
    for name, value in {"embeddings.dim": dim, **{f"pretrain.{name}": n for name, n in positive.items()}}.items():
        if value < 1:
            raise UserError(f"{name} is {value}", where="pretrain", hint="accepted: a whole number from 1")
    right = {
        "fraction": 0 < settings.fraction <= 1,
        "val_fraction": 0 < settings.val_fraction < 1,
        "dropout": 0 <= settings.dropout < 1,
        "matched": 0 <= settings.matched <= 1,
    }
    for name in right:
        value = getattr(settings, name)
        if not right[name]:
            raise UserError(f"pretrain.{name} is {value}", where="pretrain", hint="accepted: a number between 0 and 1")


def _read_state(state: Path, owner: dict[str, Any]) -> dict[str, Any]:
    found = load(state)
    if CHECKSUM not in found:
        raise Damaged(state, "its checksum is missing")
    if found.get("owner") != owner:
        hint = "give the same graph, method and settings, or leave out --resume"
        raise DataError("the pretraining there is another one", where=str(state), hint=hint)
    return found


def _fit(
    encoder: Encoder,
    sampler: Sampler,
    split: EdgeSplit,
    settings: PretrainSettings,
    fabric: Fabric,
    before: dict[str, Any] | None,
    after_epoch: Callable[[dict[str, Any], Callable[[], dict[str, Any]]], None],
) -> Progress:
    optimizer = torch.optim.AdamW(encoder.parameters(), lr=settings.lr, weight_decay=settings.weight_decay)
    wrapped, optimizer = fabric.setup(encoder, optimizer)
    progress = Progress()
    if before is not None:
        encoder.load_state_dict(before["encoder"])
        optimizer.load_state_dict(before["optimizer"])
        progress = Progress(**before["progress"])

    def everything() -> dict[str, Any]:
        fields = {name: getattr(progress, name) for name in Progress.__dataclass_fields__}
        return {"encoder": encoder.state_dict(), "optimizer": optimizer.state_dict(), "progress": fields}

    with torch.random.fork_rng(devices=[fabric.device] if fabric.device.type == "cuda" else []):
        for epoch in range(progress.epoch, settings.epochs):
            begin = time.perf_counter()
            loss = _train_epoch(wrapped, encoder, sampler, optimizer, settings, epoch, fabric)
            if not math.isfinite(loss):
                raise UserError(f"the loss became {loss} in epoch {epoch}", where="pretrain", hint="lower pretrain.lr")
            vectors = embed_all(encoder, sampler.rows, split.offsets, fabric.device).float()
            if not vectors.isfinite().all():
                what = f"the vectors are no longer finite in epoch {epoch}"
                raise UserError(what, where="pretrain", hint="lower pretrain.lr")
            aurocs = (
                link_auroc(vectors, split.val, split.val_non_edges),
                link_auroc(vectors, split.val, split.val_matched),
            )
            if sum(aurocs) > sum(progress.best):
                progress.best, progress.best_epoch, progress.best_vectors = aurocs, epoch, vectors.cpu()
            progress.epoch = epoch + 1
            progress.seconds += time.perf_counter() - begin
            record = {"epoch": epoch, "loss": loss, "val_auroc": aurocs[0], "val_matched_auroc": aurocs[1]}
            after_epoch(record, everything)
            if settings.patience and epoch - progress.best_epoch >= settings.patience:
                break
    return progress


def _train_epoch(
    wrapped: Any,
    encoder: Encoder,
    sampler: Sampler,
    optimizer: Any,
    settings: PretrainSettings,
    epoch: int,
    fabric: Fabric,
) -> float:
    torch.manual_seed(stream_key(settings.seed, f"pretrain/dropout/{epoch}"))
    wrapped.train()
    total = torch.zeros((), device=fabric.device)
    for step in range(epoch * settings.steps, (epoch + 1) * settings.steps):
        batch: Batch = sampler.batch(step).to(fabric.device)
        optimizer.zero_grad()
        scores = encoder.score(wrapped(batch.nodes, batch.adjacencies), batch.pairs)
        value = functional.binary_cross_entropy_with_logits(scores, batch.targets, batch.weights)
        fabric.backward(value)
        optimizer.step()
        total += value.detach()
    return float(total) / settings.steps


def link_auroc(vectors: Tensor, edges: NDArray[np.int32], non_edges: NDArray[np.int32]) -> float:
    """How well dot products tell edges from pairs that are none; one half where there are none of these.

    Shapes:
        vectors: (N, d). edges: (2, m). non_edges: (2, n).
    """
    if not non_edges.shape[1]:
        return 0.5
    tails, heads = torch.from_numpy(np.concatenate([edges, non_edges], axis=1).astype(np.int64)).to(vectors.device)
    scores = (vectors.index_select(0, tails) * vectors.index_select(0, heads)).sum(dim=1)
    truth = torch.zeros(len(scores), dtype=torch.long, device=vectors.device)
    truth[: edges.shape[1]] = 1
    # Ranks, as scores outside 0..1 would be put through a logistic curve, which makes equals of large ones.
    ranks = torch.unique(scores, return_inverse=True)[1].double()
    return float(binary_auroc(ranks / len(ranks), truth))
