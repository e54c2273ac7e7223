"""A graph of things done by the same people: two are joined where enough users did both.

What two users share is a clique of it. Large cliques say little and cost much, so their edges are thinned at random, as
the paper breaks up the cliques of popular combinations (appendix B, EM-USER).

*Differs from the paper:* it does not say which cliques, nor how many of their edges are kept; both are settings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, triu

from subgnn.data.real.settings import at_least, within

Nodes = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class JoinSettings:
    """The edge rule.

    Args:
        min_users: users that completed both of two joined workouts.
        max_clique: workouts that two users may share before the edges among them are thinned.
        keep: the probability that an edge of a larger clique stays.
    """

    min_users: int = 2
    max_clique: int = 10
    keep: float = 0.5

    def __post_init__(self) -> None:
        at_least(1, min_users=self.min_users, max_clique=self.max_clique)
        within(0, 1, keep=self.keep)


def join_workouts(
    histories: Sequence[Nodes], size: int, settings: JoinSettings, rng: np.random.Generator
) -> tuple[Nodes, Nodes, int]:
    """The edges, smaller end first, and how many were thinned out.

    An edge is thinned where two users share more than ``max_clique`` workouts and both its ends are among them; where
    ``min_users`` is 1, every history is such a clique.

    Args:
        histories: the workouts of each user, rising.
        size: how many workouts there are.
    """
    rows = np.repeat(np.arange(len(histories)), [len(history) for history in histories])
    columns = np.concatenate([*histories, np.empty(0, np.int64)])
    # A workout of fewer users has no edges; without it the products below stay small.
    often = (np.bincount(columns, minlength=size) >= settings.min_users)[columns]
    done = csr_array((np.ones(int(often.sum()), np.int32), (rows[often], columns[often])), shape=(len(histories), size))
    both = triu(done.T @ done, k=1, format="coo")
    enough = both.data >= settings.min_users
    keys = np.sort(both.row[enough].astype(np.int64) * size + both.col[enough])
    crowded = np.zeros(len(keys), bool)
    for clique in _large_cliques(done, settings) if len(keys) else ():
        a, b = np.triu_indices(len(clique), k=1)
        wanted = clique[a] * size + clique[b]
        found = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        crowded[found[keys[found] == wanted]] = True
    stays = ~crowded | (rng.random(len(keys)) < settings.keep)
    tails, heads = np.divmod(keys[stays], size)
    return tails, heads, int(len(keys) - stays.sum())


def _large_cliques(done: csr_array, settings: JoinSettings) -> Iterator[Nodes]:
    """What each pair of users shares, or each history where one user is enough, where it is large."""
    histories = [
        np.sort(done.indices[begin:end]).astype(np.int64)
        for begin, end in zip(done.indptr[:-1], done.indptr[1:], strict=True)
    ]
    if settings.min_users == 1:
        yield from (history for history in histories if len(history) > settings.max_clique)
        return
    shared = triu(done @ done.T, k=1, format="coo")
    large = shared.data > settings.max_clique
    for i, j in zip(shared.row[large], shared.col[large], strict=True):
        yield np.intersect1d(histories[i], histories[j])
