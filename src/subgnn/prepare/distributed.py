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
from operator import setitem
from pathlib import Path
from socket import gethostname
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.channels.channel import Measured, NodeAnchors, Work, each_array
from subgnn.channels.table import channel_of, similarity_of
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
    """What all parts of a measurement need.

    ``frame`` has the channels that are cut by subgraphs. ``sources`` has, for each channel that is cut by anchors, its
    anchors of all layers side by side.
    """

    graph: Shared[Graph]
    subgraphs: Ragged
    components: Ragged
    frame: Frame
    sources: dict[ChannelSettings, NDArray[np.int32]]


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """A range of the shared anchors of a channel, or of subgraphs where there is no channel."""

    common: Shared[_Common]
    channel: ChannelSettings | None
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
    jobs = _parts(engine, _Common(placed, subgraphs, components.nodes, rest, sources))
    starts = np.concatenate([[0], np.cumsum(components.counts)])
    found: dict[ChannelSettings | None, Any] = {}
    for done, (job, result) in enumerate(engine.map(_measure_part, jobs), 1):
        if isinstance(result, Failure):
            result.throw()
        columns = () if job.channel is None else (len(sources[job.channel]),)
        if job.channel not in found:
            found[job.channel] = _empty(result, len(components.nodes), *columns)
        part = slice(job.begin, job.end) if columns else slice(starts[job.begin], starts[job.end])
        _put(found[job.channel], result, (slice(None), part) if columns else part)
        if on_progress is not None:
            on_progress("measuring on the cluster", done, len(jobs))
    inputs: list[list[SubchannelInputs]] = [[] for _ in frame.shared]
    for i, channel in enumerate(frame.channels):
        for layer, row in enumerate(inputs):
            if channel in sources:
                own = slice(layer * channel.num_anchors, (layer + 1) * channel.num_anchors)
                row.append(SubchannelInputs(_columns(found[channel], own), None))
            else:
                row.append(found[None][layer][others.index(i)])
    return Prepared(frame, seen_hash(graph, frame.settings), components, inputs)


def _empty(part: Any, rows: int, *columns: int) -> Any:
    """Room for all parts that are like the given one."""
    return each_array(lambda array: np.empty((rows, *(columns or array.shape[1:])), array.dtype), part)


def _put(whole: Any, part: Any, place: Any) -> None:
    each_array(lambda out, array: setitem(out, place, array), whole, part)


def _columns(whole: Measured, columns: slice) -> Any:
    return each_array(lambda array: np.ascontiguousarray(array[:, columns]), whole)


def _parts(engine: Engine, common: _Common) -> list[_Part]:
    """Words of anchors, each a search across the graph; after these, ranges of subgraphs with about as many nodes."""
    shared = engine.share(common)
    words = [
        _Part(shared, channel, begin, min(begin + WORD, len(nodes)))
        for channel, nodes in common.sources.items()
        for begin in range(0, len(nodes), WORD)
    ]
    frame, offsets = common.frame, common.subgraphs.offsets
    if not frame.channels or not frame.layers:
        return words
    each = 12 * frame.layers * sum(channel.num_anchors for channel in frame.channels)
    count = max(_PARTS_A_SLOT * engine.slots, each * len(common.components) // _BYTES_A_PART)
    cuts = np.searchsorted(offsets, np.linspace(0, offsets[-1], count + 1)[1:-1])
    bounds = np.unique([0, *cuts, len(common.subgraphs)]).tolist()
    return words + [_Part(shared, None, a, b) for a, b in pairwise(bounds if len(bounds) > 1 else (0, 0))]


def _measure_part(part: _Part) -> Any:
    """What a worker does: a part, as one machine would do it alone."""
    common = part.common.get()
    graph, rows, frame = common.graph.get(), np.arange(part.begin, part.end), common.frame
    if part.channel is None:
        return measure(graph, common.subgraphs.take(rows), frame).inputs
    work = Work(graph, frame.settings, part.channel, 1, frame.seed)
    compare = similarity_of(part.channel, frame.settings).measure[NodeAnchors]
    return compare(work, common.components, [NodeAnchors(common.sources[part.channel][rows])])[0]
