"""Every problem of a dataset, with file and line."""

from __future__ import annotations

from pathlib import Path

from subgnn.data.dataset import Dataset
from subgnn.data.describe import label_notes
from subgnn.data.formats import gather_dataset
from subgnn.data.formats.bundle import is_bundle, verify_bundle
from subgnn.data.formats.folder import splits_by_default
from subgnn.data.problems import Problem, Problems
from subgnn.errors import DataError


def check(path: Path, *, id_base: int | None = None) -> tuple[Problems, Dataset | None]:
    """Read all of a dataset and gather what is wrong with it; a bundle is verified, whatever was found before.

    Returns:
        The problems, and the dataset where there are no errors.
    """
    problems = Problems()
    dataset = None
    if path.is_file() and is_bundle(path):
        try:
            dataset = verify_bundle(path)
        except DataError as error:
            problems.add(error)
    else:
        dataset = gather_dataset(path, problems, id_base=id_base)
    if dataset is not None and not problems.num_errors:
        _look(dataset, path, problems)
    return problems, None if problems.num_errors else dataset


def _look(dataset: Dataset, path: Path, problems: Problems) -> None:
    """Things that are allowed but that its owner will want to know."""
    subgraphs = dataset.subgraphs
    problems.notes += [Problem(str(path), note) for note in label_notes(subgraphs)]
    if subgraphs.task == "multi-label" and not is_bundle(path) and splits_by_default(dataset.card):
        what = f"labels are split at '-' into {subgraphs.num_classes} classes, since no dataset.json says what they are"
        problems.notes.append(Problem(str(path), what, 'to keep them whole, write {"task": "multi-class"} there'))
    if dataset.graph.names is not None:
        shared = dataset.graph.names.num_shared
        if shared:
            what = f"{shared:,} names are shared by several nodes"
            problems.notes.append(Problem(str(path), what, "those nodes are written by row number, as #12"))
    for label, count in subgraphs.label_counts().items():
        if count == 1:
            problems.warn(str(path), f"label '{label}' has one subgraph", "it cannot be both learned and tested")
    if subgraphs.splits is not None:
        first: dict[bytes, int] = {}
        leaks = 0
        for i, nodes in enumerate(subgraphs.nodes):
            seen = first.setdefault(nodes.tobytes(), i)
            leaks += bool(subgraphs.splits[seen] != subgraphs.splits[i])
        if leaks:
            problems.warn(
                str(path),
                f"{leaks} subgraphs have the same nodes as one in another split",
                "a model can remember their labels",
            )
