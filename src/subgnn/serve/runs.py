"""Runs that are served: opened once, with all that answers need."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.data.dataset import Dataset
from subgnn.data.formats import read_dataset
from subgnn.data.strings import NodeNames
from subgnn.data.subgraphs import SubgraphSet
from subgnn.errors import UserError
from subgnn.explain import Explainer
from subgnn.inference.predictor import Predictor, label_text
from subgnn.inference.subgraph_files import OpenedRun, open_whole
from subgnn.ragged import Ragged
from subgnn.serve.drawing import draw_heard
from subgnn.serve.limits import Limits
from subgnn.serve.nearest import TrainingSet
from subgnn.serve.node_index import NodeIndex
from subgnn.serve.paced import PacedPredictor
from subgnn.training.run_dir import CHECKPOINT, read_results, source_of
from subgnn.versions import __version__

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,79}")
_SHOWN_NODES = 100
_LOOKED_AT = 1000
_ANCHORS = 50


@dataclass(frozen=True, slots=True, eq=False)
class ServedRun:
    """A run, asked about subgraphs; answers are plain values."""

    name: str
    predictor: Predictor
    results: dict[str, Any]
    subgraphs: SubgraphSet | None
    index: NodeIndex
    training: TrainingSet
    explainer: Explainer
    limits: Limits

    def warm_up(self) -> None:
        """Answer once, so that kernels are compiled and tables built before the first request."""
        try:
            some = self.training.nodes.take([0]) if len(self.training) else Ragged.from_rows([[0]])
            self.predictor.outputs(some)
            self.draw(some[0], most=1)
        except UserError:
            pass  # a method that knows its own subgraphs alone says so when it is asked
        self.index.find("a name")

    def card(self) -> dict[str, Any]:
        """What the run is, how good it is, and what may be asked."""
        graph, checkpoint = self.predictor.graph, self.predictor.checkpoint
        about = ("dataset", "recipe", "method", "seed", "task", "selected_epoch", "epochs", "val", "test", "published")
        return {
            "name": self.name,
            **{key: self.results.get(key) for key in about},
            "members": checkpoint.members,
            "classes": list(checkpoint.classes),
            "channels": [channel.name for channel in checkpoint.recipe.channels],
            "note": checkpoint.recipe.note.strip(),
            "num_nodes": graph.num_nodes,
            "num_edges": graph.num_edges,
            "named": graph.names is not None,
            "row_prefix": self.index.row_prefix,
            "num_training": len(self.training),
            "example": [] if not len(self.training) else self.training.nodes[0][:_SHOWN_NODES].tolist(),
            "graph_hash": graph.content_hash,
            "trained_with": self.results.get("versions", {}),
            "served_by": {"subgnn": __version__},
            "limits": self.limits.to_json(),
        }

    def predict(self, subgraphs: Ragged) -> dict[str, Any]:
        """Labels and probabilities, or values."""
        checkpoint = self.predictor.checkpoint
        real = checkpoint.task == "regression"
        found = []
        for nodes, scores in zip(subgraphs, self.predictor.probabilities(subgraphs), strict=True):
            numbers = [round(float(p), 6) for p in scores]
            found.append(
                {
                    "nodes": nodes.tolist(),
                    "names": [self.index.name(node) for node in nodes.tolist()],
                    "label": label_text(scores, checkpoint),
                    "probabilities": {} if real else dict(zip(checkpoint.classes, numbers, strict=True)),
                    "value": numbers[0] if real else None,
                }
            )
        return {"run": self.name, "task": checkpoint.task, "predictions": found}

    def embed(self, subgraphs: Ragged) -> dict[str, Any]:
        """z_S of each subgraph."""
        vectors = self.predictor.embeddings(subgraphs)
        return {"run": self.name, "width": vectors.shape[1], "vectors": [[float(x) for x in row] for row in vectors]}

    def explain(self, subgraphs: Ragged, *, attributions: bool = False) -> dict[str, Any]:
        """What carried each prediction."""
        found = self.explainer.explain(subgraphs, attributions=attributions)
        return {"run": self.name, "explanations": [explanation.to_json() for explanation in found]}

    def draw(self, subgraph: NDArray[np.int32], *, most: int) -> dict[str, Any]:
        """The subgraph with its surroundings."""
        return draw_heard(self.predictor, self.index, subgraph, most=most).to_json()

    def nearest(self, subgraph: NDArray[np.int32], count: int) -> dict[str, Any]:
        """Training subgraphs, nearest first."""
        near = self.training.nearest(subgraph, count)
        return {"run": self.name, "nearest": [self._described(item.place) | _cosine(item.similarity) for item in near]}

    def _described(self, place: int) -> dict[str, Any]:
        """A training subgraph: its name, labels and nodes."""
        if self.subgraphs is None:
            raise ValueError("the run has no training subgraphs")
        nodes = self.subgraphs.nodes[place]
        shown = nodes[:_SHOWN_NODES].tolist()
        return {
            "place": place,
            "name": self.subgraphs.names[place] if self.subgraphs.names is not None else f"subgraph {place}",
            "labels": _labels(self.subgraphs, place),
            "num_nodes": len(nodes),
            "nodes": shown,
            "names": [self.index.name(node) for node in shown],
        }


def _cosine(similarity: float) -> dict[str, float]:
    return {"similarity": round(similarity, 6)}


def _labels(subgraphs: SubgraphSet, place: int) -> list[str]:
    if subgraphs.targets is None:
        return []
    target = subgraphs.targets[place]
    if subgraphs.task == "regression":
        return [f"{float(target):.6g}"]
    if subgraphs.task == "multi-label":
        return [name for name, is_so in zip(subgraphs.classes, target, strict=True) if is_so]
    return [subgraphs.classes[int(target)]]


def open_runs(given: Sequence[str], *, limits: Limits, data: Path | None = None) -> dict[str, ServedRun]:
    """Open runs, given as RUN or as NAME=RUN; runs on one dataset share its graph.

    Args:
        given: folders of runs, or files that ``subgnn export`` wrote.
        data: the dataset of all of them; by default where each run read it.
    """
    datasets: dict[Path, tuple[Dataset, NodeIndex]] = {}
    found: dict[str, ServedRun] = {}
    for name, run in _named(given):
        if run.is_file():
            whole = open_whole(run, data)
            asked = whole.predictor
            graph = replace(asked.graph, names=readable(asked.graph.names))
            paced = PacedPredictor(asked.checkpoint, graph, vectors=asked.vectors)
            found[name] = _served(name, replace(whole, predictor=paced), index=NodeIndex(graph), limits=limits)
            continue
        results = read_results(run)
        source = source_of(results, data)
        if source not in datasets:
            datasets[source] = _read(source)
        dataset, index = datasets[source]
        whole = OpenedRun(PacedPredictor(run / CHECKPOINT, dataset.graph), results, dataset.subgraphs)
        found[name] = _served(name, whole, index=index, limits=limits)
    return found


def _read(source: Path) -> tuple[Dataset, NodeIndex]:
    """A dataset, its graph as predictors want it, and its names."""
    dataset = read_dataset(source)
    graph = dataset.graph.undirected()
    graph = replace(graph, names=readable(graph.names))
    return replace(dataset, graph=graph), NodeIndex(graph)


def readable(names: NodeNames | None) -> NodeNames | None:
    """The same names; shown is the first column that is not of numbers alone, where there is one.

    Example:
        >>> from subgnn.data.strings import Strings
        >>> names = NodeNames({"gene_id": Strings.of(["7157", "581"]), "symbol": Strings.of(["TP53", "BAX"])})
        >>> readable(names)[0]
        'TP53'
    """
    if names is None:
        return None
    for name in (names.primary_column, *names.columns):
        some = names.columns[name].take(np.arange(min(len(names), _LOOKED_AT)))
        if any(text and not text.isdigit() for text in some):
            return NodeNames(names.columns, names.primary_column, shown=name)
    return names


def _served(name: str, whole: OpenedRun, *, index: NodeIndex, limits: Limits) -> ServedRun:
    training = TrainingSet(whole.predictor, whole.subgraphs)
    return ServedRun(
        name=name,
        predictor=whole.predictor,
        results=whole.results,
        subgraphs=whole.subgraphs,
        index=index,
        training=training,
        explainer=Explainer(
            whole.predictor,
            background=training.nodes if len(training) else None,
            reference=whole.reference,
            max_nodes=limits.left_out,
            max_anchors=_ANCHORS,
        ),
        limits=limits,
    )


def _named(given: Iterable[str]) -> list[tuple[str, Path]]:
    """Runs with the names they are served by, all different."""
    found: dict[str, Path] = {}
    for text in given:
        name, equals, path = text.rpartition("=")
        folder = Path(path)
        if not equals or not _NAME.fullmatch(name):
            folder = Path(text)
            own = folder.resolve()
            own_name = own.stem if own.is_file() else own.name
            name = re.sub(r"[^A-Za-z0-9_.-]", "_", own_name).lstrip(".-")[:80] or "run"
        if name in found:
            hint = "name one of them: serve NAME=RUN"
            raise UserError(f"two runs are called '{name}'", where=f"{found[name]}, {folder}", hint=hint)
        found[name] = folder
    return list(found.items())
