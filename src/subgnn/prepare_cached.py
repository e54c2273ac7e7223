"""Prepare once, and take it from the cache from then on."""

from __future__ import annotations

import hashlib
import json
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from subgnn.cache import cache_limit, cache_path, make_room, touch
from subgnn.config import ChannelSettings, PrepareSettings
from subgnn.data.graph import Graph
from subgnn.errors import DataError, DataWarning
from subgnn.pacing import OnProgress
from subgnn.prepare import ALGORITHM_VERSION, Prepared, prepare
from subgnn.prepared_file import encode, read_prepared, write_prepared
from subgnn.ragged import Ragged

_KIND = "prepared"


@dataclass(frozen=True, slots=True, eq=False)
class Cached:
    """Prepared subgraphs, the file that holds them, where one does, and whether it was there already."""

    prepared: Prepared
    path: Path | None
    found: bool


def content_key(
    graph_hash: str,
    subgraphs: Ragged,
    *,
    channels: tuple[ChannelSettings, ...],
    layers: int,
    settings: PrepareSettings,
    seed: int,
) -> str:
    """Everything that prepared subgraphs are a function of, as text; the name of their file is its SHA-256."""
    digest = hashlib.sha256()
    for array in (subgraphs.offsets.astype("<i8", copy=False), subgraphs.values.astype("<i8", copy=False)):
        digest.update(f"{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    ingredients = {
        "algorithm": ALGORITHM_VERSION,
        "graph": graph_hash,
        "subgraphs": digest.hexdigest(),
        "channels": [asdict(channel) for channel in channels],
        "layers": layers,
        # How many draws there are is nothing to any one of them.
        "settings": {k: v for k, v in asdict(settings).items() if k not in ("draws", "ensemble")},
        "seed": int(seed),
    }
    return json.dumps(ingredients, sort_keys=True, separators=(",", ":"))


def prepare_cached(
    graph: Graph,
    subgraphs: Ragged,
    *,
    channels: tuple[ChannelSettings, ...],
    layers: int,
    settings: PrepareSettings,
    seed: int,
    cache: bool = True,
    on_progress: OnProgress | None = None,
) -> Cached:
    """As :func:`~subgnn.prepare.prepare`, but look into the cache first, and leave the result there.

    A file that is damaged or belongs to something else is computed anew and replaced; a cache that cannot be written is
    done without. Either is said in a :class:`~subgnn.errors.DataWarning`.

    Args:
        cache: off, it is neither looked into nor written.
    """

    def compute() -> Prepared:
        return prepare(
            graph,
            subgraphs,
            channels=channels,
            layers=layers,
            settings=settings,
            seed=seed,
            on_progress=on_progress,
        )

    limit = cache_limit() if cache else 0
    if limit == 0:
        return Cached(compute(), None, False)
    graph_hash = graph.content_hash
    key = content_key(graph_hash, subgraphs, channels=channels, layers=layers, settings=settings, seed=seed)
    path = cache_path(_KIND, hashlib.sha256(key.encode()).hexdigest())
    try:
        found = read_prepared(path, key=key, channels=channels, settings=settings, seed=seed, graph_hash=graph_hash)
    except FileNotFoundError:
        pass
    except DataError as error:
        what = f"{path}: damaged, and not used ({error.what}); it is computed anew and the file replaced"
        warnings.warn(what, DataWarning, stacklevel=2)
    else:
        touch(path)
        return Cached(found, path, True)
    prepared = compute()
    return Cached(prepared, path if _keep(prepared, path, key, limit) else None, False)


def _keep(prepared: Prepared, path: Path, key: str, limit: int) -> bool:
    """Write a file into the cache; where that cannot be, say so and go on."""
    parts = encode(prepared, key)
    size = sum(memoryview(part).nbytes for part in parts)
    if size > limit:
        what = f"{path}: not kept: {size / 1e6:,.0f} MB, more than SUBGNN_CACHE_LIMIT ({limit / 1e6:,.0f} MB)"
        warnings.warn(what, DataWarning, stacklevel=3)
        return False
    try:
        make_room(size, limit, replaces=path)
        write_prepared(path, parts)
    except (DataError, OSError) as error:
        what = error.what if isinstance(error, DataError) else f"cannot be written ({error.strerror or error})"
        hint = "work goes on without the cache; SUBGNN_CACHE names another folder"
        warnings.warn(f"{path}: {what}; {hint}", DataWarning, stacklevel=3)
        return False
    return True
