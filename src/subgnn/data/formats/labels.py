"""Labels and splits of subgraphs in tables: one for each subgraph, several labels in rows, or a table of their own."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.data.formats.format import ReadOptions, missing
from subgnn.data.formats.tables import Table, read_table
from subgnn.errors import DataError, excerpt

_SAMPLE = 1000


def read_label_table(subgraphs: Sequence[str], options: ReadOptions) -> tuple[list[Any], list[str] | None]:
    """Labels, and splits if it has any, of subgraphs, from a table of their names; those without a row have ``""``."""
    table, known, columns = read_table(options.label_table, encoding=options.encoding), set(subgraphs), options.columns
    found = {role: title for role in ("label", "split") if (title := columns.find(table, role)) is not None}
    named = columns["subgraph"] if columns.get("subgraph") in table.titles else None
    if named is None:
        titles = [title for title in table.titles if title not in found.values()]
        best = table.best_column(titles, lambda cells: sum(cell in known for cell in cells), rows=_SAMPLE, least=1)
        named = columns.find(table, "subgraph", list(found.values())) if best is None else best
    if named is None:
        raise missing(table.where, table.titles, ["subgraph"], list(found.values()))
    if table.header is not None and named in known and not columns.explicit("subgraph", "label"):  # no header
        at = table.titles.index(named)
        table = table.without_header()
        named, found = table.titles[at], {}
    if "label" not in found:
        rest = [title for title in table.titles if title not in (named, *found.values())]
        if len(rest) != 1:
            raise missing(table.where, table.titles, ["label"], [named])
        found["label"] = rest[0]
    found = {"subgraph": named, **found}
    table = table.complete_rows({"subgraph": named}, options.refuse)
    names = table.cells(named, "subgraph").to_pylist()
    places = {name: i for i, name in enumerate(subgraphs)}
    folded = {name.casefold(): i for name, i in places.items()}
    owners = np.array([places.get(name, folded.get(name.casefold(), -1)) for name in names], np.int64)
    if not (owners >= 0).any():
        example = excerpt(names[0]) if names else "it has no rows"
        what = f"none of its {len(set(names)):,} names is one of the subgraphs ({example})"
        hint = f"those are called as {excerpt(subgraphs[0])}; --subgraph-column names the column"
        raise DataError(what, where=table.where, hint=hint)
    others = sorted({name for name, owner in zip(names, owners.tolist(), strict=True) if owner < 0})
    rows = np.flatnonzero(owners >= 0)
    table, names = table.take(rows), [names[row] for row in rows]
    present, codes = np.unique(owners[rows], return_inverse=True)
    made: dict[str, list[Any]] = {}
    for role in ("label", "split"):
        if role in found:
            column = role_values(table, found[role], role)
            values = one_each(codes, column, role=role, names=names, table=table, options=options)
            made[role] = [""] * len(subgraphs)
            for place, value in zip(present.tolist(), values, strict=True):
                made[role][place] = value
    without = f"; {len(others):,} names are no subgraph ({excerpt(others[0])})" if others else ""
    about = ", ".join(f"{role} from '{title}'" for role, title in found.items())
    options.on_note(f"{table.where}: {about}; {len(present):,} of {len(subgraphs):,} subgraphs have a row{without}")
    return made["label"], made.get("split")


def one_each(
    owners: NDArray[np.int64], column: list[Any], *, role: str, names: Sequence[str], table: Table, options: ReadOptions
) -> list[Any]:
    """The label or split of each subgraph (``owners``), which its rows agree on; or all labels, if several may be."""
    begins = np.unique(owners, return_index=True)[1]
    kept = [column[begin] for begin in begins]
    several = role == "label" and options.labels is not None and options.labels.stated_task == "multi-label"
    more: dict[int, list[Any]] = {}
    refused: set[int] = set()
    for row, (owner, value) in enumerate(zip(owners.tolist(), column, strict=True)):
        own, begin = kept[owner], int(begins[owner])
        if value == own or owner in refused:
            continue
        lacks, lacked = options.no_label(value), options.no_label(own)
        if lacks and lacked:
            continue
        if several:
            more.setdefault(owner, [own]).append(value)
            continue
        refused.add(owner)
        if lacks or lacked:
            lacking, other = (row, begin) if lacks else (begin, row)
            has = f"subgraph {excerpt(names[row])} has one in row {table.number(other)}"
            what, hint = f"the {role} is missing, but {has}", "fill or drop empty cells"
            options.refuse(DataError(what, where=table.place(lacking), hint=hint))
            continue
        hint = "give all its rows the same one" + "; or pass --task multilabel to keep both" * (role == "label")
        what = f"subgraph {excerpt(names[row])} has two {role}s ({excerpt(str(own))} and {excerpt(str(value))})"
        options.refuse(DataError(what, where=table.place(row), hint=hint))
    if not more:
        return kept
    separator = None if options.labels is None else options.labels.separator
    joined = []
    for owner, own in enumerate(kept):
        texts = [text for value in more.get(owner, [own]) for text in ([value] if isinstance(value, str) else value)]
        parts = [part.strip() for text in texts for part in (text.split(separator) if separator else [text])]
        joined.append(tuple(dict.fromkeys(part for part in parts if not options.no_label(part))))
    return joined


def role_values(table: Table, title: str, role: str) -> list[Any]:
    """Labels or splits; a list of labels is a tuple."""
    if role == "label" and table.is_list(title):
        return [tuple(labels) for labels in table.lists(title, role)]
    return list(table.cells(title, role).to_pylist())
