"""The paper's two property tables (appendix B), for any dataset; directions of edges are ignored."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.data.dataset import Dataset, Problems
from subgnn.data.formats import read_with_problems
from subgnn.data.formats.format import ReadOptions
from subgnn.data.splits import refuse_look_ahead, split_warnings
from subgnn.data.subgraphs import SPLITS, SubgraphSet, label_notes, single_classes
from subgnn.errors import DataError, DataWarning
from subgnn.kernels.induced import induced_components, shapes
from subgnn.task import task_of

_LISTED = 60


def _spread(values: NDArray[Any]) -> dict[str, float]:
    known = values if len(values) else np.zeros(1)
    return {"mean": float(np.mean(known)), "std": float(np.std(known))}


def describe(dataset: Dataset) -> dict[str, Any]:
    """Both tables as one mapping; the keys are those of ``subgnn data describe --json``."""
    graph, subgraphs = dataset.graph.undirected(), dataset.subgraphs
    shape = shapes(*graph.csr, subgraphs.nodes)
    spreads = {name: _spread(getattr(shape, name)) for name in ("nodes", "density", "cut_ratio")}
    components = induced_components(*graph.csr, subgraphs.nodes)
    splits = {} if subgraphs.splits is None else {split: len(subgraphs.indices(split)) for split in SPLITS}
    optional: dict[str, Any] = {}  # edges by type, and the first and last time of edges and of subgraphs
    if graph.types:
        sizes = (layer.num_edges for layer in dataset.graph.layers)
        optional["edge_types"] = dict(zip(graph.types, sizes, strict=True))
    for name, times in (("edge_times", dataset.graph.times), ("subgraph_times", subgraphs.times)):
        if times is not None and len(times):
            optional[name] = [times.min().item(), times.max().item()]
    notes = label_notes(subgraphs)
    if splits and splits["val"] < splits["test"]:
        notes.append(
            "val is smaller than test: in this case the SubGNN authors' loader, and code that copied it, swap the two, "
            "so published numbers made with it, as on PPI-BP, score this file's val part; this library swaps them "
            "with --split published"
        )
    if graph.num_edges == 0:
        notes.append("the graph has no edges: every node is a component, and nothing that needs edges can be learned")
    return {
        "name": dataset.name,
        "num_nodes": graph.num_nodes,
        "num_edges": dataset.graph.num_edges,
        "density": dataset.graph.density,
        "directed": dataset.graph.directed,
        "weighted": dataset.graph.weights is not None,
        **optional,
        "num_features": 0 if graph.features is None else int(graph.features.shape[1]),
        "isolated_nodes": int(np.count_nonzero(np.diff(graph.offsets) == 0)),
        "dropped": {"self_loops": dataset.graph.dropped.self_loops, "duplicates": dataset.graph.dropped.duplicates},
        "num_subgraphs": len(subgraphs),
        "num_labels": subgraphs.num_classes,
        "task": subgraphs.task,
        "label_counts": subgraphs.label_counts(),
        "splits": splits,
        "subgraphs": spreads | {"components": _spread(components.counts)},
        "notes": notes,
    }


def dataset_facts(dataset: Dataset) -> list[tuple[str, str]]:
    """A short summary of a dataset, without measuring its subgraphs: pairs of a name and a text."""
    graph, subgraphs, card = dataset.graph, dataset.subgraphs, dataset.card
    lengths = subgraphs.nodes.lengths
    sizes = f", of {lengths.min():,} to {lengths.max():,} nodes, mean {lengths.mean():.1f}" if len(lengths) else ""
    facts = [
        ("graph", repr(graph).removeprefix("Graph(").removesuffix(")")),
        ("subgraphs", f"{len(subgraphs):,}{sizes}"),
        ("task", task_line(subgraphs).removeprefix("task: ")),
    ]
    if subgraphs.splits is not None:
        facts.append(("split", ", ".join(f"{split} {len(subgraphs.indices(split)):,}" for split in SPLITS)))
    return facts + [(key, str(card[key])) for key in ("source", "licence", "note") if card.get(key)]


def task_line(subgraphs: SubgraphSet) -> str:
    """The task and its classes or values, in one line, as ``task: binary, 2 classes: b 2, non-coding 1``."""
    if subgraphs.targets is None:
        return "task: none, the subgraphs have no labels"
    if task_of(subgraphs.task).real:
        values = subgraphs.targets
        if not len(values):
            return "task: regression"
        return f"task: regression, values from {values.min():.6g} to {values.max():.6g}, mean {values.mean():.6g}"
    counts = [f"{name} {count:,}" for name, count in subgraphs.label_counts().items()]
    more = f", and {len(counts) - _LISTED:,} more" if len(counts) > _LISTED else ""
    classes = f"{len(counts):,} class{'' if len(counts) == 1 else 'es'}"
    return f"task: {subgraphs.task}, {classes}: {', '.join(counts[:_LISTED])}{more}"


def check(
    path: Path, *, id_base: int | None = None, read: Callable[[Problems], Dataset] | None = None
) -> tuple[Problems, Dataset | None]:
    """What is wrong with a dataset, and the dataset if nothing is; ``read`` reads all but folders and bundles."""
    problems = Problems()
    try:
        if read is None:
            dataset = read_with_problems(path, ReadOptions(id_base=id_base, verify=True), problems)
        else:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", DataWarning)
                try:
                    dataset = read(problems)
                finally:
                    problems.warnings += [DataError(str(warning.message)) for warning in caught]
        if dataset is None or problems.num_errors:
            return problems, None
        single = single_classes(dataset.subgraphs)
    except DataError as error:
        problems.add(error)
        return problems, None
    subgraphs, where = dataset.subgraphs, str(path)
    notes = [(note, "") for note in label_notes(subgraphs)]
    if read is None and not dataset.card and task_of(subgraphs.task).several:
        what = f"labels are split at '-' into {subgraphs.num_classes} classes, because no dataset.json names the task"
        notes.insert(0, (what, 'to keep them whole, write {"task": "multi-class"} there'))
    if dataset.graph.names is not None and (shared := dataset.graph.names.num_shared):
        what = f"{shared:,} names are used by several nodes"
        notes.append((what, "those nodes are written as row numbers, such as #12"))
    problems.notes += [DataError(what, where=where, hint=hint) for what, hint in notes]
    try:
        refuse_look_ahead(dataset.graph, subgraphs)
    except DataError as error:
        problems.warn(where, error.what, "train refuses it without --edges-until or --allow-look-ahead")
    for what, hint in [*split_warnings(subgraphs), *single]:
        problems.warn(where, what, hint)
    return problems, dataset
