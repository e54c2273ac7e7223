"""Simple random walks against their transition probabilities."""

from __future__ import annotations

from collections import Counter

import numpy as np

from subgnn.kernels.uniform_walks import walk_from_members
from tests.kernels.chance import LEAST_P, p_value
from tests.kernels.graphs import SmallGraph, ragged

# A triangle 0 1 2 with a tail 2 - 3, and 4 on its own.
KITE = SmallGraph(5, ((0, 1), (1, 2), (0, 2), (2, 3)))


def test_two_steps_have_the_probability_of_their_steps():
    keys = np.arange(3, dtype=np.uint64)
    found = walk_from_members(*KITE.csr, ragged([[0, 2], [4], [1]]), walks=6000, length=2, keys=keys)
    groups = []
    for start, walks in zip((0, 2, 4, 1), found, strict=True):
        expected = Counter()
        for one in KITE.networkx[start] or [start]:
            for two in KITE.networkx[one] or [one]:
                expected[one, two] += 1 / len(KITE.networkx[start] or [start]) / len(KITE.networkx[one] or [one])
        groups.append((Counter(map(tuple, walks.tolist())), expected))
    assert p_value(groups) > LEAST_P
    assert (found[2] == 4).all()


def test_walks_of_a_set_depend_on_its_key_alone():
    together = walk_from_members(*KITE.csr, ragged([[0, 2], [1]]), walks=9, length=4, keys=np.array([5, 6], np.uint64))
    alone = walk_from_members(*KITE.csr, ragged([[1]]), walks=9, length=4, keys=np.array([6], np.uint64))
    np.testing.assert_array_equal(together[2], alone[0])
    assert not np.array_equal(together[0], together[1])
