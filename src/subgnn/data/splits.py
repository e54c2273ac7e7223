"""Splits into train, val and test: at random, stratified by label, by whole groups, or by time; folds; and leaks."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import scipy
from numpy.typing import NDArray

from subgnn.data.graph import Graph
from subgnn.data.strings import Strings
from subgnn.data.subgraphs import SPLITS, SubgraphSet
from subgnn.data.values import time_text
from subgnn.errors import DataError, choices, excerpt
from subgnn.kernels.draws import node_set_keys
from subgnn.ragged import Ragged
from subgnn.rng import stream, stream_key
from subgnn.task import task_of

Method = Literal["random", "stratified", "group", "time"]
METHODS: tuple[Method, ...] = ("random", "stratified", "group", "time")
NAMED_SPLITS = ("stored", "published")
FRACTIONS = (0.5, 0.25, 0.25)
_NAMED, _BINS, _TINY = 5, 10, 1e-9


def named_split(subgraphs: SubgraphSet, name: str) -> SubgraphSet:
    """The split of the file, or of published numbers, whose loader exchanges val and test where val is smaller."""
    if name not in NAMED_SPLITS:
        raise DataError(f"the split is '{name}'", where="--split", hint=choices(name, NAMED_SPLITS))
    if name == "stored" or len(subgraphs.indices("val")) >= len(subgraphs.indices("test")):
        return subgraphs
    return replace(subgraphs, splits=np.array([0, 2, 1], np.int8)[np.asarray(subgraphs.splits)])


def split_subgraphs(
    subgraphs: SubgraphSet,
    *,
    method: Method,
    seed: int,
    fractions: Sequence[float] = FRACTIONS,
    groups: Sequence[Hashable] | None = None,
) -> SubgraphSet:
    """Split subgraphs anew; the split depends on the seed and on the set of subgraphs, not on their order.

    Args:
        method: ``random``; ``stratified``, as :func:`stratify_units`; ``group``, which keeps groups whole; or
            ``time``, as :func:`time_split`, for subgraphs with times, which has no use for a seed.
        groups: with ``group``, the group of each subgraph; groups that share a node set become one.
    """
    if method not in METHODS:
        raise DataError(f"unknown method '{method}'", where="method", hint=choices(method, METHODS))
    if (method == "group") != (groups is not None):
        what = "no groups are given" if groups is None else f"groups are given, but the method is '{method}'"
        raise DataError(what, where="groups", hint="only the method 'group' uses groups, and it needs them")
    if groups is not None and len(groups) != len(subgraphs):
        what = f"{len(groups)} groups for {len(subgraphs)} subgraphs"
        raise DataError(what, where="groups", hint="give one group per subgraph, in their order")
    if method == "time":
        if subgraphs.times is None:
            hint = "without times, random, stratified and group are accepted"
            raise DataError("the subgraphs have no times", where="method", hint=hint)
        return replace(subgraphs, splits=time_split(subgraphs.times, fractions))
    unit = split_units(subgraphs, groups)
    sizes, rng = np.bincount(unit), stream(seed, f"split/{method}")
    if method != "stratified":
        chosen = assign_units(sizes, fractions, rng, even=method == "group")
    else:
        if subgraphs.targets is None:
            hint = "without labels, random and group are accepted"
            raise DataError("the subgraphs have no labels", where="method", hint=hint)
        labels = one_hot(subgraphs.targets)
        counts = np.zeros((len(sizes), labels.shape[1]), np.int64)
        np.add.at(counts, unit, labels)
        chosen = stratify_units(counts, sizes, fractions, rng)
    return replace(subgraphs, splits=chosen[unit])


def whole_groups(subgraphs: SubgraphSet) -> Strings | None:
    """The groups of subgraphs, where the split keeps them whole: none has subgraphs in both train and val."""
    if subgraphs.groups is None or subgraphs.splits is None:
        return None
    train, val = (set(subgraphs.groups.take(subgraphs.indices(split))) for split in ("train", "val"))
    return None if train & val else subgraphs.groups


def draw_folds(subgraphs: SubgraphSet, seed: int, name: str, *, folds: int) -> NDArray[np.int64]:
    """A fold for each subgraph (n,): equal shares of each class, and subgraphs of equal nodes or one group in one fold.

    Such sets of subgraphs are dealt out class by class, the larger ones first and equals in a random order, each to
    the fold with the fewest subgraphs of that class, and of all. Several labels and real values are ignored.
    """
    unit = split_units(subgraphs, subgraphs.groups)
    sizes = np.bincount(unit)
    single = task_of(subgraphs.task).one_class
    labels = np.asarray(subgraphs.targets, np.int64) if single else np.zeros(len(unit), np.int64)
    counts = np.zeros((len(sizes), int(labels.max(initial=0)) + 1), np.int64)
    np.add.at(counts, (unit, labels), 1)
    stratum = counts.argmax(axis=1)
    key = np.full(len(sizes), np.iinfo(np.uint64).max, np.uint64)
    np.minimum.at(key, unit, node_set_keys(stream_key(seed, name), subgraphs.nodes))
    have = np.zeros((counts.shape[1], folds), np.int64)
    fold = np.empty(len(sizes), np.int64)
    for i in np.lexsort((key, -sizes, stratum)):
        fold[i] = np.lexsort((have.sum(axis=0), have[stratum[i]]))[0]
        have[stratum[i], fold[i]] += sizes[i]
    return fold[unit]


def split_warnings(subgraphs: SubgraphSet, fitted_to: Sequence[str] = ("train",)) -> list[tuple[str, str]]:
    """Problems that make scores on a split misleading, as pairs of a fact and its consequence."""
    splits, names, groups, found = subgraphs.splits, subgraphs.names, subgraphs.groups, list[tuple[str, str]]()
    if splits is None:
        return found
    rows, firsts = _elsewhere(splits, subgraphs.nodes)
    if len(rows):
        called = [str(i) if names is None else excerpt(names[i]) for i in (rows[0], firsts[0])]
        row, first = (f"{name} of {SPLITS[splits[i]]}" for name, i in zip(called, (rows[0], firsts[0]), strict=True))
        subject = "1 subgraph has" if len(rows) == 1 else f"{len(rows):,} subgraphs have"
        what = f"{subject} the same nodes as one in another split (first: subgraph {row} and {first})"
        found.append((what, "a model can memorise their labels"))
    if groups is not None:
        rows, firsts = _elsewhere(splits, Ragged(groups.rows.values.astype(np.int32), groups.rows.offsets))
        if len(rows):
            count, (one, other) = len(np.unique(firsts)), (SPLITS[splits[i]] for i in (firsts[0], rows[0]))
            named = f"{excerpt(groups[rows[0]])} in {one} and {other}"
            what = f"{'1 group has' if count == 1 else f'{count:,} groups have'} subgraphs in several splits"
            found.append((f"{what} (first: {named})", "a model can learn the groups instead"))
    task = task_of(subgraphs.task)
    if subgraphs.targets is None or task.real:
        return found
    seen = np.isin(splits, [SPLITS.index(split) for split in fitted_to])
    known, counts = (task.counts(subgraphs.targets[part], subgraphs.num_classes) for part in (seen, ~seen))
    places = np.flatnonzero((known == 0) & (counts > 0))
    if len(places):
        targets = subgraphs.targets[~seen]
        held_out = int((targets[:, places].any(axis=1) if targets.ndim == 2 else np.isin(targets, places)).sum())
        labels = ", ".join(f"{excerpt(subgraphs.classes[c])} ({counts[c]:,})" for c in places[:_NAMED])
        more = f" and {len(places) - _NAMED:,} more" if len(places) > _NAMED else ""
        others = [split for split in SPLITS if split not in fitted_to]
        subject = f"1 subgraph in {' or '.join(others)} has"
        subject = subject if held_out == 1 else f"{held_out:,} subgraphs in {' and '.join(others)} have"
        found.append((f"{subject} a label that no training subgraph has: {labels}{more}", "it cannot be learned"))
    return found


def _elsewhere(splits: NDArray[np.int8], values: Ragged) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Subgraphs in another split than the first one with the same row of ``values``, and these first ones."""
    keys = node_set_keys(stream_key(0, "equal rows"), values)
    _, first, place = np.unique(keys, return_index=True, return_inverse=True)
    rows = np.flatnonzero(splits != splits[first[place]])
    return rows, first[place][rows]


def split_units(subgraphs: SubgraphSet, groups: Iterable[Hashable] | None = None) -> NDArray[np.int64]:
    """A number for each subgraph, equal for those of equal nodes or groups, whatever the order of subgraphs."""
    keys = [nodes.astype("<i4").tobytes() for nodes in subgraphs.nodes]
    place = {key: i for i, key in enumerate(sorted(set(keys)))}
    own = np.array([place[key] for key in keys], np.int64)
    if groups is None or not keys:
        return own
    groups = list(groups)
    number = {group: i for i, group in enumerate(dict.fromkeys(groups))}
    group = np.array([number[g] for g in groups], np.int64) + len(place)
    size = len(place) + len(number)
    pairs = scipy.sparse.coo_array((np.ones(len(own)), (own, group)), shape=(size, size))
    joined = scipy.sparse.csgraph.connected_components(pairs, directed=False)[1]
    smallest = np.full(size, size)
    np.minimum.at(smallest, joined[own], own)
    return np.unique(smallest[joined[own]], return_inverse=True)[1].astype(np.int64)


def time_split(times: NDArray[Any], fractions: Sequence[float]) -> NDArray[np.int8]:
    """Split by time, as near to the fractions as can be: train before val before test, equal times together."""
    known, place, counts = np.unique(times, return_inverse=True, return_counts=True)
    if len(known) < len(SPLITS):
        hint = "at least 3 are needed, because equal times stay together"
        raise DataError(f"the subgraphs have only {len(known)} different times", where="times", hint=hint)
    ends, wanted = np.cumsum(counts), np.cumsum(split_sizes(len(times), fractions))
    first = min(int(np.abs(ends - wanted[0]).argmin()), len(known) - 3)
    second = min(max(int(np.abs(ends - wanted[1]).argmin()), first + 1), len(known) - 2)
    return np.searchsorted([first, second], place).astype(np.int8)


def first_held_out(subgraphs: SubgraphSet) -> float | None:
    """The earliest time in val and test, where all of train is before that: the split is one by time; else None."""
    if subgraphs.times is None or subgraphs.splits is None:
        return None
    train = subgraphs.splits == SPLITS.index("train")
    if train.all() or not train.any() or subgraphs.times[train].max() >= (first := subgraphs.times[~train].min()):
        return None
    return float(first) if subgraphs.times.dtype.kind == "f" else int(first)


def looks_ahead(graph: Graph, subgraphs: SubgraphSet) -> bool:
    """Whether the split is one by time, and an edge is later than the earliest subgraph of val and test."""
    first = first_held_out(subgraphs)
    return first is not None and graph.times is not None and bool((graph.times > first).any())


def refuse_look_ahead(graph: Graph, subgraphs: SubgraphSet) -> None:
    """Refuse a graph with edges newer than the first held-out subgraph, if the split is by time."""
    if graph.times is None or not looks_ahead(graph, subgraphs):
        return
    first = first_held_out(subgraphs) or 0
    later = int(np.count_nonzero(graph.times > first)) // (1 if graph.directed else 2)
    what = f"the split is by time, but {later:,} edges are newer than the first held-out subgraph, {time_text(first)}"
    drop = f"drop them with --edges-until {first!r}, or keep them with --allow-look-ahead"
    raise DataError(what, where="train", hint=f"measure each subgraph at its own time with --as-of subgraph, {drop}")


def split_sizes(n: int, fractions: Sequence[float] = FRACTIONS) -> NDArray[np.int64]:
    """Sizes of the splits of ``n`` items: rounded by largest remainder, and at least one."""
    share = np.asarray(fractions, np.float64)
    if share.shape != (len(SPLITS),) or not (share > 0).all() or abs(share.sum() - 1) > 1e-6:
        hint = "three numbers above 0 that sum to 1: train, val, test"
        raise DataError(f"fractions {list(fractions)}", where="fractions", hint=hint)
    if n < len(SPLITS):
        hint = "train, val and test each need at least one; subgraphs of one group or with equal nodes count once"
        raise DataError(f"{n} cannot be split into three", where="subgraphs", hint=hint)
    sizes = np.floor(n * share + _TINY).astype(np.int64)
    order = np.argsort(-(n * share - sizes).round(9), kind="stable")
    sizes[order[: n - sizes.sum()]] += 1
    for split in np.flatnonzero(sizes == 0):
        sizes[np.argmax(sizes)] -= 1
        sizes[split] += 1
    return sizes


def one_hot(targets: NDArray[Any]) -> NDArray[np.int64]:
    """Which labels an item has (n, labels), of 0 and 1; real targets are cut into ten bins of equal counts."""
    if targets.ndim == 2:
        return targets.astype(np.int64)
    if targets.dtype.kind == "f":
        cuts = np.quantile(targets, np.linspace(0, 1, _BINS + 1)[1:-1]) if len(targets) else np.empty(0)
        targets = np.searchsorted(cuts, targets, side="right")
    place = np.unique(targets, return_inverse=True)[1]
    return np.eye(int(place.max(initial=-1)) + 1, dtype=np.int64)[place]


class _Capacity:
    """The number of subgraphs that each split still lacks, and the splits that may take the next unit."""

    def __init__(self, sizes: NDArray[np.int64], fractions: Sequence[float]) -> None:
        split_sizes(len(sizes), fractions)  # as many units as splits, at least
        self.left = split_sizes(int(sizes.sum()), fractions)
        self.empty = np.ones(len(self.left), bool)
        self.waiting = len(sizes)

    def candidates(self) -> NDArray[np.bool_]:
        """Splits that may take the next unit: all, but the last units go to those that have none yet."""
        return self.empty.copy() if self.waiting <= int(self.empty.sum()) else np.ones(len(self.empty), bool)

    def take(self, split: int, size: int) -> None:
        self.left[split] -= size
        self.empty[split] = False
        self.waiting -= 1


def _large_first(sizes: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    shuffled = rng.permutation(len(sizes))
    return shuffled[np.argsort(-sizes[shuffled], kind="stable")]


def assign_units(
    sizes: NDArray[np.int64], fractions: Sequence[float], rng: np.random.Generator, *, even: bool = False
) -> NDArray[np.int8]:
    """Assign units at random, in proportion to what splits lack; or ``even``, the largest to what lacks most."""
    capacity, out = _Capacity(sizes, fractions), np.empty(len(sizes), np.int8)
    for unit in _large_first(sizes, rng):
        left = np.where(capacity.candidates(), capacity.left, np.iinfo(np.int64).min)
        if even:
            out[unit] = np.argmax(left)
        else:  # to a split with room for the unit, else the one with most capacity
            weight = np.where(left >= min(sizes[unit], left.max()), np.maximum(left, _TINY), 0.0).cumsum()
            out[unit] = np.argmax(weight > rng.random() * weight[-1])
        capacity.take(out[unit], sizes[unit])
    return out


def stratify_units(
    counts: NDArray[np.int64], sizes: NDArray[np.int64], fractions: Sequence[float], rng: np.random.Generator
) -> NDArray[np.int8]:
    """Assign units label by label, the label of fewest waiting units first, each where the label lacks most.

    ``counts`` (units, labels) says how many subgraphs of a unit carry a label. If every unit is one subgraph, splits
    have exactly the sizes of :func:`split_sizes`, and each class its share of every split to within one; of several
    labels, near that (iterative stratification: Sechidis, Tsoumakas and Vlahavas, 2011).
    """
    capacity, out = _Capacity(sizes, fractions), np.full(len(sizes), -1, np.int8)
    lacking = np.outer(counts.sum(axis=0), np.asarray(fractions, np.float64))
    if (counts.sum(axis=1) == sizes).all():
        lacking = _round_table(lacking, counts.sum(axis=0), capacity.left).astype(np.float64)
    order = _large_first(sizes, rng)
    carried = counts > 0
    while (out < 0).any():
        waiting = carried[out < 0].sum(axis=0)
        label = int(np.argmin(np.where(waiting > 0, waiting, len(sizes) + 1))) if waiting.any() else None
        for unit in order:
            if out[unit] >= 0 or (label is not None and not carried[unit, label]):
                continue
            wish = capacity.left if label is None else lacking[label]
            best = int(np.lexsort((-capacity.left, -wish, ~capacity.candidates()))[0])
            out[unit] = best
            capacity.take(best, sizes[unit])
            lacking[:, best] -= counts[unit]
    # Move units from splits that are too large to those that lack some, with the least change of label counts.
    left = capacity.left
    while left.min() < 0:
        source, target = int(np.argmin(left)), int(np.argmax(left))
        movable = np.flatnonzero((out == source) & (sizes <= min(-left[source], left[target])))
        if not len(movable):
            break
        # The sum of squares of what labels lack changes by twice this, and by what the unit itself weighs.
        regret = counts[movable] @ (lacking[:, source] - lacking[:, target]) + (counts[movable] ** 2).sum(axis=1)
        unit = movable[np.argmin(regret)]
        out[unit] = target
        left[source] += sizes[unit]
        left[target] -= sizes[unit]
        lacking[:, source] += counts[unit]
        lacking[:, target] -= counts[unit]
    return out


def _round_table(exact: NDArray[np.float64], rows: NDArray[Any], columns: NDArray[Any]) -> NDArray[np.int64]:
    """Whole numbers within one of ``exact`` that sum to ``rows`` and ``columns``, where there are such numbers.

    Every entry is rounded down; what its row then lacks is added one an entry, largest remainder first, and an
    entry makes way for another where a column is full (augmenting paths, as in bipartite matching).
    """
    table = np.floor(exact + _TINY).astype(np.int64)
    extra = np.zeros(table.shape, bool)
    remainder = (exact - table).round(9)
    left = columns - table.sum(axis=0)
    for s in np.flatnonzero(left < 0):
        while left[s] < 0:
            table[np.argmax(table[:, s]), s] -= 1
            left[s] += 1

    def give(row: int, tried: set[int]) -> bool:
        for s in np.argsort(-remainder[row], kind="stable").tolist():
            if extra[row, s] or s in tried or remainder[row, s] <= 0:
                continue
            tried.add(s)
            for other in [] if left[s] > 0 else np.flatnonzero(extra[:, s]).tolist():
                if give(other, tried):
                    extra[other, s] = False
                    left[s] += 1
                    break
            if left[s] > 0:
                extra[row, s] = True
                left[s] -= 1
                return True
        return False

    for row in np.argsort(-remainder.max(axis=1, initial=0), kind="stable").tolist():
        for _ in range(int(rows[row] - table[row].sum())):
            if not give(row, set()):
                emptiest = int(np.argmax(left))
                table[row, emptiest] += 1
                left[emptiest] -= 1
    return table + extra
