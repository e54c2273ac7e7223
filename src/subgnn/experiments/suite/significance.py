"""Is a model better than another over seeds, or only luckier?

The paired sign-flip test: if the two models were alike, the difference of each seed would be as likely to have the
other sign. The p-value is the share of all 2^n ways to choose signs whose mean difference is at least as large, in
either direction. It is exact up to :data:`EXACT` seeds, and has no normal distribution in it; of n seeds it
never gives less than 2^(1-n). With more seeds, signs are drawn at random.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from subgnn.rng import stream

EXACT = 15
_DRAWS, _TINY = 20_000, 1e-12


def sign_flip_test(differences: Sequence[float]) -> float | None:
    """The two-sided p-value; None where there is nothing to tell apart, with fewer than two seeds or undefined scores.

    Example:
        >>> sign_flip_test([0.1, 0.2, 0.1, 0.3])
        0.125
    """
    found = np.asarray(differences, np.float64)
    if len(found) < 2 or not np.isfinite(found).all():
        return None
    seen = abs(found.sum()) - _TINY
    if len(found) <= EXACT:
        signs = 1 - 2 * ((np.arange(2 ** len(found))[:, None] >> np.arange(len(found))) & 1)
        return float((np.abs(signs @ found) >= seen).mean())
    signs = 1 - 2 * stream(0, "experiments/signs").integers(0, 2, (_DRAWS, len(found)))
    return float((1 + (np.abs(signs @ found) >= seen).sum()) / (1 + _DRAWS))
