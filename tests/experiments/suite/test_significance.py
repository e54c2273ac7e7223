"""The sign-flip test beside a slow count of all signs."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from subgnn.experiments.suite.significance import EXACT, sign_flip_test


@pytest.mark.parametrize("n", range(2, 9))
def test_counts_all_signs(n):
    differences = np.random.default_rng(n).normal(0.3, 1, n)
    as_large = [
        abs(sum(s * d for s, d in zip(signs, differences, strict=True))) >= abs(sum(differences)) - 1e-12
        for signs in product([1, -1], repeat=n)
    ]
    assert sign_flip_test(list(differences)) == pytest.approx(np.mean(as_large))


def test_by_hand():
    assert sign_flip_test([0.1] * 10) == pytest.approx(2 / 2**10)
    assert sign_flip_test([0.1, -0.1]) == 1.0
    assert sign_flip_test([0.0, 0.0, 0.0]) == 1.0
    assert sign_flip_test([0.1]) is None
    assert sign_flip_test([0.1, float("nan")]) is None


def test_many_seeds_are_drawn():
    assert sign_flip_test([0.1] * (EXACT + 5)) == pytest.approx(1 / 20_001, rel=20)
    even = [0.1, -0.1] * 10
    assert sign_flip_test(even) == 1.0
