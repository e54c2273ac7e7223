"""A trained network as a torch.export program: tensors in, logits out, none of this package's code in between.

Everything from distances to logits is in it: similarities, z^(0), all layers of all channels, readout, norm and head.
Vectors of nodes and anchors are constants: what the walks' LSTM makes of a trained network's anchors never changes, so
its result is stored in its place. The number of subgraphs, components and component nodes is free.

What is before it stays in Python: components, own anchors, distances, statistics (:func:`program_inputs`). Left out:
baselines; the mean over draws of anchors or over networks; max as aggregation of messages, which works in chunks whose
number is not known beforehand.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram

from subgnn.errors import UserError
from subgnn.inference.predictor import Predictor
from subgnn.inference.subgraph_files import open_run
from subgnn.models.subgnn.build import build_inputs, build_model, measure_draws
from subgnn.models.subgnn.inputs import Batch, ChannelBatch
from subgnn.models.subgnn.model import SubGNN
from subgnn.ragged import Ragged
from subgnn.storage.files import atomic_write

Inputs = dict[str, Any]
_SUBGRAPHS, _COMPONENTS, _NODES = (Dim(name) for name in ("subgraphs", "components", "nodes"))


class Program(nn.Module):
    """A network whose node and anchor vectors are constants.

    Args:
        model: over all nodes that may be met.
    """

    def __init__(self, model: SubGNN) -> None:
        super().__init__()
        self.model = model
        with torch.no_grad():
            nodes = model.node_vectors().detach().clone()
            vectors = model.anchor_vectors(nodes)
        self.register_buffer("nodes", nodes)
        self.places: list[list[str]] = []
        for i, layer in enumerate(vectors):
            self.places.append([])
            for j, anchors in enumerate(layer):
                own = not model.channels[j].shared
                name = "nodes" if own else f"anchors_{i}_{j}"
                if not own:
                    self.register_buffer(name, anchors.detach().clone())
                self.places[-1].append(name)
        # What was made of them is here; they themselves need not travel.
        model.table = model.feature_map = model.encoder = None
        model.anchors = nn.ModuleList()
        model.register_buffer("features", None)

    def forward(
        self,
        nodes: Tensor,
        node_starts: Tensor,
        sizes: Tensor,
        subgraph: Tensor,
        counts: Tensor,
        channels: list[list[list[Tensor]]],
        component_stats: Tensor | None = None,
        subgraph_stats: Tensor | None = None,
        known: Tensor | None = None,
        baseline_scores: Tensor | None = None,
    ) -> Tensor:
        """Logits.

        Shapes:
            as :class:`~subgnn.models.subgnn.inputs.Batch`. counts: (n,) components of each subgraph. channels:
            distance, reached and, for own anchors, places. returns: (n, outputs).
        """
        batch = Batch(
            nodes=nodes,
            node_starts=node_starts,
            sizes=sizes,
            subgraph=subgraph,
            num_subgraphs=counts.shape[0],
            channels=[[ChannelBatch(c[0], c[1], c[2] if len(c) > 2 else None) for c in layer] for layer in channels],
            component_stats=component_stats,
            subgraph_stats=subgraph_stats,
            known=known,
            baseline_scores=baseline_scores,
        )
        table = self.get_buffer("nodes")
        z = self.model.pass_messages(
            batch,
            self.model.component_vectors(batch, table),
            gammas=self.model.similarities(batch, table.dtype),
            anchors=[[self.get_buffer(name) for name in layer] for layer in self.places],
        )
        logits: Tensor = self.model.head(self.model.read_out(batch, z))
        return logits


def program_inputs(predictor: Predictor, subgraphs: Ragged) -> Inputs:
    """Subgraphs as an exported program takes them, by name; nodes are numbered as in the graph."""
    _check(predictor)
    checkpoint, graph = predictor.checkpoint, predictor.graph
    draws = measure_draws(checkpoint, graph, subgraphs, draws=1)
    batch = build_inputs(checkpoint, graph, subgraphs, draws=draws, table=_all_nodes(predictor))[0].whole
    found: Inputs = {
        "nodes": batch.nodes,
        "node_starts": batch.node_starts,
        "sizes": batch.sizes,
        "subgraph": batch.subgraph,
        "counts": torch.bincount(batch.subgraph, minlength=batch.num_subgraphs),
        "channels": [
            [[c.distance, c.reached] + ([] if c.own is None else [c.own]) for c in layer] for layer in batch.channels
        ],
    }
    extra = {name: getattr(batch, name) for name in ("component_stats", "subgraph_stats", "known", "baseline_scores")}
    return found | {name: value for name, value in extra.items() if value is not None}


def _all_nodes(predictor: Predictor) -> NDArray[np.int32]:
    return np.arange(predictor.graph.num_nodes, dtype=np.int32)


def make_program(predictor: Predictor) -> ExportedProgram:
    """The network of a run as a program."""
    _check(predictor)
    model = build_model(predictor.checkpoint, predictor.graph, _all_nodes(predictor), vectors=predictor.vectors)
    program = Program(model).eval()
    inputs = program_inputs(predictor, _example(predictor))
    lengths = {"counts": _SUBGRAPHS, "subgraph_stats": _SUBGRAPHS, "baseline_scores": _SUBGRAPHS, "nodes": _NODES}

    def free(name: str, value: Any) -> Any:
        if isinstance(value, list):
            return [free(name, inner) for inner in value]
        return {0: lengths.get(name, _COMPONENTS)}

    shapes = {name: free(name, value) for name, value in inputs.items()}
    with torch.no_grad():
        return torch.export.export(program, (), kwargs=inputs, dynamic_shapes=shapes)


def _example(predictor: Predictor) -> Ragged:
    """Subgraphs that the program is traced with; no two of the lengths that are free are equal."""
    n = predictor.graph.num_nodes
    return Ragged.from_rows([np.arange(min(n, size)) for size in (5, 3)])


def export_program(run: Path, out: Path, *, data: Path | None = None, overwrite: bool = False) -> dict[str, Any]:
    """Write the network of a finished run as a .pt2 file, which ``torch.export.load`` reads.

    Returns:
        Its size in bytes and the names of its inputs.
    """
    if out.suffix != ".pt2":
        raise UserError(f"unknown kind of file '{out.suffix}'", where=str(out), hint="accepted: .pt2")
    predictor = open_run(run, data)
    program = make_program(predictor)
    with atomic_write(out, overwrite=overwrite) as temporary, temporary.open("wb") as file:
        torch.export.save(program, file)
    return {"bytes": out.stat().st_size, "inputs": list(program_inputs(predictor, _example(predictor)))}


def _check(predictor: Predictor) -> None:
    recipe = predictor.checkpoint.spec
    why = None
    if recipe.method != "subgnn":
        why = f"{recipe.method} is no network of channels"
    elif predictor.members > 1:
        why = f"its answers are means over {predictor.members} networks"
    elif predictor.draws > 1:
        why = f"its answers are means over {predictor.draws} draws of anchors"
    elif recipe.model.aggregation == "max":
        why = 'model.aggregation is "max"'
    if why is not None:
        hint = "use --format portable, which holds any run"
        raise UserError(f"this run cannot become a torch.export program: {why}", where="--format", hint=hint)
