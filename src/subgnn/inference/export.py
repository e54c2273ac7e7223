"""Export a run: as one file that predicts anywhere, or its network as a torch.export program.

A program takes tensors and returns logits without any code of this package. It holds everything from distances to
logits: similarities, z^(0), all layers of all channels, readout, norm and head. Vectors of nodes and anchors are
constants; those of patches replace the LSTM over walks. The numbers of subgraphs, components and nodes are free.
Components, own anchors, distances and statistics are computed before, in Python (:func:`program_inputs`).

There is no program for baselines, for means over draws of anchors or over networks, and for max as aggregation, which
works in an unknown number of chunks.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram

from subgnn.channels.channel import Distances, Measured
from subgnn.channels.table import channel_of
from subgnn.data.dataset import Dataset
from subgnn.data.formats.bundle import pack_dataset
from subgnn.data.node_match import matchable
from subgnn.data.subgraphs import SubgraphSet
from subgnn.errors import UserError
from subgnn.inference.open import EXPORT, OpenedRun, open_run
from subgnn.inference.predictor import Predictor
from subgnn.models.checkpoint import pack
from subgnn.models.interface import ChannelModel
from subgnn.models.subgnn.batches import Batch, ChannelBatch
from subgnn.models.subgnn.batches import Inputs as NetworkInputs
from subgnn.models.subgnn.build import NodeTable, build_inputs, build_network
from subgnn.models.subgnn.fitted import FittedSubGNN
from subgnn.models.subgnn.model import SubGNN
from subgnn.ragged import Ragged
from subgnn.storage.arrays import Arrays, encode_arrays, write_parts
from subgnn.storage.files import atomic_write
from subgnn.versions import versions

Inputs = dict[str, Any]
_SUBGRAPHS, _COMPONENTS, _NODES = (Dim(name) for name in ("subgraphs", "components", "nodes"))


def export_run(
    run: Path | OpenedRun, out: Path, *, data: Path | None = None, with_graph: bool = False, overwrite: bool = False
) -> dict[str, Any]:
    """Write a finished run as one file, which :func:`~subgnn.inference.open.open_run` opens.

    Args:
        data: the dataset; by default the one that the run was trained on.
        with_graph: include the graph and the names of its nodes, but no subgraphs.

    Returns:
        The size of the file in bytes, the hash of the graph, and whether the graph is included.
    """
    opened = run if isinstance(run, OpenedRun) else open_run(run, data)
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
    if any(one.spec.prepare.directed for one in checkpoint.each()) and graph.oriented is not None:
        graph = graph.oriented  # the undirected graph follows from it, but not the other way round
    alone = Dataset(opened.result.dataset, graph, SubgraphSet.from_lists([], num_nodes=graph.num_nodes))
    kind = "graph" if with_graph else "matchable"
    of_graph, about[kind] = pack_dataset(alone if with_graph else matchable(alone))
    arrays |= {f"{kind}.{name}": array for name, array in of_graph.items()}
    write_parts(out, encode_arrays(arrays, EXPORT, about), overwrite=overwrite)
    return {"bytes": out.stat().st_size, "graph_hash": checkpoint.spec.graph_hash, "with_graph": with_graph}


class Program(nn.Module):
    """A network, over all nodes of the graph, whose node and anchor vectors are constants."""

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
                own = not channel_of(model.channels[j]).shared
                name = "nodes" if own else f"anchors_{i}_{j}"
                if not own:
                    self.register_buffer(name, anchors.detach().clone())
                self.places[-1].append(name)
        # The program needs only the vectors that these parts computed.
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
            as :class:`~subgnn.models.subgnn.batches.Batch`. counts: (n,) components of each subgraph. channels:
            distance, reached and, for own anchors, places. returns: (n, outputs).
        """
        batch = Batch(
            nodes=nodes,
            node_starts=node_starts,
            sizes=sizes,
            subgraph=subgraph,
            num_subgraphs=counts.shape[0],
            channels=[
                [ChannelBatch(Distances(c[0], c[1]), c[2] if len(c) > 2 else None) for c in layer] for layer in channels
            ],
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
    """The inputs of an exported program for subgraphs, by name; nodes are numbered as in the graph."""
    _check(predictor)
    measured = cast(FittedSubGNN, predictor.fitted).measure(subgraphs, 1)
    inputs = build_inputs(predictor.spec, predictor.graph, measured, _all_nodes(predictor))
    batch = cast(NetworkInputs, inputs[0]).whole
    found: Inputs = {
        "nodes": batch.nodes,
        "node_starts": batch.node_starts,
        "sizes": batch.sizes,
        "subgraph": batch.subgraph,
        "counts": torch.bincount(batch.subgraph, minlength=batch.num_subgraphs),
        "channels": [
            [_distances(c.measured) + ([] if c.own is None else [c.own]) for c in layer] for layer in batch.channels
        ],
    }
    extra = {name: getattr(batch, name) for name in ("component_stats", "subgraph_stats", "known", "baseline_scores")}
    return found | {name: value for name, value in extra.items() if value is not None}


def _distances(measured: Measured) -> list[Tensor]:
    """Distances and reached fractions; in a program, a similarity without distances counts as reached at distance 0."""
    if isinstance(measured, Distances):
        return [measured.distance, measured.reached]
    return [torch.zeros_like(measured.similarity), measured.similarity]


def _all_nodes(predictor: Predictor) -> NodeTable:
    return NodeTable(np.arange(predictor.graph.num_nodes, dtype=np.int32))


def make_program(predictor: Predictor) -> ExportedProgram:
    """Trace the network of a run as a program."""
    _check(predictor)
    model = build_network(
        predictor.checkpoint,
        predictor.graph,
        _all_nodes(predictor),
        vectors=predictor.tables.get(predictor.spec.vectors_hash),
    )
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
    """Subgraphs to trace the program with, such that no two of the free lengths are equal."""
    n = predictor.graph.num_nodes
    return Ragged.from_rows([np.arange(min(n, size)) for size in (5, 3)])


def export_program(run: Path, out: Path, *, data: Path | None = None, overwrite: bool = False) -> dict[str, Any]:
    """Write the network of a finished run as a .pt2 file, and return its size in bytes and the names of its inputs."""
    if out.suffix != ".pt2":
        raise UserError(f"unknown kind of file '{out.suffix}'", where=str(out), hint="accepted: .pt2")
    predictor = open_run(run, data).predictor
    program = make_program(predictor)
    with atomic_write(out, overwrite=overwrite) as temporary, temporary.open("wb") as file:
        torch.export.save(program, file)
    return {"bytes": out.stat().st_size, "inputs": list(program_inputs(predictor, _example(predictor)))}


def _check(predictor: Predictor) -> None:
    recipe = predictor.spec
    why = None
    if not isinstance(predictor.model, ChannelModel):
        why = f"{recipe.method} is not a network of channels"
    elif predictor.members > 1:
        why = f"its outputs are means over {predictor.members} networks"
    elif predictor.draws > 1:
        why = f"its outputs are means over {predictor.draws} draws of anchors"
    elif recipe.model.aggregation == "max":
        why = 'model.aggregation is "max"'
    if why is not None:
        hint = "to export the run itself, give a file name that does not end in .pt2"
        raise UserError(f"this run cannot be exported as a torch.export program: {why}", where="--out", hint=hint)
