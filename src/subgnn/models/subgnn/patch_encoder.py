"""Vectors of patches: walks over a patch through a bidirectional LSTM (paper, appendix A.2, algorithm 2).

a = W sum over walks of (sum over the steps of a walk of [forward state ; backward state]).

Walks are packed so that no step is padding: they lie in order of falling length, and the nodes at step t of all walks
that have one stand together (:class:`torch.nn.utils.rnn.PackedSequence`).

Compiled loops between matrix products compute the LSTM on a CPU, in single precision. Two savings change no number
beyond rounding: inputs are projected once for each distinct node, not for each step, and everything between two matrix
products is one pass over the data (:mod:`subgnn.kernels.lstm`). Directions and blocks of walks run in threads that
sleep while they wait. On a GPU, cuDNN computes it in single precision, in a way that a CUDA graph can capture.
Elsewhere, :class:`torch.nn.LSTM` does.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from subgnn.errors import warn
from subgnn.kernels.lstm import step_backward, step_forward, sum_rows
from subgnn.models.examples import single_precision
from subgnn.ragged import Ragged


@dataclass(frozen=True, slots=True, eq=False)
class Picking:
    """Which row each step stands on (steps,), and ``by_row``, which is None if step t stands on row t.

    ``by_row`` are the steps in order of their rows (steps,), and where those of each row begin (R + 1,).
    """

    rows: NDArray[np.int64]
    by_row: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None

    @classmethod
    def of(cls, rows: NDArray[np.int64], count: int) -> Picking:
        offsets = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=count))])
        return cls(rows, (np.argsort(rows, kind="stable"), offsets.astype(np.int64)))


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
        self.picking = Picking.of(places.astype(np.int64), len(nodes))
        by_node, first_of_node = self.picking.by_row or (np.empty(0, np.int64), np.zeros(1, np.int64))
        arrays = {
            "nodes": nodes,
            "places": self.picking.rows,
            "owner": _joined(walks) // per_patch,
            "first": np.cumsum([0, *self.sizes])[:-1],
            "lengths": lengths,
            "order": longest_first,
            "by_node": by_node,
            "node_starts": first_of_node[:-1],
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
        """Encode patches (patches, d) from the vectors of nodes (T, d)."""
        return self.project(lstm_totals(self.lstm, table, walks))  # type: ignore[no-any-return]


def lstm_totals(lstm: nn.LSTM, table: Tensor, walks: Walks) -> Tensor:
    """Hidden states of both directions, summed over all steps of a patch (patches, 2 d), from node vectors (T, d)."""
    plain = table.device.type == "cuda" and table.dtype == torch.float32 and LAUNCH is not None
    if plain and walks.sizes and kernels_run_on(table.device, lstm.hidden_size):
        return kernel_totals(lstm, table.index_select(0, walks.nodes), walks)
    states = lstm_states(lstm, table, walks)  # (steps, 2 d)
    return states.new_zeros(walks.num_patches, states.shape[1]).index_add(0, walks.owner, states)


def lstm_states(lstm: nn.LSTM, table: Tensor, walks: Walks) -> Tensor:
    """Hidden states of both directions at every step (steps, 2 d), from the vectors of nodes (T, d)."""
    if table.device.type == "cuda":
        return gpu_states(lstm, table, walks)
    inputs = table.index_select(0, walks.nodes)
    if table.device.type == "cpu" and table.dtype == torch.float32:
        return compiled_states(lstm, inputs, walks)
    packed = PackedSequence(inputs[walks.places], torch.tensor(walks.sizes))
    states: Tensor = lstm(packed)[0].data
    return states


LAUNCH: tuple[int, int, str] | None = (16, 8, "tf32x3")
"""Walks and warps of a program, and precision, of the kernels of a GPU; None leaves the LSTM to cuDNN."""
_PARAMETERS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
_Task = Callable[[int, tuple[int, int]], None]
_MAX_SHAPES = 4  # whose workspaces are reused: the last ones
_MAX_THREADS = 8  # more cost more to feed than they save


def compiled_states(lstm: nn.LSTM, inputs: Tensor, walks: Walks) -> Tensor:
    """:func:`lstm_states` on a CPU; ``inputs`` are the vectors of ``walks.nodes`` (R, d)."""
    picking = walks.picking
    for layer in range(lstm.num_layers):
        projected, states = [], []
        for suffix in (f"_l{layer}", f"_l{layer}_reverse"):
            w, u, w_bias, u_bias = (getattr(lstm, name + suffix) for name in _PARAMETERS)
            projected.append(torch.addmm(w_bias + u_bias, inputs, w.T))
            states.append(u)
        inputs = _Layer.apply(*projected, *states, picking, walks.sizes)  # type: ignore[no-untyped-call]
        if layer + 1 < lstm.num_layers:
            inputs = nn.functional.dropout(inputs, lstm.dropout, lstm.training)
            picking = Picking(np.arange(len(inputs)))
    return inputs


class _Workspace:
    """The arrays of one pass forwards and backwards, of both directions.

    Fresh memory costs more than the arithmetic on it, so arrays are reused: :meth:`reserve` takes unused ones, which
    are free again after the pass and its gradient. The gradient takes the place of the gates.

    Shapes:
        h, c, tanh_c: (2, steps, d). gates: (2, steps, 4 d). recurrent: (2, walks, 4 d). grad_h, grad_c: (2, walks, d)
        of one step.
    """

    _idle: ClassVar[dict[tuple[int, int, int], list[dict[str, Tensor]]]] = {}

    def __init__(self, arrays: dict[str, Tensor]) -> None:
        self.h, self.c, self.tanh_c, self.gates = (arrays[name] for name in ("h", "c", "tanh_c", "gates"))
        self.recurrent, self.grad_h, self.grad_c = (arrays[name] for name in ("recurrent", "grad_h", "grad_c"))

    @classmethod
    def reserve(cls, steps: int, walks: int, d: int) -> _Workspace:
        idle = cls._idle.setdefault((steps, walks, d), [])
        while len(cls._idle) > _MAX_SHAPES:
            del cls._idle[next(iter(cls._idle))]
        try:
            arrays = idle.pop()
        except IndexError:
            arrays = {name: torch.empty(2, steps, d) for name in ("h", "c", "tanh_c")}
            arrays |= {name: torch.empty(2, walks, d) for name in ("grad_h", "grad_c")}
            arrays |= {"gates": torch.empty(2, steps, 4 * d), "recurrent": torch.empty(2, walks, 4 * d)}
        reserved = cls(arrays)
        weakref.finalize(reserved, idle.append, arrays).atexit = False
        return reserved


class _Layer(torch.autograd.Function):
    """All steps of both directions of one layer."""

    @staticmethod
    def forward(
        ctx: Any, ahead: Tensor, back: Tensor, w_ahead: Tensor, w_back: Tensor, picking: Picking, lengths: list[int]
    ) -> Tensor:
        of = _Workspace.reserve(sum(lengths), lengths[0] if lengths else 0, w_ahead.shape[1])
        # Ranges of walks: with both directions, one for each thread.
        blocks = _even(lengths[0] if lengths else 0, max(1, min(torch.get_num_threads(), _MAX_THREADS) // 2))

        def run(reverse: int, block: tuple[int, int]) -> None:
            projected, w_state = (back, w_back) if reverse else (ahead, w_ahead)
            h, w_t, room = of.h[reverse], w_state.T, of.recurrent[reverse, slice(*block)]
            p, gates, c, tanh_c, states = (
                array.numpy() for array in (projected.detach(), of.gates[reverse], of.c[reverse], of.tanh_c[reverse], h)
            )
            for now, before in _order(lengths, block, bool(reverse)):
                recurrent = torch.mm(h[before], w_t, out=room[: before.stop - before.start]).numpy()
                step_forward(p, picking.rows[now], recurrent, c[before], gates[now], c[now], tanh_c[now], states[now])

        _in_threads([(run, reverse, block) for reverse in (0, 1) for block in blocks])
        ctx.save_for_backward(w_ahead, w_back)
        ctx.layout, ctx.spent = (of, picking, lengths, blocks, len(ahead)), False
        return torch.cat([of.h[0], of.h[1]], dim=1)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        w_ahead, w_back = ctx.saved_tensors
        of, picking, lengths, blocks, count = ctx.layout
        if ctx.spent:
            raise RuntimeError("the gradient of the compiled LSTM is computed once: it takes the place of the gates")
        ctx.spent = True
        d = w_ahead.shape[1]
        grad_w = {(reverse, block): torch.zeros_like(w_ahead) for reverse in (0, 1) for block in blocks}

        def run(reverse: int, block: tuple[int, int]) -> None:
            w_state = w_back if reverse else w_ahead
            h, of_gates, room = of.h[reverse], of.gates[reverse], of.grad_h[reverse, slice(*block)]
            gates, c, tanh_c, of_c = (
                array.numpy() for array in (of_gates, of.c[reverse], of.tanh_c[reverse], of.grad_c[reverse])
            )
            of_c = of_c[slice(*block)]
            of_h = grads[0][:, reverse * d : reverse * d + d].contiguous().numpy()
            after = of_h[:0]
            for now, before in reversed(_order(lengths, block, bool(reverse))):
                step_backward(of_h[now], after, gates[now], c[before], tanh_c[now], of_c[: now.stop - now.start])
                m = before.stop - before.start
                continued = of_gates[now.start : now.start + m]
                grad_w[reverse, block].addmm_(continued.T, h[before])
                after = torch.mm(continued, w_state, out=room[:m]).numpy()

        _in_threads([(run, reverse, block) for reverse in (0, 1) for block in blocks])
        of_w = [torch.stack([grad_w[reverse, block] for block in blocks]).sum(dim=0) for reverse in (0, 1)]
        if picking.by_row is None:
            # No copy: the projection of this layer's inputs reads them before the workspace is free again.
            return (*of.gates, *of_w, None, None)
        order, offsets = picking.by_row
        grad_projected = [grads[0].new_empty(count, 4 * d) for _ in range(2)]

        def gather(reverse: int, block: tuple[int, int]) -> None:
            values, out = of.gates[reverse].numpy(), grad_projected[reverse].numpy()
            sum_rows(values, order, offsets, *block, out)

        _in_threads([(gather, reverse, block) for reverse in (0, 1) for block in _even(count, len(blocks))])
        return (*grad_projected, *of_w, None, None)


def _even(items: int, parts: int) -> list[tuple[int, int]]:
    return list(pairwise(items * i // parts for i in range(parts + 1)))


def _order(lengths: list[int], block: tuple[int, int], reverse: bool) -> list[tuple[slice, slice]]:
    """For each step in the order of computation, the rows of the block's walks, and of the states they continue."""
    starts = np.cumsum([0, *lengths]).tolist()
    rows = [(s + min(block[0], n), s + min(block[1], n)) for s, n in zip(starts, lengths, strict=False)]
    found, before = [], (0, 0)
    for begin, end in reversed(rows) if reverse else rows:
        continued = min(end - begin, before[1] - before[0])
        found.append((slice(begin, end), slice(before[0], before[0] + continued)))
        before = (begin, end)
    return found


@torch.no_grad()
def _in_threads(tasks: list[tuple[_Task, int, tuple[int, int]]]) -> None:
    if torch.get_num_threads() == 1:
        for run, reverse, block in tasks:
            run(reverse, block)
        return
    for done in [_pool().submit(torch.no_grad()(run), reverse, block) for run, reverse, block in tasks]:
        done.result()


@lru_cache(maxsize=1)
def _pool() -> ThreadPoolExecutor:
    """Threads whose own matrix products use one thread each."""
    return ThreadPoolExecutor(_MAX_THREADS, "subgnn-lstm", initializer=torch.set_num_threads, initargs=(1,))


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
            totals = kernel_totals(lstm.to(device), torch.zeros(1, d, device=device), walks.to(device))
        totals.sum().backward()  # type: ignore[no-untyped-call]
    except Exception as error:  # of the compiler, the driver or Triton, each with classes of its own
        told = str(error).splitlines()[0] if str(error) else type(error).__name__
        warn(f"the LSTM's kernels cannot be compiled here ({told}); cuDNN is used")
        return False
    return True


def kernel_totals(lstm: nn.LSTM, inputs: Tensor, walks: Walks) -> Tensor:
    """:func:`lstm_totals` by the kernels of a GPU; ``inputs`` are the vectors of ``walks.nodes`` (R, d)."""
    for layer in range(lstm.num_layers):
        parameters = [getattr(lstm, f"{name}_l{layer}{end}") for name in _PARAMETERS for end in ("", "_reverse")]
        ends = (layer == 0, layer + 1 == lstm.num_layers)
        inputs = _KernelLayer.apply(inputs, walks, ends, torch.is_grad_enabled(), *parameters)  # type: ignore[no-untyped-call]
        if layer + 1 < lstm.num_layers:
            inputs = nn.functional.dropout(inputs, lstm.dropout, lstm.training)
    return inputs


class _KernelLayer(torch.autograd.Function):
    """All steps of both directions of one layer, from its inputs and the parameters of :class:`torch.nn.LSTM`.

    Args:
        inputs: of the first layer, the vectors of distinct nodes; of others, the states of the layer before.
        ends: whether it is the first layer, and whether it is the last, whose states are added up by patch.
        keep: whether a gradient will be computed.
    """

    @staticmethod
    def forward(
        ctx: Any, inputs: Tensor, walks: Walks, ends: tuple[bool, bool], keep: bool, *parameters: Tensor
    ) -> Tensor:
        from subgnn.kernels.lstm_gpu import Launch, Layout, forward

        w = torch.cat(parameters[:2])  # (8 d, in)
        u = torch.stack(parameters[2:4])  # (2, 4 d, d)
        bias = torch.cat(parameters[4:6]).add_(torch.cat(parameters[6:]))
        layout, launch = Layout(walks.first, walks.lengths, walks.order, walks.per_patch), Launch(*(LAUNCH or ()))
        projected, places = torch.addmm(bias, inputs, w.T), walks.places if ends[0] else None
        states, kept = forward(projected, u, layout, places=places, summed=ends[1], keep=keep, launch=launch)
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
    """:func:`lstm_states` on a GPU.

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
        by_node = _sum_by_node(grad, walks)
        return grad.new_zeros(ctx.count, grad.shape[1]).index_copy_(0, walks.nodes, by_node), None
