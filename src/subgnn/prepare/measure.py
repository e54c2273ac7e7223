"""Components, anchors and similarities of subgraphs: functions of graph, settings, seed and nodes; and their cache."""

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.channels.channel import NodeAnchors, OwnAnchors, PatchAnchors, SharedAnchors, Work, each_array
from subgnn.channels.distances import searches_at_once
from subgnn.channels.table import channel_of, similarity_of
from subgnn.config.settings import ChannelSettings, PrepareSettings, Recipe
from subgnn.data.graph import Graph
from subgnn.errors import DataError, UserError
from subgnn.kernels.induced import Components, induced_components
from subgnn.parallel.memory import share
from subgnn.parallel.progress import OnProgress, ignore
from subgnn.ragged import Ragged
from subgnn.storage.arrays import Format, Parts, encode_arrays, read_arrays
from subgnn.storage.cache import cache_limit, cache_path, lookup, store

ALGORITHM_VERSION = 1
"""Increased when the same input gives different numbers, so that cached ones are not used."""
LAYOUT = 4
"""Increased when the layout of the file changes, so that older files are computed again."""
_PREPARED = Format("subgnn-prepared", "prepared file", "subgnn prepare writes one", "prepare again")


@dataclass(frozen=True, slots=True, eq=False)
class SubchannelInputs:
    """What one layer of one subchannel sees of the components (C, n_A); ``own`` is None if the anchors are shared."""

    similarity: NDArray[np.float32]
    own: OwnAnchors | None


@dataclass(frozen=True, slots=True)
class Plan:
    """Channels, number of layers L, settings and seed: all that prepared subgraphs depend on, besides the graph."""

    channels: tuple[ChannelSettings, ...]
    layers: int
    settings: PrepareSettings
    seed: int


@dataclass(frozen=True, slots=True, eq=False)
class Frame(Plan):
    """A plan and its shared anchors: all that subgraphs are measured by, besides the graph."""

    shared: list[list[SharedAnchors | None]]  # by layer and channel; None if every component has its own

    def anchors(self, i: int) -> list[SharedAnchors]:
        """The shared anchors of ``channels[i]``, by layer."""
        found = [layer[i] for layer in self.shared if layer[i] is not None]
        if len(found) < self.layers:
            raise ValueError(f"{self.channels[i].name} has shared anchors, but not all were given")
        return found  # type: ignore[return-value]


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """Subgraphs ready for a model; ``inputs[layer][i]`` belongs to ``frame.channels[i]``."""

    frame: Frame
    graph_hash: str
    components: Components
    inputs: list[list[SubchannelInputs]]

    def extend(self, graph: Graph, subgraphs: Ragged) -> "Prepared":
        """Other subgraphs of the same graph, measured against the same shared anchors."""
        return measure(graph, subgraphs, self.frame)

    def touched(self, subgraphs: NDArray[np.int64] | None = None) -> NDArray[np.int32]:
        """The nodes that need embeddings, sorted: of components, anchors and walks, of all subgraphs or of some."""
        rows: Any = slice(None)
        nodes = self.components.nodes
        if subgraphs is not None:
            rows = np.flatnonzero(np.isin(self.components.subgraph, subgraphs))
            nodes = nodes.take(rows)
        own = [inputs.own for layer in self.inputs for inputs in layer if inputs.own is not None]
        shared = [anchors for layer in self.frame.shared for anchors in layer if anchors is not None]
        anchors = [*shared, *(each_array(lambda array: array[rows], one) for one in own)]
        return np.unique(np.concatenate([nodes.values, *(one.touched for one in anchors)]))


def prepare(
    graph: Graph, subgraphs: Ragged, plan: Plan, *, cache: bool = False, on_progress: OnProgress = ignore
) -> Prepared:
    """Draw shared anchors and measure subgraphs, sorted node sets, against them; ``cache`` as for :func:`measure`."""
    by_channel: list[list[Any]] = []
    for settings in plan.channels:
        similarity_of(settings, plan.settings)  # an unknown one is refused before any work
        work, channel = Work(graph, plan.settings, settings, plan.layers, plan.seed), channel_of(settings)
        by_channel.append(channel.sample(work) if channel.shared else [None] * plan.layers)
    shared = [[anchors[layer] for anchors in by_channel] for layer in range(plan.layers)]
    frame = Frame(plan.channels, plan.layers, plan.settings, plan.seed, shared)
    return measure(graph, subgraphs, frame, cache=cache, on_progress=on_progress)


def measure(
    graph: Graph, subgraphs: Ragged, frame: Frame, *, on_progress: OnProgress = ignore, cache: bool = False
) -> Prepared:
    """Measure subgraphs against shared and own anchors; with ``cache``, searches across a large graph are kept."""
    settings = frame.settings
    if any(similarity_of(channel, settings).searches for channel in frame.channels):
        searches_at_once(graph)  # refuses, before the work, if memory is too small for one
    components = induced_components(*graph.csr, subgraphs)
    by_channel = []
    for i, channel in enumerate(frame.channels if frame.layers else ()):
        work = Work(graph, settings, channel, frame.layers, frame.seed, on_progress, cache)
        compare = similarity_of(channel, settings).measure[channel_of(channel).anchors]
        if channel_of(channel).shared:
            shared = compare(work, components.nodes, frame.anchors(i))
            by_channel.append([SubchannelInputs(one, None) for one in shared])
        else:
            own, found = channel_of(channel).sample(work, subgraphs, components), []
            for similarity, anchors in zip(compare(work, components.nodes, own), own, strict=True):
                similarity[~anchors.present] = 0
                found.append(SubchannelInputs(similarity, replace(anchors, weights=None)))
            by_channel.append(found)
        # A network would learn from whatever a similarity returns.
        where, shape = f"the similarity of {channel.name}", (len(components.nodes), channel.num_anchors)
        if len(by_channel[-1]) != frame.layers:
            raise UserError(f"it returned {len(by_channel[-1])} layers", where=where, hint=f"accepted: {frame.layers}")
        for values in (layer.similarity for layer in by_channel[-1]):
            if values.shape != shape:
                hint = f"accepted: {shape}, one row per component and one column per anchor"
                raise UserError(f"it has the shape {values.shape}", where=where, hint=hint)
            low, high = values.min(initial=0), values.max(initial=0)
            if not (low >= 0 and high <= 1):
                raise UserError(f"it ranges from {low} to {high}", where=where, hint="accepted: numbers from 0 to 1")
    inputs = [[of_channel[layer] for of_channel in by_channel] for layer in range(frame.layers)]
    return Prepared(frame, graph.content_hash, components, inputs)


@dataclass(frozen=True, slots=True, eq=False)
class Cached:
    """Prepared subgraphs, the file that holds them, if any, and whether it existed before."""

    prepared: Prepared
    path: Path | None
    found: bool


def content_key(graph_hash: str, subgraphs: Ragged, plan: Plan) -> str:
    """All that prepared subgraphs depend on, as text; the name of their file is its SHA-256."""
    versions = {"algorithm": ALGORITHM_VERSION, "layout": LAYOUT}
    content = {"graph": graph_hash, "subgraphs": subgraphs.digest, **asdict(plan), "seed": int(plan.seed)}
    return json.dumps(versions | content, sort_keys=True, separators=(",", ":"))


def prepare_cached(
    recipe: Recipe, graph: Graph, subgraphs: Ragged, *, seed: int, cache: bool = True, on_progress: OnProgress = ignore
) -> Cached:
    """Read the prepared subgraphs of a recipe from the cache, or :func:`prepare` them and store them there."""
    plan = Plan(recipe.channels, recipe.model.layers, recipe.prepare, seed)
    compute = partial(prepare, graph, subgraphs, plan, cache=cache, on_progress=on_progress)
    if not cache or cache_limit() == 0:
        return Cached(compute(), None, False)
    key = content_key(graph.content_hash, subgraphs, plan)
    path = cache_path("prepared", hashlib.sha256(key.encode()).hexdigest())
    read = partial(read_prepared, path, plan, key=key, graph_hash=graph.content_hash)
    if (found := lookup(path, read)) is not None:
        return Cached(found, path, True)
    prepared = compute()
    if not store(path, encode(prepared, key)):
        return Cached(prepared, None, False)
    if path.stat().st_size > share(0.1):
        prepared = read()  # whose arrays stay in the file and take no memory
    return Cached(prepared, path, False)


def encode(prepared: Prepared, key: str) -> Parts:
    """Prepared subgraphs as the parts of a file; ``key`` identifies the content."""
    found: list[NDArray[Any]] = []
    each_array(found.append, [prepared.components, prepared.frame.shared, prepared.inputs])
    # Each array once, and the number of the array in each place.
    distinct = {id(array): array for array in found}
    numbers = {key: str(number) for number, key in enumerate(distinct)}
    arrays = {numbers[key]: array for key, array in distinct.items()}
    frozen = [name for name, array in arrays.items() if not array.flags.writeable]
    return encode_arrays(arrays, _PREPARED, {"places": [numbers[id(a)] for a in found], "frozen": frozen}, {"key": key})


def read_prepared(path: Path, plan: Plan, *, key: str, graph_hash: str) -> Prepared:
    """Read prepared subgraphs; refuses a file that is damaged or has a different key."""
    file = read_arrays(path, _PREPARED, mapped="c")
    if file.metadata.get("key") != key:
        raise DataError("it was prepared from different content", where=str(path))
    content = file.content()
    for name in content["frozen"]:
        file.arrays[name].flags.writeable = False
    # Components, shared anchors and inputs as the plan determines them, with an empty array in each place.
    none: Any = np.empty(0)
    rows, own = Ragged(none, none), OwnAnchors(none, none)
    kinds = [channel_of(channel) for channel in plan.channels]
    patches, nodes = PatchAnchors(rows, rows), NodeAnchors(none)
    of_layer = [(patches if kind.patches else nodes) if kind.shared else None for kind in kinds]
    of_inputs = [SubchannelInputs(none, None if kind.shared else own) for kind in kinds]
    blank: list[Any] = [Components(rows, none, none), [of_layer] * plan.layers, [of_inputs] * plan.layers]
    places = iter(content["places"])
    components, shared, inputs = each_array(lambda _: file.arrays[next(places)], blank)
    return Prepared(Frame(plan.channels, plan.layers, plan.settings, plan.seed, shared), graph_hash, components, inputs)
