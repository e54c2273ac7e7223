"""Pretrained embeddings under a key of what they follow from: graph, method, width, settings, algorithm."""

from __future__ import annotations

import hashlib
import json
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.cache import cache_folder
from subgnn.config import PretrainSettings
from subgnn.data.graph import Graph
from subgnn.embeddings.pretrain import ALGORITHM, OnEpoch, Pretrained, check_settings, pretrain
from subgnn.embeddings.stored import read_vectors, write_vectors
from subgnn.errors import DataError, DataWarning


def cache_file(graph: Graph, method: str, *, dim: int, settings: PretrainSettings) -> Path:
    """Where the embeddings of these settings are kept."""
    parts = {"graph": graph.content_hash, "method": method, "dim": dim, "algorithm": ALGORITHM, **asdict(settings)}
    key = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
    return cache_folder() / "embeddings" / f"{key[:32]}.safetensors"


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
    on_epoch: OnEpoch | None = None,
) -> NDArray[np.float32]:
    """Embeddings from the cache, or pretrained and put there; a pretraining that was interrupted goes on.

    A damaged file is replaced, with a warning.

    Shapes:
        returns: (N, dim) float32.
    """
    check_settings(method, dim, settings)
    file = cache_file(graph, method, dim=dim, settings=settings)
    if file.is_file():
        try:
            return read_vectors(file, graph)
        except DataError as error:
            warnings.warn(f"{error.where}: {error.what}; computed anew", DataWarning, stacklevel=2)
    state = file.with_suffix(".state.pt")
    found = pretrain(
        graph,
        method,
        dim=dim,
        settings=settings,
        device=device,
        state=state,
        resume=True,
        on_epoch=on_epoch,
    )
    write_vectors(file, found.vectors, about(found), graph_hash=graph.content_hash, overwrite=True)
    return found.vectors
