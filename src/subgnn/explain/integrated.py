"""Integrated gradients (Sundararajan et al., 2017), by Captum: attributions that add up.

The inputs are what the network hears: z^(0) of each component, the similarity of each component to each anchor, and the
statistics of the topology channel. The baseline is 0 for all of them: components without a vector, no anchor heard,
statistics at the mean of the training split. With F the logit of a class and x the inputs,

    attribution_j = x_j * integral over t in [0, 1] of dF/dx_j (t x),

and they add up to F(x) - F(0). As a message is gamma_ci a_i, scaling similarities or anchors' vectors by t is the same
path: the attribution of a similarity is that of the anchor's vector, too. Vectors of patches are taken as the LSTM gave
them. What size_aware counts is not scaled: the baseline has the subgraph's size. Nor are the scores of a baseline model
that the network corrects: F(0) has them.

The integral is a sum over steps; where relu bends it is not exact, so the steps rise until the rest is small.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from subgnn.errors import MissingExtra
from subgnn.explain.heard import Heard

_STEPS = (64, 256, 1024)
_CLOSE = 5e-3  # of the largest difference of logits: the rest that is small enough
_AT_ONCE = 4_000_000  # numbers of all versions that are differentiated together


@dataclass(frozen=True, slots=True, eq=False)
class Integrated:
    """Attributions, for each output.

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


@torch.enable_grad()
def integrate(heard: Heard, num_outputs: int) -> Integrated:
    """Attributions of one subgraph by one draw of anchors.

    Raises:
        MissingExtra: without Captum.
    """
    layers = [len(layer) for layer in heard.gammas]
    flat = [heard.initial, *(gamma for layer in heard.gammas for gamma in layer)]
    given = [stats is not None for stats in heard.stats]
    component, subgraph = heard.stats
    if component is not None:
        flat.append(component)
    inputs = [tensor.detach()[None].repeat(num_outputs, 1, 1) for tensor in flat]
    if subgraph is not None:
        inputs.append(subgraph.detach().repeat(num_outputs, 1))

    def answer(*parts: Tensor) -> Tensor:
        initial, *rest = parts
        gammas = [[rest.pop(0) for _ in range(count)] for count in layers]
        stats = (rest.pop(0) if given[0] else None, rest.pop(0) if given[1] else None)
        return heard.outputs(initial, gammas, stats)

    with torch.no_grad():
        whole = answer(*(tensor[:1] for tensor in inputs))[0]
        baseline = answer(*(torch.zeros_like(tensor[:1]) for tensor in inputs))[0]
    parts, residual, steps = _attribute(answer, inputs, whole - baseline)
    rest = [part.flatten(1).sum(dim=1) if part.ndim == 2 else part for part in parts]
    of_initial = rest.pop(0).sum(dim=2)
    gammas = [[rest.pop(0) for _ in range(count)] for count in layers]
    nothing = of_initial.new_zeros(num_outputs)
    return Integrated(
        steps=steps,
        initial=of_initial,
        gammas=gammas,
        component_stats=rest.pop(0).sum(dim=2) if given[0] else torch.zeros_like(of_initial),
        subgraph_stats=rest.pop(0) if given[1] else nothing,
        baseline=baseline,
        residual=residual,
    )


def _attribute(answer: Any, inputs: list[Tensor], difference: Tensor) -> tuple[list[Tensor], Tensor, int]:
    """Attributions with as many steps as are needed, and what they lack of the difference of logits."""
    try:
        from captum.attr import IntegratedGradients
    except ImportError:
        raise MissingExtra("captum", extra="explain", feature="integrated gradients") from None
    method = IntegratedGradients(answer)
    targets = torch.arange(len(difference), device=difference.device)
    numbers = sum(tensor[0].numel() for tensor in inputs)
    at_once = max(len(difference), _AT_ONCE // max(1, numbers))
    for steps in _STEPS:
        found = method.attribute(tuple(inputs), target=targets, n_steps=steps, internal_batch_size=at_once)
        parts = [part.detach() for part in found]
        residual = difference - sum(part.flatten(1).sum(dim=1) for part in parts)
        if float(residual.abs().max()) <= _CLOSE * max(1e-6, float(difference.abs().max())):
            break
    return parts, residual.float(), steps
