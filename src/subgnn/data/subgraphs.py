"""Labelled subgraphs: node sets of one base graph, their targets and their split."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.data.strings import Strings, has_leading_zero, is_missing, parse_number
from subgnn.data.values import check_times
from subgnn.errors import DataError, choices, excerpt
from subgnn.kernels.draws import node_set_keys
from subgnn.ragged import Ragged, hashed
from subgnn.rng import stream_key
from subgnn.task import TASKS, TaskName, task_of

SPLITS = ("train", "val", "test")
_WHOLE = re.compile(r"-?[0-9]{1,18}")
_DIGITS = re.compile(r"-?[0-9]+")
_FEW_NUMBERS, _NAMED = 10, 3
LARGEST_LABEL = 1e30
"""The largest magnitude of a real-valued label; predictions are numbers of 32 bits, which end at 3e38."""
Label = str | int | float | Sequence[str | int]
_SEVERAL = (list, tuple, set, frozenset)


@dataclass(frozen=True, slots=True, eq=False)
class NodeSets(Ragged):
    """Rows of nodes, each measured as of its time, if any; absent nodes were looked for and not found."""

    times: NDArray[Any] | None = None
    absent: Ragged | None = None

    def take(self, rows: NDArray[Any] | Sequence[int]) -> NodeSets:
        index = np.asarray(rows, np.int64)
        found, times = Ragged.take(self, index), None if self.times is None else self.times[index]
        return NodeSets(found.values, found.offsets, times, None if self.absent is None else self.absent.take(index))

    @property
    def digest(self) -> str:
        """SHA-256 of the rows, their times and absent nodes."""
        parts = [Ragged(self.values, self.offsets).digest.encode()]
        parts += [] if self.times is None else [np.ascontiguousarray(self.times, np.float64).tobytes()]
        parts += [] if self.absent is None else [self.absent.digest.encode()]
        return hashlib.sha256(b"".join(parts)).hexdigest()


def absent_of(nodes: Ragged) -> Ragged | None:
    """The nodes that were looked for and not found in each subgraph; None if nothing is known of them."""
    return nodes.absent if isinstance(nodes, NodeSets) else None


def with_absent(nodes: Ragged, absent: Ragged | None) -> Ragged:
    """Rows with other absent nodes, or without any."""
    times = nodes.times if isinstance(nodes, NodeSets) else None
    plain = absent is None and times is None
    return Ragged(nodes.values, nodes.offsets) if plain else NodeSets(nodes.values, nodes.offsets, times, absent)


def absent_rows(nodes: Ragged) -> Ragged:
    """The absent nodes of each subgraph, as rows of the same times; empty where there are none."""
    absent = absent_of(nodes)
    found = Ragged(np.empty(0, np.int32), np.zeros(len(nodes) + 1, np.int64)) if absent is None else absent
    times = nodes.times if isinstance(nodes, NodeSets) else None
    return found if times is None else NodeSets(found.values, found.offsets, times)


@dataclass(frozen=True, slots=True, eq=False)
class SubgraphSet:
    """Subgraphs, immutable; make one with :meth:`from_lists`, which checks its input.

    Targets are (n,) int32 classes (multi-class, binary), (n, classes) uint8 (multi-label), (n,) float64 (regression).

    Example:
        >>> s = SubgraphSet.from_lists([[2, 0], [1]], labels=["a", "b"], splits=["train", "test"], num_nodes=3)
        >>> s.nodes[0].tolist(), s.task, s.classes, s.targets.tolist(), s.indices("test").tolist()
        ([0, 2], 'binary', ('a', 'b'), [0, 1], [1])
    """

    nodes: Ragged  # n rows, each sorted and without repeats; NodeSets if absent nodes are known
    task: TaskName = "unlabelled"
    targets: NDArray[Any] | None = None
    classes: tuple[str, ...] = ()
    splits: NDArray[np.int8] | None = None  # (n,) places in SPLITS
    names: Strings | None = None
    groups: Strings | None = None  # equal for subgraphs that belong into one split
    times: NDArray[Any] | None = None  # (n,) in the unit of the times of edges
    columns: Mapping[str, Sequence[str | None]] = field(default_factory=dict)  # others of the user's table, by title

    def __post_init__(self) -> None:
        absent = () if self.absent is None else (self.absent.values, self.absent.offsets)
        for array in (self.nodes.values, self.nodes.offsets, *absent, self.targets, self.splits, self.times):
            if array is not None:
                array.flags.writeable = False

    @classmethod
    def from_lists(
        cls,
        nodes: Sequence[Sequence[int] | NDArray[Any]],
        *,
        num_nodes: int,
        labels: Sequence[Label] | None = None,
        splits: Sequence[str] | None = None,
        names: Sequence[str] | None = None,
        groups: Sequence[str] | None = None,
        task: TaskName | None = None,
        times: Sequence[float] | NDArray[Any] | None = None,
        absent: Sequence[Sequence[int] | NDArray[Any]] | None = None,
    ) -> SubgraphSet:
        """Check and build; repeated nodes of a subgraph count once, and labels are those of :func:`encode_labels`."""
        rows = list[NDArray[Any]]()
        for i, given in [*enumerate(nodes), *enumerate(absent or ())]:
            row = np.unique(np.asarray(given, None if len(given) else np.int64))
            if row.size == 0 and len(rows) < len(nodes):
                raise DataError("empty subgraph", where=f"subgraph {i}", hint="at least one node is needed")
            if row.size and len(rows) >= len(nodes) and np.isin(row, rows[i]).any():
                raise present_and_absent(str(np.intersect1d(row, rows[i])[0]), f"subgraph {i}")
            if row.dtype.kind not in "iu":
                what = f"the node ids have type {row.dtype}"
                raise DataError(what, where=f"subgraph {i}", hint="integers are accepted")
            if row.size and (row[0] < 0 or row[-1] >= num_nodes):
                what = f"node {row[0] if row[0] < 0 else row[-1]} is not in the graph"
                raise DataError(what, where=f"subgraph {i}", hint=f"ids run 0..{num_nodes - 1}")
            rows.append(row)
        columns = {"labels": labels, "splits": splits, "names": names, "groups": groups, "absent": absent}
        for what, column in columns.items():
            if column is not None and len(column) != len(nodes):
                raise DataError(f"{len(column)} {what} for {len(nodes)} subgraphs", where=what)
        for i, split in enumerate(splits or ()):
            if split not in SPLITS:
                raise DataError(f"unknown split '{split}'", where=f"subgraph {i}", hint=choices(str(split), SPLITS))
        lacking = None if absent is None else Ragged.from_rows(rows[len(nodes) :])
        return cls(
            with_absent(Ragged.from_rows(rows[: len(nodes)]), lacking),
            *encode_labels(labels, task),
            None if splits is None else np.array([SPLITS.index(split) for split in splits], np.int8),
            None if names is None else Strings.of(names),
            None if groups is None else Strings.of(groups),
            None if times is None else check_times(times, len(nodes)).copy(),
        )

    def __len__(self) -> int:
        return len(self.nodes)

    def __getitem__(self, rows: int | slice | Sequence[int] | NDArray[Any]) -> SubgraphSet:
        """Some of the subgraphs; a number gives a set of one."""
        index = np.arange(len(self))[rows]  # which raises IndexError beyond the last, so that iteration ends
        return self.take(np.atleast_1d(index))

    def __repr__(self) -> str:
        classes = [f"{self.num_classes:,} classes"] if self.classes else []
        count = f"{len(self):,} subgraph{'' if len(self) == 1 else 's'}"
        splits = [] if self.splits is None else [", ".join(f"{split} {len(self.indices(split)):,}" for split in SPLITS)]
        return f"SubgraphSet({', '.join([count, self.task, *classes, *splits])})"

    @property
    def absent(self) -> Ragged | None:
        """The nodes of each subgraph that were looked for and not found; None if nothing is known of them."""
        return absent_of(self.nodes)

    @property
    def num_classes(self) -> int:
        """Classes; 0 for regression and unlabelled subgraphs."""
        return len(self.classes)

    def require_labels(self, where: str) -> NDArray[Any]:
        if self.targets is None:
            raise DataError("the subgraphs have no labels", where=where, hint="give each one a label")
        return self.targets

    def indices(self, split: str) -> NDArray[np.int64]:
        if split not in SPLITS:
            raise DataError(f"unknown split '{split}'", where="split", hint=choices(split, SPLITS))
        if self.splits is None:
            raise DataError("the subgraphs have no splits", where="split", hint="give each one train, val or test")
        return np.flatnonzero(self.splits == SPLITS.index(split))

    def take(self, rows: NDArray[np.int64] | Sequence[int]) -> SubgraphSet:
        """The chosen subgraphs, in the given order; classes stay as they are."""
        index = np.asarray(rows, np.int64)
        kept: dict[str, Any] = {"nodes": self.nodes.take(index)}
        kept["columns"] = {title: [values[row] for row in index] for title, values in self.columns.items()}
        for name in ("targets", "splits", "times", "names", "groups"):
            column = getattr(self, name)
            if column is not None:
                kept[name] = column.take(index) if isinstance(column, Strings) else column[index]
        return replace(self, **kept)

    def label_text(self, row: int) -> str:
        if self.targets is None:
            return ""
        task = task_of(self.task)
        if task.real:
            return repr(float(self.targets[row]))
        names = task.names(self.targets[row], self.classes)
        return names[0] if len(names) == 1 else label_separator(self.classes).join(names)

    def label_counts(self) -> dict[str, int]:
        if self.targets is None:
            return {}
        return dict(zip(self.classes, task_of(self.task).counts(self.targets, self.num_classes).tolist(), strict=True))

    @property
    def content_hash(self) -> str:
        """SHA-256 of nodes, labels, splits, times, groups and absent nodes, in order."""
        arrays = (self.nodes.offsets, self.nodes.values, self.targets, self.splits, self.times)
        digest = hashed("\x1f".join(("subgraphs", self.task, *self.classes)), (("", array) for array in arrays))
        if self.groups is not None:
            digest.update("\x1f".join(("groups", *self.groups)).encode())
        if self.absent is not None:
            digest.update(self.absent.digest.encode())
        return digest.hexdigest()


def present_and_absent(node: str, where: str) -> DataError:
    """The error of a subgraph that lacks a node that it has."""
    hint = "a node is in a subgraph, was looked for and not found, or neither"
    return DataError(f"node {excerpt(node)} is in the subgraph and absent", where=where, hint=hint)


def encode_labels(
    labels: Sequence[Label | None] | None,
    task: TaskName | None = None,
    where: Callable[[int], str] = "subgraph {}".format,
    *,
    separator: str | None = None,
    keep_na: bool = False,
) -> tuple[TaskName, NDArray[Any] | None, tuple[str, ...]]:
    """Task, targets and class names of labels; ``where`` names the place of the i-th one in an error.

    Lists of classes are multi-label. Numbers that are not all whole are real values to regress on; whole numbers and
    words are classes, ordered as numbers where all of them are, else as text. ``1`` and ``1.0`` are one class. A
    ``separator`` joins several labels in texts; without a task, it tells a multi-label one if not all texts are
    numbers. A missing label is an error; with ``keep_na``, only an empty one is, and ``NA`` is a class.
    """
    if labels is None or task == "unlabelled":
        return "unlabelled", None, ()
    if separator is not None:
        texts = list(map(str, labels))
        if task is None and not all(map(_is_real, texts)) and any(separator in text for text in texts):
            task = "multi-label"
        if task == "multi-label":
            labels = [tuple(filter(None, text.split(separator))) or "" for text in texts]
    for i, label in enumerate(labels):
        several = label if isinstance(label, _SEVERAL) else [label]
        if any(not one if keep_na else is_missing(str(one)) for one in several):
            raise DataError("the label is missing", where=where(i), hint="give every subgraph one, or none at all")
    if task == "multi-label" or (task is None and any(isinstance(x, _SEVERAL) for x in labels)):
        lists = [list(x) if isinstance(x, _SEVERAL) else [x] for x in labels]
        classes, place = _classes([str(c) for row in lists for c in row])
        targets = np.zeros((len(lists), len(classes)), np.uint8)
        for i, row in enumerate(lists):
            targets[i, [place[str(c)] for c in row]] = 1
        return "multi-label", targets, classes
    texts = [str(x) for x in labels]
    # Some are not whole; beyond 2^53 every float is whole, so there the digits decide.
    real = all(map(_is_real, texts)) and any(
        not float(t).is_integer() or (abs(float(t)) >= 2**53 and not _DIGITS.fullmatch(t)) for t in texts
    )
    if task == "regression" or (task is None and real):
        return "regression", _real_targets(texts, where), ()
    classes, place = _classes(texts)
    codes = np.array([place[t] for t in texts], np.int32)
    found: TaskName = "binary" if len(classes) == 2 else "multi-class"
    if task == "binary" and found != "binary":
        what = f"the task is '{task}', but the labels have {len(classes)} classes"
        raise DataError(what, where="labels", hint=f"they look {found}")
    return found, codes, classes


def label_separator(classes: Sequence[str]) -> str:
    """The text that joins several labels: ``-``, or, where a class contains that, one that no class contains."""
    candidates = ("-", ";", "|", ",", *(";" * width for width in range(2, 2 + max(map(len, classes), default=0))))
    return next(one for one in candidates if not any(one in name for name in classes))


def label_card(subgraphs: SubgraphSet) -> dict[str, Any]:
    """The entries of a dataset card for labels: the task, and the separator of a multi-label dataset."""
    if subgraphs.task == "unlabelled":
        return {}
    joined = {"label_separator": label_separator(subgraphs.classes)} if task_of(subgraphs.task).several else {}
    return {"task": subgraphs.task, **joined}


def parse_task(text: str, where: str, accepted: Sequence[TaskName] = tuple(TASKS)) -> TaskName:
    """A task by its name, with or without its hyphen."""
    for task in accepted:
        if text in (task, task.replace("-", "")):
            return task
    raise DataError(f"unknown task {excerpt(text)}", where=where, hint=choices(text, accepted))


def _is_real(text: str) -> bool:
    return parse_number(text) is not None


def _real_targets(texts: list[str], where: Callable[[int], str]) -> NDArray[np.float64]:
    out = np.empty(len(texts))
    for i, text in enumerate(texts):
        value = parse_number(text)
        if value is None:
            what = f"label {excerpt(text)} is not a number"
            raise DataError(what, where=where(i), hint="regression needs real values")
        if not abs(value) <= LARGEST_LABEL:
            hint = f"accepted: from -{LARGEST_LABEL:g} to {LARGEST_LABEL:g}; give the labels in a larger unit"
            hint = hint if np.isfinite(value) else "a finite number is needed"
            raise DataError(f"label {excerpt(text)}", where=where(i), hint=hint)
        out[i] = value
    return out


def is_whole(text: str) -> bool:
    """Whether a text is a whole number, written as ``12`` or as ``12.0``."""
    return _is_real(text) and float(text).is_integer()


def single_classes(subgraphs: SubgraphSet) -> list[tuple[str, str]]:
    """Classes with one subgraph, as a fact and its consequence; refused if no class has two."""
    single = [name for name, count in subgraphs.label_counts().items() if count == 1]
    if not single:
        return []
    count, named = len(single), ", ".join(map(excerpt, single[:_NAMED])) + ", ..." * (len(single) > _NAMED)
    if count == len(subgraphs.classes) == len(subgraphs) > 2:
        hint = "are these the labels? name their column with --label-column; for numbers pass --task regression"
        what = f"each of the {count:,} classes has one subgraph ({named}), so that nothing can be learned"
        raise DataError(what, where="labels", hint=hint)
    have = "class has" if count == 1 else "classes have"
    return [(f"{count:,} {have} one subgraph ({named})", "it cannot be both learned and tested")]


def label_notes(subgraphs: SubgraphSet) -> list[str]:
    """Notes about labels that were probably meant for a different task."""
    whole = subgraphs.task == "multi-class" and all(is_whole(name) for name in subgraphs.classes)
    hint = 'pass --task regression to data convert, or write {"task": "regression"} into dataset.json'
    what = f"{subgraphs.num_classes:,} classes read from whole numbers; for numbers to predict {hint}"
    notes = [what] if whole and subgraphs.num_classes > _FEW_NUMBERS else []
    for separator in ";|,-" if subgraphs.task in ("binary", "multi-class") else "":
        if len({part.strip() for name in subgraphs.classes for part in name.split(separator)}) < subgraphs.num_classes:
            how = f"--task multilabel --label-separator '{separator}'"
            notes.append(f"{subgraphs.num_classes:,} classes; if '{separator}' separates labels, pass {how}")
    return notes


def _classes(texts: Sequence[str]) -> tuple[tuple[str, ...], dict[str, int]]:
    """The classes in their order, and the place of the class of each text.

    A whole number without leading zeros is a class without its fraction, where all texts are such numbers, or where it
    is also written without one.
    """
    called = {text: text for text in texts}
    numbers = all(_is_real(text) and not has_leading_zero(text) for text in called)
    for text in called:
        if is_whole(text) and not has_leading_zero(text) and abs(float(text)) < 2**53:
            plain = str(int(float(text)))
            called[text] = plain if numbers or plain in called else text
    names = set(called.values())
    numbers = all(_WHOLE.fullmatch(name) for name in names)
    classes = tuple(sorted(names, key=lambda c: (int(c), c) if numbers else (0, c)))
    place = {name: i for i, name in enumerate(classes)}
    return classes, {text: place[name] for text, name in called.items()}


Keys = NDArray[np.int64]
"""(n, 3): a key of the nodes, a key of the label, and the split of each subgraph."""


def subgraph_keys(subgraphs: SubgraphSet) -> Keys:
    """Keys of subgraphs; labels enter by the name of their class, so the order of classes does not matter."""
    found = np.zeros((len(subgraphs), 3), np.int64)
    found[:, 0] = node_set_keys(stream_key(0, "subgraph keys"), subgraphs.nodes).view(np.int64)
    targets = subgraphs.targets
    if targets is not None:
        names = [hashlib.sha256(name.encode()).digest()[:8] for name in subgraphs.classes]
        of_class = np.frombuffer(b"".join(names), np.int64)
        if task_of(subgraphs.task).real:
            found[:, 1] = targets.astype(np.float64).view(np.int64)
        else:  # a sum of keys, which wraps around, for several labels
            found[:, 1] = targets.astype(np.int64) @ of_class if targets.ndim == 2 else of_class[targets]
    found[:, 2] = -1 if subgraphs.splits is None else subgraphs.splits
    return found


def changes(then: Keys, now: Keys) -> list[str]:
    """Differences between subgraphs, in words, as ``1 label differs``; none where only their order differs."""
    if np.array_equal(then, now):
        return []

    def gone(columns: list[int], before: Keys, after: Keys) -> int:
        old, new = (Counter(map(tuple, keys[:, columns].tolist())) for keys in (before, after))
        return (old - new).total()

    missing = gone([0], then, now)
    counts = {
        ("node set is gone", "node sets are gone"): missing,
        ("node set is new", "node sets are new"): gone([0], now, then),
        ("label differs", "labels differ"): gone([0, 1], then, now) - missing,
        ("split differs", "splits differ"): gone([0, 2], then, now) - missing,
    }
    return [f"{count:,} {words[count != 1]}" for words, count in counts.items() if count]
