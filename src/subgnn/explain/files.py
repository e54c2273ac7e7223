"""Explain the subgraphs of a file, and write JSON or a table."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import IO, Any

from subgnn.explain.explainer import Explainer
from subgnn.explain.explanation import (
    AnchorContribution,
    ChannelContribution,
    ComponentContribution,
    Explanation,
    NodeContribution,
    Values,
)
from subgnn.inference.answers import Files, Query
from subgnn.storage.tables import Column, Part, TableFormat, distinct, open_output, write_table
from subgnn.task import task_of

FORMAT, VERSION = "subgnn-explanations", 1
_TITLES = ("subgraph", "label", "by", "kind", "item")
_BATCH = 64
_SHOWN_NAMES = 8

Items = Iterator[tuple[int, Explanation | None]]
Contribution = NodeContribution | ComponentContribution | ChannelContribution | AnchorContribution
Row = tuple[str, str, str, Values]


def explanation_format(files: Files) -> TableFormat | None:
    """The format of a table of explanations; None for JSON.

    Raises:
        DataError: for an output of another kind, or one that exists and is not to be replaced.
    """
    return files.output_format(others=[".json"])


def write_explanations(explainer: Explainer, files: Files, *, attributions: bool = False) -> int:
    """Explain the prediction of every subgraph of a file.

    JSON, and JSON lines, have an object for each subgraph; other tables a row for each node, component, channel and
    anchor: its contribution to every class. A subgraph without nodes in the graph has no explanation.

    Returns:
        The number of subgraphs.
    """
    form = explanation_format(files)
    query = files.read(explainer.predictor.graph)
    query.refuse_empty()

    def items() -> Items:
        for rows, there, nodes in query.parts(_BATCH):
            found = iter(explainer.explain(nodes, attributions=attributions) if len(there) else ())
            explained = set(there.tolist())
            yield from ((row, next(found) if i in explained else None) for i, row in enumerate(rows))

    with open_output(files.out, overwrite=files.overwrite) as file:
        if form in (None, "jsonl"):
            _write_json(file, query, items(), lines=form is not None)
        else:
            columns, parts = _table(explainer, query, items())
            write_table(file, form, columns, parts, excel_safe=files.excel_safe)
    return len(query)


def _write_json(file: IO[bytes], query: Query, items: Items, *, lines: bool) -> None:
    """One object with an explanation a line, or these lines alone."""
    if not lines:
        file.write((json.dumps({"format": FORMAT, "version": VERSION})[:-1] + ', "explanations": [\n').encode())
    for row, explanation in items:
        found: dict[str, Any] = {"subgraph": query.text(row)}
        found |= {"name": query.members.names[row]} if query.members.named else {}
        found |= {"dropped": query.dropped(row)} if query.drops else {}
        found |= {} if explanation is None else explanation.to_json()
        end = "" if lines or row == len(query) - 1 else ","
        file.write((json.dumps(found, ensure_ascii=False) + end + "\n").encode("utf-8", "backslashreplace"))
    if not lines:
        file.write(b"]}\n")


def _table(explainer: Explainer, query: Query, items: Items) -> tuple[list[Column], Iterator[Part]]:
    spec = explainer.predictor.checkpoint.spec
    classes = task_of(spec.task).columns(spec.classes)
    named = [("name", "subgraph_")] if query.members.named else []
    titles = distinct([*((title, "") for title in _TITLES), *((title, "class_") for title in classes), *named])
    kinds = [str] * len(_TITLES) + [float] * len(classes) + [str] * len(named)
    columns = [Column(title, kind) for title, kind in zip(titles, kinds, strict=True)]

    def parts() -> Iterator[Part]:
        for row, explanation in items:
            if explanation is not None:
                start, end = (query.text(row), explanation.label), [query.members.names[row]] * len(named)
                yield list(
                    zip(*((*start, *item, *numbers, *end) for *item, numbers in _rows(explanation)), strict=True)
                )

    return columns, parts()


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
