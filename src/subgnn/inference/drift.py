"""Whether the subgraphs that a run is asked about differ from those it was trained with.

Each of a few quantities is compared by a two-sample test: the number of nodes of a subgraph and the share of its nodes
that occur in training subgraphs by Kolmogorov and Smirnov's, the predicted classes against the training labels by the
chi-squared test of a table. A batch differs if a p-value, times the number of tests, is below .001: a small difference
of many subgraphs is found, too, so both values are told. Fewer than 20 subgraphs are not compared.
"""

import threading
from collections import deque
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from subgnn.data.subgraphs import SubgraphSet
from subgnn.inference.predictor import Predictor
from subgnn.ragged import Ragged
from subgnn.task import task_of

_FEWEST, _SURE = 20, 0.001


@dataclass(frozen=True, slots=True)
class Difference:
    """One quantity of a batch: its p-value against training, and both in words."""

    what: str
    p_value: float
    words: str


class Drift:
    """The latest ``most`` subgraphs that a run was asked about, to compare with its training split or whole dataset."""

    def __init__(self, predictor: Predictor, training: SubgraphSet, *, most: int = 2**20) -> None:
        known = training if training.splits is None else training.take(training.indices("train"))
        self._predictor, self._known = predictor, known
        self._inside = np.zeros(predictor.graph.num_nodes, np.int64)
        distinct = np.unique(np.stack([known.nodes.row_ids, known.nodes.values.astype(np.int64)]), axis=1)
        np.add.at(self._inside, distinct[1], 1)
        self._learned = {row.tobytes() for row in known.nodes}
        task = task_of(predictor.spec.task)
        self._classes = predictor.spec.classes if task.one_class else ()
        self._seen: deque[tuple[int, float, int]] = deque(maxlen=most)
        self._lock = threading.Lock()

    def add(self, subgraphs: Ragged, scores: NDArray[np.float32]) -> None:
        """Add subgraphs with their class probabilities."""
        found = scores.argmax(axis=1) if self._classes else np.full(len(subgraphs), -1)
        shares = self._shares(subgraphs, np.array([row.tobytes() in self._learned for row in subgraphs], bool))
        with self._lock:
            self._seen.extend(zip(subgraphs.lengths.tolist(), shares.tolist(), found.tolist(), strict=True))

    def _shares(self, subgraphs: Ragged, learned: NDArray[np.bool_]) -> NDArray[np.float64]:
        """The share of each subgraph's nodes in training subgraphs, in others than itself if it is ``learned``."""
        met = self._inside[subgraphs.values] > learned[subgraphs.row_ids]
        counts = np.bincount(subgraphs.row_ids, met, len(subgraphs))
        return counts / np.maximum(subgraphs.lengths, 1)

    def differences(self) -> list[Difference]:
        """The quantities with their p-values; none of too few subgraphs."""
        with self._lock:
            seen = list(self._seen)
        known = self._known
        if len(seen) < _FEWEST or len(known) < _FEWEST:
            return []
        sizes, shares, classes = (np.array(column) for column in zip(*seen, strict=True))
        learned = self._shares(known.nodes, np.ones(len(known), bool))
        found = []
        for name, now, then, form in (
            ("nodes of a subgraph", sizes, known.nodes.lengths, ".0f"),
            ("members known from training", shares, learned, ".0%"),
        ):
            words = f"median {np.median(now):{form}}, in training {np.median(then):{form}}"
            found.append(Difference(name, float(scipy.stats.ks_2samp(now, then).pvalue), words))
        targets = known.targets
        if not self._classes or targets is None or known.classes != self._classes:
            return found
        number = len(self._classes)
        table = np.stack([np.bincount(classes, minlength=number), np.bincount(targets, minlength=number)])
        present = np.array(self._classes)[table.any(axis=0)]
        table = table[:, table.any(axis=0)]
        p_value = 1.0 if table.shape[1] < 2 else float(scipy.stats.chi2_contingency(table).pvalue)
        shares_of = table / table.sum(axis=1, keepdims=True)
        most = int(np.argmax(np.abs(shares_of[0] - shares_of[1])))
        words = f"{present[most]} {shares_of[0, most]:.0%}, in training {shares_of[1, most]:.0%}"
        return [*found, Difference("predicted classes", p_value, words)]

    def line(self, *, unknown: int = 0) -> str:
        """What differs, in one line; empty if nothing does. ``unknown`` nodes of the subgraphs are not in the graph."""
        tests = self.differences()
        clear = [one for one in tests if one.p_value * len(tests) < _SURE]
        parts = [f"{one.what} ({one.words}; p = {one.p_value:.1g})" for one in clear]
        if clear and unknown:
            total = unknown + sum(size for size, _, _ in self._seen)
            parts.append(f"{unknown / total:.0%} of nodes are not in the graph")
        return f"these subgraphs differ from training: {'; '.join(parts)}" if parts else ""
