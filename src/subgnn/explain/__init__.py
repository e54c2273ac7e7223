"""Why a run predicts what it predicts: which nodes, components, channels and anchors carried it, for each class.

Read from top to bottom: :meth:`~subgnn.explain.explainer.Explainer.explain` does one thing after the other, each in a
file of its own: left_out (nodes, components), channels, anchors, integrated (attributions that add up).
"""

from __future__ import annotations

from collections.abc import Sequence

from subgnn.data.subgraphs import SubgraphSet
from subgnn.explain.explainer import Explainer
from subgnn.explain.explanation import (
    AnchorContribution,
    Attributions,
    ChannelContribution,
    ComponentContribution,
    Explanation,
    NodeContribution,
)
from subgnn.inference.predictor import Predictor
from subgnn.ragged import Ragged

__all__ = [
    "AnchorContribution",
    "Attributions",
    "ChannelContribution",
    "ComponentContribution",
    "Explainer",
    "Explanation",
    "NodeContribution",
    "explain",
]


def explain(
    predictor: Predictor,
    subgraphs: SubgraphSet | Ragged | Sequence[Sequence[int]],
    *,
    background: Ragged | None = None,
    attributions: bool = False,
    max_nodes: int = 500,
    max_anchors: int = 100,
) -> list[Explanation]:
    """Explain the predictions of subgraphs; for many calls, keep an :class:`Explainer`.

    Args:
        background: training subgraphs, whose mean vector stands in for a channel that is put aside.
        attributions: give integrated gradients, too; they need Captum.
        max_nodes: of a subgraph with more nodes, nodes are not left out one by one.
        max_anchors: how many anchors are listed for each subgraph, those that matter most.
    """
    explainer = Explainer(predictor, background=background, max_nodes=max_nodes, max_anchors=max_anchors)
    return explainer.explain(subgraphs, attributions=attributions)
