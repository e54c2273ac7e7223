"""A trained run, asked about subgraphs, seen before or not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from subgnn.data.graph import Graph
from subgnn.data.subgraphs import label_separator
from subgnn.embeddings.sources import load_run_vectors
from subgnn.inference.distributed import Workers
from subgnn.models.checkpoint import load_checkpoint
from subgnn.models.integrity import check_checkpoint
from subgnn.models.registry import Answers, uses_embeddings
from subgnn.models.scores import BaselineScores
from subgnn.models.spec import Checkpoint
from subgnn.models.subgnn import Inputs, SubGNN
from subgnn.models.subgnn.batches import Batch, StreamedInputs
from subgnn.models.subgnn.build import build_inputs, build_model, measure_draws, touched_nodes
from subgnn.models.subgnn.inference_cache import Kept, Measured
from subgnn.models.subgnn.network import Network
from subgnn.models.subgnn.streaming import is_carried, is_large
from subgnn.prepare.measure import Prepared
from subgnn.ragged import Ragged
from subgnn.training.metrics import probabilities

BATCH, STREAMED_BATCH = 4096, 1024
"""Subgraphs in a batch; the second where the table of nodes is large. Neither depends on the memory at hand."""
_KEPT_NUMBERS = 2**24  # of a table of all nodes that is kept between calls
_MEAN_OF = 256  # subgraphs, at most


def label_text(scores: NDArray[np.float32], checkpoint: Checkpoint) -> str:
    """The label that probabilities say: a class, several classes in the joined form of subgraphs.tsv, or a value.

    Shapes:
        scores: (classes,) or (1,).
    """
    classes = checkpoint.spec.classes
    if checkpoint.spec.task == "regression":
        return f"{scores[0]:.6g}"
    if checkpoint.spec.task == "multi-label":
        return label_separator(classes).join(c for c, p in zip(classes, scores, strict=True) if p > 0.5)
    return classes[int(np.argmax(scores))]


class Predictor:
    """A checkpoint and the graph it was trained on.

    An answer is a function of a subgraph's nodes and the run alone, whether or not the subgraph was in training. Where
    the network corrects a baseline, it is the one fitted to the whole training split, for training subgraphs too.

    Args:
        checkpoint: of a run, or the file that holds it.
        graph: the base graph, directed or in its undirected form; it must be the one the run was trained on.
        device: where to compute.
        vectors: the node embeddings the run started from (N, d), where they are at hand; by default they are looked
            for in the run's folder.
        keep_numbers: a table of all nodes is kept between calls where it has no more numbers than this; of larger ones,
            the rows that were needed so far, as long as they are not many.
        workers: processes that measure subgraphs and predict; this process by default.
        where: what the checkpoint was read from, for errors; a file of a run says it itself.
        again: what to do about a checkpoint that does not fit.

    Raises:
        DataError: where the graph is another one, or the checkpoint does not fit its settings.
    """

    def __init__(
        self,
        checkpoint: Checkpoint | Path,
        graph: Graph,
        *,
        device: torch.device | str = "cpu",
        vectors: NDArray[np.float32] | None = None,
        keep_numbers: int = _KEPT_NUMBERS,
        workers: Workers | None = None,
        where: str = "checkpoint",
        again: str = "train again",
    ) -> None:
        run = checkpoint.parent if isinstance(checkpoint, Path) else Path()
        self.checkpoint = load_checkpoint(checkpoint) if isinstance(checkpoint, Path) else checkpoint
        # Every call asks for the hash; computing it reads all edges.
        graph = _hashed(graph.undirected())
        place = str(checkpoint) if isinstance(checkpoint, Path) else where
        check_checkpoint(self.checkpoint, graph, where=place, again=again)
        self.graph, self.device = graph, torch.device(device)
        self._keep_numbers, self._workers = keep_numbers, workers
        self.vectors = vectors
        if vectors is None and uses_embeddings(self.checkpoint.spec):
            self.vectors = load_run_vectors(run, self.checkpoint.spec, graph, self.checkpoint.spec.vectors_hash)
        baseline = self.checkpoint.spec.method != "subgnn"
        self._answers = Answers(self.checkpoint, graph, self.device, self.vectors) if baseline else None
        corrected = self.checkpoint.baseline
        self._corrected = None if corrected is None else BaselineScores(corrected, graph)
        self._kept: list[Kept] = []

    @property
    def draws(self) -> int:
        """How many draws of anchors an answer is the mean over."""
        return 1 + len(self.checkpoint.spec.redrawn)

    @property
    def members(self) -> int:
        """How many networks an answer is the mean over."""
        return self.checkpoint.spec.members

    def outputs(self, subgraphs: Ragged) -> NDArray[np.float32]:
        """Logits; values for regression: the mean over networks, and over draws of anchors with prepare.ensemble.

        Shapes:
            returns: (n, outputs).
        """
        return self._ask(subgraphs, "forward", draws=self.draws, members=self.members)

    def probabilities(self, subgraphs: Ragged) -> NDArray[np.float32]:
        """Class probabilities; for regression the value, in its own unit.

        Shapes:
            returns: (n, classes) or (n, 1).
        """
        return self.scores(self.outputs(subgraphs))

    def scores(self, outputs: NDArray[np.float32]) -> NDArray[np.float32]:
        """Probabilities, or values in their own unit, of what :meth:`outputs` gave.

        Shapes:
            outputs: (n, outputs). returns: (n, classes) or (n, 1).
        """
        scores = probabilities(torch.from_numpy(outputs), self.checkpoint.spec.task).numpy()
        target = self.checkpoint.spec.standards.get("target")
        return scores if target is None else (scores * target.deviation + target.mean).astype(np.float32)

    def embeddings(self, subgraphs: Ragged) -> NDArray[np.float32]:
        """z_S, the vector of each subgraph, as the head receives it, by the first network and draw of anchors.

        Shapes:
            returns: (n, width).
        """
        return self._ask(subgraphs, "embed", draws=1, members=1)

    @torch.no_grad()
    def mean_vectors(self, subgraphs: Ragged) -> NDArray[np.float32] | None:
        """Mean vector of subgraphs by each network and draw of anchors: the reference of explanations.

        Of more than 256 subgraphs, as many are taken, evenly spaced.

        Shapes:
            returns: (networks x draws, width), or None for a model without channels.
        """
        if self._answers is not None:
            return None
        chosen = np.linspace(0, len(subgraphs) - 1, min(len(subgraphs), _MEAN_OF)).astype(np.int64)
        measured = self.measured(subgraphs.take(np.unique(chosen)), draws=self.draws)
        means = [model.embed(inputs.whole).mean(dim=0) for model, inputs, _ in measured.voices()]
        found: NDArray[np.float32] = torch.stack(means).float().cpu().numpy()
        return found

    def networks(self) -> list[SubGNN]:
        """The trained networks, over the nodes they were trained with; none for a baseline."""
        return [] if self._answers is not None else self._models(self.checkpoint.spec.table_nodes)

    def _models(self, table: NDArray[np.int32]) -> list[SubGNN]:
        members = map(self.checkpoint.member, range(self.members))
        return [build_model(m, self.graph, table, vectors=self.vectors).to(self.device).eval() for m in members]

    @torch.no_grad()
    def _ask(self, subgraphs: Ragged, method: str, *, draws: int, members: int) -> NDArray[np.float32]:
        """The mean of a method's answers over networks and draws of anchors."""
        if self._answers is not None:
            return self._answers.ask(subgraphs, method)
        workers = self._workers
        measuring = None if workers is None else workers.measure
        prepared = measure_draws(self.checkpoint, self.graph, subgraphs, draws=draws, measuring=measuring)
        touched = touched_nodes(prepared)
        table = np.union1d(self.checkpoint.spec.table_nodes, touched)
        streamed = is_carried(self.checkpoint) or is_large(len(table), self.checkpoint.spec.embeddings)
        size = STREAMED_BATCH if streamed else BATCH
        if workers is None and not streamed:
            measured = self._as_inputs(subgraphs, prepared, touched)
            asked = [getattr(kept, method) for kept in measured.kept[:members]]
            return _mean([_answers(one, draw, size) for one in asked for draw in measured.inputs])
        found = []
        for i in range(members):
            network = Network(self.checkpoint.member(i), self.vectors, None if streamed else table, method)
            if workers is not None:
                found += workers.outputs(network, subgraphs, prepared, size=size)
                continue
            model = network.model(self.graph).to(self.device)
            inputs = network.inputs(self.graph, subgraphs, prepared, device=self.device)
            found += [_answers(getattr(model, method), draw, size) for draw in inputs]
        return _mean(found)

    def measured(self, subgraphs: Ragged, *, draws: int) -> Measured:
        """Subgraphs measured against the first draws of anchors, and networks that know all nodes they touch."""
        prepared = measure_draws(self.checkpoint, self.graph, subgraphs, draws=draws)
        return self._as_inputs(subgraphs, prepared, touched_nodes(prepared))

    def _as_inputs(self, subgraphs: Ragged, prepared: list[Prepared], touched: NDArray[np.int32]) -> Measured:
        kept = self._covering(touched)
        inputs = build_inputs(
            self.checkpoint,
            self.graph,
            subgraphs,
            draws=prepared,
            table=kept[0].table,
            device=self.device,
            scores=self._baseline_scores(subgraphs),
        )
        return Measured(kept, inputs, prepared)

    def _covering(self, touched: NDArray[np.int32]) -> list[Kept]:
        """Networks over the touched nodes; they are kept, and built again only for nodes they have not met."""
        kept = self._kept
        if not kept or not kept[0].knows(touched, self.graph.num_nodes):
            settings = self.checkpoint.spec.embeddings
            table = np.union1d(kept[0].table if kept else self.checkpoint.spec.table_nodes, touched)
            if is_large(len(table), settings):
                table = np.union1d(self.checkpoint.spec.table_nodes, touched)
            features = self.graph.features
            width = max(settings.dim, 0 if features is None else features.shape[1])
            if self.graph.num_nodes * width * self.members <= self._keep_numbers:
                table = np.arange(self.graph.num_nodes, dtype=np.int32)
            kept = self._kept = [Kept.of(model, table, draws=self.draws) for model in self._models(table)]
        return kept

    def _baseline_scores(self, subgraphs: Ragged) -> NDArray[np.float32] | None:
        """Of the baseline that the network corrects, where there is one."""
        return None if self._corrected is None else self._corrected.of(subgraphs)


def _hashed(graph: Graph) -> Graph:
    """The same graph, and the one it is the undirected form of, with hashes that are known."""
    oriented = None if graph.oriented is None else _hashed(graph.oriented)
    return replace(graph, known_hash=graph.content_hash, oriented=oriented)


def _answers(method: Callable[[Batch], Tensor], inputs: Inputs | StreamedInputs, size: int) -> Tensor:
    """Answers for all subgraphs, in batches of a fixed size."""
    rows = np.arange(len(inputs))
    return torch.cat([method(inputs.batch(rows[i : i + size])) for i in range(0, max(1, len(rows)), size)])


def _mean(answers: list[Tensor]) -> NDArray[np.float32]:
    found: NDArray[np.float32] = torch.stack(answers).mean(dim=0).float().cpu().numpy()
    return found
