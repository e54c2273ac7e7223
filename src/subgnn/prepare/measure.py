"""Everything that is computed before training: components, anchors, similarities.

:func:`prepare` draws the shared anchors and measures the given subgraphs; :meth:`Prepared.extend` measures other
subgraphs of the same graph against the same anchors. A prepared subgraph is a function of the graph, the settings, the
seed and its own nodes, so training and prediction see the same numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, cast

import numba
import numpy as np
from numpy.typing import NDArray

from subgnn.channels.anchors import NodeAnchors, OwnAnchors, PatchAnchors, SharedAnchors, sample_own, sample_shared
from subgnn.channels.distances import searches_at_once
from subgnn.channels.similarity import Nearness, own_hops, shared_hops, structure
from subgnn.config.settings import ChannelSettings, PrepareSettings
from subgnn.data.graph import Graph
from subgnn.kernels import Components, heaviest_borders, induced_components
from subgnn.kernels.borders import BYTES_AN_EDGE
from subgnn.parallel.memory import workers
from subgnn.parallel.progress import OnProgress, pieces
from subgnn.ragged import Ragged

ALGORITHM_VERSION = 1
"""Raised whenever the same input would give other numbers, so that what was kept before is not taken for them."""


@dataclass(frozen=True, slots=True, eq=False)
class SubchannelInputs:
    """What one layer of one subchannel sees of the components.

    Shapes:
        nearness: (C, n_A). own: (C, n_A) anchor nodes, or None where the anchors are shared.
    """

    nearness: Nearness
    own: OwnAnchors | None


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """What subgraphs are measured against.

    ``shared[layer][i]`` are the anchors of ``channels[i]``, None where every component has its own: those follow the
    seed and the component's nodes.
    """

    channels: tuple[ChannelSettings, ...]
    settings: PrepareSettings
    shared: list[list[SharedAnchors | None]]
    seed: int

    @property
    def layers(self) -> int:
        """L."""
        return len(self.shared)


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """Subgraphs ready for a model; ``inputs[layer][i]`` belongs to ``frame.channels[i]``."""

    frame: Frame
    graph_hash: str
    components: Components
    inputs: list[list[SubchannelInputs]]

    def extend(self, graph: Graph, subgraphs: Ragged) -> Prepared:
        """Other subgraphs of the same graph, measured against the same shared anchors."""
        return measure(graph, subgraphs, self.frame)

    def touched(self, subgraphs: NDArray[np.int64] | None = None) -> NDArray[np.int32]:
        """The nodes of components, anchors and walks, sorted: all that a model needs an embedding for.

        Args:
            subgraphs: those that count; by default all do.
        """
        nodes, some = self.components.nodes, cast(Any, slice(None))
        if subgraphs is not None:
            some = np.flatnonzero(np.isin(self.components.subgraph, subgraphs))
            nodes = nodes.take(some)
        parts = [nodes.values]
        for shared_row, inputs_row in zip(self.frame.shared, self.inputs, strict=True):
            for shared, inputs in zip(shared_row, inputs_row, strict=True):
                if isinstance(shared, NodeAnchors):
                    parts.append(shared.nodes)
                elif isinstance(shared, PatchAnchors):
                    parts.append(shared.walks.values)
                elif inputs.own is not None:
                    parts.append(inputs.own.nodes[some][inputs.own.present[some]].reshape(-1))
        return np.unique(np.concatenate(parts))


class Measuring(Protocol):
    """What measures subgraphs as :func:`measure` does: that, or the same over the machines of a cluster."""

    def __call__(
        self, graph: Graph, subgraphs: Ragged, frame: Frame, *, on_progress: OnProgress | None = None
    ) -> Prepared:
        """As :func:`measure`."""


def seen_hash(graph: Graph, settings: PrepareSettings) -> str:
    """The hash of what is measured on: the undirected graph, or the directed one where hops follow orientations."""
    if settings.directed and graph.oriented is not None:
        return graph.oriented.content_hash
    return graph.content_hash


def prepare(
    graph: Graph,
    subgraphs: Ragged,
    *,
    channels: tuple[ChannelSettings, ...],
    layers: int,
    settings: PrepareSettings,
    seed: int,
    on_progress: OnProgress | None = None,
    measuring: Measuring | None = None,
) -> Prepared:
    """Draw anchors and measure subgraphs against them.

    Args:
        subgraphs: node sets of the graph, sorted.
        channels: the subchannels wanted, each once.
        layers: L; anchors are drawn for each layer.
        seed: of all draws.
        on_progress: called, often, with what is being done, the units done of it and the units in all.
        measuring: what measures them; by default :func:`measure`, here.
    """
    shared = [
        [sample_shared(graph, c, settings, layer=layer, seed=seed) if c.shared else None for c in channels]
        for layer in range(layers)
    ]
    return (measuring or measure)(graph, subgraphs, Frame(channels, settings, shared, seed), on_progress=on_progress)


def measure(graph: Graph, subgraphs: Ragged, frame: Frame, *, on_progress: OnProgress | None = None) -> Prepared:
    """Measure subgraphs against given shared anchors, and against anchors of their own."""
    settings = frame.settings
    if any(channel.kind != "structure" for channel in frame.channels):
        searches_at_once(graph)  # where memory is too small for one, that is said before the work
    components = induced_components(*graph.csr, subgraphs)
    by_channel = []
    for i, channel in enumerate(frame.channels if frame.layers else ()):
        if channel.shared:
            anchors = [layer[i] for layer in frame.shared]
            by_channel.append(_measure_shared(graph, components, channel, anchors, settings, on_progress))
        elif channel.name == "neighborhood/border" and settings.border_anchors == "heaviest":
            by_channel.append([_heaviest(graph, components, channel, settings, on_progress)] * frame.layers)
        else:
            own = sample_own(
                graph,
                subgraphs,
                components,
                channel,
                settings,
                layers=frame.layers,
                seed=frame.seed,
                on_progress=on_progress,
            )
            by_channel.append(_measure_own(graph, components, channel, own, settings, on_progress))
    inputs = [[of_channel[layer] for of_channel in by_channel] for layer in range(frame.layers)]
    return Prepared(frame, seen_hash(graph, settings), components, inputs)


def _measure_shared(
    graph: Graph,
    components: Components,
    channel: ChannelSettings,
    anchors: list[SharedAnchors | None],
    settings: PrepareSettings,
    on_progress: OnProgress | None,
) -> list[SubchannelInputs]:
    if channel.kind == "structure":
        patches = [a for a in anchors if isinstance(a, PatchAnchors)]
        measured = structure(graph, components.nodes, patches, channel, settings, on_progress=on_progress)
    else:
        nodes = [a for a in anchors if isinstance(a, NodeAnchors)]
        measured = shared_hops(graph, components.nodes, nodes, settings, on_progress=on_progress)
    if len(measured) != len(anchors):
        raise ValueError(f"{channel.name} has shared anchors, and not all were given")
    return [SubchannelInputs(nearness, None) for nearness in measured]


def _measure_own(
    graph: Graph,
    components: Components,
    channel: ChannelSettings,
    own: list[OwnAnchors],
    settings: PrepareSettings,
    on_progress: OnProgress | None,
) -> list[SubchannelInputs]:
    if channel.name == "neighborhood/internal":
        # 1 by definition (paper, section 4.2).
        shape = own[0].nodes.shape
        ones = Nearness(np.zeros(shape, np.float32), np.ones(shape, np.float32))
        return [SubchannelInputs(ones, anchors) for anchors in own]
    measured = zip(own_hops(graph, components.nodes, own, settings, on_progress=on_progress), own, strict=True)
    if channel.kind == "position" and settings.sort_anchors:
        return [_nearest_first(nearness, anchors) for nearness, anchors in measured]
    return [SubchannelInputs(nearness, anchors) for nearness, anchors in measured]


def _heaviest(
    graph: Graph,
    components: Components,
    channel: ChannelSettings,
    settings: PrepareSettings,
    on_progress: OnProgress | None,
) -> SubchannelInputs:
    """The heaviest border nodes as anchors, and their weights as similarities: reached, at distance 0.

    *Differs from the paper:* there, anchors are drawn from the border uniformly, and their similarity is by distance.
    """
    count, threads = len(components.nodes), int(numba.get_num_threads())
    shape = (count, channel.num_anchors)
    nodes, weights = np.zeros(shape, np.int32), np.zeros(shape, np.float32)
    members = components.nodes.values
    ends = np.concatenate([[0], np.cumsum(graph.offsets[members + 1] - graph.offsets[members])])
    largest = int(np.diff(ends[components.nodes.offsets]).max(initial=0))
    at_once = workers(BYTES_AN_EDGE * largest, threads)
    step, most = (256, None) if at_once == threads else (at_once, at_once)
    for part in pieces(count, step=step, most=most, what="the heaviest of borders", on_progress=on_progress):
        some = components.nodes.take(np.arange(part.start, part.stop))
        nodes[part], weights[part] = heaviest_borders(
            *graph.csr, some, most=channel.num_anchors, giving=settings.giving, taking=settings.taking
        )
    present = weights[:, 0] > 0
    return SubchannelInputs(Nearness(np.zeros(shape, np.float32), weights), OwnAnchors(nodes, present))


def _nearest_first(nearness: Nearness, anchors: OwnAnchors) -> SubchannelInputs:
    """Order each component's own anchors by similarity, so that output slot i means the i-th nearest everywhere."""
    order = np.argsort(-nearness.similarity, axis=1, kind="stable")
    distance = np.take_along_axis(nearness.distance, order, axis=1)
    reached = np.take_along_axis(nearness.reached, order, axis=1)
    nodes = np.take_along_axis(anchors.nodes, order, axis=1)
    return SubchannelInputs(Nearness(distance, reached), OwnAnchors(nodes, anchors.present))
