"""The optimizer: Adam, which for large tables of vectors moves only the rows that a batch looks up.

For a parameter with a sparse gradient g, and the rows R it has: m_R <- b1 m_R + (1 - b1) g, v_R <- b2 v_R + (1 - b2)
g^2, x_R <- x_R - lr m_R / (1 - b1^t) / (sqrt(v_R / (1 - b2^t)) + eps), t the number of steps so far. Plain Adam goes on
moving a row that is not looked up by what is left of m; here it rests, so the cost of a step depends on its batch only.
There is no weight decay: tables have none (:func:`adam`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from subgnn.config.settings import TrainingSettings

TABLES = ("table", "component_states")
"""Names of parameters that have a row for each node, component or subgraph, of which a batch looks up some."""


def adam(
    model: nn.Module, settings: TrainingSettings, *, graphed_on: torch.device | None = None
) -> torch.optim.Optimizer:
    """The optimizer of all learned parameters; tables of vectors (:data:`TABLES`) have no weight decay.

    Decay would move the rows that no training subgraph looks up, to other vectors than prediction gives a node that is
    new to it. Without decay such a row has no gradient and rests.

    Args:
        graphed_on: the device whose steps are to be captured; a captured step reads the rate from the device, where it
            can still be changed.
    """
    decayed: list[nn.Parameter] = []
    tables: list[nn.Parameter] = []
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            (tables if name.rpartition(".")[2] in TABLES else decayed).append(parameter)
    groups = [{"params": decayed, "weight_decay": settings.weight_decay}, {"params": tables, "weight_decay": 0.0}]
    if graphed_on is None:
        return AdamByRows(groups, lr=settings.lr, fused=True)
    return torch.optim.Adam(groups, lr=torch.tensor(settings.lr, device=graphed_on), capturable=True, fused=True)


def set_rate(optimizer: Any, rate: float) -> None:
    """Change the learning rate, in place where a captured step reads it."""
    for group in optimizer.param_groups:
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate


class AdamByRows(torch.optim.Adam):
    """Adam; by rows for parameters with sparse gradients, as usual for all others."""

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """Move the parameters that have a gradient."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None and parameter.grad.is_sparse:
                    self._move(parameter, group)
                    parameter.grad = None
        return super().step(closure)

    def _move(self, parameter: Tensor, group: dict[str, Any]) -> None:
        state = self.state[parameter]
        if not state:
            # numpy's zeros take no memory until they are written to.
            zeros = (np.zeros(tuple(parameter.shape), np.float32) for _ in range(2))
            moments = [torch.from_numpy(z) if parameter.device.type == "cpu" else None for z in zeros]
            moments = [torch.zeros_like(parameter) if m is None else m for m in moments]
            state["step"], state["exp_avg"], state["exp_avg_sq"] = torch.zeros(()), moments[0], moments[1]
        state["step"] += 1
        steps, (beta1, beta2) = float(state["step"]), group["betas"]
        sparse = parameter.grad.coalesce()  # type: ignore[union-attr]
        rows, gradient = sparse.indices()[0], sparse.values()
        mean = state["exp_avg"].index_select(0, rows).lerp_(gradient, 1 - beta1)
        square = state["exp_avg_sq"].index_select(0, rows).mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
        state["exp_avg"].index_copy_(0, rows, mean)
        state["exp_avg_sq"].index_copy_(0, rows, square)
        scale = square.div(1 - beta2**steps).sqrt_().add_(group["eps"])
        parameter.index_add_(0, rows, mean.div_(scale), alpha=-float(group["lr"]) / (1 - beta1**steps))


def has_sparse_gradient(model: nn.Module) -> bool:
    """Whether a parameter has a sparse gradient, after a backward pass."""
    return any(p.grad is not None and p.grad.is_sparse for p in model.parameters())


@torch.no_grad()
def clip_sparse(model: nn.Module, max_norm: float) -> None:
    """Scale all gradients, also sparse ones, so that their norm is at most ``max_norm``."""
    values = []
    for parameter in model.parameters():
        if parameter.grad is not None:
            if parameter.grad.is_sparse:
                parameter.grad = parameter.grad.coalesce()
                values.append(parameter.grad.values())
            else:
                values.append(parameter.grad)
    total = torch.stack([value.norm() for value in values]).norm()
    scale = (max_norm / (total + 1e-6)).clamp(max=1.0)
    for value in values:
        value.mul_(scale)
