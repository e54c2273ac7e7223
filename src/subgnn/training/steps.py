"""Optimisation steps and validation, run directly or captured once as a CUDA graph and replayed.

The step of a small network is hundreds of tiny kernels, and starting them takes longer than running them. A CUDA graph
starts them all at once; it needs fixed shapes, so batches are padded to the size that most batches of as many
subgraphs fit, and a second graph is for those that do not.
"""

from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from subgnn.config.settings import TrainingSettings
from subgnn.errors import warn
from subgnn.models.examples import Examples, PaddableSource, outputs_of, single_precision
from subgnn.task import task_of
from subgnn.training.devices import Fabric, GlobalBatchNorm, GlobalDropout, part_of_loss, share_of

_WARM_UP = 3  # steps that run directly before one is captured


@dataclass(frozen=True, slots=True, eq=False)
class Fitting:
    """The inputs of a fit: examples, settings, the seed of batches and dropout, and the devices."""

    examples: Examples
    settings: TrainingSettings
    seed: int
    fabric: Fabric

    @property
    def batch_size(self) -> int:
        return self.settings.batch_size * int(self.fabric.world_size)


class Steps:
    """Steps on batches of the given examples; a call returns the loss, on several ranks this rank's part of it."""

    def __init__(self, model: Any, optimizer: Any, fitting: Fitting) -> None:
        self.model, self.optimizer, self.fitting = model, optimizer, fitting
        self.parameters = list(model.parameters())
        # Their share is set before each step.
        self.of_batch = [one for one in model.modules() if isinstance(one, (GlobalDropout, GlobalBatchNorm))]

    def __call__(self, inputs: Any, rows: NDArray[np.int64]) -> Tensor:
        fabric, examples = self.fitting.fabric, self.fitting.examples
        share = share_of(len(rows), fabric.global_rank, fabric.world_size)
        for module in self.of_batch:
            module.share = share
        targets = examples.targets[torch.from_numpy(rows).to(fabric.device)]
        part = part_of_loss(share, targets, task=examples.task, weights=examples.weights, size=fabric.world_size)
        own = slice(share.begin, share.end)
        return self.advance(inputs.batch(rows[own]), targets[own], part)

    def advance(self, batch: Any, targets: Tensor, part: Tensor | float = 1.0) -> Tensor:
        """Forward, backward, clip, update; ``part`` is the weight of this loss in that of the batch of all ranks."""
        fabric, clip, examples = self.fitting.fabric, self.fitting.settings.clip, self.fitting.examples
        self.optimizer.zero_grad()
        with single_precision():
            value = task_of(examples.task).loss(self.model(batch), targets, examples.weights)
            if fabric.world_size > 1:
                value = value * part
            # Gradients are averaged over ranks; the gradient of the batch is their sum.
            fabric.backward(value * fabric.world_size if fabric.world_size > 1 else value)
        if clip and any(p.grad is not None and p.grad.is_sparse for p in self.parameters):
            clip_sparse(self.parameters, clip)
        elif clip and fabric.world_size > 1:
            cast(Any, fabric).clip_gradients(self.model, self.optimizer, max_norm=clip, error_if_nonfinite=False)
        elif clip:
            nn.utils.clip_grad_norm_(self.parameters, clip)
        self.optimizer.step()
        return value.detach()


@dataclass(frozen=True, slots=True, eq=False)
class _Captured:
    graph: torch.cuda.CUDAGraph
    inputs: Any  # their memory is read in every replay
    output: Tensor


class GraphedSteps:
    """Steps as CUDA graphs, one for each size and padded shape of batches.

    The first steps of each run directly, on the stream of the capture, and count like all others. If a step cannot be
    captured, all steps run directly.
    """

    def __init__(self, steps: Steps) -> None:
        self.steps = steps
        self.stream: Any = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        self.seen: dict[int, int] = {}
        self.captured: dict[tuple[int, Hashable], _Captured] = {}
        self.refused = False

    def __call__(self, inputs: Any, rows: NDArray[np.int64]) -> Tensor:
        size, shape = len(rows), inputs.padded_shape(rows)
        key = size, shape
        if key not in self.captured:
            self.seen[size] = self.seen.get(size, 0) + 1
            if self.refused or self.seen[size] <= _WARM_UP:
                return self._run_directly(inputs, rows)
            try:
                self.captured[key] = self._capture(inputs, rows, shape)
            except RuntimeError as error:
                self.refused = True
                _warn("steps", error)
                return self._run_directly(inputs, rows)
        captured = self.captured[key]
        captured.inputs.overwrite(inputs.positions(rows, shape))
        captured.graph.replay()
        return captured.output.clone()

    def _run_directly(self, inputs: PaddableSource, rows: NDArray[np.int64]) -> Tensor:
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            value = self.steps(inputs, rows)
        torch.cuda.current_stream().wait_stream(self.stream)
        return value

    def _capture(self, inputs: PaddableSource, rows: NDArray[np.int64], shape: Hashable) -> _Captured:
        fitting = self.steps.fitting
        positions = inputs.positions(rows, shape).to(fitting.fabric.device)
        graph = torch.cuda.CUDAGraph()
        self.steps.optimizer.zero_grad()
        torch.cuda.synchronize()
        with _capturing(graph, self.stream):
            value = self.steps.advance(inputs.pick(positions), fitting.examples.targets[positions.tensors[0]])
        return _Captured(graph, positions, value)


class GraphedOutputs:
    """Outputs for validation as CUDA graphs, one for each choice of subgraphs.

    The first two times, the network runs directly; then it is captured, on the stream of the steps. If it cannot be
    captured, it always runs directly.
    """

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.seen: set[bytes] = set()
        self.captured: dict[bytes, _Captured] = {}
        self.refused = False

    @torch.no_grad()
    def __call__(self, network: Any, inputs: Any, rows: NDArray[np.int64], batch_size: int) -> Tensor:
        """As :func:`~subgnn.models.examples.outputs_of`."""
        key = rows.tobytes()
        if key in self.captured:
            self.captured[key].graph.replay()
            return self.captured[key].output.clone()
        outputs = outputs_of(network, inputs, rows, batch_size)
        if key in self.seen and not self.refused:
            try:
                self.captured[key] = self._capture(network, inputs, rows, batch_size)
            except RuntimeError as error:
                self.refused = True
                _warn("validation", error)
        self.seen.add(key)
        return outputs

    def _capture(self, network: Any, inputs: Any, rows: NDArray[np.int64], batch_size: int) -> _Captured:
        # The same subgraphs each time, so that their batches need neither be padded nor chosen again.
        batches = [inputs.batch(rows[i : i + batch_size]) for i in range(0, max(1, len(rows)), batch_size)]
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        with _capturing(graph, self.stream):
            outputs = torch.cat([network(batch) for batch in batches]).float()
        return _Captured(graph, batches, outputs)


@contextmanager
def _capturing(graph: torch.cuda.CUDAGraph, stream: Any) -> Iterator[None]:
    """Capture what runs inside; after a failure, steps can still run directly."""
    before: Any = torch.cuda.current_stream()
    try:
        with torch.cuda.graph(graph, stream=stream):
            yield
    except RuntimeError:
        # It left its stream the current one, and the generator of dropout in a state that is only for captured steps.
        torch.cuda.set_stream(before)
        generator = torch.cuda.default_generators[before.device_index]
        generator.graphsafe_set_state(generator.clone_state())
        raise


def _warn(what: str, error: RuntimeError) -> None:
    warn(f"could not capture {what} as a CUDA graph ({str(error).splitlines()[0]}); running without it")


TABLES = ("table", "component_states")
"""Names of parameters that have a row for each node, component or subgraph, of which a batch looks up some."""


def adam(
    model: nn.Module, settings: TrainingSettings, *, graphed_on: torch.device | None = None
) -> torch.optim.Optimizer:
    """The optimizer of all learned parameters; tables of vectors (:data:`TABLES`) have no weight decay.

    Decay would move the rows that no training subgraph looks up, to other vectors than prediction gives a node that is
    new to it. A step captured on the device ``graphed_on`` reads the rate from there, where it can still be changed.
    """
    decayed: list[nn.Parameter] = []
    tables: list[nn.Parameter] = []
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            (tables if settings.weight_decay and name.rpartition(".")[2] in TABLES else decayed).append(parameter)
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


@torch.no_grad()
def clip_sparse(parameters: Iterable[nn.Parameter], max_norm: float) -> None:
    """Scale all gradients, also sparse ones, so that their norm is at most ``max_norm``."""
    values = []
    for parameter in parameters:
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
