"""Components, anchors and similarities of subgraphs, computed before training.

:func:`prepare` draws the shared anchors and measures the given subgraphs; :meth:`Prepared.extend` measures other
subgraphs of the same graph against the same anchors. A prepared subgraph is a function of the graph, the settings, the
seed and its own nodes, so training and prediction see the same numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from subgnn.channels.channel import Compare, Measured, OwnAnchors, SharedAnchors, Work, each_array
from subgnn.channels.distances import searches_at_once
from subgnn.channels.table import channel_of, similarity_of
from subgnn.config.settings import ChannelSettings, PrepareSettings
from subgnn.data.graph import Graph
from subgnn.errors import UserError
from subgnn.kernels.induced import Components, induced_components
from subgnn.parallel.progress import OnProgress, ignore
from subgnn.ragged import Ragged

ALGORITHM_VERSION = 1
"""Increased when the same input gives other numbers, so that cached ones are not used."""


@dataclass(frozen=True, slots=True, eq=False)
class SubchannelInputs:
    """What one layer of one subchannel sees of the components.

    Shapes:
        measured: (C, n_A). own: (C, n_A) anchor nodes, or None where the anchors are shared.
    """

    measured: Measured
    own: OwnAnchors | None


@dataclass(frozen=True, slots=True)
class Plan:
    """Channels, number of layers L, settings and seed: all that prepared subgraphs depend on, besides the graph.

    Anchors are drawn for each layer; a channel is there at most once.
    """

    channels: tuple[ChannelSettings, ...]
    layers: int
    settings: PrepareSettings
    seed: int


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """Channels, their settings and their shared anchors: all that subgraphs are measured by, besides the graph.

    ``shared[layer][i]`` are the anchors of ``channels[i]``, or None if every component has its own, which follow from
    the seed and the component's nodes.
    """

    channels: tuple[ChannelSettings, ...]
    settings: PrepareSettings
    shared: list[list[SharedAnchors | None]]
    seed: int

    @property
    def layers(self) -> int:
        """L."""
        return len(self.shared)

    def anchors(self, i: int) -> list[SharedAnchors]:
        """The shared anchors of ``channels[i]``, by layer."""
        found = [layer[i] for layer in self.shared if layer[i] is not None]
        if len(found) < self.layers:
            raise ValueError(f"{self.channels[i].name} has shared anchors, and not all were given")
        return found  # type: ignore[return-value]


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


class Measuring(Protocol):
    """:func:`measure`, or the same over the machines of a cluster."""

    def __call__(self, graph: Graph, subgraphs: Ragged, frame: Frame, *, on_progress: OnProgress = ignore) -> Prepared:
        """As :func:`measure`."""


def seen_hash(graph: Graph, settings: PrepareSettings) -> str:
    """The hash of the graph that is measured: the directed one if hops or walks follow orientations."""
    if (settings.directed or settings.directed_walks) and graph.oriented is not None:
        return graph.oriented.content_hash
    return graph.content_hash


def prepare(
    graph: Graph,
    subgraphs: Ragged,
    plan: Plan,
    *,
    on_progress: OnProgress = ignore,
    measuring: Measuring | None = None,
) -> Prepared:
    """Draw shared anchors and measure subgraphs against them.

    Args:
        subgraphs: node sets of the graph, sorted.
        on_progress: called with the name of the step, the units done and the units in all.
        measuring: measures the subgraphs; by default :func:`measure`.
    """
    by_channel: list[list[Any]] = []
    for settings in plan.channels:
        similarity_of(settings, plan.settings)  # an unknown one is refused before any work
        work, channel = Work(graph, plan.settings, settings, plan.layers, plan.seed), channel_of(settings)
        by_channel.append(channel.sample_shared(work) if channel.shared else [None] * plan.layers)
    shared = [[anchors[layer] for anchors in by_channel] for layer in range(plan.layers)]
    frame = Frame(plan.channels, plan.settings, shared, plan.seed)
    return (measuring or measure)(graph, subgraphs, frame, on_progress=on_progress)


def measure(
    graph: Graph, subgraphs: Ragged, frame: Frame, *, on_progress: OnProgress = ignore, cache: bool = False
) -> Prepared:
    """Measure subgraphs against given shared anchors, and against anchors of their own.

    With ``cache``, searches across a large graph are kept in the cache folder, and those that are there are used.
    """
    settings = frame.settings
    if any(similarity_of(channel, settings).searches for channel in frame.channels):
        searches_at_once(graph)  # refuses, before the work, if memory is too small for one
    components = induced_components(*graph.csr, subgraphs)
    by_channel = []
    for i, channel in enumerate(frame.channels if frame.layers else ()):
        work = Work(graph, settings, channel, frame.layers, frame.seed, on_progress, cache)
        compare = similarity_of(channel, settings).measure[channel_of(channel).anchors]
        if channel_of(channel).shared:
            measured = compare(work, components.nodes, frame.anchors(i))
            by_channel.append([SubchannelInputs(one, None) for one in measured])
        else:
            by_channel.append(_measure_own(work, compare, subgraphs, components))
        _check_measured(work, by_channel[-1], len(components.nodes))
    inputs = [[of_channel[layer] for of_channel in by_channel] for layer in range(frame.layers)]
    return Prepared(frame, seen_hash(graph, settings), components, inputs)


def _check_measured(work: Work, inputs: list[SubchannelInputs], count: int) -> None:
    """Validate the output of a similarity, which a network would otherwise learn from."""
    where, shape = f"the similarity of {work.channel.name}", (count, work.channel.num_anchors)
    if len(inputs) != work.layers:
        raise UserError(f"it gave {len(inputs)} layers", where=where, hint=f"accepted: {work.layers}")
    for layer in inputs:
        for field in fields(layer.measured):
            values = getattr(layer.measured, field.name)
            if values.shape != shape:
                hint = f"accepted: {shape}, a row for each component and a column for each anchor"
                raise UserError(f"{field.name} has the shape {values.shape}", where=where, hint=hint)
            low, high = values.min(initial=0), values.max(initial=0)
            if not (low >= 0 and high <= (np.inf if field.name == "distance" else 1) and np.isfinite(high)):
                accepted = "numbers from 0 on" if field.name == "distance" else "numbers from 0 to 1"
                raise UserError(f"{field.name} goes from {low} to {high}", where=where, hint=f"accepted: {accepted}")


def _measure_own(work: Work, compare: Compare, subgraphs: Ragged, components: Components) -> list[SubchannelInputs]:
    """One channel whose anchors are drawn for each component, for every layer."""
    channel = channel_of(work.channel)
    own = channel.sample_own(work, subgraphs, components)
    found = []
    for measured, anchors in zip(compare(work, components.nodes, own), own, strict=True):
        for field in fields(measured):
            getattr(measured, field.name)[~anchors.present] = 0
        found.append(SubchannelInputs(measured, replace(anchors, weights=None)))
    return found
