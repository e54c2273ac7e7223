"""A trained run, asked about subgraphs, seen before or not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from subgnn.assemble import build_model, measure_draws, touched_nodes
from subgnn.baselines import Answers, uses_embeddings
from subgnn.data.graph import Graph
from subgnn.embeddings.of_run import kept_vectors
from subgnn.errors import DataError
from subgnn.network import Network
from subgnn.nn import Inputs, SubGNN
from subgnn.nn.inputs import Batch
from subgnn.nn.streamed import StreamedInputs
from subgnn.prepare import seen_hash
from subgnn.ragged import Ragged
from subgnn.spread_answers import Spread
from subgnn.streaming import build_streamed_model, is_carried, is_large
from subgnn.training.checkpoint import Checkpoint, load_checkpoint
from subgnn.training.metrics import probabilities

BATCH, STREAMED_BATCH = 4096, 1024
"""Subgraphs in a batch; the second where the table of nodes is large. Neither depends on the memory at hand."""


class Predictor:
    """A checkpoint and the graph it was trained on.

    Args:
        checkpoint: of a run, or the file that holds it.
        graph: the base graph; its content hash must be the one the run was trained on.
        device: where to compute.
        spread: workers that measure subgraphs and answer for them; this process by default.
    """

    def __init__(
        self,
        checkpoint: Checkpoint | Path,
        graph: Graph,
        *,
        device: torch.device | str = "cpu",
        spread: Spread | None = None,
    ) -> None:
        run = checkpoint.parent if isinstance(checkpoint, Path) else Path()
        self.checkpoint = load_checkpoint(checkpoint) if isinstance(checkpoint, Path) else checkpoint
        seen = seen_hash(graph, self.checkpoint.recipe.prepare)
        if seen != self.checkpoint.graph_hash:
            what = f"the graph is another one ({seen[:12]}, not {self.checkpoint.graph_hash[:12]})"
            raise DataError(what, where="graph", hint="give the graph the run was trained on")
        self.graph, self.device, self._spread = graph, torch.device(device), spread
        uses = uses_embeddings(self.checkpoint.recipe)
        self.vectors = kept_vectors(run, self.checkpoint.recipe, graph, self.checkpoint.vectors_hash) if uses else None
        baseline = self.checkpoint.recipe.method != "subgnn"
        self._answers = Answers(self.checkpoint, graph, self.device, self.vectors) if baseline else None

    def outputs(self, subgraphs: Ragged) -> NDArray[np.float32]:
        """Logits; values for regression. Where the recipe asks for an ensemble, the mean over all draws of anchors.

        Shapes:
            returns: (n, outputs).
        """
        return self._ask(subgraphs, "forward", draws=1 + len(self.checkpoint.redrawn))

    def probabilities(self, subgraphs: Ragged) -> NDArray[np.float32]:
        """Class probabilities; for regression the value, in its own unit.

        Shapes:
            returns: (n, classes) or (n, 1).
        """
        scores = probabilities(torch.from_numpy(self.outputs(subgraphs)), self.checkpoint.task).numpy()
        target = self.checkpoint.standards.get("target")
        return scores if target is None else (scores * target.deviation + target.mean).astype(np.float32)

    def embeddings(self, subgraphs: Ragged) -> NDArray[np.float32]:
        """z_S, the vector of each subgraph, as the head receives it, by the first draw of anchors.

        Shapes:
            returns: (n, width).
        """
        return self._ask(subgraphs, "embed", draws=1)

    def network(self) -> SubGNN | None:
        """The trained network, over the nodes it was trained with; None for a baseline."""
        return None if self._answers is not None else self._model(self.checkpoint.table_nodes)

    def _model(self, table: NDArray[np.int32]) -> SubGNN:
        if is_carried(self.checkpoint):
            return build_streamed_model(self.checkpoint, self.graph).to(self.device).eval()
        return build_model(self.checkpoint, self.graph, table, vectors=self.vectors).to(self.device).eval()

    @torch.no_grad()
    def _ask(self, subgraphs: Ragged, method: str, *, draws: int) -> NDArray[np.float32]:
        """The mean of a method's answers over draws of anchors."""
        if self._answers is not None:
            return self._answers.ask(subgraphs, method)
        measuring = None if self._spread is None else self._spread.measure
        prepared = measure_draws(self.checkpoint, self.graph, subgraphs, draws=draws, measuring=measuring)
        table = np.union1d(self.checkpoint.table_nodes, touched_nodes(prepared))
        streamed = is_carried(self.checkpoint) or is_large(len(table), self.checkpoint.recipe.embeddings)
        network = Network(self.checkpoint, self.vectors, None if streamed else table, method)
        size = STREAMED_BATCH if streamed else BATCH
        if self._spread is not None:
            return _mean(self._spread.answer(network, subgraphs, prepared, size=size))
        model = network.model(self.graph).to(self.device)
        inputs = network.inputs(self.graph, subgraphs, prepared, device=self.device)
        return _mean([_answers(getattr(model, method), draw, size) for draw in inputs])


def _answers(method: Callable[[Batch], torch.Tensor], inputs: Inputs | StreamedInputs, size: int) -> torch.Tensor:
    """Answers for all subgraphs, in batches of a fixed size."""
    rows = np.arange(len(inputs))
    return torch.cat([method(inputs.batch(rows[i : i + size])) for i in range(0, max(1, len(rows)), size)])


def _mean(answers: list[torch.Tensor]) -> NDArray[np.float32]:
    found: NDArray[np.float32] = torch.stack(answers).mean(dim=0).float().cpu().numpy()
    return found
