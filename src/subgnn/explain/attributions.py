"""Integrated gradients, added up over what people ask about: channels, components, anchors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from subgnn.explain.channels import KINDS
from subgnn.explain.differences import in_unit, values
from subgnn.explain.explanation import Attributions, ChannelContribution, ComponentContribution, Values, names_of
from subgnn.explain.integrated import Integrated, integrate
from subgnn.explain.listening import Listening

Total = Callable[[Iterable[Tensor]], Values]


def attribute(listening: Listening, components: Sequence[NDArray[np.int32]]) -> Attributions:
    """Attributions of the mean over networks and draws.

    Args:
        components: the nodes of each component of the subgraph.
    """
    checkpoint = listening.predictor.checkpoint
    drawn = [integrate(one, checkpoint.num_outputs) for one in listening.heard]
    unit = in_unit(listening.predictor) / len(drawn)

    def total(numbers: Iterable[Tensor]) -> Values:
        return values(sum(number.double().cpu() for number in numbers).numpy() * unit)  # type: ignore[union-attr]

    target = checkpoint.standards.get("target")
    origin = 0.0 if target is None else float(target.mean[0])
    found = []
    for draw, anchors in enumerate(listening.each):
        for anchor in anchors:
            networks = drawn[draw :: listening.draws]
            here = total(anchor.of(one.gammas[anchor.layer][anchor.channel]).sum(dim=1) for one in networks)
            found.append(listening.describe(draw, anchor, {"contributions": here}))
    return Attributions(
        steps=max(one.steps for one in drawn),
        baseline=tuple(origin + number for number in total(one.baseline for one in drawn)),
        residual=total(one.residual for one in drawn),
        channels=tuple(_channels(listening, drawn, total)),
        components=tuple(
            ComponentContribution(
                c,
                tuple(nodes.tolist()),
                names_of(listening.predictor.graph, nodes.tolist()),
                total(_of_component(one, c) for one in drawn),
            )
            for c, nodes in enumerate(components)
        ),
        anchors=listening.foremost(found),
        of_subgraph=total(one.subgraph_stats for one in drawn),
    )


def _of_component(one: Integrated, component: int) -> Tensor:
    heard = sum(gamma[:, component].sum(dim=1) for layer in one.gammas for gamma in layer)
    return one.initial[:, component] + one.component_stats[:, component] + heard


def _channels(listening: Listening, drawn: list[Integrated], total: Total) -> Iterator[ChannelContribution]:
    """z^(0), every channel and subchannel, and the statistics where there are any."""
    yield ChannelContribution("z0", "part", total(one.initial.sum(dim=1) for one in drawn))
    for kind in KINDS:
        places = [i for i, channel in enumerate(listening.channels) if channel.kind == kind]
        if places:
            yield ChannelContribution(kind, "channel", total(_of_channel(one, i) for one in drawn for i in places))
        for i in places:
            numbers = total(_of_channel(one, i) for one in drawn)
            yield ChannelContribution(listening.channels[i].name, "subchannel", numbers)
    if listening.predictor.checkpoint.recipe.model.topology:
        yield ChannelContribution(
            "topology", "part", total(one.component_stats.sum(dim=1) + one.subgraph_stats for one in drawn)
        )


def _of_channel(one: Integrated, channel: int) -> Tensor:
    nothing = one.initial.new_zeros(len(one.initial))
    return sum((layer[channel].flatten(1).sum(dim=1) for layer in one.gammas), start=nothing)
