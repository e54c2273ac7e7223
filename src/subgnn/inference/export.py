"""Export a run as one file that predicts anywhere."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from subgnn.data.dataset import Dataset
from subgnn.data.formats.bundle import pack_dataset
from subgnn.data.node_match import matchable
from subgnn.data.subgraphs import SubgraphSet
from subgnn.inference.open import EXPORT, OpenedRun, open_run
from subgnn.models.checkpoint import pack
from subgnn.storage.arrays import Arrays, encode_arrays, write_parts
from subgnn.versions import versions


def export_run(
    run: Path | OpenedRun, out: Path, *, data: Path | None = None, with_graph: bool = False, overwrite: bool = False
) -> dict[str, Any]:
    """Write a run as one file, and describe the file; ``with_graph`` adds the graph and its names, but no subgraphs."""
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
    alone = Dataset(opened.result.dataset, graph, SubgraphSet.from_lists([], num_nodes=graph.num_nodes))
    kind = "graph" if with_graph else "matchable"
    of_graph, about[kind] = pack_dataset(alone if with_graph else matchable(alone))
    arrays |= {f"{kind}.{name}": array for name, array in of_graph.items()}
    write_parts(out, encode_arrays(arrays, EXPORT, about), overwrite=overwrite)
    return {"bytes": out.stat().st_size, "graph_hash": checkpoint.spec.graph_hash, "with_graph": with_graph}
