"""Pretrained embeddings under a key of what they follow from: graph, method, width, settings, algorithm."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.config.settings import PretrainSettings
from subgnn.data.graph import Graph
from subgnn.embeddings.pretrain import ALGORITHM, OnEpoch, Pretrained, check_settings, pretrain
from subgnn.embeddings.stored import read_vectors, write_vectors
from subgnn.errors import DataError, DataWarning
from subgnn.parallel.locks import try_lock
from subgnn.storage.cache import cache_limit, cache_path, keep, touch
from subgnn.storage.tensor_file import Damaged

_KIND = "embeddings"
_HEADER = 4096  # bytes, more than a file has beside the vectors


def cache_file(graph: Graph, method: str, *, dim: int, settings: PretrainSettings) -> Path:
    """Where the embeddings of these settings are kept."""
    parts = {"graph": graph.content_hash, "method": method, "dim": dim, "algorithm": ALGORITHM, **asdict(settings)}
    key = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
    return cache_path(_KIND, key)


def about(found: Pretrained) -> dict[str, Any]:
    """What a file of embeddings says of how they were had."""
    return {
        "method": found.method,
        "settings": asdict(found.settings),
        "val_auroc": found.val_auroc,
        "val_matched_auroc": found.val_matched_auroc,
        "epochs": found.epochs,
        "selected_epoch": found.selected_epoch,
        "seconds": found.seconds,
    }


def pretrained_vectors(
    graph: Graph,
    method: str,
    *,
    dim: int,
    settings: PretrainSettings,
    device: str = "auto",
    cache: bool = True,
    on_epoch: OnEpoch | None = None,
) -> NDArray[np.float32]:
    """Embeddings from the cache, or pretrained and put there; a pretraining that was interrupted goes on.

    A damaged file is replaced, and a cache that cannot be written is done without, with a warning. Of processes that
    pretrain the same at once each does its own work, and one of them keeps what resuming needs.

    Args:
        cache: off, it is neither looked into nor written.

    Shapes:
        returns: (N, dim) float32.
    """
    check_settings(method, dim, settings)

    def compute(state: Path | None) -> Pretrained:
        return pretrain(
            graph,
            method,
            dim=dim,
            settings=settings,
            device=device,
            state=state,
            resume=state is not None,
            on_epoch=on_epoch,
        )

    if not cache or cache_limit() == 0:
        return compute(None).vectors
    file = cache_file(graph, method, dim=dim, settings=settings)
    if file.exists():
        try:
            vectors = read_vectors(file, graph)
        except DataError as error:
            warnings.warn(f"{error.where}: {error.what}; computed anew", DataWarning, stacklevel=2)
        else:
            touch(file)
            return vectors
    state = file.with_suffix(".state.pt")
    with try_lock(state) as alone:
        found = _going_on(compute, state) if alone else compute(None)
    graph_hash = graph.content_hash
    keep(
        file,
        found.vectors.nbytes + _HEADER,
        lambda: write_vectors(file, found.vectors, about(found), graph_hash=graph_hash, overwrite=True),
    )
    return found.vectors


def _going_on(compute: Callable[[Path | None], Pretrained], state: Path) -> Pretrained:
    try:
        return compute(state)
    except Damaged as error:
        what = f"{error.where}: {error.what}; the pretraining starts from the beginning"
        warnings.warn(what, DataWarning, stacklevel=3)
        state.unlink()
        return compute(state)
