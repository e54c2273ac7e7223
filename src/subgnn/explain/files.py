"""Explain a file of subgraphs, and write JSON or a table."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from subgnn.errors import DataError
from subgnn.explain.explainer import Explainer
from subgnn.explain.explanation import (
    VALUE,
    AnchorContribution,
    ChannelContribution,
    ComponentContribution,
    Explanation,
    NodeContribution,
    Values,
)
from subgnn.inference.open import open_run
from subgnn.inference.subgraph_files import chunks
from subgnn.storage.files import atomic_write

FORMAT, VERSION = "subgnn-explanations", 1
_SUFFIXES = (".json", ".tsv")
_BATCH = 64
_SHOWN_NAMES = 8

Items = Iterator[tuple[str, Explanation]]
Contribution = NodeContribution | ComponentContribution | ChannelContribution | AnchorContribution
Row = tuple[str, str, str, Values]


def open_explainer(run: Path, data: Path | None = None, *, max_nodes: int = 500, max_anchors: int = 100) -> Explainer:
    """Open a finished run to explain its predictions; the background are the training subgraphs of its dataset."""
    whole = open_run(run, data)
    return Explainer(
        whole.predictor,
        background=whole.training_subgraphs(),
        reference=whole.reference,
        max_nodes=max_nodes,
        max_anchors=max_anchors,
    )


def check_suffix(out: Path) -> None:
    """Refuse the name of an output file that ends neither in .json nor in .tsv."""
    if out.suffix not in _SUFFIXES:
        hint = f"accepted: {', '.join(_SUFFIXES)}"
        raise DataError(f"unknown kind of file '{out.suffix}'", where=str(out), hint=hint)


def write_explanations(
    explainer: Explainer, subgraphs: Path, out: Path, *, attributions: bool = False, overwrite: bool = False
) -> int:
    """Explain the prediction of every line of a file; JSON, or TSV if the name of ``out`` ends in .tsv.

    Returns:
        The number of subgraphs.
    """
    check_suffix(out)

    def items() -> Items:
        for texts, rows in chunks(subgraphs, explainer.predictor.graph, size=_BATCH):
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
    classes = (VALUE,) if checkpoint.spec.task == "regression" else checkpoint.spec.classes
    file.write("\t".join(["subgraph", "label", "by", "kind", "item", *classes]) + "\n")
    count = 0
    for text, explanation in items:
        count += 1
        for by, kind, item, numbers in _rows(explanation):
            shown = (f"{number:.6g}" for number in numbers)
            file.write("\t".join([text, explanation.label, by, kind, item, *shown]) + "\n")
    return count


def _rows(found: Explanation) -> Iterator[Row]:
    yield "prediction", "logits", "", found.logits
    changed: dict[str, Sequence[Contribution]] = {
        "leaving out": (*found.by_node, *found.by_component),
        f"{found.reference} instead": found.by_channel,
        "silencing": found.by_anchor,
    }
    for by, items in changed.items():
        yield from (_row(by, item) for item in items)
    shares = found.attributions
    if shares is not None:
        by = "integrated gradients"
        yield by, "baseline", "", shares.baseline
        yield by, "residual", "", shares.residual
        yield by, "subgraph", "", shares.of_subgraph
        parts: Sequence[Contribution] = (*shares.channels, *shares.components, *shares.anchors)
        yield from (_row(by, item) for item in parts)


def _row(by: str, item: Contribution) -> Row:
    if isinstance(item, NodeContribution):
        return by, "node", item.name, item.contributions
    if isinstance(item, ChannelContribution):
        return by, item.level, item.name, item.contributions
    names = "-".join(item.names[:_SHOWN_NAMES])
    names += f"-...({len(item.names)})" if len(item.names) > _SHOWN_NAMES else ""
    if isinstance(item, ComponentContribution):
        return by, "component", names, item.contributions
    return by, "anchor", f"{item.channel}:{item.layer}:{names}", item.contributions
