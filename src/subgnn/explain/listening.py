"""One subgraph as every draw of anchors lets it be heard; and the contributions of those anchors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from subgnn.explain import anchors
from subgnn.explain.differences import differences, strongest
from subgnn.explain.explanation import AnchorContribution, Values, names_of
from subgnn.explain.heard import Anchor, Heard
from subgnn.inference.predictor import Predictor


class Listening:
    """One subgraph as every draw of anchors lets it be heard.

    Args:
        heard: by each network and, within that, each draw. All networks hear the same anchors.
        leading: the class that things are ordered by; None for the one they matter most to.
        most: how many anchors are listed.
    """

    def __init__(self, predictor: Predictor, heard: Sequence[Heard], *, leading: int | None, most: int) -> None:
        self.predictor, self.heard, self.leading, self.most = predictor, heard, leading, most
        self.channels = predictor.checkpoint.recipe.channels
        self.draws = predictor.draws
        self.each = [list(one.each_anchor()) for one in heard[: self.draws]]

    @property
    def too_many(self) -> bool:
        """Whether there are too many anchors to silence each in turn."""
        return any(anchors.too_many(one, len(each)) for one, each in zip(self.heard, self.each, strict=False))

    @property
    def num_anchors(self) -> int:
        """Anchors of all draws."""
        return sum(map(len, self.each))

    def silenced(self, whole: Tensor) -> tuple[AnchorContribution, ...]:
        """Contributions of anchors by not hearing them: an anchor belongs to one draw, and is silent for all networks.

        Shapes:
            whole: (networks x draws, outputs), the outputs of each.
        """
        mean, found = whole.mean(dim=0), []
        for draw, each in enumerate(self.each):
            if each:
                heard, outputs = self.heard[draw :: self.draws], whole[draw :: self.draws]
                without = mean.expand(len(each), -1)
                for one, output in zip(heard, outputs, strict=True):
                    without = without + (anchors.outputs_without(one, each) - output) / len(self.heard)
                numbers = differences(self.predictor, mean.cpu().numpy(), without.cpu().numpy())
                found += [self.describe(draw, anchor, n) for anchor, n in zip(each, numbers, strict=True)]
        return self.foremost(found)

    def describe(self, draw: int, anchor: Anchor, numbers: dict[str, Values]) -> AnchorContribution:
        """An anchor with its numbers; its similarity, where it is learned, is the mean of the networks'."""
        heard = self.heard[draw :: self.draws]
        similar = torch.stack([anchor.of(one.gammas[anchor.layer][anchor.channel]) for one in heard]).mean(dim=0)
        return AnchorContribution(
            channel=self.channels[anchor.channel].name,
            layer=anchor.layer,
            draw=draw,
            slot=int(anchor.slots.min()),
            nodes=anchor.nodes,
            names=names_of(self.predictor.graph, anchor.nodes),
            similarity=float(similar.max()),
            **numbers,
        )

    def foremost(self, found: Iterable[AnchorContribution]) -> tuple[AnchorContribution, ...]:
        """Those that matter most, first."""
        ordered = sorted(found, key=lambda anchor: -strongest(anchor.contributions, self.leading))
        return tuple(ordered[: self.most])
