"""Every problem of a dataset, with file and line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from subgnn.data.dataset import Dataset, Problem, Problems
from subgnn.data.describe import label_notes
from subgnn.data.formats import read_with_problems
from subgnn.data.formats.format import ReadOptions
from subgnn.data.splits import refuse_look_ahead, split_warnings
from subgnn.errors import DataError
from subgnn.task import task_of


def check(
    path: Path, *, id_base: int | None = None, read: Callable[[], Dataset] | None = None
) -> tuple[Problems, Dataset | None]:
    """Read and verify all of a dataset, and collect what is wrong with it.

    Args:
        read: reads what is not a folder or a bundle, as tables, of which only the first problem is found.

    Returns:
        The problems, and the dataset where there are no errors.
    """
    problems = Problems()
    if read is None:
        dataset = read_with_problems(path, ReadOptions(id_base=id_base, verify=True), problems)
        if dataset is not None and not problems.num_errors:
            _add_card_notes(dataset, path, problems)
    else:
        try:
            dataset = read()
        except DataError as error:
            problems.add(error)
            dataset = None
    if dataset is not None and not problems.num_errors:
        _add_notes(dataset, path, problems)
    return problems, None if problems.num_errors else dataset


def _add_card_notes(dataset: Dataset, path: Path, problems: Problems) -> None:
    """Note what a card, or its absence, means for labels."""
    subgraphs, where = dataset.subgraphs, str(path)
    hyphenated = any("-" in name.strip("-") for name in subgraphs.classes)
    if not dataset.card and task_of(subgraphs.task).several:
        what = f"labels are split at '-' into {subgraphs.num_classes} classes, since no dataset.json says what they are"
        problems.notes.append(Problem(where, what, 'to keep them whole, write {"task": "multi-class"} there'))
    elif path.is_dir() and dataset.card and "task" not in dataset.card and hyphenated:
        what = "labels with '-' are kept whole, since dataset.json names no task"
        problems.notes.append(Problem(where, what, 'to split them at \'-\', write {"task": "multi-label"} there'))


def _add_notes(dataset: Dataset, path: Path, problems: Problems) -> None:
    """Warn of what is allowed, but probably not intended."""
    subgraphs, where = dataset.subgraphs, str(path)
    problems.notes += [Problem(where, note) for note in label_notes(subgraphs)]
    shared = 0 if dataset.graph.names is None else dataset.graph.names.num_shared
    if shared:
        what = f"{shared:,} names are shared by several nodes"
        problems.notes.append(Problem(where, what, "those nodes are written by row number, as #12"))
    for label, count in subgraphs.label_counts().items():
        if count == 1:
            problems.warn(where, f"label '{label}' has one subgraph", "it cannot be both learned and tested")
    try:
        refuse_look_ahead(dataset.graph, subgraphs)
    except DataError as error:
        problems.warn(where, error.what, "train refuses it, without --edges-until or --allow-look-ahead")
    for what, hint in split_warnings(subgraphs):
        problems.warn(where, what, hint)
