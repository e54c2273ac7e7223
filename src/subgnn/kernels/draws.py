"""Random numbers inside compiled loops: SplitMix64, one stream per key.

A stream is a ``uint64`` array of one element, its state; every draw advances it. Streams are keyed by their purpose (a
walk, a component), so results do not depend on the number of threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from subgnn.kernels.arrays import Array, Sets, compiled, compiled_parallel, frozen, sets
from subgnn.ragged import Ragged

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_LOW_32 = np.uint64(0xFFFFFFFF)
_S27, _S30, _S31, _S32, _S11 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(32), np.uint64(11)
_TO_UNIT = 1.0 / 9007199254740992.0  # 2^-53


@compiled
def scramble(x: np.uint64) -> np.uint64:
    """The SplitMix64 finaliser: a bijection of 64-bit words that leaves no trace of the input's pattern."""
    x = (x ^ (x >> _S30)) * _MIX_1
    x = (x ^ (x >> _S27)) * _MIX_2
    return x ^ (x >> _S31)


@compiled
def open_stream(key: np.uint64, index: int) -> Array:
    """A fresh stream for item ``index`` under ``key``."""
    state = np.empty(1, np.uint64)
    state[0] = scramble(scramble(key) ^ scramble(np.uint64(index) * _GOLDEN + _MIX_1))
    return state


@compiled
def uniform_word(state: Array) -> np.uint64:
    """64 random bits."""
    state[0] += _GOLDEN
    return scramble(state[0])


@compiled
def uniform_unit(state: Array) -> float:
    """A float in [0, 1)."""
    return np.float64(uniform_word(state) >> _S11) * _TO_UNIT


@compiled
def uniform_below(state: Array, n: int) -> Any:
    """An integer in 0..n-1, exactly uniform (Lemire's multiply and reject), for 0 < n < 2^31."""
    bound = np.uint64(n)
    product = (uniform_word(state) >> _S32) * bound
    low = product & _LOW_32
    if low < bound:
        threshold = (np.uint64(0x100000000) - bound) % bound
        while low < threshold:
            product = (uniform_word(state) >> _S32) * bound
            low = product & _LOW_32
    return np.int64(product >> _S32)


@compiled
def _node_set_keys(key: np.uint64, family: Sets, out: Array) -> None:
    values, offsets = family
    for row in range(len(offsets) - 1):
        digest = scramble(key)
        for i in range(offsets[row], offsets[row + 1]):
            digest = scramble(digest + _GOLDEN + np.uint64(values[i]))
        out[row] = digest


def node_set_keys(key: int, rows: Ragged) -> Array:
    """One 64-bit key per node set, a function of ``key`` and of the set alone (rows are sorted).

    The anchors of a subgraph are drawn with such a key, so a prediction depends neither on the batch nor on the order
    of lines.

    Shapes:
        returns: (rows,) uint64.
    """
    out = np.empty(len(rows), np.uint64)
    _node_set_keys(np.uint64(key), sets(rows), out)
    return out


def item_keys(key: int | Array, items: int) -> Array:
    """``key`` for every item, or the keys given for each of them, as a read-only uint64 array."""
    if isinstance(key, np.ndarray):
        return frozen(key, np.uint64)
    spread = np.empty(items, np.uint64)
    _spread(np.uint64(key), spread)
    return frozen(spread, np.uint64)


@compiled
def _spread(key: np.uint64, out: Array) -> None:
    for i in range(len(out)):
        out[i] = scramble(scramble(key) ^ scramble(np.uint64(i) * _GOLDEN + _MIX_2))


@compiled_parallel
def _sample_members(begin: int, end: int, family: Sets, keys: Array, out: Array) -> None:
    values, rows = family
    for r in range(begin, end):
        state = open_stream(keys[r], 0)
        for i in range(out.shape[1]):
            out[r, i] = values[rows[r] + uniform_below(state, rows[r + 1] - rows[r])]


def sample_members(rows: Ragged, *, draws: int, key: int | Array) -> Array:
    """Draw ``draws`` nodes uniformly, with replacement, from every set; no set may be empty.

    Args:
        key: a stream key, or one key per set (:func:`node_set_keys`).

    Shapes:
        returns: (sets, draws) int32.
    """
    out = np.empty((len(rows), draws), np.int32)
    _sample_members(len(rows), sets(rows), item_keys(key, len(rows)), out)
    return out


@compiled_parallel
def _normal_rows(begin: int, end: int, key: np.uint64, nodes: Array, out: Array) -> None:
    for i in range(begin, end):
        state = open_stream(key, nodes[i])
        for j in range(0, out.shape[1], 2):
            # Box and Muller: two uniform numbers give two normal ones.
            radius = np.sqrt(-2.0 * np.log(1.0 - uniform_unit(state)))
            angle = 2.0 * np.pi * uniform_unit(state)
            out[i, j] = radius * np.cos(angle)
            if j + 1 < out.shape[1]:
                out[i, j + 1] = radius * np.sin(angle)


def normal_rows(key: int, nodes: Array, dim: int) -> Array:
    """Standard normal vectors of nodes, a function of the node and the key alone.

    Shapes:
        nodes: (n,). returns: (n, dim) float32.
    """
    out = np.empty((len(nodes), dim), np.float32)
    _normal_rows(len(nodes), np.uint64(key), frozen(nodes, np.int64), out)
    return out
