"""Prepared subgraphs in the cache: computed once, and read from a file from then on.

A file holds arrays (:mod:`subgnn.storage.arrays`) and the key they belong to. Arrays come back equal bit for bit, of
the same type, and read-only where they were. They stay in the file, which is mapped into memory, so that training reads
the rows of its batches.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from subgnn.channels.channel import Distances, NodeAnchors, OwnAnchors, PatchAnchors, Similarities, draw_seed
from subgnn.config.settings import Recipe
from subgnn.data.graph import Graph
from subgnn.errors import DataError
from subgnn.kernels.induced import Components
from subgnn.parallel.memory import share
from subgnn.parallel.progress import OnProgress, ignore
from subgnn.prepare.measure import (
    ALGORITHM_VERSION,
    Frame,
    Measuring,
    Plan,
    Prepared,
    SubchannelInputs,
    measure,
    prepare,
    seen_hash,
)
from subgnn.ragged import Ragged
from subgnn.storage.arrays import Arrays, Format, Parts, encode_arrays, read_arrays
from subgnn.storage.cache import cache_limit, cache_path, lookup, store

_KIND = "prepared"


@dataclass(frozen=True, slots=True, eq=False)
class Cached:
    """Prepared subgraphs, the file that holds them, if any, and whether it existed before."""

    prepared: Prepared
    path: Path | None
    found: bool


def content_key(graph_hash: str, subgraphs: Ragged, plan: Plan) -> str:
    """All that prepared subgraphs depend on, as text; the name of their file is its SHA-256."""
    ingredients = {
        "algorithm": ALGORITHM_VERSION,
        "layout": LAYOUT,
        "graph": graph_hash,
        "subgraphs": subgraphs.digest,
        "channels": [asdict(channel) for channel in plan.channels],
        "layers": plan.layers,
        # A draw does not depend on how many there are.
        "settings": {k: v for k, v in asdict(plan.settings).items() if k not in ("draws", "ensemble")},
        "seed": int(plan.seed),
    }
    return json.dumps(ingredients, sort_keys=True, separators=(",", ":"))


def prepare_cached(
    graph: Graph,
    subgraphs: Ragged,
    plan: Plan,
    *,
    cache: bool = True,
    on_progress: OnProgress = ignore,
    measuring: Measuring | None = None,
) -> Cached:
    """Read prepared subgraphs from the cache, or :func:`~subgnn.prepare.measure.prepare` them and store them there.

    A file that is damaged or belongs to another key is replaced, and a cache that cannot be written is not used, both
    with a :class:`~subgnn.errors.DataWarning`. With ``cache`` off, it is neither read nor written.
    """

    def compute() -> Prepared:
        return prepare(graph, subgraphs, plan, on_progress=on_progress, measuring=measuring)

    if not cache or cache_limit() == 0:
        return Cached(compute(), None, False)
    graph_hash = seen_hash(graph, plan.settings)
    key = content_key(graph_hash, subgraphs, plan)
    path = cache_path(_KIND, hashlib.sha256(key.encode()).hexdigest())

    def read() -> Prepared:
        return read_prepared(path, plan, key=key, graph_hash=graph_hash)

    found = lookup(path, read)
    if found is not None:
        return Cached(found, path, True)
    prepared = compute()
    parts = encode(prepared, key)
    if not store(path, parts):
        return Cached(prepared, None, False)
    if path.stat().st_size > share(0.1):
        # Read back, the arrays stay in the file and take no memory.
        del prepared, parts
        return Cached(read(), path, False)
    return Cached(prepared, path, False)


def prepare_draws_cached(
    recipe: Recipe,
    graph: Graph,
    subgraphs: Ragged,
    *,
    seed: int,
    cache: bool = True,
    on_progress: OnProgress = ignore,
    measuring: Measuring | None = None,
) -> Iterator[Cached]:
    """Prepared subgraphs for each draw of anchors that training or evaluation uses, one draw at a time."""
    draws = recipe.prepare.draws
    if not recipe.prepare.ensemble:
        # An epoch trains on one draw: more draws than epochs are never used.
        draws = min(draws, max(1, recipe.training.epochs))
    for draw in range(draws):
        plan = Plan(recipe.channels, recipe.model.layers, recipe.prepare, draw_seed(seed, draw))
        predicts = draw == 0 or recipe.prepare.ensemble  # searches from the anchors of other draws are not needed again
        here = measuring or partial(measure, cache=cache and predicts)
        yield prepare_cached(graph, subgraphs, plan, cache=cache, on_progress=on_progress, measuring=here)


_PREPARED = Format(
    name="subgnn-prepared",
    noun="prepared file",
    make="subgnn prepare writes one",
    again="prepare again",
)
LAYOUT = 2
"""Increased when the arrangement of arrays changes, so that files written before are computed again."""


def encode(prepared: Prepared, key: str) -> Parts:
    """Prepared subgraphs as the parts of a file; ``key`` identifies the content."""
    arrays: Arrays = {}
    names: dict[int, str] = {}

    def pack(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            if id(value) not in names:
                names[id(value)] = f"array.{len(names)}"
                arrays[names[id(value)]] = value
            return names[id(value)]
        if isinstance(value, list):
            return [pack(item) for item in value]
        if is_dataclass(value):
            return {field.name: pack(getattr(value, field.name)) for field in fields(value)}
        return value

    parts = (prepared.components, prepared.frame.shared, prepared.inputs)
    # The arrays, each once, and a tree that names the array in each place.
    tree = {name: pack(part) for name, part in zip(_PARTS, parts, strict=True)}
    frozen = [name for name, array in arrays.items() if not array.flags.writeable]
    return encode_arrays(arrays, _PREPARED, {"tree": tree, "frozen": frozen}, {"key": key})


def read_prepared(path: Path, plan: Plan, *, key: str, graph_hash: str) -> Prepared:
    """Read prepared subgraphs; refuses a file that is damaged or belongs to another key."""
    file = read_arrays(path, _PREPARED, mapped="c")
    if file.metadata.get("key") != key:
        raise DataError("it belongs to other content", where=str(path))
    content = file.content()
    for name in content["frozen"]:
        file.arrays[name].flags.writeable = False
    components, shared, inputs = (_unpack(content["tree"][part], file.arrays) for part in _PARTS)
    return Prepared(Frame(plan.channels, plan.settings, shared, plan.seed), graph_hash, components, inputs)


_PARTS = ("components", "shared", "inputs")
_TYPES = (Ragged, Components, NodeAnchors, PatchAnchors, OwnAnchors, Distances, Similarities, SubchannelInputs)


def _unpack(entry: Any, arrays: Arrays) -> Any:
    """What was packed; a dataclass is known by the names of its fields."""
    if isinstance(entry, str):
        return arrays[entry]
    if isinstance(entry, list):
        return [_unpack(item, arrays) for item in entry]
    if entry is None:
        return None
    kind = next(kind for kind in _TYPES if entry.keys() == {field.name for field in fields(kind)})
    return kind(**{name: _unpack(value, arrays) for name, value in entry.items()})
