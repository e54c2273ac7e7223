"""Measuring subgraphs over the machines of a cluster; what comes out is what one machine gives, byte for byte.

Two kinds of work are cut apart, for they grow with different things. What a component draws and measures by itself (own
anchors, degree sequences) is cut by ranges of subgraphs. Hops to shared anchors are searched from the anchors across
the whole graph: cut by subgraphs every part would repeat all searches, so these are cut by anchors, a word of them at a
time, which one search serves (:mod:`subgnn.kernels.distances`). No number depends on where the cuts are, since none
depends on another subgraph or another anchor.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import pairwise
from pathlib import Path
from socket import gethostname

import numpy as np
from numpy.typing import NDArray

from subgnn.channels.anchors import NodeAnchors, OwnAnchors, SharedAnchors
from subgnn.channels.similarity import Nearness, shared_hops
from subgnn.config.settings import ChannelSettings
from subgnn.data.formats import read_dataset
from subgnn.data.formats.bundle import is_bundle
from subgnn.data.graph import Graph
from subgnn.errors import DataError
from subgnn.kernels import induced_components
from subgnn.kernels.distances import WORD
from subgnn.parallel.engine import Engine, Failure, Shared
from subgnn.parallel.progress import OnProgress
from subgnn.prepare.measure import Frame, Measuring, Prepared, SubchannelInputs, measure, seen_hash
from subgnn.ragged import Ragged

_PARTS_A_SLOT = 4  # so that a slow one holds up little
_BYTES_A_PART = 64 * 2**20


@dataclass(frozen=True, slots=True)
class MappedGraph:
    """The undirected graph of a bundle, which a worker maps into memory: one copy of its pages on each machine."""

    path: str
    graph_hash: str

    def get(self) -> Graph:
        """The graph.

        Raises:
            DataError: where the worker's machine has no such bundle, or another one.
        """
        return _mapped(self.path, self.graph_hash)


@lru_cache(maxsize=1)
def _mapped(path: str, graph_hash: str) -> Graph:
    hint = "put the bundle at this path of every machine, or give a folder: its graph is sent to the workers"
    if not Path(path).is_file():
        raise DataError(f"no such file on {gethostname()}", where=path, hint=hint)
    graph = read_dataset(path).graph
    if graph.content_hash != graph_hash:
        raise DataError(f"another graph on {gethostname()}", where=path, hint=hint)
    return graph


def place_graph(engine: Engine, graph: Graph, *, source: Path | None = None) -> Shared[Graph]:
    """Put a graph where an engine's workers read it, once for each machine.

    Args:
        graph: undirected.
        source: where it was read from. A bundle of an undirected graph is mapped by each worker, which must find it at
            the same path; any other graph goes through the engine.
    """
    if source is not None and source.is_file() and is_bundle(source) and graph.oriented is None:
        return MappedGraph(str(source.resolve()), graph.content_hash)
    # Names are for people, and a hash that is known is not computed again by each worker.
    oriented = None if graph.oriented is None else _bare(graph.oriented)
    return engine.share(replace(_bare(graph), oriented=oriented))


def _bare(graph: Graph) -> Graph:
    return replace(graph, names=None, known_hash=graph.content_hash)


def spread_over(engine: Engine, placed: Shared[Graph]) -> Measuring:
    """What measures subgraphs by an engine; ``placed`` is their graph, from :func:`place_graph`."""
    return partial(measure_spread, engine=engine, placed=placed)


@dataclass(frozen=True, slots=True, eq=False)
class _Common:
    """What all parts of a measurement need: of the frame, the channels that are cut by subgraphs."""

    graph: Shared[Graph]
    subgraphs: Ragged
    components: Ragged
    frame: Frame
    sources: NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """A range of subgraphs, or of the shared anchors that are searched from."""

    common: Shared[_Common]
    of: str
    begin: int
    end: int


def measure_spread(
    graph: Graph,
    subgraphs: Ragged,
    frame: Frame,
    *,
    on_progress: OnProgress | None = None,
    engine: Engine,
    placed: Shared[Graph],
) -> Prepared:
    """As :func:`~subgnn.prepare.measure.measure`, by the workers of an engine.

    Args:
        placed: the graph, from :func:`place_graph`.

    Raises:
        UserError, RuntimeError: where a part of it failed.
    """
    components, channels, shared = induced_components(*graph.csr, subgraphs), frame.channels, frame.shared
    searched = [i for i, channel in enumerate(channels) if channel.shared and channel.kind != "structure"]
    others = [i for i in range(len(channels)) if i not in searched]
    columns = {(layer, i): _nodes(shared[layer][i]) for i in searched for layer in range(frame.layers)}
    cut = [[layer[i] for i in others] for layer in shared]
    common = _Common(
        graph=placed,
        subgraphs=subgraphs,
        components=components.nodes,
        frame=replace(frame, channels=tuple(channels[i] for i in others), shared=cut),
        sources=np.concatenate([np.empty(0, np.int32), *columns.values()]),
    )
    inputs = [[_empty(channel, len(components.nodes)) for channel in channels] for _ in shared]
    starts = np.concatenate([[0], np.cumsum(components.counts)])
    jobs = _parts(engine, common)
    found = {"subgraphs": [[layer[i] for i in others] for layer in inputs]}
    for done, (job, result) in enumerate(engine.map(_measure_part, jobs), 1):
        if isinstance(result, Failure):
            result.throw()
        if job.of == "subgraphs":
            _put_rows(found["subgraphs"], result, slice(starts[job.begin], starts[job.end]))
        else:
            _put_columns([inputs[layer][i] for layer, i in columns], result, job.begin)
        if on_progress is not None:
            on_progress("measuring on the cluster", done, len(jobs))
    return Prepared(frame, seen_hash(graph, frame.settings), components, inputs)


def _nodes(anchors: SharedAnchors | None) -> NDArray[np.int32]:
    if not isinstance(anchors, NodeAnchors):
        raise ValueError("position/border has shared anchors, and not all were given")
    return anchors.nodes


def _empty(channel: ChannelSettings, count: int) -> SubchannelInputs:
    shape = (count, channel.num_anchors)
    own = None if channel.shared else OwnAnchors(np.empty(shape, np.int32), np.empty(count, np.bool_))
    return SubchannelInputs(Nearness(np.empty(shape, np.float32), np.empty(shape, np.float32)), own)


def _parts(engine: Engine, common: _Common) -> list[_Part]:
    """Words of anchors, each a search across the graph; after these, ranges of subgraphs with about as many nodes."""
    shared = engine.share(common)
    words = [
        _Part(shared, "anchors", begin, min(begin + WORD, len(common.sources)))
        for begin in range(0, len(common.sources), WORD)
    ]
    frame = common.frame
    each = 12 * frame.layers * sum(channel.num_anchors for channel in frame.channels)
    count = max(_PARTS_A_SLOT * engine.slots, each * len(common.components) // _BYTES_A_PART)
    if not frame.channels or not len(common.subgraphs):
        return words
    offsets = common.subgraphs.offsets
    cuts = np.searchsorted(offsets, np.linspace(0, offsets[-1], count + 1)[1:-1])
    bounds = np.unique(np.concatenate([[0], cuts, [len(common.subgraphs)]])).tolist()
    return words + [_Part(shared, "subgraphs", a, b) for a, b in pairwise(bounds)]


def _measure_part(part: _Part) -> list[list[SubchannelInputs]]:
    """What a worker does: a part, as one machine would do it alone."""
    common = part.common.get()
    graph, rows = common.graph.get(), np.arange(part.begin, part.end)
    if part.of == "anchors":
        anchors = [NodeAnchors(common.sources[rows])]
        (nearness,) = shared_hops(graph, common.components, anchors, common.frame.settings)
        return [[SubchannelInputs(nearness, None)]]
    return measure(graph, common.subgraphs.take(rows), common.frame).inputs


def _put_rows(whole: list[list[SubchannelInputs]], some: list[list[SubchannelInputs]], rows: slice) -> None:
    for wholes, parts in zip(whole, some, strict=True):
        for ours, theirs in zip(wholes, parts, strict=True):
            ours.nearness.distance[rows] = theirs.nearness.distance
            ours.nearness.reached[rows] = theirs.nearness.reached
            if ours.own is not None and theirs.own is not None:
                ours.own.nodes[rows] = theirs.own.nodes
                ours.own.present[rows] = theirs.own.present


def _put_columns(whole: list[SubchannelInputs], some: list[list[SubchannelInputs]], begin: int) -> None:
    """Anchors of all layers stand side by side; a word of them may be of two."""
    nearness, at = some[0][0].nearness, 0
    end = begin + nearness.distance.shape[1]
    for ours in (inputs.nearness for inputs in whole):
        low, high = max(begin, at), min(end, at + ours.distance.shape[1])
        if low < high:
            ours.distance[:, low - at : high - at] = nearness.distance[:, low - begin : high - begin]
            ours.reached[:, low - at : high - at] = nearness.reached[:, low - begin : high - begin]
        at += ours.distance.shape[1]
