"""Vectors of patches: walks over a patch through a bidirectional LSTM (paper, appendix A.2, algorithm 2).

a = W sum over walks of (sum over the steps of a walk of [forward state ; backward state]).

Walks of unequal length are packed, so that no step is padding: they lie in order of falling length, and the nodes at
step t of all walks that have one stand together (:class:`torch.nn.utils.rnn.PackedSequence`).

On a CPU in single precision compiled loops compute the LSTM. Two savings change no number beyond rounding: inputs are
projected once for each distinct node, not for each step, and everything between two matrix products is one pass over
the data (:mod:`subgnn.kernels.lstm`). Directions and blocks of walks run in threads that sleep while they wait. On a
GPU both directions advance together: the second reads each walk from its end, so both have equally many walks left.
Elsewhere, and in mixed precision, :class:`torch.nn.LSTM` is used.
"""

from __future__ import annotations

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

from subgnn.kernels.lstm import step_backward, step_forward, sum_rows
from subgnn.ragged import Ragged

_Task = Callable[[int, tuple[int, int]], None]
_MAX_SHAPES = 4  # whose workspaces are reused: the last ones
_MAX_THREADS = 8  # more cost more to feed than they save


@dataclass(frozen=True, slots=True, eq=False)
class Picking:
    """Which row each step stands on, and the steps of each row; ``by_row`` is None if step t stands on row t.

    Shapes:
        rows: (steps,) int64. by_row: the steps in order of their rows, (steps,) int64, and where each row's begin,
        (R + 1,) int64.
    """

    rows: NDArray[np.int64]
    by_row: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None

    @classmethod
    def of(cls, rows: NDArray[np.int64], count: int) -> Picking:
        """For steps on ``count`` rows."""
        offsets = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=count))])
        return cls(rows, (np.argsort(rows, kind="stable"), offsets.astype(np.int64)))


class Walks(nn.Module):
    """Walks as buffers, packed: all first steps, then all second steps, and so on; longer walks first.

    Args:
        rows: the walks of all patches, as places in the node table; empty ones are left out.
        per_patch: how many walks a patch has.

    Shapes:
        nodes: (R,) places in the table of the distinct nodes of all walks. places: (steps,) which of them each step
        stands on. back: (steps,) the step of the same walk that is as far from its end. owner: (steps,) the patch of
        each step. sizes: how many walks have a step t. turns: (2 steps,) the steps of both directions, 2 s for step s
        of the first and 2 s + 1 for that of the second, in the order in which they are computed: those of the first
        and of the second direction that come first, those that come next, and so on. turn_of: its inverse. by_node:
        (steps,) the steps in order of their nodes. node_starts: (R,) where those of each node begin.
    """

    nodes: Tensor
    places: Tensor
    back: Tensor
    owner: Tensor
    turns: Tensor
    turn_of: Tensor
    by_node: Tensor
    node_starts: Tensor

    def __init__(self, rows: Ragged, per_patch: int) -> None:
        super().__init__()
        self.num_patches = len(rows) // per_patch
        longest_first = np.argsort(-rows.lengths, kind="stable")
        lengths = rows.lengths[longest_first]
        self.sizes = [int((lengths > t).sum()) for t in range(int(lengths.max(initial=0)))]
        walks = [longest_first[:size] for size in self.sizes]
        steps = [rows.values[rows.offsets[walk] + t] for t, walk in enumerate(walks)]
        nodes, places = np.unique(_joined(steps), return_inverse=True)
        first = np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)
        # Step t of the w-th longest walk lies at first[t] + w.
        back = [first[lengths[:size] - 1 - t] + np.arange(size) for t, size in enumerate(self.sizes)]
        self.picking = Picking.of(places.astype(np.int64), len(nodes))
        self.register_buffer("nodes", torch.from_numpy(nodes.astype(np.int64)))
        self.register_buffer("places", torch.from_numpy(self.picking.rows))
        self.register_buffer("back", torch.from_numpy(_joined(back)))
        self.register_buffer("owner", torch.from_numpy(_joined(walks) // per_patch))
        turns = _joined(
            [part for t, two in enumerate(back) for part in (2 * (first[t] + np.arange(len(two))), 2 * two + 1)]
        )
        self.register_buffer("turns", torch.from_numpy(turns), persistent=False)
        self.register_buffer("turn_of", torch.from_numpy(np.argsort(turns)), persistent=False)
        by_node, first_of_node = self.picking.by_row or (np.empty(0, np.int64), np.zeros(1, np.int64))
        self.register_buffer("by_node", torch.from_numpy(by_node), persistent=False)
        self.register_buffer("node_starts", torch.from_numpy(first_of_node[:-1]), persistent=False)


def _joined(parts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.concatenate([np.empty(0, np.int64), *parts]).astype(np.int64)


class PatchEncoder(nn.Module):
    """Patches to vectors; one encoder serves all layers and sides.

    *Differs from the paper:* a linear map takes the 2 d numbers of both directions to d; the paper does not say how.
    Patches are encoded in every step, as in the paper, unless training.encode_every is more than 1: then steps between
    reuse the last vectors, and neither the encoder nor the embeddings of walked nodes learn from these steps.

    Attributes:
        reuse: whether a training step takes the vectors of the last one that encoded; None if none is to keep them.

    Shapes:
        d: width of node and patch vectors.
    """

    reuse: bool | None = None

    def __init__(self, dim: int, *, lstm_layers: int = 1, dropout: float = 0.0) -> None:
        super().__init__()
        self.lstm = nn.LSTM(
            dim,
            dim,
            num_layers=lstm_layers,
            dropout=dropout if lstm_layers > 1 else 0.0,
            bidirectional=True,
            batch_first=True,
        )
        self.project = nn.Linear(2 * dim, dim)
        self._kept: Tensor | None = None

    def forward(self, table: Tensor, walks: Walks) -> Tensor:
        """Encode patches.

        Shapes:
            table: (T, d). returns: (patches, d).
        """
        if self.training and self.reuse and self._kept is not None:
            return self._kept
        states = lstm_states(self.lstm, table, walks)  # (steps, 2 d)
        total = states.new_zeros(walks.num_patches, states.shape[1]).index_add(0, walks.owner, states)
        encoded: Tensor = self.project(total)
        if self.training and self.reuse is not None:
            # In place, since captured steps read them from where they were.
            self._kept = encoded.detach().clone() if self._kept is None else self._kept.copy_(encoded.detach())
        return encoded


def lstm_states(lstm: nn.LSTM, table: Tensor, walks: Walks) -> Tensor:
    """Hidden states of both directions at every step.

    Args:
        lstm: bidirectional; its dropout acts between its layers, in training.
        table: node vectors.

    Shapes:
        table: (T, d). returns: (steps, 2 d).
    """
    plain = not torch.is_autocast_enabled(table.device.type)
    if plain and table.device.type == "cuda":
        return _fused(lstm, table, walks)
    inputs = table.index_select(0, walks.nodes)
    if plain and inputs.device.type == "cpu" and inputs.dtype == torch.float32:
        return compiled_states(lstm, inputs, walks)
    packed = PackedSequence(inputs[walks.places], torch.tensor(walks.sizes))
    states: Tensor = lstm(packed)[0].data
    return states


def _fused(lstm: nn.LSTM, table: Tensor, walks: Walks) -> Tensor:
    """On a GPU: both directions of a step are one product and one kernel."""
    # Many steps stand on one node. To project them all costs less than to add up the gradients of projections.
    inputs: Tensor = _Lookup.apply(table, walks)  # type: ignore[no-untyped-call]
    for layer in range(lstm.num_layers):
        weights, states, biases = zip(*direction_weights(lstm, layer), strict=True)
        projected = torch.addmm(torch.cat(biases), inputs, torch.cat(weights).T)  # (steps, 8 d)
        u = torch.stack([state.T for state in states])  # (2, d, 4 d)
        inputs = _FusedLayer.apply(projected, u, walks)  # type: ignore[no-untyped-call]
        if layer + 1 < lstm.num_layers:
            inputs = nn.functional.dropout(inputs, lstm.dropout, lstm.training)
    return inputs


class _Lookup(torch.autograd.Function):
    """The vectors of all steps, with a gradient in a fixed order that does not sort steps by node: they are sorted.

    Shapes:
        table: (T, d). returns: (steps, d).
    """

    @staticmethod
    def forward(ctx: Any, table: Tensor, walks: Walks) -> Tensor:
        ctx.walks, ctx.count = walks, len(table)
        return table.index_select(0, walks.nodes).index_select(0, walks.places)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        walks, (grad,) = ctx.walks, grads
        totals = nn.functional.embedding_bag(walks.by_node, grad.contiguous(), walks.node_starts, mode="sum")
        return grad.new_zeros(ctx.count, grad.shape[1]).index_copy_(0, walks.nodes, totals), None


class _FusedLayer(torch.autograd.Function):
    """All steps of both directions of one layer, on a GPU.

    The gradient of u is one product after the loop, where autograd would make one for every step, and a copy of the
    whole gradient for each part of an array that a step uses.

    Shapes:
        projected: (steps, 8 d). u: (2, d, 4 d). returns: (steps, 2 d).
    """

    @staticmethod
    def forward(ctx: Any, projected: Tensor, u: Tensor, walks: Walks) -> Tensor:
        d = u.shape[1]
        arrived = torch.split(projected.view(-1, 4 * d).index_select(0, walks.turns), [2 * n for n in walks.sizes])
        h, c = u.new_zeros(0, d), u.new_zeros(0, d)
        before, cells, states, gates = [], [c], [], []
        for t, size in enumerate(walks.sizes):
            if t == 0:
                h, c = u.new_zeros(2 * size, d), u.new_zeros(2 * size, d)
                recurrent = torch.zeros_like(arrived[0])
            else:
                h, c = _first(h, size), _first(c, size)
                recurrent = torch.bmm(h.view(2, size, d), u).view(2 * size, 4 * d)
            before.append((h, c))
            h, c, activated = _fused_cell(arrived[t], recurrent, c)
            states.append(h)
            cells.append(c)
            gates.append(activated)
        ctx.save_for_backward(u)
        ctx.saved = walks, before, cells[1:], gates
        return torch.cat([u.new_zeros(0, d), *states]).index_select(0, walks.turn_of).view(-1, 2 * d)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (u,) = ctx.saved_tensors
        walks, before, cells, gates = ctx.saved
        d, u_t = u.shape[1], u.transpose(1, 2)
        sizes = walks.sizes
        of_h = torch.split(grads[0].reshape(-1, d).index_select(0, walks.turns), [2 * n for n in sizes])
        found: list[Tensor] = []
        of_c: Tensor | None = None
        for t in reversed(range(len(sizes))):
            if found:
                after = sizes[t + 1]
                of_h[t].view(2, sizes[t], d)[:, :after].baddbmm_(found[-1].view(2, after, 4 * d), u_t)
                if after < sizes[t] and of_c is not None:
                    of_c = nn.functional.pad(of_c.view(2, after, d), (0, 0, 0, sizes[t] - after)).view(-1, d)
            of_gates, of_c = _fused_cell_backward(of_h[t], of_c, before[t][1], cells[t], gates[t])
            found.append(of_gates)
        of_projected = torch.cat([u.new_zeros(0, 4 * d), *reversed(found)]).index_select(0, walks.turn_of)
        states = torch.cat([u.new_zeros(0, d), *(h for h, _ in before)]).index_select(0, walks.turn_of)
        # Two products, (d, steps) x (steps, 4 d) each: a batched one would not divide the steps among processors.
        pairs = zip(states.view(-1, 2, d).unbind(1), of_projected.view(-1, 2, 4 * d).unbind(1), strict=True)
        of_u = torch.stack([before.T @ of_gates for before, of_gates in pairs])
        return of_projected.view(-1, 8 * d), of_u, None


def _first(values: Tensor, size: int) -> Tensor:
    """The first ``size`` walks of both directions. Shapes: (2 n, d); returns: (2 size, d)."""
    return values if len(values) == 2 * size else values.view(2, -1, values.shape[1])[:, :size].reshape(2 * size, -1)


def _fused_cell(arrived: Tensor, recurrent: Tensor, c: Tensor) -> Any:
    """State, cell and gates after one step: the kernel that :class:`torch.nn.LSTMCell` uses on a GPU."""
    return torch.ops.aten._thnn_fused_lstm_cell(arrived, recurrent, c)


def _fused_cell_backward(of_h: Tensor, of_c: Tensor | None, before: Tensor, c: Tensor, gates: Tensor) -> Any:
    """Gradients of the gates' sums, and of the cell before the step."""
    return torch.ops.aten._thnn_fused_lstm_cell_backward_impl(of_h, of_c, before, c, gates, False)[:2]


def direction_weights(lstm: nn.LSTM, layer: int) -> list[tuple[Tensor, Tensor, Tensor]]:
    """For each direction, the weights of the input and of the state, and the bias."""
    found = []
    for suffix in (f"_l{layer}", f"_l{layer}_reverse"):
        bias = getattr(lstm, "bias_ih" + suffix) + getattr(lstm, "bias_hh" + suffix)
        found.append((getattr(lstm, "weight_ih" + suffix), getattr(lstm, "weight_hh" + suffix), bias))
    return found


def compiled_states(lstm: nn.LSTM, inputs: Tensor, walks: Walks) -> Tensor:
    """Hidden states of both directions at every step.

    Args:
        inputs: the vectors of ``walks.nodes``.

    Shapes:
        inputs: (R, d). returns: (steps, 2 d).
    """
    picking = walks.picking
    for layer in range(lstm.num_layers):
        both = direction_weights(lstm, layer)
        projected = [torch.addmm(bias, inputs, w.T) for w, _, bias in both]
        states = [u for _, u, _ in both]
        inputs = _Layer.apply(*projected, *states, picking, walks.sizes)  # type: ignore[no-untyped-call]
        if layer + 1 < lstm.num_layers:
            inputs = nn.functional.dropout(inputs, lstm.dropout, lstm.training)
            picking = Picking(np.arange(len(inputs)))
    return inputs


class _Workspace:
    """The arrays of one pass forwards and backwards, of both directions.

    Fresh memory costs more than the arithmetic on it, so arrays are reused: :meth:`reserve` takes unused ones, and they
    are free again after the pass and its gradient, which takes the place of the gates.

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
        """Unused arrays of these shapes, or new ones."""
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
        blocks = _blocks(lengths)

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


def _blocks(lengths: list[int]) -> list[tuple[int, int]]:
    """Ranges of walks: with both directions, one for each thread."""
    return _even(lengths[0] if lengths else 0, max(1, min(torch.get_num_threads(), _MAX_THREADS) // 2))


def _order(lengths: list[int], block: tuple[int, int], reverse: bool) -> list[tuple[slice, slice]]:
    """For each step in the order of computation, the rows of the block's walks, and of the states they continue."""
    first = 0
    rows = []
    for length in lengths:
        rows.append((first + min(block[0], length), first + min(block[1], length)))
        first += length
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
