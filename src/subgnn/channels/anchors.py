"""phi: the six samplers of anchor patches (paper, section 4.2).

Shared anchors (position border, structure) belong to the model: they are a function of the graph and the seed. Own
anchors (position internal, neighborhood) are a function of the seed and of the node set they are drawn for, so they do
not depend on the batch, on the order of lines, or on whether the subgraph was in training.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.config.settings import ChannelSettings, PrepareSettings
from subgnn.data.graph import Graph
from subgnn.kernels import border_walks, graph_walks, inside_walks, node_set_keys, sample_borders
from subgnn.kernels.draws import sample_members
from subgnn.kernels.induced import Components
from subgnn.parallel.progress import OnProgress, pieces
from subgnn.ragged import Ragged
from subgnn.rng import stream, stream_key


@dataclass(frozen=True, slots=True, eq=False)
class NodeAnchors:
    """Single nodes, shared by all subgraphs.

    Shapes:
        nodes: (n_A,) int32.
    """

    nodes: NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class PatchAnchors:
    """Connected node sets, shared by all subgraphs, and the walks over each of them.

    Shapes:
        patches: n_A rows, sorted. walks: n_A * w rows, those of a patch together.
    """

    patches: Ragged
    walks: Ragged


@dataclass(frozen=True, slots=True, eq=False)
class OwnAnchors:
    """Single nodes, drawn for each component.

    Shapes:
        nodes: (C, n_A) int32. present: (C,) bool, False where there was nothing to draw from; such a row means nothing.
    """

    nodes: NDArray[np.int32]
    present: NDArray[np.bool_]


SharedAnchors = NodeAnchors | PatchAnchors


def draw_seed(seed: int, draw: int) -> int:
    """The seed of an independent draw of all anchors; draw 0 has the seed itself."""
    return stream_key(seed, f"draw/{draw}") if draw else seed


def sample_shared(
    graph: Graph, channel: ChannelSettings, settings: PrepareSettings, *, layer: int, seed: int
) -> SharedAnchors:
    """Anchors of position border (uniform nodes of G) or of a structure channel (nodes of triangular walks over G).

    Internal and border structure of one layer draw the same patches, and walk over each in their own way.
    """
    name = f"anchors/{channel.kind}/{layer}"
    if channel.kind == "position":
        draws = stream(seed, name).integers(0, graph.num_nodes, channel.num_anchors)
        return NodeAnchors(draws.astype(np.int32))
    walked = graph_walks(
        *graph.csr,
        walks=channel.num_anchors,
        length=settings.patch_length,
        beta=settings.beta,
        key=stream_key(seed, name),
    )
    patches = Ragged.from_rows([np.unique(row) for row in walked])
    key = node_set_keys(stream_key(seed, f"walks/{channel.name}/{layer}"), patches)
    options: dict[str, Any] = {
        "walks": settings.walks,
        "length": settings.walk_length,
        "beta": settings.beta,
        "key": key,
    }
    if channel.side == "internal":
        return PatchAnchors(patches, inside_walks(*graph.csr, patches, **options))
    return PatchAnchors(patches, border_walks(*graph.csr, patches, hops=settings.hops, **options))


def sample_own(
    graph: Graph,
    subgraphs: Ragged,
    components: Components,
    channel: ChannelSettings,
    settings: PrepareSettings,
    *,
    layers: int,
    seed: int,
    on_progress: OnProgress | None = None,
) -> list[OwnAnchors]:
    """Anchors of position internal (nodes of S), neighborhood internal (of c) or border (of B_k(c)), by layer."""
    draws = layers * channel.num_anchors
    key = stream_key(seed, f"anchors/{channel.name}")
    present = np.ones(len(components.nodes), np.bool_)
    if channel.kind == "position":
        drawn = sample_members(subgraphs, draws=draws, key=node_set_keys(key, subgraphs))[components.subgraph]
    elif channel.side == "internal":
        drawn = sample_members(components.nodes, draws=draws, key=node_set_keys(key, components.nodes))
    else:
        drawn, present = _draw_borders(graph, components.nodes, settings, draws=draws, key=key, on_progress=on_progress)
    by_layer = drawn.reshape(len(drawn), layers, channel.num_anchors)
    return [OwnAnchors(np.ascontiguousarray(by_layer[:, layer]), present) for layer in range(layers)]


def _draw_borders(
    graph: Graph, components: Ragged, settings: PrepareSettings, *, draws: int, key: int, on_progress: OnProgress | None
) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """Draws from the border of every component, and whether it has one."""
    drawn, present = np.zeros((len(components), draws), np.int32), np.zeros(len(components), np.bool_)
    keys = node_set_keys(key, components)
    # Borders of more hops are marked in an array of all nodes: there must be enough of them to be worth clearing it.
    step = 256 if settings.hops == 1 else max(256, graph.num_nodes // 256)
    for part in pieces(len(components), step=step, what="anchors at borders", on_progress=on_progress):
        some = components.take(np.arange(part.start, part.stop))
        rows, sizes = sample_borders(*graph.csr, some, hops=settings.hops, draws=draws, key=keys[part])
        present[part] = sizes > 0
        drawn[part][sizes > 0] = rows.values.reshape(-1, draws)
    return drawn, present
