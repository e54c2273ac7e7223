"""Measure subgraphs over the processes or machines of an engine, with the same result as in one process, byte for byte.

Work is divided in two ways. Most channels are divided by ranges of subgraphs: a component's own anchors and its degree
sequence depend on nothing else. A similarity that searches the graph from shared anchors is divided by anchors, as many
at a time as one search serves (:mod:`subgnn.kernels.distances`), because every range of subgraphs would repeat all
searches. No number depends on another subgraph or another anchor, so none depends on the division.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from operator import setitem
from pathlib import Path
from socket import gethostname
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.channels.channel import NodeAnchors, Work, each_array
from subgnn.channels.table import channel_of, similarity_of
from subgnn.config.settings import ChannelSettings
from subgnn.data.formats import read_dataset
from subgnn.data.formats.bundle import is_bundle
from subgnn.data.graph import Graph
from subgnn.errors import DataError
from subgnn.kernels.distances import WORD
from subgnn.kernels.induced import induced_components
from subgnn.parallel.engine import Engine, Failure, Shared
from subgnn.parallel.progress import OnProgress, ignore
from subgnn.prepare.measure import Frame, Prepared, SubchannelInputs, measure, seen_hash
from subgnn.ragged import Ragged

_PARTS_A_SLOT = 4  # so that one slow part delays the end little
_BYTES_A_PART = 64 * 2**20


@dataclass(frozen=True, slots=True)
class MappedGraph:
    """The undirected graph of a bundle, which a worker maps into memory: one copy of its pages on each machine."""

    path: str
    graph_hash: str

    def get(self) -> Graph:
        """The graph; an error if the worker's machine has no bundle at this path, or one with a different graph."""
        return _mapped(self.path, self.graph_hash)


@lru_cache(maxsize=1)
def _mapped(path: str, graph_hash: str) -> Graph:
    hint = "put the bundle at this path on every machine, or give a folder, whose graph is sent to the workers"
    if not Path(path).is_file():
        raise DataError(f"there is no such file on {gethostname()}", where=path, hint=hint)
    graph = read_dataset(path).graph
    if graph.content_hash != graph_hash:
        raise DataError(f"the file on {gethostname()} holds a different graph", where=path, hint=hint)
    return graph


def place_graph(engine: Engine, graph: Graph, *, source: Path | None = None, with_names: bool = False) -> Shared[Graph]:
    """Make an undirected graph available to an engine's workers, once on each machine.

    A bundle of an undirected graph, read from ``source``, is mapped by each worker at the same path; any other graph is
    sent through the engine, without the names of nodes unless they are wanted.
    """
    if source is not None and source.is_file() and is_bundle(source) and graph.oriented is None:
        return MappedGraph(str(source.resolve()), graph.content_hash)

    def bare(one: Graph) -> Graph:
        # Workers need not compute the hash again.
        return replace(one, names=one.names if with_names else None, known_hash=one.content_hash)

    oriented = None if graph.oriented is None else bare(graph.oriented)
    return engine.share(replace(bare(graph), oriented=oriented))


@dataclass(frozen=True, slots=True, eq=False)
class _Common:
    """The data that all parts of a measurement share.

    ``frame`` has the channels that are divided by subgraphs; ``sources`` has, for each channel that is divided by
    anchors, its anchor nodes of all layers in one array.
    """

    subgraphs: Ragged
    components: Ragged
    frame: Frame
    sources: dict[ChannelSettings, NDArray[np.int32]]


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """A range of the shared anchors of a channel; without a channel, a range of subgraphs."""

    graph: Shared[Graph]
    common: Shared[_Common]
    channel: ChannelSettings | None
    begin: int
    end: int


@dataclass(frozen=True, slots=True, eq=False)
class DistributedMeasuring:
    """:func:`~subgnn.prepare.measure.measure` by the workers of an engine; ``graph`` comes from :func:`place_graph`."""

    engine: Engine
    graph: Shared[Graph]

    def __call__(self, graph: Graph, subgraphs: Ragged, frame: Frame, *, on_progress: OnProgress = ignore) -> Prepared:
        """Measure subgraphs."""
        components = induced_components(*graph.csr, subgraphs)
        sources = {
            channel: np.concatenate([anchors.touched for anchors in frame.anchors(i)])
            for i, channel in enumerate(frame.channels if frame.layers else ())
            if channel_of(channel).anchors is NodeAnchors and similarity_of(channel, frame.settings).searches
        }
        others = [i for i, channel in enumerate(frame.channels) if channel not in sources]
        rest = replace(
            frame,
            channels=tuple(frame.channels[i] for i in others),
            shared=[[row[i] for i in others] for row in frame.shared],
        )
        parts = self._parts(_Common(subgraphs, components.nodes, rest, sources))
        starts = np.concatenate([[0], np.cumsum(components.counts)])
        found: dict[ChannelSettings | None, Any] = {}
        for done, (part, result) in enumerate(self.engine.map(_measure_part, parts), 1):
            if isinstance(result, Failure):
                result.throw()
            if part.channel is None:
                place: Any = slice(starts[part.begin], starts[part.end])
                shape = [len(components.nodes)]
            else:
                place = (slice(None), slice(part.begin, part.end))
                shape = [len(components.nodes), len(sources[part.channel])]
            if part.channel not in found:
                found[part.channel] = _empty(result, *shape)
            each_array(lambda out, array, place=place: setitem(out, place, array), found[part.channel], result)
            on_progress("measuring on the cluster", done, len(parts))
        inputs: list[list[SubchannelInputs]] = [[] for _ in frame.shared]
        for i, channel in enumerate(frame.channels):
            for layer, row in enumerate(inputs):
                if channel in sources:
                    row.append(SubchannelInputs(_layer(found[channel], layer, channel.num_anchors), None))
                else:
                    row.append(found[None][layer][others.index(i)])
        return Prepared(frame, seen_hash(graph, frame.settings), components, inputs)

    def _parts(self, common: _Common) -> list[_Part]:
        """Ranges of anchors, each as many as one search serves; then ranges of subgraphs of about equal size."""
        shared = self.engine.share(common)
        by_anchors = [
            _Part(self.graph, shared, channel, begin, min(begin + WORD, len(nodes)))
            for channel, nodes in common.sources.items()
            for begin in range(0, len(nodes), WORD)
        ]
        frame, offsets = common.frame, common.subgraphs.offsets
        if not frame.channels or not frame.layers:
            return by_anchors
        each = 12 * frame.layers * sum(channel.num_anchors for channel in frame.channels)
        count = max(_PARTS_A_SLOT * self.engine.slots, each * len(common.components) // _BYTES_A_PART)
        cuts = np.searchsorted(offsets, np.linspace(0, offsets[-1], count + 1)[1:-1])
        bounds = np.unique([0, *cuts, len(common.subgraphs)]).tolist()
        return by_anchors + [
            _Part(self.graph, shared, None, a, b) for a, b in pairwise(bounds if len(bounds) > 1 else (0, 0))
        ]


def _measure_part(part: _Part) -> Any:
    """The inputs of a range of subgraphs, or what is measured of a range of anchors; run by a worker."""
    common = part.common.get()
    graph, rows, frame = part.graph.get(), np.arange(part.begin, part.end), common.frame
    if part.channel is None:
        return measure(graph, common.subgraphs.take(rows), frame).inputs
    work = Work(graph, frame.settings, part.channel, 1, frame.seed)
    compare = similarity_of(part.channel, frame.settings).measure[NodeAnchors]
    return compare(work, common.components, [NodeAnchors(common.sources[part.channel][rows])])[0]


def _empty(part: Any, *shape: int) -> Any:
    """Empty arrays for all parts, like those of the given one, except that they begin with the given ``shape``."""
    return each_array(lambda array: np.empty((*shape, *array.shape[len(shape) :]), array.dtype), part)


def _layer(whole: Any, layer: int, width: int) -> Any:
    columns = slice(layer * width, (layer + 1) * width)
    return each_array(lambda array: np.ascontiguousarray(array[:, columns]), whole)
