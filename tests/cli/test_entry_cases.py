"""From a newcomer's two files to predictions, in two commands: each kind of file, of ids and of mistakes.

Every case ends in right predictions, the same from the run, its export and the server, or in one line that says what to
do. The data has two communities, and a subgraph's label is the community it lies in, so that the cheapest model
predicts it without error.
"""

import csv
import gzip
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import networkx as nx
import pyarrow as pa
import pytest
from fastapi.testclient import TestClient
from pyarrow import parquet

from subgnn.serve.app import create_app
from subgnn.serve.limits import Limits
from subgnn.serve.runs import open_runs
from tests.cli.command import call

PLAIN = [f"a{i}" for i in range(8)] + [f"b{i}" for i in range(8)]
"""Names of nodes, the first half of each list in the community of the label ``one``, the second in that of ``two``."""


class Row(NamedTuple):
    name: str
    nodes: tuple[str, ...]
    label: str
    split: str


def edges_of(names: Sequence[str]) -> list[tuple[str, str]]:
    """A ring with chords in each half, and one edge between them."""
    half = len(names) // 2
    rings = names[:half], names[half:]
    inner = [(ring[i], ring[(i + step) % half]) for ring in rings for i in range(half) for step in (1, 3)]
    return [*inner, (rings[0][0], rings[1][0])]


def rows_of(names: Sequence[str], labels: tuple[str, str] = ("one", "two")) -> list[Row]:
    """Ten subgraphs of three nodes in each half."""
    half, rows = len(names) // 2, []
    for i, split in enumerate(("train",) * 6 + ("val",) * 2 + ("test",) * 2):
        for side in (0, 1):
            nodes = tuple(names[side * half + (i + step) % half] for step in (0, 1, 3 + i // half))
            rows.append(Row(f"set {side}{i}", nodes, labels[side], split))
    return rows


def text(rows: Sequence[Sequence[str]], delimiter: str = ",") -> str:
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter, lineterminator="\n").writerows(rows)
    return out.getvalue()


def long(rows: Sequence[Row], header: Sequence[str] = ("subgraph", "node", "label", "split")) -> list[Sequence[str]]:
    """A row for each membership; without a title for the split, there is no such column."""
    cells = [(row.name, node, row.label, row.split) for row in rows for node in row.nodes]
    return [header, *(row[: len(header)] for row in cells)]


def wide(rows: Sequence[Row], separator: str) -> list[Sequence[str]]:
    """A row for each subgraph."""
    cells = [(row.name, separator.join(row.nodes), row.label, row.split) for row in rows]
    return [("subgraph", "nodes", "label", "split"), *cells]


EDGES = text([("source", "target"), *edges_of(PLAIN)])
ROWS = rows_of(PLAIN)
MEMBERS = text(long(ROWS))


@dataclass(frozen=True)
class Case:
    """Two files by name and content (a text, bytes, or a function that writes the file), and the options they need."""

    edges: tuple[str, str | bytes | Callable[[Path], None]] = ("edges.csv", EDGES)
    members: tuple[str, str | bytes | Callable[[Path], None]] = ("members.csv", MEMBERS)
    rows: list[Row] = field(default_factory=lambda: ROWS)
    columns: tuple[str, ...] = ()  # options of both commands
    training: tuple[str, ...] = ()
    names: bool = True  # whether predictions carry the names of subgraphs
    warned: str = ""  # part of what is printed on stderr while training


def of_names(names: list[str], labels: tuple[str, str] = ("one", "two"), encoding: str = "utf-8", **options) -> Case:
    """A case of other names of nodes, in comma separated files."""
    rows = rows_of(names, labels)
    edges, members = text([("source", "target"), *edges_of(names)]), text(long(rows))
    files = ("edges.csv", edges.encode(encoding)), ("members.csv", members.encode(encoding))
    return Case(*files, rows, **options)


def write_parquet(rows: Sequence[Sequence[str]]) -> Callable[[Path], None]:
    header, *cells = rows
    columns = dict(zip(header, map(list, zip(*cells, strict=True)), strict=True))
    return lambda path: parquet.write_table(pa.table(columns), path)


def write_excel(rows: Sequence[Sequence[str]]) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        book = pytest.importorskip("openpyxl").Workbook()
        for row in rows:
            book.active.append([int(cell) if cell.isdigit() else cell for cell in row])
        book.save(path)

    return write


def write_graphml(path: Path) -> None:
    graph = nx.relabel_nodes(nx.Graph(edges_of(PLAIN)), {name: f"n{i}" for i, name in enumerate(PLAIN)})
    nx.set_node_attributes(graph, {f"n{i}": name for i, name in enumerate(PLAIN)}, "name")
    nx.write_graphml(graph, path)


OTHER_TITLES = [("Pathway", "HGNC", "Kind"), *(row[:3] for row in long(ROWS)[1:])]
GMT = "".join("\t".join((row.name, row.label, *row.nodes)) + "\n" for row in ROWS)
JSON_LINES = "".join(
    json.dumps({"subgraph": row.name, "nodes": row.nodes, "label": row.label, "split": row.split}) + "\n"
    for row in ROWS
)
NUMBERS = [str(7 + 13 * i) for i in range(16)]
WITH_UNKNOWN = [ROWS[0], *(Row(row.name, (*row.nodes, "nobody"), row.label, row.split) for row in ROWS[1:])]

CASES = {
    "CSV": Case(),
    "TSV with another extension": Case(
        ("edges.dat", EDGES.replace(",", "\t")), ("members.lst", MEMBERS.replace(",", "\t"))
    ),
    "semicolons and a decimal comma": Case(
        ("edges.csv", text([("source", "target", "weight"), *((u, v, "0,5") for u, v in edges_of(PLAIN))], ";")),
        ("members.csv", text(long(ROWS), ";")),
    ),
    "BOM and CRLF": Case(
        ("edges.csv", "\ufeff" + EDGES.replace("\n", "\r\n")), ("members.csv", "\ufeff" + MEMBERS.replace("\n", "\r\n"))
    ),
    "gzip": Case(("edges.csv.gz", gzip.compress(EDGES.encode())), ("members.gz", gzip.compress(MEMBERS.encode()))),
    "Parquet": Case(
        ("edges.parquet", write_parquet([("source", "target"), *edges_of(PLAIN)])),
        ("members.parquet", write_parquet(long(ROWS))),
    ),
    "Excel": Case(
        ("edges.xlsx", write_excel([("source", "target"), *edges_of(NUMBERS)])),
        ("members.xlsx", write_excel(long(rows_of(NUMBERS)))),
        rows_of(NUMBERS),
    ),
    "JSON lines": Case(
        ("edges.jsonl", "".join(json.dumps({"source": u, "target": v}) + "\n" for u, v in edges_of(PLAIN))),
        ("members.jsonl", JSON_LINES),
    ),
    "wide": Case(members=("members.csv", text(wide(ROWS, ";")))),
    "gene sets": Case(
        members=("sets.gmt", GMT),
        training=("--label-column", "description"),
        warned="the split was drawn: stratified 80/10/10",
    ),
    "GraphML with names in an attribute": Case(("graph.graphml", write_graphml)),
    "an edge list without a header": Case(("edges.txt", text(edges_of(PLAIN), " "))),
    "lines as in subgraphs.tsv": Case(
        members=("sets.tsv", "".join(f"{'-'.join(row.nodes)}\t{row.label}\t{row.split}\n" for row in ROWS)), names=False
    ),
    "columns of other names, and no split": Case(
        members=("members.csv", text(OTHER_TITLES)),
        columns=("--node-column", "hgnc"),
        training=("--label-column", "kind"),
        warned="the split was drawn: stratified 80/10/10, seed 0",
    ),
    "ids with spaces, quoted commas and unicode": of_names(
        [f"Gène {i}, \u03b1" for i in range(8)] + [f'the "{i}" ß' for i in range(8)]
    ),
    "ids with leading zeros": of_names([f"{i:03}" for i in range(8)] + [str(i) for i in range(8)]),
    "negative ids": of_names([str(i - 8) for i in range(16)]),
    "integers with gaps": of_names(NUMBERS),
    "names in another case": Case(
        members=("members.csv", text(long(rows_of([name.upper() for name in PLAIN])))),
        warned="16 names matched by ignoring case: 'A0' is 'a0'",
    ),
    "hyphens in labels and ids": of_names([f"HLA-{name}" for name in PLAIN], ("non-coding", "long-non-coding")),
    "unknown nodes that are dropped": Case(
        members=("members.csv", text(long(WITH_UNKNOWN))),
        rows=WITH_UNKNOWN,
        columns=("--unknown", "drop"),
        warned="node 'nobody' is not in the graph (in 19 of 20 subgraphs); left out",
    ),
    "Latin-1": of_names([f"é{name}" for name in PLAIN], encoding="latin-1", columns=("--encoding", "latin-1")),
}


def write(folder: Path, file: tuple[str, str | bytes | Callable[[Path], None]]) -> Path:
    name, content = file
    if callable(content):
        content(folder / name)
    else:
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return folder / name


@pytest.mark.quick(6)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_two_files_become_right_predictions(case: Case, tmp_path: Path) -> None:
    edges, members, run = write(tmp_path, case.edges), write(tmp_path, case.members), tmp_path / "run"
    trained = call("train", edges, members, "--recipe", "bag", "--out", run, *case.columns, *case.training)
    assert trained.code == 0, trained.err
    assert case.warned in trained.err if case.warned else trained.err == ""
    for path in (edges, members):
        path.rename(path.with_name(f"moved-{path.name}"))  # the run needs neither of them
    moved = members.with_name(f"moved-{members.name}")
    predicted = call("predict", run, "--subgraphs", moved, "--out", tmp_path / "out.csv", *case.columns)
    assert predicted.code == 0, predicted.err
    answers = list(csv.DictReader(io.StringIO((tmp_path / "out.csv").read_text(encoding="utf-8"), newline="")))
    assert [answer["label"] for answer in answers] == [row.label for row in case.rows]
    if case.names:
        assert [answer["name"] for answer in answers] == [row.name for row in case.rows]
    for ask in (ask_export, ask_server):
        assert ask(run, moved, case.columns) == (tmp_path / "out.csv").read_bytes()


def ask_export(run: Path, members: Path, columns: Sequence[str]) -> bytes:
    """The predictions of the run as one file."""
    file, out = run.with_name("exported"), run.with_name("from_export.csv")
    assert call("export", run, "--with-graph", "--out", file).code == 0
    assert call("predict", file, "--subgraphs", members, "--out", out, *columns).code == 0
    return out.read_bytes()


def ask_server(run: Path, members: Path, columns: Sequence[str]) -> bytes:
    """The predictions that a server of the run gives for the file."""
    options = {name[2:].replace("-", "_"): value for name, value in zip(columns[::2], columns[1::2], strict=True)}
    served = create_app(open_runs([str(run)], limits=Limits()))
    with TestClient(served, base_url="http://127.0.0.1") as client:
        params = {"name": members.name, "format": "csv", **options}
        answer = client.post("/api/runs/run/table", params=params, content=members.read_bytes())
    assert answer.status_code == 200, answer.text
    return answer.content


REFUSED = {
    "unknown nodes": (
        Case(members=("members.csv", text(long(WITH_UNKNOWN)))),
        "members.csv: row 7: node 'nobody' is not in the graph (in 19 of 20 subgraphs); correct it, or pass "
        "--unknown drop to leave it out",
    ),
    "nothing in common": (
        Case(members=("members.csv", text(long(rows_of(NUMBERS)))), columns=("--unknown", "drop")),
        "members.csv: no subgraph has a node in the graph; are nodes named as in the edges?",
    ),
    "three subgraphs": (
        Case(
            members=("members.csv", text([row[:3] for row in long([ROWS[0], ROWS[1], ROWS[3]])])),
            columns=("--recipe", "auto"),
        ),
        "train: only 2 distinct labelled subgraphs outside the test split; at least 3 are needed",
    ),
    "edges in place of subgraphs": (Case(members=("members.csv", EDGES)), ""),
}


@pytest.mark.parametrize(("case", "message"), REFUSED.values(), ids=REFUSED)
def test_mistakes_end_in_one_line(case: Case, message: str, tmp_path: Path) -> None:
    edges, members = write(tmp_path, case.edges), write(tmp_path, case.members)
    options = ("--recipe", "bag", "--out", tmp_path / "run", *case.columns)
    refused = call("train", edges, members, *options)
    assert refused.code == 2
    *warned, line = refused.err.splitlines()
    assert all(each.startswith("warning: ") for each in warned)
    assert line.removeprefix(f"{tmp_path}/").startswith(message)
    assert not (tmp_path / "run").exists()
