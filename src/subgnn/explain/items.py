"""Nodes, components and channels of a subgraph with their contributions and names."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from subgnn.explain.differences import differences
from subgnn.explain.explanation import ChannelContribution, ComponentContribution, NodeContribution, names_of
from subgnn.inference.predictor import Predictor

Rows = Sequence[NDArray[np.int32]]
Outputs = NDArray[np.float32]


def node_items(
    predictor: Predictor, components: Rows, *, whole: Outputs, without: Outputs | None
) -> tuple[NodeContribution, ...]:
    """The nodes of a subgraph, in the order of their ids; none where none was left out.

    Shapes:
        whole: (outputs,). without: (nodes, outputs).
    """
    if without is None:
        return ()
    place = {int(node): c for c, nodes in enumerate(components) for node in nodes}
    numbers = differences(predictor, whole, without)
    return tuple(
        NodeContribution(node, names_of(predictor.graph, [node])[0], place[node], **found)
        for node, found in zip(sorted(place), numbers, strict=True)
    )


def component_items(
    predictor: Predictor, components: Rows, *, whole: Outputs, without: Outputs | None
) -> tuple[ComponentContribution, ...]:
    """The components of a subgraph, ordered by their smallest node; none where none was left out.

    Shapes:
        whole: (outputs,). without: (C, outputs).
    """
    if without is None:
        return ()
    numbers = differences(predictor, whole, without)
    return tuple(
        ComponentContribution(c, tuple(nodes.tolist()), names_of(predictor.graph, nodes.tolist()), **found)
        for c, (nodes, found) in enumerate(zip(components, numbers, strict=True))
    )


def channel_items(
    predictor: Predictor, groups: Sequence[tuple[str, str]], *, whole: Outputs, without: Outputs
) -> tuple[ChannelContribution, ...]:
    """The parts of a subgraph's vector.

    Args:
        groups: level and name of each.

    Shapes:
        whole: (outputs,). without: (groups, outputs).
    """
    numbers = differences(predictor, whole, without)
    return tuple(
        ChannelContribution(name, level, **found) for (level, name), found in zip(groups, numbers, strict=True)
    )
