"""Vectors of patches: walks over a patch through a bidirectional LSTM (paper, appendix A.2, algorithm 2).

a = W sum over walks of (sum over the steps of a walk of [forward state ; backward state]).

Walks are packed (:class:`torch.nn.utils.rnn.PackedSequence`): they lie in order of falling length, and the nodes at
step t of all walks that have one stand together. On a CPU, in single precision, compiled code computes a layer
(:mod:`subgnn.kernels.lstm`). On a GPU, kernels of our own or cuDNN do, in a way that a CUDA graph can capture.
"""

import warnings
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from subgnn.errors import warn
from subgnn.kernels import lstm as kernels
from subgnn.models.examples import single_precision
from subgnn.ragged import Ragged


class Walks(nn.Module):
    """Walks as buffers, packed: all first steps, then all second steps, and so on; longer walks first.

    Args:
        rows: the walks of all patches, as places in the node table; empty ones are left out.
        per_patch: how many walks a patch has.

    Shapes:
        nodes: (R,) places in the table of the distinct nodes of all walks. places: (steps,) which of them each step
        stands on. owner: (steps,) the patch of each step. sizes: how many walks have a step t. first: (longest,) where
        the steps t begin: that of the w-th walk lies at first[t] + w. lengths: (walks,) falling. order: (walks,) the
        number of each walk. by_node: (steps,) the steps in order of their nodes. node_starts: (R,) where those of each
        node begin.
    """

    nodes: Tensor
    places: Tensor
    owner: Tensor
    first: Tensor
    lengths: Tensor
    order: Tensor
    by_node: Tensor
    node_starts: Tensor

    def __init__(self, rows: Ragged, per_patch: int) -> None:
        super().__init__()
        self.num_patches, self.per_patch = len(rows) // per_patch, per_patch
        longest_first = np.argsort(-rows.lengths, kind="stable")
        lengths = rows.lengths[longest_first]
        self.sizes = [int((lengths > t).sum()) for t in range(int(lengths.max(initial=0)))]
        walks = [longest_first[:size] for size in self.sizes]
        steps = [rows.values[rows.offsets[walk] + t] for t, walk in enumerate(walks)]
        nodes, places = np.unique(_joined(steps), return_inverse=True)
        arrays = {
            "nodes": nodes,
            "places": places,
            "owner": _joined(walks) // per_patch,
            "first": np.cumsum([0, *self.sizes])[:-1],
            "lengths": lengths,
            "order": longest_first,
            "by_node": np.argsort(places, kind="stable"),
            "node_starts": np.cumsum([0, *np.bincount(places, minlength=len(nodes))])[:-1],
        }
        for name, array in arrays.items():
            self.register_buffer(name, torch.from_numpy(array.astype(np.int64)), persistent=False)


def _joined(parts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.concatenate([np.empty(0, np.int64), *parts]).astype(np.int64)


class PatchEncoder(nn.Module):
    """Patches to vectors; one encoder serves all layers and sides.

    *Differs from the paper:* a linear map takes the 2 d numbers of both directions to d; the paper does not say how.
    """

    def __init__(self, dim: int, *, lstm_layers: int = 1, dropout: float = 0.0) -> None:
        super().__init__()
        dropout = dropout if lstm_layers > 1 else 0.0
        self.lstm = nn.LSTM(dim, dim, lstm_layers, dropout=dropout, bidirectional=True, batch_first=True)
        self.project = nn.Linear(2 * dim, dim)

    def forward(self, table: Tensor, walks: Walks) -> Tensor:
        return self.project(lstm_totals(self.lstm, table, walks))  # type: ignore[no-any-return]


def lstm_totals(lstm: nn.LSTM, table: Tensor, walks: Walks) -> Tensor:
    """Hidden states of both directions, summed over all steps of a patch (patches, 2 d), from node vectors (T, d)."""
    device, plain = table.device, table.dtype == torch.float32 and bool(walks.sizes)
    if plain and device.type == "cuda" and LAUNCH is not None and kernels_run_on(device, lstm.hidden_size):
        return kernel_totals(lstm, table.index_select(0, walks.nodes), walks, layer=KernelLayer)
    if plain and device.type == "cpu":
        return kernel_totals(lstm, table.index_select(0, walks.nodes), walks, layer=CompiledLayer)
    if device.type == "cuda":
        states = gpu_states(lstm, table, walks)  # (steps, 2 d)
    else:
        inputs = table.index_select(0, walks.nodes)[walks.places]
        states = lstm(PackedSequence(inputs, torch.tensor(walks.sizes)))[0].data
    return states.new_zeros(walks.num_patches, states.shape[1]).index_add(0, walks.owner, states)


LAUNCH: tuple[int, int, str] | None = (16, 8, "tf32x3")
"""Walks and warps of a program, and precision, of the kernels of a GPU; None leaves the LSTM to cuDNN."""
_PARAMETERS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
_MAX_IDLE = 8
_idle: list[NDArray[np.float32]] = []  # released by earlier steps: fresh memory costs more than the arithmetic


class CompiledLayer(torch.autograd.Function):
    """As :class:`KernelLayer`, on a CPU."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, walks: Walks, ends: tuple[bool, bool], keep: bool, *params: Tensor) -> Tensor:
        (first, last), d, size = ends, params[2].shape[1], walks.sizes[0]
        places = walks.places.numpy() if first else np.arange(len(inputs))
        steps = kernels.Steps(walks.first.numpy(), np.array(walks.sizes), places)
        w, u = (torch.stack(pair).view(2, 4, d, -1) for pair in (params[:2], params[2:4]))
        biases = (torch.stack(params[4:6]) + torch.stack(params[6:])).view(2, 4, d, 1)
        slopes = torch.tensor([1.0, 1.0, 2.0, 1.0]).view(4, 1, 1)
        transposed = (kernels.panels((m * slopes).mT.numpy()) for m in (torch.cat([w, biases], dim=3), u))
        width = kernels.padded(d)
        one = 2 * len(places) * width
        parts = (4 * one if keep else 0, one if keep else 0, one if keep or not last else 0)
        memory = _idle.pop() if keep and _idle else np.empty(sum(parts), np.float32)
        memory = memory if len(memory) >= sum(parts) else np.empty(sum(parts), np.float32)
        gates, cells, states = np.split(memory[: sum(parts)], np.cumsum(parts)[:2])
        kept = kernels.Kept(gates.reshape(2, 4, -1), cells.reshape(2, -1), states.reshape(2, -1))
        totals = np.zeros((2, size * width), np.float32)
        x = inputs.numpy()
        kernels.forward(kernels.PIECES, x, steps, *transposed, d, kept, totals)
        ctx.layout = walks, ends, x, steps, w.numpy(), u.numpy(), kept, memory
        found = torch.from_numpy(totals if last else kept.states).view(2, -1, width)[..., :d]
        found = torch.cat([found[0], found[1]], dim=1)
        if not last:
            return found
        by_walk = found.new_zeros(len(walks.lengths), 2 * d).index_copy_(0, walks.order[:size], found)
        return by_walk.view(-1, walks.per_patch, 2 * d).sum(dim=1)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        if ctx.layout is None:
            raise RuntimeError("the gradient of the compiled LSTM is computed once: its memory is used again")
        walks, (first, last), x, steps, w, u, kept, memory = ctx.layout
        ctx.layout = None
        d, k = w.shape[2:]
        width, of_each = kernels.padded(d), grads[0]
        if last:
            of_each = of_each.index_select(0, walks.order[: walks.sizes[0]] // walks.per_patch)
        of_states = nn.functional.pad(of_each.view(-1, 2, d).transpose(0, 1), (0, width - d)).contiguous()
        of_inputs = np.empty((len(steps.rows), k), np.float32)
        shapes = (width * kernels.padded(k), width * width, width)
        parts = [np.zeros((kernels.PIECES, 2, 4, numbers), np.float32) for numbers in shapes]
        turned = kernels.panels(w), kernels.panels(u)
        kernels.backward(kernels.PIECES, x, steps, *turned, d, kept, of_states.view(2, -1).numpy(), of_inputs, *parts)
        _idle.append(memory)
        del _idle[:-_MAX_IDLE]
        of_w, of_u, of_b = (torch.from_numpy(part.sum(axis=0)).view(2, 4, width, -1)[:, :, :d] for part in parts)
        of_w, of_u, of_b = of_w[..., :k].reshape(2, -1, k), of_u[..., :d].reshape(2, -1, d), of_b.reshape(2, -1)
        of_x = torch.from_numpy(of_inputs)
        of_x = _sum_by_node(of_x, walks) if first else of_x
        # Two copies: gradients are changed in place.
        return of_x, None, None, None, *of_w, *of_u, *of_b, *of_b.clone()


@lru_cache
def kernels_run_on(device: torch.device, d: int) -> bool:
    """Whether the kernels of a GPU run on a device, for states of width d; a warning says why not.

    Triton calls a C compiler at run time, and a GPU may lack the memory that a kernel needs.
    """
    try:
        from subgnn.kernels.lstm_gpu import MAX_WIDTH
    except ImportError:
        return False
    if d > MAX_WIDTH:
        return False
    try:
        lstm, walks = nn.LSTM(d, d, bidirectional=True), Walks(Ragged.from_rows([np.zeros(1, np.int64)]), 1)
        with torch.enable_grad():
            totals = kernel_totals(
                lstm.to(device), torch.zeros(1, d, device=device), walks.to(device), layer=KernelLayer
            )
        totals.sum().backward()  # type: ignore[no-untyped-call]
    except Exception as error:  # of the compiler, the driver or Triton, each with classes of its own
        told = str(error).splitlines()[0] if str(error) else type(error).__name__
        warn(f"the LSTM's kernels cannot be compiled here ({told}); cuDNN is used")
        return False
    return True


def kernel_totals(lstm: nn.LSTM, inputs: Tensor, walks: Walks, *, layer: Any) -> Tensor:
    """:func:`lstm_totals` by a function for each layer; ``inputs`` are the vectors of ``walks.nodes`` (R, d)."""
    for number in range(lstm.num_layers):
        parameters = [getattr(lstm, f"{name}_l{number}{end}") for name in _PARAMETERS for end in ("", "_reverse")]
        ends = (number == 0, number + 1 == lstm.num_layers)
        inputs = layer.apply(inputs, walks, ends, torch.is_grad_enabled(), *parameters)
        if number + 1 < lstm.num_layers:
            inputs = nn.functional.dropout(inputs, lstm.dropout, lstm.training)
    return inputs


class KernelLayer(torch.autograd.Function):
    """All steps of both directions of one layer on a GPU, from its inputs and the parameters of :class:`torch.nn.LSTM`.

    Args:
        inputs: of the first layer, the vectors of distinct nodes; of others, the states of the layer before.
        ends: whether it is the first layer, and whether it is the last, whose states are added up by patch.
        keep: whether a gradient will be computed.
    """

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, walks: Walks, ends: tuple[bool, bool], keep: bool, *params: Tensor) -> Tensor:
        from subgnn.kernels.lstm_gpu import Launch, Layout, forward

        w = torch.cat(params[:2])  # (8 d, in)
        u = torch.stack(params[2:4])  # (2, 4 d, d)
        bias = torch.cat(params[4:6]).add_(torch.cat(params[6:]))
        layout, launch = Layout(walks.first, walks.lengths, walks.order, walks.per_patch), Launch(*(LAUNCH or ()))
        projected, places = torch.addmm(bias, inputs, w.T), walks.places if ends[0] else None
        states, kept = forward(projected, u, layout, rows=places, summed=ends[1], keep=keep, launch=launch)
        ctx.save_for_backward(inputs, w, u)
        ctx.layout = (walks, ends, layout, kept, launch)
        return states

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        from subgnn.kernels.lstm_gpu import backward

        inputs, w, u = ctx.saved_tensors
        walks, (first, last), layout, kept, launch = ctx.layout
        of_gates, of_bias = backward(grads[0].contiguous(), u, layout, kept, summed=last, launch=launch)
        d = u.shape[2]
        # One product for each direction: a batched one would not divide the steps among processors.
        pairs = zip(torch.split(of_gates, 4 * d, dim=1), torch.split(kept.before, d, dim=1), strict=True)
        of_u = [of_sums.T @ states for of_sums, states in pairs]
        of_projected = _sum_by_node(of_gates, walks) if first else of_gates
        of_w = torch.split(of_projected.T @ inputs, 4 * d)
        # Two copies: gradients are changed in place.
        of_biases = [*torch.split(of_bias, 4 * d), *torch.split(of_bias.clone(), 4 * d)]
        return of_projected @ w, None, None, None, *of_w, *of_u, *of_biases


def _sum_by_node(values: Tensor, walks: Walks) -> Tensor:
    """The sum over the steps on each distinct node (R, n), in a fixed order, of values of steps (steps, n)."""
    return nn.functional.embedding_bag(walks.by_node, values.contiguous(), walks.node_starts, mode="sum")


def gpu_states(lstm: nn.LSTM, table: Tensor, walks: Walks) -> Tensor:
    """Hidden states of both directions at every step (steps, 2 d), by cuDNN.

    Layers are computed one by one, with torch's dropout between them: that of cuDNN cannot be captured. Gradients are
    of single precision if :func:`single_precision` holds while they are computed.
    """
    if not walks.sizes:
        return table.new_zeros(0, 2 * lstm.hidden_size)
    states: Tensor = _Lookup.apply(table, walks)  # type: ignore[no-untyped-call]
    sizes = torch.tensor(walks.sizes)
    for layer in range(lstm.num_layers):
        zeros = states.new_zeros(2, walks.sizes[0], lstm.hidden_size)
        weights = [getattr(lstm, f"{name}_l{layer}{end}") for end in ("", "_reverse") for name in _PARAMETERS]
        with warnings.catch_warnings(), single_precision():
            warnings.filterwarnings("ignore", "RNN module weights are not part of single contiguous chunk")
            states = torch.lstm(states, sizes, (zeros, zeros), weights, True, 1, 0.0, lstm.training, True)[0]
        if layer + 1 < lstm.num_layers:
            states = nn.functional.dropout(states, lstm.dropout, lstm.training)
    return states


class _Lookup(torch.autograd.Function):
    """The vectors of all steps (steps, d), with a gradient that adds up in a fixed order and does not sort steps."""

    @staticmethod
    def forward(ctx: Any, table: Tensor, walks: Walks) -> Tensor:
        ctx.walks, ctx.count = walks, len(table)
        return table.index_select(0, walks.nodes).index_select(0, walks.places)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        walks, grad = ctx.walks, grads[0]
        of_table = grad.new_zeros(ctx.count, grad.shape[1])
        return of_table.index_copy_(0, walks.nodes, _sum_by_node(grad, walks)), None
