"""Integrated gradients (Sundararajan et al., 2017), by Captum: attributions that add up to the logits.

The inputs are z^(0) of each component, the similarity of each component to each anchor, and the statistics of the
topology channel. The baseline is 0 for all of them: components without a vector, all anchors masked, statistics at the
mean of the training split. With F the logit of a class and x the inputs,

    attribution_j = x_j * integral over t in [0, 1] of dF/dx_j (t x),

and they sum to F(x) - F(0). A message is gamma_ci a_i, so scaling similarities or anchors' vectors by t is the same
path, and both have the same attribution. Vectors of patches are those that the LSTM gave, and the scores of a baseline
that the network corrects are not scaled: F(0) includes them.

The integral is a sum over steps, whose number rises until the residual is small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from subgnn.errors import extra_package
from subgnn.inference.explanation import (
    Attributions,
    ChannelContribution,
    ComponentContribution,
    Values,
    target_scale,
    to_values,
)
from subgnn.inference.masking import Masking, SubgraphInputs
from subgnn.inference.predictor import names_of

_STEPS = (64, 256, 1024)
_SMALL_RESIDUAL = 5e-3  # of the largest difference of logits
_BATCH_NUMBERS = 4_000_000  # numbers of the inputs that are differentiated together

Total = Callable[[Iterable[Tensor]], Values]


@dataclass(frozen=True, slots=True, eq=False)
class _Integrated:
    """Attributions by one network and draw of anchors, for each output.

    Shapes:
        initial: (outputs, C). gammas: [layer][channel] (outputs, C, n_A). component_stats: (outputs, C).
        subgraph_stats, baseline, residual: (outputs,).
    """

    steps: int
    initial: Tensor
    gammas: list[list[Tensor]]
    component_stats: Tensor
    subgraph_stats: Tensor
    baseline: Tensor
    residual: Tensor

    def of_component(self, component: int) -> Tensor:
        similarities = sum(gamma[:, component].sum(dim=1) for layer in self.gammas for gamma in layer)
        return self.initial[:, component] + self.component_stats[:, component] + similarities

    def of_channel(self, channel: int) -> Tensor:
        zero = self.initial.new_zeros(len(self.initial))
        return sum((layer[channel].flatten(1).sum(dim=1) for layer in self.gammas), start=zero)


def attribute(masking: Masking, components: Sequence[NDArray[np.int32]], leading: int | None) -> Attributions:
    """Attributions of the mean output over networks and draws of anchors.

    Args:
        components: the nodes of each component of the subgraph.
        leading: the class that anchors are ordered by.
    """
    predictor = masking.predictor
    each = [_integrate(one, predictor.spec.num_outputs) for one in masking.inputs]
    scale = target_scale(predictor) / len(each)

    def total(numbers: Iterable[Tensor]) -> Values:
        return to_values(sum(number.double().cpu() for number in numbers).numpy() * scale)  # type: ignore[union-attr]

    target = predictor.spec.standards.get("target")
    origin = 0.0 if target is None else float(target.mean[0])
    by_anchor = []
    for draw, anchors in enumerate(masking.anchors):
        for anchor in anchors:
            parts = (one.gammas[anchor.layer][anchor.channel] for one in each[draw :: masking.draws])
            numbers = total(anchor.select(part).sum(dim=1) for part in parts)
            by_anchor.append(masking.describe(draw, anchor, {"contributions": numbers}))
    by_component = []
    for c, nodes in enumerate(components):
        names = names_of(predictor.graph, nodes.tolist())
        numbers = total(one.of_component(c) for one in each)
        by_component.append(ComponentContribution(c, tuple(nodes.tolist()), names, numbers))
    return Attributions(
        steps=max(one.steps for one in each),
        logits=tuple(origin + number for number in total(one.output()[0] for one in masking.inputs)),
        baseline=tuple(origin + number for number in total(one.baseline for one in each)),
        residual=total(one.residual for one in each),
        channels=tuple(_by_channel(masking, each, total)),
        components=tuple(by_component),
        anchors=masking.strongest(by_anchor, leading),
        of_subgraph=total(one.subgraph_stats for one in each),
    )


def _by_channel(masking: Masking, each: list[_Integrated], total: Total) -> Iterator[ChannelContribution]:
    """z^(0), every channel and subchannel, and the statistics if the network uses them."""
    yield ChannelContribution("z0", "part", total(one.initial.sum(dim=1) for one in each))
    for kind in dict.fromkeys(channel.kind for channel in masking.channels):
        sides = [i for i, channel in enumerate(masking.channels) if channel.kind == kind]
        yield ChannelContribution(kind, "channel", total(one.of_channel(i) for one in each for i in sides))
        for i in sides:
            yield ChannelContribution(masking.channels[i].name, "subchannel", total(one.of_channel(i) for one in each))
    if masking.predictor.spec.model.topology:
        numbers = total(one.component_stats.sum(dim=1) + one.subgraph_stats for one in each)
        yield ChannelContribution("topology", "part", numbers)


@torch.enable_grad()
def _integrate(subgraph: SubgraphInputs, num_outputs: int) -> _Integrated:
    """Attributions of one subgraph by one network and draw of anchors."""
    layers = [len(layer) for layer in subgraph.gammas]
    component_stats, subgraph_stats = subgraph.stats
    flat = [subgraph.initial, *(gamma for layer in subgraph.gammas for gamma in layer)]
    if component_stats is not None:
        flat.append(component_stats)
    inputs = [tensor.detach()[None].repeat(num_outputs, 1, 1) for tensor in flat]
    if subgraph_stats is not None:
        inputs.append(subgraph_stats.detach().repeat(num_outputs, 1))

    def split(parts: Sequence[Tensor]) -> tuple[Tensor, list[list[Tensor]], tuple[Tensor | None, Tensor | None]]:
        initial, *rest = parts
        gammas = [[rest.pop(0) for _ in range(count)] for count in layers]
        of_components = None if component_stats is None else rest.pop(0)
        return initial, gammas, (of_components, None if subgraph_stats is None else rest.pop(0))

    def output(*parts: Tensor) -> Tensor:
        return subgraph.outputs(*split(parts))

    with torch.no_grad():
        whole = output(*(tensor[:1] for tensor in inputs))[0]
        baseline = output(*(torch.zeros_like(tensor[:1]) for tensor in inputs))[0]
    parts, residual, steps = _attributions(output, inputs, whole - baseline)
    initial, gammas, (of_components, of_subgraph) = split(parts)
    by_component = initial.sum(dim=2)
    return _Integrated(
        steps=steps,
        initial=by_component,
        gammas=gammas,
        component_stats=torch.zeros_like(by_component) if of_components is None else of_components.sum(dim=2),
        subgraph_stats=by_component.new_zeros(num_outputs) if of_subgraph is None else of_subgraph.sum(dim=1),
        baseline=baseline,
        residual=residual,
    )


def _attributions(output: Any, inputs: list[Tensor], difference: Tensor) -> tuple[list[Tensor], Tensor, int]:
    """Attributions, their residual and the number of steps that were needed."""
    with extra_package("captum", extra="explain", feature="integrated gradients"):
        from captum.attr import IntegratedGradients
    method = IntegratedGradients(output)
    targets = torch.arange(len(difference), device=difference.device)
    numbers = sum(tensor[0].numel() for tensor in inputs)
    batch_size = max(len(difference), _BATCH_NUMBERS // max(1, numbers))
    for steps in _STEPS:
        found = method.attribute(tuple(inputs), target=targets, n_steps=steps, internal_batch_size=batch_size)
        parts = [part.detach() for part in found]
        residual = difference - sum(part.flatten(1).sum(dim=1) for part in parts)
        if float(residual.abs().max()) <= _SMALL_RESIDUAL * max(1e-6, float(difference.abs().max())):
            break
    return parts, residual.float(), steps
