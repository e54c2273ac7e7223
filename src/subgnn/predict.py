"""A trained run, asked about subgraphs, seen before or not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from subgnn.data.graph import Graph
from subgnn.embeddings import node_vectors
from subgnn.embeddings.of_run import kept_vectors
from subgnn.errors import DataError
from subgnn.nn import Inputs, SubGNN
from subgnn.prepare import Prepared, measure
from subgnn.ragged import Ragged
from subgnn.topology import Standard, node_set_statistics
from subgnn.training.checkpoint import Checkpoint, load_checkpoint
from subgnn.training.metrics import probabilities


class Predictor:
    """A checkpoint and the graph it was trained on.

    Args:
        checkpoint: of a run, or the file that holds it.
        graph: the base graph; its content hash must be the one the run was trained on.
        device: where to compute.
    """

    def __init__(self, checkpoint: Checkpoint | Path, graph: Graph, *, device: torch.device | str = "cpu") -> None:
        run = checkpoint.parent if isinstance(checkpoint, Path) else Path()
        self.checkpoint = load_checkpoint(checkpoint) if isinstance(checkpoint, Path) else checkpoint
        if graph.content_hash != self.checkpoint.graph_hash:
            what = f"the graph is another one ({graph.content_hash[:12]}, not {self.checkpoint.graph_hash[:12]})"
            raise DataError(what, where="graph", hint="give the graph the run was trained on")
        self.graph, self.device = graph, torch.device(device)
        self.vectors = kept_vectors(run, self.checkpoint.recipe, graph, self.checkpoint.vectors_hash)

    def outputs(self, subgraphs: Ragged) -> NDArray[np.float32]:
        """Logits; values for regression.

        Shapes:
            returns: (n, outputs).
        """
        return self._ask(subgraphs, "forward")

    def probabilities(self, subgraphs: Ragged) -> NDArray[np.float32]:
        """Class probabilities; for regression the value, in its own unit.

        Shapes:
            returns: (n, classes) or (n, 1).
        """
        scores = probabilities(torch.from_numpy(self.outputs(subgraphs)), self.checkpoint.task).numpy()
        target = self.checkpoint.standards.get("target")
        return scores if target is None else (scores * target.deviation + target.mean).astype(np.float32)

    def embeddings(self, subgraphs: Ragged) -> NDArray[np.float32]:
        """z_S, the vector of each subgraph, as the head receives it.

        Shapes:
            returns: (n, width).
        """
        return self._ask(subgraphs, "embed")

    @torch.no_grad()
    def _ask(self, subgraphs: Ragged, method: str) -> NDArray[np.float32]:
        recipe = self.checkpoint.recipe
        prepared = measure(
            self.graph,
            subgraphs,
            channels=recipe.channels,
            settings=recipe.prepare,
            shared=self.checkpoint.shared,
            seed=self.checkpoint.seed,
        )
        table = np.union1d(self.checkpoint.table_nodes, prepared.touched())
        model = self._model(table)
        inputs = build_inputs(self.graph, prepared, subgraphs, table, self.checkpoint.standards).to(self.device)
        answer: torch.Tensor = getattr(model, method)(inputs.whole)
        return answer.float().cpu().numpy()

    def _model(self, table: NDArray[np.int32]) -> SubGNN:
        """The network over a table that has rows for newly met nodes as well."""
        checkpoint = self.checkpoint
        rows = node_vectors(
            checkpoint.recipe.embeddings,
            table,
            num_nodes=self.graph.num_nodes,
            seed=checkpoint.seed,
            table=self.vectors,
        )
        rows[np.searchsorted(table, checkpoint.table_nodes)] = checkpoint.weights["table"].numpy()
        model = build_model(checkpoint, torch.from_numpy(rows), table)
        own = {k: v for k, v in model.state_dict().items() if k == "table" or _is_place(k)}
        model.load_state_dict(own | {k: v for k, v in checkpoint.weights.items() if k != "table" and not _is_place(k)})
        return model.to(self.device).eval()


def _is_place(name: str) -> bool:
    """Buffers that hold places in the node table."""
    return name.startswith(("anchor_nodes.", "walks."))


def build_model(checkpoint: Checkpoint, rows: torch.Tensor, table: NDArray[np.int32]) -> SubGNN:
    """A fresh network of a checkpoint's recipe, task, classes and anchors, over a table of node vectors."""
    recipe, standards = checkpoint.recipe, checkpoint.standards
    return SubGNN(
        rows,
        table,
        channels=recipe.channels,
        shared=checkpoint.shared,
        settings=recipe.model,
        num_outputs=1 if checkpoint.task == "regression" else len(checkpoint.classes),
        trainable=recipe.embeddings.trainable,
        num_component_stats=len(standards["component"].mean) if "component" in standards else 0,
        num_subgraph_stats=len(standards["subgraph"].mean) if "subgraph" in standards else 0,
    )


def build_inputs(
    graph: Graph, prepared: Prepared, subgraphs: Ragged, table: NDArray[np.int32], standards: dict[str, Standard]
) -> Inputs:
    """Prepared subgraphs as tensors, with statistics where the topology channel is on."""
    if "component" not in standards:
        return Inputs(prepared, table)
    return Inputs(
        prepared,
        table,
        component_stats=standards["component"](node_set_statistics(graph, prepared.components.nodes)),
        subgraph_stats=standards["subgraph"](node_set_statistics(graph, subgraphs)),
    )
