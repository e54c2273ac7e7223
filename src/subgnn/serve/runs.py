"""Open trained runs for serving, and answer requests about them."""

import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from subgnn.data.dataset import Dataset
from subgnn.data.formats import read_dataset
from subgnn.data.graph import Graph
from subgnn.data.subgraphs import SubgraphSet
from subgnn.errors import UserError
from subgnn.inference.answers import why_empty
from subgnn.inference.complete import GROUPS, Completer
from subgnn.inference.explain import Explainer
from subgnn.inference.open import OpenedRun, open_run
from subgnn.inference.options import PredictOptions
from subgnn.inference.predictions import Drift, Predictions, set_limits
from subgnn.inference.predictor import Predictor
from subgnn.inference.records import Records
from subgnn.inference.search import KnownSubgraphs, SearchOptions
from subgnn.models.spec import Checkpoint
from subgnn.models.subgnn.fitted import MeasuredForNetworks
from subgnn.ragged import Ragged
from subgnn.reports.drawing import draw
from subgnn.serve import named_runs
from subgnn.serve.limits import Limits, check_deadline
from subgnn.serve.monitoring import log
from subgnn.serve.nodes import NodeIndex, Written
from subgnn.task import task_of
from subgnn.versions import __version__

_SHOWN_NODES = 100
_EXAMPLES, _SAMPLED_EXAMPLES = 8, 1000
_MAX_ANCHORS = 50
_PART_NODES = 2_000  # nodes of the subgraphs that are predicted between two checks of the deadline
_MIN_NODES = 10  # a smaller subgraph counts as this many
_CACHED_NUMBERS = 2**28  # a gigabyte: a server gets requests about all of the graph
_LATEST = 1_000  # subgraphs that are compared with training
_KNOWN_PART = 64  # known subgraphs whose vectors are computed in one step


class InterruptiblePredictor(Predictor):
    """A predictor that checks the deadline of its work, and computes large requests part by part."""

    def outputs(self, subgraphs: Ragged) -> NDArray[np.float32]:
        return self._in_parts(super().outputs, subgraphs, np.empty((0, self.checkpoint.spec.num_outputs), np.float32))

    def embeddings(self, subgraphs: Ragged) -> NDArray[np.float32]:
        return self._in_parts(super().embeddings, subgraphs)

    def measured(self, subgraphs: Ragged) -> MeasuredForNetworks:
        check_deadline()
        return super().measured(subgraphs)

    def _in_parts(
        self, compute: Callable[[Ragged], NDArray[np.float32]], subgraphs: Ragged, *first: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        parts = list(first)
        for part in subgraphs.batches(_PART_NODES, least=_MIN_NODES):
            check_deadline()
            parts.append(compute(part))
        return np.concatenate(parts)


class ServedRun:
    """A run and its answers to requests, as plain values; ``differs`` says how its graph differs from the run's own."""

    def __init__(
        self, name: str, opened: OpenedRun, index: NodeIndex, *, limits: Limits, records: Records | None
    ) -> None:
        self.name, self.index, self.limits, self.records = name, index, limits, records
        self.predictor, self.result, self.subgraphs = opened.predictor, opened.result, opened.subgraphs
        self.differs = [] if opened.match is None else opened.match.lines
        self.known = KnownSubgraphs(self.predictor, self.subgraphs, part=_KNOWN_PART)
        self.explainer = Explainer.of_run(opened, max_nodes=limits.left_out, max_anchors=_MAX_ANCHORS)
        self.drift = None if self.subgraphs is None else Drift(self.predictor, self.subgraphs, most=_LATEST)
        self._opened, self._fitting = opened, threading.Lock()
        self.fitted_completer: Completer | None = None

    def completer(self) -> Completer:
        """The model that completes subgraphs, fitted when it is first needed."""
        with self._fitting:
            if self.fitted_completer is None:
                self.fitted_completer = Completer.of_run(self._opened, self.name)
            return self.fitted_completer

    def warm_up(self) -> None:
        """Predict and draw once, so that kernels are compiled and tables built before the first request."""
        try:
            some = Ragged.from_rows([[0]] if not self.subgraphs else [self.subgraphs.nodes[0]])
            self.predictor.outputs(some)
            self.predictor.novelty(some)
            self.draw(some[0], most=1)
        except UserError:
            pass  # a model that cannot predict new subgraphs refuses requests with a message
        self.index.find("a name")

    def card(self) -> dict[str, Any]:
        graph, spec, source = self.predictor.graph, self.predictor.spec, self.predictor.with_channels()
        training = None if self.subgraphs is None or self.subgraphs.splits is None else self.subgraphs.indices("train")
        about = ("dataset", "recipe", "method", "seed", "task", "selected_epoch", "epochs", "val", "test", "published")
        threshold = None  # the likelier class is predicted
        if np.ndim(self.predictor.thresholds):
            values = zip(spec.classes, np.asarray(self.predictor.thresholds, np.float64).tolist(), strict=True)
            known, one = {name: value for name, value in values if value == value}, spec.decision
            aim, chosen_on = ("micro-F1", "out-of-fold") if one is None else (one.aim, one.chosen_on)
            threshold = {"aim": aim, "chosen_on": chosen_on, "thresholds": known}
        return {
            "name": self.name,
            **{key: getattr(self.result, key) for key in about},
            "members": spec.members,
            "classes": list(spec.classes),
            "threshold": threshold,
            "channels": [channel.name for channel in (source or self.predictor).spec.channels],
            "note": spec.note.strip(),
            "num_nodes": graph.num_nodes,
            "num_edges": graph.num_edges,
            "named": graph.names is not None,
            "row_prefix": "#" if graph.names is None else graph.names.row_prefix,
            "num_training": 0 if training is None else len(training),
            "num_known": len(self.known.places()),
            "examples": self.examples(),
            "graph_hash": graph.content_hash,
            "differs": self.differs,
            "trained_with": self.result.versions,
            "served_by": {"subgnn": __version__},
            "limits": self.limits.to_json(),
        }

    def examples(self) -> list[dict[str, Any]]:
        """A few subgraphs of the dataset to start with, of each class in turn: from test, or else another split."""
        subgraphs = self.subgraphs
        if subgraphs is None:
            return []
        for split in ("all",) if subgraphs.splits is None else ("test", "val", "train"):
            places = np.arange(len(subgraphs)) if split == "all" else subgraphs.indices(split)
            places = places[np.diff(subgraphs.nodes.offsets)[places] <= _SHOWN_NODES][:_SAMPLED_EXAMPLES]
            if len(places):
                # Sorting by the number of earlier ones with the same label gives each class its turn.
                by_label = defaultdict(list)
                for place in places.tolist():
                    by_label[tuple(_labels(subgraphs, place))].append(place)
                turns = sorted(turn for some in by_label.values() for turn in enumerate(some))
                return [self._described(place) | {"split": split} for _, place in turns[:_EXAMPLES]]
        return []

    def _described(self, place: int) -> dict[str, Any]:
        """A subgraph of the dataset, with its first hundred nodes."""
        subgraphs = cast(SubgraphSet, self.subgraphs)
        nodes = subgraphs.nodes[place]
        shown = nodes[:_SHOWN_NODES].tolist()
        return {
            "place": place,
            "name": subgraphs.names[place] if subgraphs.names is not None else f"subgraph {place}",
            "labels": _labels(subgraphs, place),
            "num_nodes": len(nodes),
            "nodes": shown,
            "names": [self.index.name(node) for node in shown],
        }

    def predict_or_embed(
        self, given: Written, options: PredictOptions | None, subgraphs: Ragged, dropped: Sequence[Sequence[str]]
    ) -> dict[str, Any]:
        """Labels and probabilities, or values; without options vectors. For records, ``given`` are nodes as written."""
        if options is None:
            vectors = self.predictor.embeddings(subgraphs)
            return {"run": self.name, "width": vectors.shape[1], "vectors": vectors.tolist()}
        spec, scores = self.predictor.spec, self.predictor.probabilities(subgraphs)
        if self.drift is not None:
            self.drift.add(subgraphs, scores)
        found = Predictions.of(self.predictor, subgraphs, scores, set_limits(self.predictor, options))
        notes = [why_empty(*pair, options.min_known) for pair in zip(subgraphs.lengths, map(len, dropped), strict=True)]
        if self.records is not None:
            there = [i for i, note in enumerate(notes) if not note]
            answers = found.answers(self.predictor, options)
            self.records.add([given[i] for i in there], subgraphs.take(there), [answers[i] for i in there])
        numbers = {name: getattr(found, name) for name in ("low", "high", "novelty")}
        numbers["probability"], predictions = found.probabilities, []
        for i, nodes in enumerate(subgraphs):
            answer = {name: None if values is None else round(values[i], 6) for name, values in numbers.items()}
            answer |= {"label": found.labels[i], "labels": None if found.sets is None else found.sets[i]}
            row = [round(float(p), 6) for p in scores[i]]
            answer["value"] = None if spec.classes else row[0]
            answer["probabilities"] = dict(zip(spec.classes, row, strict=True)) if spec.classes else {}
            if notes[i]:
                answer = dict.fromkeys(answer) | {"label": "", "probabilities": {}}
            predictions.append(
                {"nodes": nodes.tolist(), "names": [self.index.name(node) for node in nodes.tolist()]}
                | answer
                | {"known": len(nodes), "new": len(dropped[i]), "note": notes[i]}
            )
        return {"run": self.name, "task": spec.task, "predictions": predictions}

    def explain(self, given: Written, subgraphs: Ragged) -> dict[str, Any]:
        """Explanations of predictions; ``given`` are the nodes as they were written, for records."""
        found = self.explainer.explain(subgraphs)
        if self.records is not None:
            self.records.add(given, subgraphs, *self.explainer.recorded(found))
        return {"run": self.name, "explanations": [explanation.to_json() for explanation in found]}

    def complete(self, subgraphs: Ragged, *, top: int, among: NDArray[np.int64] | None = None) -> dict[str, Any]:
        completions = []
        for found in self.completer().complete(subgraphs, top=top, among=among):
            check_deadline()
            numbers = zip(found.probabilities, found.links, found.reasons, found.contributions, strict=True)
            completions.append(
                [
                    {
                        "id": node,
                        "name": self.index.name(node),
                        "probability": float(f"{probability:.6g}"),
                        "neighbours": int(links),
                        "reason": reason,
                        "contributions": dict(zip(GROUPS, terms.round(6).tolist(), strict=True)),
                    }
                    for node, (probability, links, reason, terms) in zip(found.nodes.tolist(), numbers, strict=True)
                ]
            )
        return {"run": self.name, "completions": completions}

    def draw(self, subgraph: NDArray[np.int32], *, most: int) -> dict[str, Any]:
        return draw(self.predictor, subgraph, most=most)

    def search(self, subgraphs: Ragged, options: SearchOptions) -> dict[str, Any]:

        def described(place: int) -> dict[str, Any]:
            return self._described(place) | {"split": self.known.split(place)}

        results = [{"nearest": found} for found in self.known.hits(subgraphs, options, described)]
        return {"run": self.name, "by": options.by, "results": results}


def _labels(subgraphs: SubgraphSet, place: int) -> list[str]:
    if subgraphs.targets is None:
        return []
    return task_of(subgraphs.task).names(subgraphs.targets[place], subgraphs.classes)


def open_runs(
    given: list[str], *, limits: Limits, data: Path | None = None, graph: Path | None = None, record: Path | None = None
) -> dict[str, ServedRun]:
    """Open runs, given as RUN or as NAME=RUN; runs on one dataset share its graph."""

    @cache
    def read(source: Path) -> Dataset:
        dataset = read_dataset(source)
        return replace(dataset, graph=dataset.graph.undirected())

    def predictor(checkpoint: Checkpoint | Path, graph: Graph, **options: Any) -> Predictor:
        graph = graph if graph.names is None else replace(graph, names=graph.names.readable())
        return InterruptiblePredictor(checkpoint, graph, cached_numbers=_CACHED_NUMBERS, **options)

    indexes: dict[int, NodeIndex] = {}
    found: dict[str, ServedRun] = {}
    for name, run in named_runs(given):
        opened = open_run(run, data, graph=graph, read=read, predictor=predictor)
        if opened.match is not None:
            log("another graph", run=name, differs="; ".join(opened.match.lines))
        shared = id(opened.predictor.graph.offsets)
        if shared not in indexes:
            indexes[shared] = NodeIndex(opened.predictor.graph)
        records = None if record is None else Records(record, run, opened.predictor, graph=graph)
        found[name] = ServedRun(name, opened, indexes[shared], limits=limits, records=records)
    return found
