"""Open a finished run, from its folder or an exported file, score it, and export it; or fit a model without labels.

An exported run is one file of arrays (:mod:`subgnn.storage.arrays`). Nothing in it is pickled, compressed or a path, so
there is no code to run and nothing to unpack. Its checksum is verified, and everything that compiled code trusts is
checked: node ids, the order of rows, the hash of the graph.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from subgnn.config.recipes import recipe_names
from subgnn.config.settings import Recipe
from subgnn.data.dataset import Dataset
from subgnn.data.formats import read_dataset
from subgnn.data.formats.bundle import pack_dataset, unpack_dataset
from subgnn.data.formats.format import Columns, ReadOptions
from subgnn.data.graph import Graph
from subgnn.data.node_match import NodeMatch, matchable
from subgnn.data.own_times import timed
from subgnn.data.read_tables import read_graph_of
from subgnn.data.subgraphs import Keys, SubgraphSet, subgraph_keys
from subgnn.embeddings.sources import Tables, load_run_vectors, vectors_hash
from subgnn.errors import DataError, UserError, excerpt, warn
from subgnn.inference.predictor import Predictor
from subgnn.models.checkpoint import WRONG, broken, load_checkpoint, pack, unpack
from subgnn.models.examples import label_unit, target_tensor
from subgnn.models.interface import TrainingData
from subgnn.models.recipes import check_recipe, find_recipe
from subgnn.models.registry import check_edges, model_of, move_checkpoint, set_up_model
from subgnn.models.spec import Checkpoint
from subgnn.ragged import Ragged
from subgnn.result import Alerts, Reading, RunResult, Seconds, parse_result, read_result
from subgnn.storage.arrays import Arrays, Format, encode_arrays, read_arrays, write_parts
from subgnn.task import task_of
from subgnn.training import run_dir
from subgnn.training.options import RunOptions
from subgnn.versions import versions

EXPORT = Format("subgnn-export", "exported run", "make one with subgnn export RUN --out FILE", "export the run again")
_NOUN = "the exported run"
_PART = re.compile(r"(checkpoint|graph|matchable)\..*|vectors(\.\d+)?|reference|subgraphs")


@dataclass(frozen=True, slots=True, eq=False)
class OpenedRun:
    """A run that predicts, its result, and the subgraphs of its dataset.

    Shapes:
        reference: (networks, width), the mean vectors of the training split, if an exported file holds them.

    ``trained_with`` gives the keys of the subgraphs that it was trained with. On a graph other than its own, ``match``
    says how they differ, and the subgraphs are those it was trained with, as nodes of that graph.
    """

    predictor: Predictor
    result: RunResult
    subgraphs: SubgraphSet | None = None
    reference: NDArray[np.float32] | None = None
    trained_with: Callable[[], Keys] | None = None
    match: NodeMatch | None = None

    def __post_init__(self) -> None:
        self.predictor.as_of_step = self.result.as_of_step if self.result.as_of else None

    def split(self, name: str, where: str) -> SubgraphSet:
        """The subgraphs of a split to score; refused if they have changed, or there is none."""
        if self.subgraphs is None or (self.trained_with is None and self.match is None):
            hint = "give the dataset with --data, or data= in Python"
            raise DataError("the file holds no subgraphs to score", where=where, hint=hint)
        hint = "give the dataset as it was, or train again; Run.evaluate in Python scores other labelled subgraphs"
        if self.trained_with is not None:
            run_dir.check_subgraphs(self.trained_with(), self.subgraphs, where, hint)
        if not len(rows := self.subgraphs.indices(name)):
            raise DataError(f"no subgraph in split '{name}'", where=where, hint="choose another split")
        return self.subgraphs.take(rows)

    def out_of_fold(self, name: str) -> bool:
        """Whether the run was fitted to the split, so that its scores are those out of fold, as a warning says."""
        if name != "val" or name not in self.result.fitted_to:
            return False
        warn(f"{self.result.dataset}: the run was fitted to val; its out-of-fold scores are given instead")
        return True

    def warn_of_changes(self) -> Self:
        """Warn if the labels, splits or node sets of the dataset have changed since training; return this run."""
        if self.subgraphs is not None and self.trained_with is not None:
            hint = "the model is as it was; train again to learn from them"
            try:
                run_dir.check_subgraphs(self.trained_with(), self.subgraphs, self.result.dataset, hint)
            except DataError as error:
                warn(str(error))
        return self

    def training_subgraphs(self) -> Ragged | None:
        """The nodes of the training subgraphs; None without a dataset or without splits."""
        if self.subgraphs is None or self.subgraphs.splits is None:
            return None
        return self.subgraphs.nodes.take(self.subgraphs.indices("train"))


def open_run(
    path: Path,
    data: Path | Dataset | None = None,
    *,
    graph: Path | Graph | None = None,
    read: Callable[[Path], Dataset] = read_dataset,
    predictor: Callable[..., Predictor] = Predictor,
    warns: bool = True,
) -> OpenedRun:
    """Open the folder or export of a run; ``warns`` if the subgraphs of its dataset have changed since training.

    Args:
        data: the dataset or its path; by default the one that the run was trained on, or the graph in the file.
        graph: another graph to answer on, such as one that has grown (:class:`~subgnn.data.node_match.NodeMatch`): a
            dataset's folder or bundle, or a table of edges. ``data`` is not needed then.
    """
    if graph is not None:
        if data is not None:
            hint = "give the run's own dataset with --data, or another graph with --graph, not both"
            raise UserError("another graph is given, too", where="--data", hint=hint)
        return _open_on(path, graph, predictor)
    if path.is_file():
        opened = _open_export(path, read(data) if isinstance(data, Path) else data, predictor)
    else:
        result = read_result(path)
        dataset = run_dir.as_trained(
            data if isinstance(data, Dataset) else read(run_dir.dataset_path(path, result, data)), result
        )
        made = predictor(path / run_dir.CHECKPOINT, dataset.graph.undirected(), cache=True)
        keys = lambda: subgraph_keys(run_dir.read_trained_on(path).subgraphs)  # noqa: E731 (read only if it is needed)
        opened = OpenedRun(made, result, dataset.subgraphs, trained_with=keys)
    return opened.warn_of_changes() if warns else opened


def _open_on(path: Path, graph: Path | Graph, predictor: Callable[..., Predictor]) -> OpenedRun:
    again = "train again"
    if path.is_file():
        checkpoint, result, own, arrays = _read_export(path)
        tables, again = _tables(arrays, checkpoint, own.graph.num_nodes, path), EXPORT.again
    else:
        result, own = read_result(path), run_dir.read_trained_on(path)
        checkpoint = load_checkpoint(path / run_dir.CHECKPOINT)
        tables = load_run_vectors(path, checkpoint.tables())
    match = match_graph(graph, own, result.reading)[1]
    spec = checkpoint.spec
    if (match.graph.content_hash, match.graph.names_hash) != (spec.graph_hash, spec.names_hash):
        try:
            checkpoint, tables = move_checkpoint(checkpoint, match, tables)
        except (*WRONG, RuntimeError) as error:
            raise broken("the checkpoint", error, where=str(path), again=again) from None
    made = predictor(checkpoint, match.graph, tables=tables, cache=True, where=str(path), again=again)
    known = match.subgraphs(own.subgraphs) if len(own.subgraphs) else None
    if result.as_of and match.graph.times is None:
        hint = "give a graph with a time for each edge"
        raise DataError("the run measures subgraphs as of their times, but edges have none", where="--graph", hint=hint)
    if result.as_of and known is not None:
        known = timed(known, result.as_of_step)
    return OpenedRun(made, result, known, match=match)


def match_graph(graph: Path | Graph, own: Dataset, reading: Reading) -> tuple[Graph, NodeMatch]:
    """Another graph, read as in training, and the match of its nodes with those that a run was trained on."""
    notes: list[str] = []
    if not isinstance(graph, Graph):
        how: Any = {"repeated": reading.repeated or "first", "encoding": reading.encoding, "on_note": notes.append}
        columns = Columns(reading.columns)
        graph = read_graph_of(graph, ReadOptions(reading.id_base, None, columns, own.graph.directed, **how))
    match = NodeMatch.of(own, graph)
    match.notes.extend(notes)
    return graph, match


def _open_export(path: Path, dataset: Dataset | None, predictor: Callable[..., Predictor]) -> OpenedRun:
    checkpoint, result, own, arrays = _read_export(path)
    dataset = None if dataset is None else run_dir.as_trained(dataset, result)
    graph = (own if dataset is None else dataset).graph.undirected()
    if dataset is None and not _has_graph(arrays):
        hint = "say where it is with --data, give another one with --graph, or export the run with --with-graph"
        raise DataError(f"the graph of {result.dataset} is not in the file", where=str(path), hint=hint)
    reference = arrays.get("reference")
    tables = _tables(arrays, checkpoint, graph.num_nodes, path)
    made = predictor(checkpoint, graph, tables=tables, cache=True, where=str(path), again=EXPORT.again)
    if reference is not None:
        networks = made.networks()
        width = networks[0].head.width + networks[0].num_scores if networks else 0
        if reference.shape != (len(networks), width) or reference.dtype != np.float32:
            raise DataError("its mean vector does not fit its recipe", where=str(path), hint=EXPORT.again)
    subgraphs = None if dataset is None else dataset.subgraphs
    keys = arrays.get("subgraphs")
    return OpenedRun(made, result, subgraphs, reference, None if keys is None else lambda: keys)


def _has_graph(arrays: Arrays) -> bool:
    return any(name.startswith("graph.") for name in arrays)


def _read_export(path: Path) -> tuple[Checkpoint, RunResult, Dataset, Arrays]:
    """Checkpoint, result, the graph or what is kept of it, and the arrays of an exported run."""
    where = str(path)
    file = read_arrays(path, EXPORT)
    arrays = file.arrays
    unknown = [name for name in arrays if not _PART.fullmatch(name)]
    try:
        if unknown:
            raise ValueError(f"unknown part {unknown[0]!r}")
        content = file.content()
        packed, about = content["checkpoint"], content["result"]
        kind = "graph" if _has_graph(arrays) else "matchable"
        own = unpack_dataset(_under(arrays, f"{kind}."), content[kind], where, again=EXPORT.again)
    except WRONG as error:
        raise broken(_NOUN, error, where=where, again=EXPORT.again) from None
    result = parse_result(about, where, EXPORT.again)
    checkpoint = unpack(_under(arrays, "checkpoint."), packed, where=where, noun=_NOUN, again=EXPORT.again)
    if kind == "graph" and own.graph.undirected().content_hash != checkpoint.spec.graph_hash:
        raise DataError("its graph is not the one the run was trained on", where=where, hint=EXPORT.again)
    return checkpoint, result, own, arrays


def _under(arrays: Arrays, prefix: str) -> Arrays:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _tables(arrays: Arrays, checkpoint: Checkpoint, num_nodes: int, path: Path) -> Tables:
    """The node embeddings of an export (``vectors``, ``vectors.1``, ...) by hash: those the run was trained with."""
    given = [array for name, array in arrays.items() if name.partition(".")[0] == "vectors"]
    tables = {vectors_hash(table): table for table in given if table.ndim == 2 and len(table) == num_nodes}
    needed = checkpoint.tables()
    if len(given) < len(needed):
        raise DataError("its node embeddings are missing", where=str(path), hint=EXPORT.again)
    if len(given) > len(needed) or tables.keys() != needed.keys():
        what = "its node embeddings are not those the run was trained with"
        raise DataError(what, where=str(path), hint=EXPORT.again)
    return tables


def export_run(
    run: Path | OpenedRun, out: Path, *, with_graph: bool = False, overwrite: bool = False
) -> dict[str, Any]:
    """Write a run as one file, and describe the file; ``with_graph`` adds the graph and its names, but no subgraphs."""
    opened = run if isinstance(run, OpenedRun) else open_run(run)
    predictor, checkpoint = opened.predictor, opened.predictor.checkpoint
    packed, content = pack(checkpoint)
    arrays: Arrays = {f"checkpoint.{name}": array for name, array in packed.items()}
    arrays |= {f"vectors.{i}" if i else "vectors": table for i, table in enumerate(predictor.tables.values())}
    reference, training = opened.reference, opened.training_subgraphs()
    if reference is None and training is not None and len(training):
        reference = predictor.mean_vectors(training)
    if reference is not None:
        arrays["reference"] = reference
    if opened.trained_with is not None:
        arrays["subgraphs"] = opened.trained_with()
    about: dict[str, Any] = {
        "checkpoint": content,
        "result": replace(opened.result, run="", source="").to_json(),  # paths mean nothing elsewhere
        "versions": versions(),
    }
    graph = predictor.graph
    alone = Dataset(opened.result.dataset, graph, SubgraphSet.from_lists([], num_nodes=graph.num_nodes))
    kind = "graph" if with_graph else "matchable"
    of_graph, about[kind] = pack_dataset(alone if with_graph else matchable(alone))
    arrays |= {f"{kind}.{name}": array for name, array in of_graph.items()}
    write_parts(out, encode_arrays(arrays, EXPORT, about), overwrite=overwrite)
    return {"bytes": out.stat().st_size, "graph_hash": checkpoint.spec.graph_hash, "with_graph": with_graph}


def evaluate_split(
    out: Path,
    split: str,
    data: Path | None = None,
    *,
    graph: Path | None = None,
    on_note: Callable[[str], None] = lambda note: None,
) -> RunResult:
    """Score a finished run on a split, of its own graph or another; ``on_note`` is told how that differs."""
    whole = open_run(out, data, graph=graph, warns=False)
    if graph is None and whole.out_of_fold(split):
        return replace(whole.warn_of_changes().result, run=whole.result.run or str(out))
    for line in whole.match.lines if whole.match else ():
        on_note(line)
    subgraphs = whole.split(split, str(data or out))
    metrics, counts = score(whole.predictor, subgraphs, select_by=whole.result.select_by, where=str(data or out))
    found: dict[str, Any] = {"run": whole.result.run or str(out), split: metrics}
    if (decision := whole.predictor.spec.decision) is not None:
        found["threshold"] = decision.report(**{split: counts})
    return replace(whole.result, **found)


def score(
    predictor: Predictor, subgraphs: SubgraphSet, *, select_by: str = "auto", where: str = "subgraphs"
) -> tuple[dict[str, float], list[Alerts]]:
    """Metrics of predictions on labelled subgraphs, and the counts at the run's thresholds, if it has any.

    The classes must be among those of the run; ``select_by`` is its metric of selection, added if it is ``recall@k``.
    """
    spec = predictor.spec
    found, known = subgraphs.task.replace("multi-class", "binary"), spec.task.replace("multi-class", "binary")
    unseen = [name for name in subgraphs.classes if name not in spec.classes]
    if found != known or unseen:
        which = f"{excerpt(unseen[0])}" if unseen else f"they are {subgraphs.task}"
        what, hint = f"the dataset has different labels from the run: {which}", "give subgraphs with its labels"
        raise DataError(what, where=where, hint=hint)
    subgraphs = replace(subgraphs, task=spec.task, classes=spec.classes, targets=renumbered(subgraphs, spec.classes))
    import torch

    targets = target_tensor(subgraphs, spec.standards)
    outputs = torch.from_numpy(predictor.outputs(predictor.rows(subgraphs)))
    options: dict[str, Any] = {"thresholds": predictor.thresholds, "select_by": select_by}
    scores = task_of(spec.task).metrics(outputs, targets, unit=label_unit(spec.standards), **options)
    if spec.decision is None:
        return scores, []
    return scores, spec.decision.counts(predictor.scores(outputs.numpy()), targets.numpy(), spec.classes)


def renumbered(subgraphs: SubgraphSet, classes: tuple[str, ...]) -> Any:
    """Targets, renumbered by the order of the given classes."""
    targets = np.asarray(subgraphs.targets)
    places = np.array([classes.index(name) for name in subgraphs.classes], np.int64)
    task = task_of(subgraphs.task)
    if task.several:
        wide = np.zeros((len(targets), len(classes)), targets.dtype)
        wide[:, places] = targets
        return wide
    return targets if task.real else places[targets].astype(targets.dtype)


def fit_without_labels(graph: Graph, subgraphs: Ragged, recipe: Recipe, *, seed: int = 0) -> OpenedRun:
    """Fit a model that computes vectors, but no predictions, to subgraphs without labels; empty ones are left out."""
    if model_of(recipe).vectors_need_labels:
        free = [name for name in recipe_names() if not model_of(find_recipe(name)).vectors_need_labels]
        hint = f"accepted: {', '.join(free)}; or train it, and give the run instead of the graph"
        raise UserError(f"the recipe {recipe.name} learns its vectors from labels", where="--recipe", hint=hint)
    graph = graph.undirected()
    check_recipe(recipe, graph)
    check_edges(recipe, graph)
    there = np.flatnonzero(subgraphs.lengths > 0)
    known = SubgraphSet(subgraphs.take(there), splits=np.zeros(len(there), np.int8))
    import torch

    candidate = set_up_model(TrainingData(graph, known, seed, torch.device("cpu")), recipe).candidates[0]
    checkpoint = replace(candidate.checkpoint, weights=candidate.network.state_dict())
    facts = run_dir.result_fields(RunOptions(recipe=recipe, out=Path(), seed=seed), Dataset("", graph, known), "cpu")
    scores: dict[str, Any] = {"val": {}, "test": {}, "intervals": {}}
    seconds = Seconds(pretrain=0.0, prepare=0.0, train=0.0, epoch_median=0.0)
    result = RunResult(**(facts | scores | {"run": ""}), selected_epoch=0, epochs=1, seconds=seconds)
    return OpenedRun(Predictor(checkpoint, graph), result)
