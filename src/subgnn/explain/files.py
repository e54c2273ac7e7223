"""Explanations of a file of subgraphs, as JSON or as a table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from subgnn.errors import DataError
from subgnn.explain.explainer import Explainer
from subgnn.explain.explanation import VALUE, Explanation, Values
from subgnn.inference.subgraph_files import chunks, open_whole
from subgnn.storage.files import atomic_write

FORMAT, VERSION = "subgnn-explanations", 1
_SUFFIXES = (".json", ".tsv")
_AT_ONCE = 64
_NAMED = 8

Items = Iterator[tuple[str, Explanation]]


def open_explainer(run: Path, data: Path | None = None, *, max_nodes: int = 500, max_anchors: int = 100) -> Explainer:
    """A finished run that explains; its training subgraphs, where its dataset has them, are the background."""
    whole = open_whole(run, data)
    return Explainer(
        whole.predictor,
        background=whole.background(),
        reference=whole.reference,
        max_nodes=max_nodes,
        max_anchors=max_anchors,
    )


def write_explanations(
    run: Path,
    subgraphs: Path,
    out: Path,
    *,
    data: Path | None = None,
    attributions: bool = False,
    max_nodes: int = 500,
    max_anchors: int = 100,
    overwrite: bool = False,
) -> int:
    """Explain the prediction of every line of a file; JSON, or TSV where the name of ``out`` ends so.

    Returns:
        How many subgraphs there were.
    """
    if out.suffix not in _SUFFIXES:
        hint = f"accepted: {', '.join(_SUFFIXES)}"
        raise DataError(f"unknown kind of file '{out.suffix}'", where=str(out), hint=hint)
    explainer = open_explainer(run, data, max_nodes=max_nodes, max_anchors=max_anchors)

    def items() -> Items:
        for texts, rows in chunks(subgraphs, explainer.predictor.graph, size=_AT_ONCE):
            yield from zip(texts, explainer.explain(rows, attributions=attributions), strict=True)

    with (
        atomic_write(out, overwrite=overwrite) as temporary,
        temporary.open("w", encoding="utf-8", newline="\n") as file,
    ):
        if out.suffix == ".tsv":
            return _write_table(file, explainer, items())
        return _write_json(file, items())


def _write_json(file: IO[str], items: Items) -> int:
    """One object, with an explanation a line."""
    count = 0
    file.write(json.dumps({"format": FORMAT, "version": VERSION})[:-1] + ', "explanations": [')
    for count, (text, explanation) in enumerate(items, 1):
        found = {"subgraph": text, **explanation.to_json()}
        file.write((",\n" if count > 1 else "\n") + json.dumps(found, ensure_ascii=False))
    file.write("\n]}\n")
    return count


def _write_table(file: IO[str], explainer: Explainer, items: Items) -> int:
    """A row for each node, component, channel and anchor: its contribution to every class."""
    checkpoint = explainer.predictor.checkpoint
    classes = (VALUE,) if checkpoint.task == "regression" else checkpoint.classes
    file.write("\t".join(["subgraph", "label", "by", "kind", "item", *classes]) + "\n")
    count = 0
    for text, explanation in items:
        count += 1
        for by, kind, item, numbers in _rows(explanation):
            shown = (f"{number:.6g}" for number in numbers)
            file.write("\t".join([text, explanation.label, by, kind, item, *shown]) + "\n")
    return count


def _rows(found: Explanation) -> Iterator[tuple[str, str, str, Values]]:
    yield "prediction", "logits", "", found.logits
    for node in found.by_node:
        yield "leaving out", "node", node.name, node.contributions
    for component in found.by_component:
        yield "leaving out", "component", _named(component.names), component.contributions
    for channel in found.by_channel:
        yield f"{found.reference} instead", channel.level, channel.name, channel.contributions
    for anchor in found.by_anchor:
        yield "silencing", "anchor", f"{anchor.channel}:{anchor.layer}:{_named(anchor.names)}", anchor.contributions
    had = found.attributions
    if had is None:
        return
    by = "integrated gradients"
    yield by, "baseline", "", had.baseline
    yield by, "residual", "", had.residual
    yield by, "subgraph", "", had.of_subgraph
    for channel in had.channels:
        yield by, channel.level, channel.name, channel.contributions
    for component in had.components:
        yield by, "component", _named(component.names), component.contributions
    for anchor in had.anchors:
        yield by, "anchor", f"{anchor.channel}:{anchor.layer}:{_named(anchor.names)}", anchor.contributions


def _named(names: tuple[str, ...]) -> str:
    """Names of nodes in one cell of a table; the first of many."""
    return "-".join(names[:_NAMED]) + (f"-...({len(names)})" if len(names) > _NAMED else "")
