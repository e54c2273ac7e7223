"""Files in and out. Only this package knows other conventions than ids from 0 and :class:`~subgnn.data.graph.Graph`."""

from __future__ import annotations

from pathlib import Path

from subgnn.data.dataset import Dataset
from subgnn.data.formats.bundle import is_bundle, read_bundle
from subgnn.data.formats.folder import LabelForm, read_folder
from subgnn.data.formats.subgraph_text import read_subgraphs
from subgnn.data.graph import Graph
from subgnn.data.problems import Problems
from subgnn.errors import DataError


def read_dataset(path: str | Path, *, id_base: int | None = None, labels: LabelForm | None = None) -> Dataset:
    """Read a dataset: a folder, a bundle, or a file of subgraphs alone, which gets a graph without edges.

    Args:
        id_base: what text files count nodes from, where their card does not say it.
        labels: how labels stand in text files; by default what their card says.

    Raises:
        DataError: the first thing wrong, and how many more there are.
    """
    problems = Problems()
    dataset = gather_dataset(Path(path), problems, id_base=id_base, labels=labels)
    problems.stop()
    if dataset is None:
        raise DataError("nothing could be read", where=str(path))
    return dataset


def gather_dataset(
    path: Path, problems: Problems, *, id_base: int | None = None, labels: LabelForm | None = None
) -> Dataset | None:
    """As :func:`read_dataset`, but what is wrong goes to ``problems``."""
    if not path.is_file():
        return read_folder(path, problems, id_base=id_base, labels=labels)
    try:
        if is_bundle(path):
            return read_bundle(path)
        form = labels or LabelForm()
        subgraphs = read_subgraphs(
            path, problems, id_base=id_base or 0, task=form.stated, separator=form.separator or "-"
        )
    except DataError as error:
        problems.add(error)
        return None
    if subgraphs is None:
        return None
    graph = Graph.from_edges([], [], num_nodes=int(subgraphs.nodes.values.max()) + 1)
    return Dataset(name=path.name.removesuffix(".subgraphs.tsv"), graph=graph, subgraphs=subgraphs)
