"""One bidirectional layer of an LSTM over many walks, on a CPU: all steps forwards, and all gradients.

For a walk at a step with input x and previous state (h', c'):

    i, f, g, o = sigmoid(a_i), sigmoid(a_f), tanh(a_g), sigmoid(a_o),    a = M [x ; h'] + b,  M = [W | U]
    c = f c' + i g,    h = o tanh(c)

Rows of M lie in the order of :class:`torch.nn.LSTM`: i, f, g, o. As tanh(a) = 2 sigmoid(2 a) - 1, the rows of g are
doubled, and gates are kept as sigmoids. A few dozen walks are computed from their first step to their last, so that
their states stay in the cache. Products run in registers (:func:`_tile`); each sum is added up in one order, whatever
the processor and the number of threads. Single precision; the error of the exponential is below two units in the last
place.
"""

from functools import partial
from typing import Any, NamedTuple

import numba
import numpy as np
from llvmlite import binding, ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from subgnn.kernels.arrays import Array, compiled_fused, compiled_parallel

_LANES = 16 if numba.config.CPU_NAME is None and binding.get_host_cpu_features().get("avx512f") else 8
_ROWS = 8  # of a product that stays in registers
# Columns of it, and one place on; not plain numbers, for which callees would be compiled again.
COLUMNS: Any = np.int64(2 * _LANES)
_NEXT: Any = np.int64(1)
_BLOCK = 48  # walks that are computed together
PIECES = 8  # of the walks, for threads

_F = np.float32
# Cody and Waite: ln 2 in two parts, and a polynomial for exp on [-ln 2 / 2, ln 2 / 2].
_LOG2_E, _LN2_HIGH, _LN2_LOW = _F(1.44269504), _F(0.693359375), _F(-2.12194440e-4)
_P0, _P1, _P2 = _F(1.9875691500e-4), _F(1.3981999507e-3), _F(8.3334519073e-3)
_P3, _P4, _P5 = _F(4.1665795894e-2), _F(1.6666665459e-1), _F(5.0000001201e-1)
_ZERO, _ONE, _TWO, _HALF = _F(0), _F(1), _F(2), _F(0.5)


@intrinsic  # type: ignore[untyped-decorator]
def _tile(
    _: Any, c: Any, c_at: Any, c_row: Any, a: Any, a_at: Any, a_row: Any, a_k: Any, b: Any, b_at: Any, b_k: Any, k: Any
) -> Any:
    """c[r, j] += sum over k of a[r, k] b[k, j], for _ROWS rows and COLUMNS columns, in registers.

    Arrays are flat; with each come where it begins, and its strides of rows and k.
    """
    vector, size = ir.VectorType(ir.FloatType(), _LANES), ir.IntType(64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.function.attributes.add("noinline")  # the caller, which would take long to compile if it were repeated
        c, c_at, c_row, a, a_at, a_row, a_k, b, b_at, b_k, count = arguments
        c, a, b = (
            builder.gep(context.make_array(signature.args[n])(context, builder, array).data, [begin])
            for n, array, begin in ((0, c, c_at), (3, a, a_at), (7, b, b_at))
        )

        def place(array: Any, row: int, stride: Any, half: int) -> Any:
            offset = builder.add(builder.mul(size(row), stride), size(half * _LANES))
            return builder.bitcast(builder.gep(array, [offset]), vector.as_pointer())

        tile = [(row, half, cgutils.alloca_once(builder, vector)) for row in range(_ROWS) for half in range(2)]
        for row, half, total in tile:
            builder.store(builder.load(place(c, row, c_row, half), align=4), total)
        with cgutils.for_range(builder, count) as loop:
            right = builder.gep(b, [builder.mul(loop.index, b_k)])
            left = builder.gep(a, [builder.mul(loop.index, a_k)])
            halves = [builder.load(place(right, 0, b_k, half), align=4) for half in range(2)]
            for row, half, total in tile:
                if not half:
                    number = builder.load(builder.gep(left, [builder.mul(size(row), a_row)]))
                    spread = builder.insert_element(vector(ir.Undefined), number, ir.IntType(32)(0))
                    first = ir.VectorType(ir.IntType(32), _LANES)([0] * _LANES)
                    spread = builder.shuffle_vector(spread, vector(ir.Undefined), first)
                product = builder.fmul(spread, halves[half], flags=("contract",))
                builder.store(builder.fadd(builder.load(total), product, flags=("contract",)), total)
        for row, half, total in tile:
            builder.store(builder.load(total), place(c, row, c_row, half), align=4)
        return context.get_dummy_value()

    return types.void(c, c_at, c_row, a, a_at, a_row, a_k, b, b_at, b_k, k), generate


@compiled_fused
def _multiply(
    c: Array, width: int, a: Array, a_row: int, a_k: int, b: Array, b_row: int, panel: int, rows: int, k: int
) -> None:
    """C += A B; ``panel`` is how far apart the columns of B lie that are multiplied together."""
    for p in range(width // COLUMNS):
        for r in range(0, rows, _ROWS):
            _tile(c, r * width + p * COLUMNS, width, a, r * a_row, a_row, a_k, b, p * panel, b_row, k)


def padded(n: int) -> int:
    """The least number of columns from n on that can be multiplied together."""
    return int(-(-n // COLUMNS) * COLUMNS)


def panels(matrices: Array) -> Array:
    """Matrices (..., k, n), each cut into columns that are multiplied together, filled up with zeros and flattened."""
    *many, k, n = matrices.shape
    filled = np.zeros((*many, k, padded(n)), np.float32)
    filled[..., :n] = matrices
    return np.ascontiguousarray(filled.reshape(*many, k, -1, COLUMNS).swapaxes(-3, -2)).reshape(*many, -1)


@njit(inline="always", error_model="numpy")  # type: ignore[untyped-decorator]
def _exp(x: Any) -> Any:
    """e^x without branches or calls, so that the loop around it becomes vector code."""
    x = min(max(x, _F(-87)), _F(88))
    n = np.floor(x * _LOG2_E + _HALF)
    r = x - n * _LN2_HIGH - n * _LN2_LOW
    p = ((((_P0 * r + _P1) * r + _P2) * r + _P3) * r + _P4) * r + _P5
    power = np.int32((np.int32(n) + np.int32(127)) << np.int32(23)).view(np.float32)
    return (p * r * r + r + _ONE) * power


@compiled_fused
def _sigmoid(x: Array, out: Array, n: int) -> None:
    for j in range(n):
        out[j] = _ONE / (_ONE + _exp(-x[j]))


@compiled_fused
def _tanh(x: Array, out: Array, n: int) -> None:
    for j in range(n):
        out[j] = _TWO / (_ONE + _exp(-_TWO * x[j])) - _ONE


@compiled_fused
def _next_cell(i: Array, f: Array, g: Array, c: Array, n: int) -> None:
    for j in range(n):
        c[j] = f[j] * c[j] + i[j] * (_TWO * g[j] - _ONE)


@compiled_fused
def _product(x: Array, y: Array, out: Array, n: int) -> None:
    for j in range(n):
        out[j] = x[j] * y[j]


@compiled_fused
def _add(x: Array, out: Array, n: int) -> None:
    for j in range(n):
        out[j] += x[j]


@compiled_fused
def _copy(x: Array, out: Array, n: int) -> None:
    for j in range(n):
        out[j] = x[j]


class Steps(NamedTuple):
    """Where walks lie: step t of walk w in row first[t] + w, for w < sizes[t], walks in order of falling length.

    ``rows`` are the rows of the inputs that steps stand on.
    """

    first: Array
    sizes: Array
    rows: Array


class Kept(NamedTuple):
    """What a gradient needs of the pass forwards, of both directions; ``gates`` and ``cells`` may be empty.

    Shapes:
        gates: (2, 4, steps D), D = padded(d). cells, states: (2, steps D).
    """

    gates: Array
    cells: Array
    states: Array


@partial(compiled_parallel, compiler=compiled_fused)
def forward(
    begin: int, end: int, inputs: Array, steps: Steps, w: Array, u: Array, d: int, kept: Kept, totals: Array
) -> None:
    """Fill what is kept, and the sums of states over each walk.

    Shapes:
        inputs: (R, k). w: (2, 4, ...), panels of [W | b]^T (k + 1, d). u: (2, 4, ...), panels of U^T (d, d), both with
        the rows of g doubled. totals: (2, walks D), zeros.
    """
    first, sizes, rows = steps
    k, longest, width = inputs.shape[1], len(sizes), -(-d // COLUMNS) * COLUMNS
    keep = kept.gates.shape[2] > 0
    for number in range(2 * begin, 2 * end):
        piece, reverse = number >> 1, number & 1
        states = kept.states[reverse]
        x = np.ones((_BLOCK + _ROWS, k + 1), np.float32)
        gates, total = np.empty((4, _BLOCK * width), np.float32), np.empty((_BLOCK + _ROWS) * width, np.float32)
        h, c = np.empty((_BLOCK + _ROWS) * width, np.float32), np.empty(_BLOCK * width, np.float32)
        t, flat_x = np.empty(_BLOCK * width, np.float32), x.reshape(-1)
        last = sizes[0] * (piece + 1) // PIECES
        for block in range(sizes[0] * piece // PIECES, last, _BLOCK):
            h[:] = c[:] = _ZERO
            before = False
            for s in range(longest):
                step = longest - 1 - s if reverse else s
                n, at = min(sizes[step] - block, last - block, _BLOCK), first[step] + block
                if n <= 0:
                    continue
                for row in range(n):
                    _copy(inputs[rows[at + row]], x[row], k)
                for q in range(4):
                    total[: n * width] = _ZERO
                    _multiply(total, width, flat_x, k + 1, _NEXT, w[reverse, q], COLUMNS, (k + 1) * COLUMNS, n, k + 1)
                    if before:
                        _multiply(total, width, h, width, _NEXT, u[reverse, q], COLUMNS, d * COLUMNS, n, d)
                    _sigmoid(total, gates[q], n * width)
                    if keep:
                        _copy(gates[q], kept.gates[reverse, q, at * width :], n * width)
                _next_cell(gates[0], gates[1], gates[2], c, n * width)
                _tanh(c, t, n * width)
                _product(gates[3], t, h, n * width)
                _add(h, totals[reverse, block * width :], n * width)
                if keep:
                    _copy(c, kept.cells[reverse, at * width :], n * width)
                if len(states):
                    _copy(h, states[at * width :], n * width)
                before = True


@partial(compiled_parallel, compiler=compiled_fused)
def backward(
    begin: int, end: int, inputs: Array, steps: Steps, w: Array, u: Array, d: int, kept: Kept, of_states: Array,
    of_inputs: Array, of_w: Array, of_u: Array, of_b: Array,
) -> None:  # fmt: skip
    """Gradients of the inputs at every step, and the parts of each piece of the walks in those of W, U and b.

    Shapes:
        w: (2, 4, ...), panels of W (d, k). u: (2, 4, ...), panels of U (d, d). of_states: (2, steps D), or
        (2, walks D) for the sums over each walk. of_inputs: (steps, k). of_w: (PIECES, 2, 4, D K), K = padded(k).
        of_u: (PIECES, 2, 4, D D). of_b: (PIECES, 2, 4, D). The last three are zeros.
    """
    first, sizes, rows = steps
    k, longest, width, summed = inputs.shape[1], len(sizes), of_b.shape[3], of_states.shape[1] < kept.states.shape[1]
    wide = of_w.shape[3] // width
    for number in range(2 * begin, 2 * end):
        piece, reverse = number >> 1, number & 1
        cells, states = kept.cells[reverse], kept.states[reverse]
        x, of_x = np.zeros((_BLOCK + _ROWS, wide), np.float32), np.empty((_BLOCK + _ROWS, wide), np.float32)
        of_gates = np.empty((4, (_BLOCK + _ROWS) * width), np.float32)
        of_biases = np.zeros((4, _BLOCK * width), np.float32)
        of_h, of_c = np.empty((_BLOCK + _ROWS) * width, np.float32), np.empty(_BLOCK * width, np.float32)
        t, flat_x, flat_of_x = np.empty(_BLOCK * width, np.float32), x.reshape(-1), of_x.reshape(-1)
        last = sizes[0] * (piece + 1) // PIECES
        for block in range(sizes[0] * piece // PIECES, last, _BLOCK):
            of_h[:] = of_c[:] = _ZERO
            of_gates[:] = _ZERO
            for s in range(longest):
                step = s if reverse else longest - 1 - s
                before = step + 1 if reverse else step - 1
                n, at = min(sizes[step] - block, last - block, _BLOCK), first[step] + block
                if n <= 0:
                    continue
                m = max(0, min(sizes[before] - block, n)) if 0 <= before < longest else 0
                earlier = first[before] + block if m > 0 else 0
                _add(of_states[reverse, (block if summed else at) * width :], of_h, n * width)
                _tanh(cells[at * width :], t, n * width)
                gates, earlier_cells = kept.gates[reverse, :, at * width :], cells[earlier * width :]
                _of_gates(gates, t, of_h, earlier_cells, of_c, of_gates, n * width, m * width)
                for row in range(n):
                    _copy(inputs[rows[at + row]], x[row], k)
                of_h[: n * width] = _ZERO
                flat_of_x[: n * wide] = _ZERO
                for q in range(4):
                    gate, of_w_q, of_u_q = of_gates[q], of_w[piece, reverse, q], of_u[piece, reverse, q]
                    _add(gate, of_biases[q], n * width)
                    _multiply(flat_of_x, wide, gate, width, _NEXT, w[reverse, q], COLUMNS, d * COLUMNS, n, d)
                    _multiply(of_w_q, wide, gate, _NEXT, width, flat_x, wide, COLUMNS, d, n)
                    if m > 0:
                        _multiply(of_h, width, gate, width, _NEXT, u[reverse, q], COLUMNS, d * COLUMNS, n, d)
                        _multiply(of_u_q, width, gate, _NEXT, width, states[earlier * width :], width, COLUMNS, d, m)
                for row in range(n):
                    if reverse:
                        _add(of_x[row], of_inputs[at + row], k)
                    else:
                        _copy(of_x[row], of_inputs[at + row], k)
        for q in range(4):
            for row in range(_BLOCK):
                _add(of_biases[q, row * width :], of_b[piece, reverse, q], width)


@compiled_fused
def _of_gates(gates: Array, t: Array, of_h: Array, c: Array, of_c: Array, out: Array, n: int, m: int) -> None:
    """Gradients of the gates' sums, and of the cells before, from those of the states and of the cells."""
    i, f, g, o = gates[0], gates[1], gates[2], gates[3]
    of_i, of_f, of_g, of_o = out[0], out[1], out[2], out[3]
    for j in range(n):
        of_c[j] += of_h[j] * o[j] * (_ONE - t[j] * t[j])
    for j in range(n):
        of_o[j] = of_h[j] * t[j] * o[j] * (_ONE - o[j])
    for j in range(n):
        of_i[j] = of_c[j] * (_TWO * g[j] - _ONE) * i[j] * (_ONE - i[j])
    for j in range(n):
        of_g[j] = of_c[j] * i[j] * (_ONE - (_TWO * g[j] - _ONE) * (_TWO * g[j] - _ONE))
    for j in range(m):
        of_f[j] = of_c[j] * c[j] * f[j] * (_ONE - f[j])
    for j in range(m, n):
        of_f[j] = _ZERO
    for j in range(n):
        of_c[j] *= f[j]
