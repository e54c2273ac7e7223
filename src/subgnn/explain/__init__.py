"""Explanations of predictions: contributions of nodes, components, channels and anchors to each class.

:class:`~subgnn.explain.explainer.Explainer` combines leave_one_out (nodes and components), masking (channels and
anchors) and integrated_gradients (attributions that add up); explanation holds the results, files writes them.
"""

from subgnn.explain.explainer import Explainer
from subgnn.explain.explanation import (
    AnchorContribution,
    Attributions,
    ChannelContribution,
    ComponentContribution,
    Explanation,
    NodeContribution,
)

__all__ = [
    "AnchorContribution",
    "Attributions",
    "ChannelContribution",
    "ComponentContribution",
    "Explainer",
    "Explanation",
    "NodeContribution",
]
