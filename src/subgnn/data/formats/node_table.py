"""``nodes.tsv``: id, name, any further columns; a header line is recognised by its first field, which is no id."""

from __future__ import annotations

from pathlib import Path

from subgnn.data.formats.text import read_lines
from subgnn.data.graph import plausible_nodes
from subgnn.data.problems import Problems
from subgnn.data.strings import NodeNames, Strings, is_id
from subgnn.errors import excerpt


def read_node_table(path: Path, problems: Problems, *, id_base: int = 0) -> NodeNames | None:
    """Read node names. The shown name is the column headed ``name`` where there is one, else the second."""
    header: list[str] | None = None
    rows: dict[int, list[str]] = {}
    width = 0
    for number, line in read_lines(path):
        fields = line.split("\t")
        if not is_id(fields[0]):
            if rows or header is not None:
                problems.error(
                    f"{path}:{number}",
                    f"{excerpt(fields[0])} is not an integer id",
                    "accepted: id, name, further columns",
                )
                continue
            header = fields
            continue
        node = int(fields[0]) - id_base
        if node < 0 or node in rows:
            problems.error(
                f"{path}:{number}",
                f"node {fields[0]} again" if node in rows else f"node {fields[0]}",
                "each id has one line",
            )
            continue
        if len(fields) < 2:
            problems.error(
                f"{path}:{number}", "a line with one column", "accepted: id, name, further columns, separated by tabs"
            )
            continue
        rows[node] = fields[1:]
        width = max(width, len(fields) - 1)
    if problems.num_errors:
        return None
    if not rows:
        problems.error(str(path), "no nodes", "accepted: id, name, further columns; or leave the file out")
        return None
    count = max(rows) + 1
    if count > plausible_nodes(len(rows)):
        problems.error(
            str(path), f"node {max(rows)} in a table of {len(rows)} lines", "ids run from 0 without large gaps"
        )
        return None
    titles = header[1 : width + 1] if header else []
    titles += [f"column{i + 2}" if i else "name" for i in range(len(titles), width)]
    if len(set(titles)) < len(titles):
        problems.error(f"{path}:1", "two columns of one name", "name each column differently")
        return None
    empty: list[str] = []
    table = [rows.get(node, empty) for node in range(count)]
    columns = {title: Strings.of(row[i] if i < len(row) else "" for row in table) for i, title in enumerate(titles)}
    return NodeNames(columns, primary="name" if "name" in columns else titles[0])


def write_node_table(path: Path, names: NodeNames, id_base: int = 0) -> None:
    """Write node names, with a header line."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write("\t".join(("id", *names.columns)) + "\n")
        for node, row in enumerate(zip(*names.columns.values(), strict=True), id_base):
            file.write("\t".join((str(node), *row)) + "\n")
