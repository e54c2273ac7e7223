"""Cross-validation on the labelled subgraphs outside the test split.

The subgraphs are dealt into folds, equal nodes and groups together. For each fold, a candidate is fitted to the others
and predicts the fold, so that every subgraph is predicted once by a model that never saw it. Within each fit, an eighth
of the subgraphs to learn from serves the choices that a recipe leaves open and the selection of epochs; a model that is
fitted in one go is then solved again on all of them. With ``auto.fit_on = "train"`` the training split is dealt into
folds, and the validation split has that part, as in published protocols. Small sets are dealt several times, and of
large ones a sample is dealt.

Where subgraphs are measured as of their own times, they are divided into blocks of time in place of folds: a block is
predicted by fits to those before it, and the first one by none.
"""

import hashlib
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from subgnn.config.settings import AutoSettings
from subgnn.data.dataset import Dataset
from subgnn.data.own_times import times_of
from subgnn.data.splits import draw_folds, split_units
from subgnn.data.subgraphs import SubgraphSet
from subgnn.errors import DataError
from subgnn.task import task_of
from subgnn.training.fit import HELD_OUT, TRAIN, VAL

UNUSED = 3
"""The split of subgraphs that a fit neither learns from nor predicts."""
MOST_JUDGED = 4096
"""Subgraphs that candidates are compared on; of more, a sample of each class."""
_PARTS = 8  # one of them serves choices within a fit
_PILES = 128  # that a large set is dealt into, for a sample of some of them


@dataclass(frozen=True, slots=True, eq=False)
class CrossValidation:
    """The labelled subgraphs that candidates are judged on and select on; none is in the test split.

    ``given`` is the whole dataset, ``dataset`` the part of it that folds are drawn from, ``rows`` the places of that
    part in ``given``: all of them, unless the set is large. ``judged`` are the places in ``dataset`` that are dealt
    into folds. With ``has_validation``, those in ``val`` serve all choices. Other subgraphs are not used. ``blocks``
    (n,) are the places in time of those in ``dataset``, where they have times; -1 for the test split.
    """

    given: Dataset
    dataset: Dataset
    rows: NDArray[np.int64]
    judged: NDArray[np.int64]
    val: NDArray[np.int64]
    seed: int
    blocks: NDArray[np.int64] | None = None

    @classmethod
    def of(cls, dataset: Dataset, auto: AutoSettings, seed: int) -> Self:
        """The folds of a dataset; refused if there are no labels, or too few subgraphs."""
        subgraphs = dataset.subgraphs
        subgraphs.require_labels("train")
        splits = np.zeros(len(subgraphs), np.int8) if subgraphs.splits is None else np.array(subgraphs.splits)
        if subgraphs.groups is not None:  # unless the split itself divides them between test and the rest
            kept = subgraphs.groups
            test, rest = (set(kept.take(np.flatnonzero((splits == HELD_OUT) == held))) for held in (True, False))
            subgraphs = replace(subgraphs, groups=None if test & rest else kept)
        subgraphs = replace(subgraphs, splits=splits)
        given = replace(dataset, graph=dataset.graph.undirected(), subgraphs=subgraphs)
        by_train = auto.fit_on == "train"
        judged = np.flatnonzero(splits == TRAIN if by_train else splits != HELD_OUT)
        val = np.flatnonzero(splits == VAL) if by_train else np.empty(0, np.int64)
        times = None if by_train else times_of(subgraphs.nodes)
        blocks = None if times is None else _time_blocks(times, judged, auto.folds)
        judged = judged if blocks is None else np.flatnonzero(blocks > 0)
        found = cls(given, given, np.arange(len(subgraphs)), judged, val, seed, blocks)
        needed, count = (2 if found.has_validation else 3), len(np.unique(found.units))
        if count < needed:
            groups = "" if subgraphs.groups is None else " (each group counts once)"
            what = f"only {count} distinct labelled subgraphs outside the test split{groups}"
            hint = f"at least {needed} are needed to judge candidates; name a single recipe, e.g. --recipe bag"
            raise DataError(what, where="train", hint=hint)
        return found if max(len(judged), len(val)) <= MOST_JUDGED else found._sampled()

    def _sampled(self) -> Self:
        known = self.judged if self.blocks is None else np.flatnonzero(self.blocks >= 0)
        judged, val = (self._sample(rows, name) for rows, name in ((known, "judged"), (self.val, "validation")))
        rows = np.union1d(judged, val)
        part = replace(self.given, subgraphs=self.given.subgraphs.take(rows))
        found = replace(self, dataset=part, rows=rows, val=np.searchsorted(rows, val))
        if self.blocks is None:
            return replace(found, judged=np.searchsorted(rows, judged))
        return replace(found, judged=np.flatnonzero(self.blocks[rows] > 0), blocks=self.blocks[rows])

    def _sample(self, rows: NDArray[np.int64], name: str) -> NDArray[np.int64]:
        """About :data:`MOST_JUDGED` of many subgraphs, with equal shares of each class."""
        if len(rows) <= MOST_JUDGED:
            return rows
        piles = draw_folds(self.given.subgraphs.take(rows), self.seed, f"auto/sample/{name}", folds=_PILES)
        return rows[piles < max(1, _PILES * MOST_JUDGED // len(rows))]

    @property
    def has_validation(self) -> bool:
        """Whether choices within fits are made on subgraphs that are in no fold."""
        return bool(len(self.val))

    @property
    def subgraphs(self) -> SubgraphSet:
        return self.dataset.subgraphs.take(self.judged)

    @property
    def units(self) -> NDArray[np.int64]:
        """The unit that determines the fold of each: subgraphs of equal nodes, or of one group."""
        return split_units(self.subgraphs, self.subgraphs.groups)

    @property
    def key(self) -> str:
        """A hash of everything that out-of-fold predictions depend on besides the candidate."""
        graph = self.dataset.graph
        parts = (
            graph.content_hash if graph.oriented is None else graph.oriented.content_hash,
            "" if graph.features is None else hashlib.sha256(np.ascontiguousarray(graph.features).data).hexdigest(),
            replace(self.dataset.subgraphs, splits=None).content_hash,
            hashlib.sha256(self.judged.tobytes()).hexdigest(),
            str(self.seed),
        )
        return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()

    def folds(self, repeat: int, count: int) -> list[NDArray[np.int8]]:
        """The splits for the fits of one repeat: each holds out one fold; in time, later blocks have no part in it."""
        of, blocks, found = self.dataset.subgraphs, self.blocks, []
        if blocks is not None:
            fold = blocks[self.judged]
        else:
            fold = draw_folds(self.subgraphs, self.seed, f"auto/folds/{repeat}", folds=count)
        for i in np.unique(fold).tolist():
            splits = np.full(len(of), UNUSED, np.int8)
            if blocks is not None:
                splits[(blocks >= 0) & (blocks < i)] = TRAIN
            else:
                splits[self.val], splits[self.judged] = VAL, TRAIN
            splits[self.judged[fold == i]] = HELD_OUT
            found.append(self._with_validation(splits, of, f"auto/validation/{repeat}/{i}"))
        return found

    def whole(self) -> NDArray[np.int8]:
        """The splits of a fit to all labelled subgraphs of ``given`` that may be learned from; test is held out."""
        splits = np.array(self.given.subgraphs.splits)
        if not self.has_validation:
            splits[splits == VAL] = TRAIN
        return self._with_validation(splits, self.given.subgraphs, "auto/validation")

    def _with_validation(self, splits: NDArray[np.int8], of: SubgraphSet, name: str) -> NDArray[np.int8]:
        """Put the part of the training subgraphs that costs the fewest classes into validation, unless there is one."""
        if self.has_validation:
            return splits
        train = np.flatnonzero(splits == TRAIN)
        subgraphs = of.take(train)
        parts = draw_folds(subgraphs, self.seed, name, folds=_PARTS)
        chosen = 0
        if task_of(subgraphs.task).one_class:
            labels = np.asarray(subgraphs.targets)
            chosen = int(np.argmax([len(np.unique(labels[parts != part])) for part in range(int(parts.max()) + 1)]))
        splits[train[parts == chosen]] = VAL
        return splits


def _time_blocks(times: NDArray[Any], rows: NDArray[np.int64], folds: int) -> NDArray[np.int64]:
    """The place in time of chosen subgraphs: about equal parts, one more than folds; equal times stay together."""
    _, place, counts = np.unique(times[rows], return_inverse=True, return_counts=True)
    middles = np.cumsum(counts) - counts / 2
    parts = np.minimum((middles * (folds + 1) / max(1, len(rows))).astype(np.int64), folds)
    found = np.full(len(times), -1, np.int64)
    found[rows] = np.unique(parts, return_inverse=True)[1][place]
    return found
