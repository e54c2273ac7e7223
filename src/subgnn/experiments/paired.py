r"""Two models on the same subgraphs: is one better than the other, or only luckier?

Micro-F1 and R^2 are ratios of sums over subgraphs,

    score = sum_i gain_i / sum_i weight_i,

with gain 1 for a right answer and weight 1 (one class); 2 TP_i and 2 TP_i + FP_i + FN_i (several labels); or
(y_i - mean y)^2 - (y_i - said_i)^2 and (y_i - mean y)^2 (real values). What is paired is the subgraph: all its pieces
change hands together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.data.subgraphs import Task
from subgnn.rng import stream

_SWAPS, _DRAWS, _BLOCK = 20_000, 2_000, 4_000_000
_TINY = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """What each subgraph adds to a score.

    Shapes:
        gain, weight: (n,).
    """

    gain: NDArray[np.float64]
    weight: NDArray[np.float64]

    @property
    def score(self) -> float:
        """Micro-F1, or R^2; NaN where nothing can be divided by."""
        total = float(self.weight.sum())
        return float(self.gain.sum()) / total if total > 0 else float("nan")


def score_pieces(said: NDArray[Any], true: NDArray[Any], task: Task) -> Pieces:
    """The pieces of micro-F1, for real values of R^2.

    Shapes:
        said, true: (n,) classes or values, or (n, classes) of 0 and 1.

    Example:
        >>> score_pieces(np.array([0, 1, 1]), np.array([0, 1, 2]), "multi-class").score
        0.6666666666666666
    """
    if task == "regression":
        spread = (true - true.mean()) ** 2
        # In parts of the whole spread, so that the unit of the values has no part in it.
        whole = spread.sum() if spread.sum() > 0 else np.nan
        return Pieces((spread - (true - said) ** 2) / whole, spread / whole)
    if task == "multi-label":
        twice = 2.0 * (said * true).sum(axis=1)
        return Pieces(twice, twice + (said != true).sum(axis=1))
    return Pieces((said == true).astype(np.float64), np.ones(len(true)))


def mean_pieces(every: Sequence[Pieces]) -> Pieces:
    """The pieces of several runs of one recipe, as those of one."""
    return Pieces(np.mean([p.gain for p in every], axis=0), np.mean([p.weight for p in every], axis=0))


def swap_test(ours: Pieces, theirs: Pieces) -> float:
    """How likely our lead would be if, subgraph by subgraph, chance had said whose answer is whose.

    A one-sided paired randomisation test: each subgraph's pieces change hands with probability one half, and the share
    of such swaps with a lead at least as large is returned, counting the one that was seen. For one class a subgraph
    it is McNemar's test: with d subgraphs that one alone gets right, all ours, it is 2^-d. It needs no large
    sample: of three subgraphs it never gives less than 1/8.
    """
    lead = ours.score - theirs.score
    if not np.isfinite(lead):
        return 1.0
    rng = stream(0, "experiments/swaps")
    delta = np.stack([theirs.gain - ours.gain, theirs.weight - ours.weight], axis=1)
    mine, other = (np.array([p.gain.sum(), p.weight.sum()]) for p in (ours, theirs))
    differs = delta[np.abs(delta).sum(axis=1) > 0]  # a swap of equals changes nothing
    as_large = 0
    for size in _blocks(_SWAPS, len(differs)):
        moved = rng.integers(0, 2, (size, len(differs)), dtype=np.int8) @ differs
        here, there = np.maximum(mine + moved, [-np.inf, _TINY]), np.maximum(other - moved, [-np.inf, _TINY])
        as_large += int((here[:, 0] / here[:, 1] - there[:, 0] / there[:, 1] >= lead - 1e-9).sum())
    return (1 + as_large) / (1 + _SWAPS)


def lead_interval(ours: Pieces, theirs: Pieces) -> tuple[float, float]:
    """The middle 95 % of our lead over samples of as many subgraphs, drawn with replacement (paired bootstrap)."""
    n, rng, leads = len(ours.gain), stream(0, "experiments/bootstrap"), []
    if not np.isfinite(ours.score - theirs.score):
        return float("nan"), float("nan")
    table = np.stack([ours.gain, ours.weight, theirs.gain, theirs.weight], axis=1)
    for size in _blocks(_DRAWS, n):
        sums = rng.multinomial(n, np.full(n, 1 / n), size) @ table
        leads.append(sums[:, 0] / np.maximum(sums[:, 1], _TINY) - sums[:, 2] / np.maximum(sums[:, 3], _TINY))
    low, high = np.quantile(np.concatenate(leads), [0.025, 0.975])
    return float(low), float(high)


def _blocks(total: int, width: int) -> list[int]:
    """Sizes of parts that sum to ``total``, so that no table of random numbers is too large."""
    size = max(1, _BLOCK // max(1, width))
    return [min(size, total - begin) for begin in range(0, total, size)]
