"""A trained run, asked about subgraphs, seen before or not."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from subgnn.assemble import build_inputs, build_model, measure_draws, touched_nodes
from subgnn.baselines import Answers, uses_embeddings
from subgnn.data.graph import Graph
from subgnn.embeddings.of_run import kept_vectors
from subgnn.errors import DataError
from subgnn.nn import Inputs, SubGNN
from subgnn.nn.inputs import Batch
from subgnn.prepare import Prepared
from subgnn.ragged import Ragged
from subgnn.training.checkpoint import Checkpoint, load_checkpoint
from subgnn.training.metrics import probabilities

_KEPT_NUMBERS = 2**24  # of a table of all nodes that is kept between calls


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """What does not change between calls: a network over a table of nodes, their vectors, and those of its anchors.

    Shapes:
        table: (T,). nodes: (T, d). anchors: by draw, as :meth:`SubGNN.anchor_vectors` gives them.
    """

    table: NDArray[np.int32]
    model: SubGNN
    nodes: Tensor
    anchors: list[list[list[Tensor]]]

    def knows(self, nodes: NDArray[np.int32], num_nodes: int) -> bool:
        """Whether all these nodes, of a graph of so many, are in the table."""
        return len(self.table) == num_nodes or bool(np.isin(nodes, self.table, assume_unique=True).all())

    @torch.no_grad()
    def vectors(self, batch: Batch) -> Tensor:
        """z_S: :meth:`SubGNN.embed`, without computing again what is kept.

        Shapes:
            returns: (n, width).
        """
        model, nodes = self.model, self.nodes
        z = model.pass_messages(
            batch,
            model.component_vectors(batch, nodes),
            gammas=model.similarities(batch, nodes.dtype),
            anchors=self.anchors[batch.draw],
        )
        return model.read_out(batch, z)


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """Subgraphs as a network takes them, for each draw of anchors, and the network."""

    kept: Kept
    inputs: list[Inputs]
    prepared: list[Prepared]

    @property
    def model(self) -> SubGNN:
        """The network, which knows all nodes the subgraphs touch."""
        return self.kept.model


def label_text(scores: NDArray[np.float32], checkpoint: Checkpoint) -> str:
    """The label that probabilities say: a class, classes joined by ``-``, or a value.

    Shapes:
        scores: (classes,) or (1,).
    """
    classes = checkpoint.classes
    if checkpoint.task == "regression":
        return f"{scores[0]:.6g}"
    if checkpoint.task == "multi-label":
        return "-".join(c for c, p in zip(classes, scores, strict=True) if p > 0.5)
    return classes[int(np.argmax(scores))]


class Predictor:
    """A checkpoint and the graph it was trained on.

    Args:
        checkpoint: of a run, or the file that holds it.
        graph: the base graph; its content hash must be the one the run was trained on.
        device: where to compute.
        keep_numbers: a table of all nodes is kept between calls where it has no more numbers than this; of larger ones,
            the rows that were needed so far.
        vectors: the node embeddings the run started from (N, d), where they are at hand; by default they are looked
            for in the run's folder.
    """

    def __init__(
        self,
        checkpoint: Checkpoint | Path,
        graph: Graph,
        *,
        device: torch.device | str = "cpu",
        keep_numbers: int = _KEPT_NUMBERS,
        vectors: NDArray[np.float32] | None = None,
    ) -> None:
        run = checkpoint.parent if isinstance(checkpoint, Path) else Path()
        self.checkpoint = load_checkpoint(checkpoint) if isinstance(checkpoint, Path) else checkpoint
        found = graph.content_hash
        if found != self.checkpoint.graph_hash:
            what = f"the graph is another one ({found[:12]}, not {self.checkpoint.graph_hash[:12]})"
            raise DataError(what, where="graph", hint="give the graph the run was trained on")
        # Every call asks for the hash; computing it reads all edges.
        self.graph, self.device = replace(graph, known_hash=found), torch.device(device)
        self._keep_numbers = keep_numbers
        self.vectors = vectors
        if vectors is None and uses_embeddings(self.checkpoint.recipe):
            self.vectors = kept_vectors(run, self.checkpoint.recipe, graph, self.checkpoint.vectors_hash)
        baseline = self.checkpoint.recipe.method != "subgnn"
        self._answers = Answers(self.checkpoint, graph, self.device, self.vectors) if baseline else None
        self._kept: Kept | None = None

    @property
    def draws(self) -> int:
        """How many draws of anchors an answer is the mean over."""
        return 1 + len(self.checkpoint.redrawn)

    def outputs(self, subgraphs: Ragged) -> NDArray[np.float32]:
        """Logits; values for regression. Where the recipe asks for an ensemble, the mean over all draws of anchors.

        Shapes:
            returns: (n, outputs).
        """
        return self._ask(subgraphs, "forward", draws=self.draws)

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
        scores = probabilities(torch.from_numpy(outputs), self.checkpoint.task).numpy()
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
        return build_model(self.checkpoint, self.graph, table, vectors=self.vectors).to(self.device).eval()

    @torch.no_grad()
    def _ask(self, subgraphs: Ragged, method: str, *, draws: int) -> NDArray[np.float32]:
        """The mean of a method's answers over draws of anchors."""
        if self._answers is not None:
            return self._answers.ask(subgraphs, method)
        measured = self.measured(subgraphs, draws=draws)
        answers = torch.stack([measured.kept.vectors(draw.whole) for draw in measured.inputs])
        if method == "forward":
            answers = torch.stack([measured.model.head(vectors) for vectors in answers])
        return answers.mean(dim=0).float().cpu().numpy()

    def measured(self, subgraphs: Ragged, *, draws: int) -> Measured:
        """Subgraphs measured against the first draws of anchors, and a network that knows all nodes they touch."""
        prepared = measure_draws(self.checkpoint, self.graph, subgraphs, draws=draws)
        kept = self._covering(touched_nodes(prepared))
        inputs = build_inputs(
            self.checkpoint, self.graph, subgraphs, draws=prepared, table=kept.table, device=self.device
        )
        return Measured(kept, inputs, prepared)

    def _covering(self, touched: NDArray[np.int32]) -> Kept:
        """A network over the touched nodes; it is kept, and built again only for nodes it has not met."""
        kept = self._kept
        if kept is None or not kept.knows(touched, self.graph.num_nodes):
            table = np.union1d(self.checkpoint.table_nodes if kept is None else kept.table, touched)
            features = self.graph.features
            width = max(self.checkpoint.recipe.embeddings.dim, 0 if features is None else features.shape[1])
            if self.graph.num_nodes * width <= self._keep_numbers:
                table = np.arange(self.graph.num_nodes, dtype=np.int32)
            kept = self._kept = self._keep(table)
        return kept

    @torch.no_grad()
    def _keep(self, table: NDArray[np.int32]) -> Kept:
        model = self._model(table)
        nodes = model.node_vectors()
        return Kept(table, model, nodes, [model.anchor_vectors(nodes, draw) for draw in range(self.draws)])
