import gzip
import json

import numpy as np
import openpyxl
import pyarrow as pa
import pytest
from pyarrow import parquet

from subgnn import DataError, DataWarning, read_dataset
from subgnn.data.formats import text as text_module
from subgnn.data.formats.format import ReadOptions
from subgnn.data.formats.graph_tables import read_edges as read_edge_table
from subgnn.data.read_tables import read_subgraphs as read_membership_table
from tests.cli.command import call
from tests.data.samples import tree, write_files, write_sample

EDGES = "from,to,w,note\nbee,ant,2,x\ncow,bee,0.5,y\nant,dog,-1,z\n"
MEMBERS = "subgraph,node,label,split\ns,ant,x,train\ns,bee,x,train\nt,cow,y,val\nu,dog,x,test\nu,ant,x,test\n"


def table(folder, name, content):
    return write_files(folder, {name: content}) / name


def edges_of(graph):
    tails, heads, weights = graph.edges()
    weights = [None] * len(tails) if weights is None else weights.tolist()
    names = list(graph.names.primary)
    return {(names[u], names[v]): w for u, v, w in zip(tails, heads, weights, strict=True)}


def parquet_file(folder, columns):
    path = folder / "edges.parquet"
    parquet.write_table(pa.table(columns), path)
    return path


@pytest.mark.parametrize(
    ("rows", "names"),
    [
        ("10,9\n9,100\n2,10\n", ["2", "9", "10", "100"]),
        ("10,9\n9,x\n", ["10", "9", "x"]),
        ("007,7\n7,10\n", ["007", "7", "10"]),
        (f"{'9' * 30},1\n", ["1", "9" * 30]),
        ("NULL,nan\nNA,true\n1e3,2020-01-01\n", ["1e3", "2020-01-01", "NA", "NULL", "nan", "true"]),
    ],
)
def test_ids_are_text_in_the_order_of_numbers_where_all_are_numbers(tmp_path, rows, names):
    assert list(read_edge_table(table(tmp_path, "e.csv", f"u,v\n{rows}")).names.primary) == names


BAD_EDGES = {
    "one column": ("u\na\n", (), ": one column; an edge needs two: its source and its target"),
    "no rows": ("u,v\n", (), ": no edges; a row for each edge is needed"),
    "empty": ("", (), ": the file is empty; accepted: CSV, TSV, Parquet, Excel (.xlsx) or JSON lines"),
    "unknown source": (EDGES, ("--source", "form"), ": no column 'form'; accepted: from, to, w, note; did you mean"),
    "word for weight": (EDGES, ("--weight", "note"), ": column 'note' is not all numbers (3 rows; row 1: '"),
    "no weight": (EDGES.replace("0.5", ""), ("--weight", "w"), ": column 'w' is not all numbers (row 2: ''); a weight"),
    "nan weight": (EDGES.replace("0.5", "nan"), ("--weight", "w"), ": "),
    "row too short": ("u,v\na,b\nc\n", (), ":3: this row has 1 column, but the first has 2"),
    "missing cell": ("u,v\na,b\n,c\n", (), ": row 2: no source; fill or drop empty cells"),
    "column twice": ("u,u,v\na,b,c\n", ("--source", "u"), ": "),
    "not UTF-8": (b"u,v\n\xff,b\n", (), ": "),
}


@pytest.mark.parametrize(("content", "options", "message"), BAD_EDGES.values(), ids=BAD_EDGES)
def test_bad_edges(tmp_path, content, options, message):
    path = table(tmp_path, "e.csv", content)
    called = call("data", "convert", path, *options, "--out", tmp_path / "out")
    assert (called.code, called.out) == (2, "")
    assert called.error.startswith(f"{path}{message}")
    assert [p.name for p in tmp_path.iterdir()] == ["e.csv"]


NO_TEXT = pa.array([b"\xff", b"a"], pa.binary()).view(pa.string())

BAD_PARQUET = {
    "not UTF-8": ({"u": NO_TEXT, "v": ["b", "c"]}, ""),
    "real ids": ({"u": [1.5], "v": [2.0]}, "the source column has type double; text or integers are accepted"),
    "list of weights": ({"u": ["a"], "v": ["b"], "w": [[1.0]]}, "column 'w' is not all numbers"),
    "missing weight": ({"u": ["a", "b"], "v": ["b", "c"], "w": [1.0, None]}, ""),
    "missing id": ({"u": ["a", None], "v": ["b", "c"], "w": [1, 2]}, "row 2: no source; fill or drop empty cells"),
}


@pytest.mark.parametrize(("columns", "message"), BAD_PARQUET.values(), ids=BAD_PARQUET)
def test_bad_parquet(tmp_path, columns, message):
    path = parquet_file(tmp_path, columns)
    called = call("data", "convert", path, *["--weight", "w"] * ("w" in columns), "--out", tmp_path / "out")
    assert called.code == 2
    assert called.error.startswith(f"{path}: {message}")


BAD_MEMBERS = {
    "no such column": (MEMBERS.replace("label", "lable"), ": which column holds the labels? its columns are lable;"),
    "no such node": (MEMBERS.replace("t,cow", "t,fox"), ": row 3: node 'fox' is not in the graph (in 1 of 3"),
    "unknown split": (MEMBERS.replace("val", "vla"), ": row 3: unknown split 'vla'; accepted: train, val, test"),
    "no labels": (MEMBERS.replace(",x,", ",NA,").replace(",y,", ",,"), ": the subgraphs have no labels; a column"),
    "no subgraph": (MEMBERS.replace("t,cow", ",cow"), ": row 3: no subgraph"),
    "two splits": (MEMBERS.replace("ant,x,test", "ant,x,val"), ": row 5: subgraph 'u' has two splits"),
    "split without subgraph": (MEMBERS.replace("val", "test"), ": no subgraph in split 'val'"),
    "column twice": (MEMBERS.replace("split", "split,split", 1).replace(",t", ",1,t").replace(",val", ",1,val"), ": "),
    "missing file": (None, ": no such file; check the path"),
}


@pytest.mark.parametrize(("content", "message"), BAD_MEMBERS.values(), ids=BAD_MEMBERS)
def test_bad_memberships(tmp_path, content, message):
    edges = table(tmp_path, "e.csv", EDGES)
    members = table(tmp_path, "m.csv", content)
    called = call("data", "convert", edges, "--subgraphs", members, "--out", tmp_path / "out")
    assert (called.code, called.out) == (2, "")
    assert called.error.startswith(f"{members}{message}")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("label", ["", "NA", "nan", "None", "null"])
@pytest.mark.parametrize("kind", ["long", "wide", "json lines", "parquet", "lines"])
def test_subgraphs_without_a_label_are_left_out_and_counted(tmp_path, label, kind):
    rows = [("s", "ant", "x"), ("t", "bee", label), ("u", "cow", "y"), ("v", "dog", label)]
    rows += [("w", "ant", "y"), ("x", "bee", "x")]
    columns = {"subgraph": [r[0] for r in rows], "node": [r[1] for r in rows], "label": [r[2] for r in rows]}
    path = tmp_path / "m"
    if kind == "parquet":
        parquet.write_table(pa.table(columns | {"label": [text or None for text in columns["label"]]}), path)
    else:
        path.write_text(
            {
                "long": "subgraph,node,label\n" + "".join(",".join(row) + "\n" for row in [*rows, rows[1]]),
                "wide": "subgraph,node,label\n" + "".join(f"{a},{b};{b},{c}\n" for a, b, c in rows),
                "lines": "".join(f"{b}-{b}\t{c}\n" for _, b, c in rows),
                "json lines": "".join(json.dumps(dict(zip(columns, row, strict=True))) + "\n" for row in rows),
            }[kind]
        )
    graph = read_edge_table(table(tmp_path, "e.csv", EDGES))
    with pytest.warns(DataWarning) as told:
        subgraphs, _ = read_membership_table(path, graph)
    place = f"{'line' if kind == 'lines' else 'row'} 2" + (f": '{label}'" if label else "")
    what = f"{path}: without a label and left out: 2 of 6 subgraphs ({place})"
    assert what in [str(warning.message) for warning in told]
    assert (subgraphs.classes, len(subgraphs)) == (("x", "y"), 4)
    assert [row.tolist() for row in subgraphs.nodes] == [[0], [2], [0], [1]]


def test_convert_to_a_folder(tmp_path):
    edges, members = table(tmp_path, "e.csv", EDGES), table(tmp_path, "m.csv", MEMBERS)
    options = ("--subgraphs", members, "--weight", "w")
    called = call("data", "convert", edges, *options, "--out", tmp_path / "out", "--json")
    assert (called.code, called.err, called.json["num_edges"]) == (0, "", 3)
    assert call("data", "convert", edges, *options, "--out", tmp_path / "x.subgnn", "--directed").code == 0
    bundle = read_dataset(tmp_path / "x.subgnn")
    assert (bundle.graph.directed, list(bundle.subgraphs.names)) == (True, ["s", "t", "u"])
    files = tree(tmp_path / "out")
    assert files["nodes.tsv"] == b"id\tname\n0\tant\n1\tbee\n2\tcow\n3\tdog\n"
    assert files["subgraphs.tsv"] == b"0-1\tx\ttrain\n2\ty\tval\n0-3\tx\ttest\n"
    assert files["subgraph_names.tsv"] == b"s\nt\nu\n"
    assert files["edge_list.txt"] == b"0 1 2\n0 3 -1\n1 2 0.5\n"
    assert call("data", "check", tmp_path / "out").code == 0


def test_a_file_of_subgraphs_is_no_table_of_edges(tmp_path):
    path = table(tmp_path, "ppi.subgraphs.tsv", "0-1\tx\ttrain\n1\ty\tval\n2\tx\ttest\n")
    called = call("data", "convert", path, "--out", tmp_path / "out")
    assert called.code == 2
    assert "this is a file of subgraphs, not of edges" in called.err


@pytest.mark.parametrize("name", ["x.csv.gz", "x.tsv.gz"])
def test_a_table_that_unpacks_to_a_thousand_times_its_size(tmp_path, name, monkeypatch):
    monkeypatch.setattr(text_module, "_FREE", 0)
    path = table(tmp_path, name, gzip.compress(b"u,v\n" + b"a,b\n" * 10**6))
    called = call("data", "convert", path, "--out", tmp_path / "out")
    assert called.code == 2
    assert f"{path}: it unpacks to more than" in called.error


def test_a_parquet_file_of_rows_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr(text_module, "_FREE", 0)
    rows = pa.array(["a"] * 10**6).dictionary_encode()
    parquet.write_table(pa.table({"u": rows, "v": rows}), tmp_path / "x.parquet")
    with pytest.raises(DataError, match=r"x\.parquet: it unpacks to more than"):
        read_edge_table(tmp_path / "x.parquet")


NO_HEADER = {
    "spaces": "a b\nb c\na c\n",
    "tabs": "a\tb\nb\tc\na\tc\n",
    "commas": "a,b\nb,c\na,c\n",
    "comments": "# from somewhere\n# Nodes: 3\na b\nb c\na c\n",
}


@pytest.mark.parametrize("content", NO_HEADER.values(), ids=NO_HEADER)
def test_edge_lists_without_a_header(tmp_path, content):
    graph = read_edge_table(table(tmp_path, "edges", content))
    assert set(edges_of(graph)) == {("a", "b"), ("b", "c"), ("a", "c")}


RING = "".join(f"n{i},n{(i + 1) % 30}\n" for i in range(30))
UNCLEAR = {
    "an end that occurs once": "leaf a\na b\nb c\n",
    "two lines": "a b\nc d\n",
    "numbered names": "node7,node2\nnode2,node3\n",
    "a word of titles": "gene,TP53\nTP53,BAX\n",
    "a leaf and numbers": "leaf 1\n1 2\n2 3\n",
    "a weight": "leaf,a,2\na,b,1\n",
    "no weight": "leaf,a,NA\na,b,1\n",
    "two nodes apart, as others are": "leaf,twig\n" + RING + "lone,other\n",
}


@pytest.mark.parametrize("kind", ["text", "xlsx"])
@pytest.mark.parametrize("content", UNCLEAR.values(), ids=UNCLEAR)
def test_the_first_edge_is_kept_where_it_is_not_clearly_a_header(tmp_path, content, kind):
    path, notes = table(tmp_path, "edges.txt", content), []
    rows = [line.replace(",", " ").split() for line in content.splitlines()]
    if kind == "xlsx":
        book = openpyxl.Workbook()
        for row in rows:
            book.active.append(row)
        book.save(path)
    graph = read_edge_table(path, ReadOptions(on_note=notes.append))
    assert {tuple(sorted(edge)) for edge in edges_of(graph)} == {tuple(sorted(row[:2])) for row in rows}
    assert notes[0].startswith(f"{path}: no header line; edges are the first two columns")
    assert notes[0].endswith(f"; if the first line has titles, pass --source {rows[0][0]} --target {rows[0][1]}")


HEADERS = {
    "a usual pair": "source,target\na,b\n",
    "words": "Gene symbol 1,partner\na,b\n",
    "a known third": "left,right,weight\na,b,x1\n",
    "text above numbers": "left,right\n1,2\n2,3\n",
    "text above a third of numbers": "left,right,n\na,b,1\n",
    "text above numbers, some missing": "left,right,n\na,b,1\nb,c,NA\n",
    "a comment": "#left\tright\na\tb\nb\tc\n",
    "an empty title": ",right\na,b\n",
    "two texts of its own above many nodes that repeat": "customer,item\n" + RING,
}


@pytest.mark.parametrize("content", HEADERS.values(), ids=HEADERS)
def test_a_header_is_known_by_its_words_or_by_numbers_below_it(tmp_path, content):
    content = content.replace("x1", "1")
    lines = content.splitlines()[1:]
    notes = []
    graph = read_edge_table(table(tmp_path, "e.dat", content), ReadOptions(on_note=notes.append))
    assert graph.num_edges == len(lines)
    if "customer" in content:
        assert "titles, because no other has 'customer' or 'item'; if it is an edge, write titles above it" in notes[0]


def test_numbered_rows_keep_their_sign_in_the_first_line(tmp_path):
    graph = read_edge_table(table(tmp_path, "e.txt", "#1 #2\n#2 #3\n"))
    assert list(graph.names.primary) == ["#1", "#2", "#3"]


@pytest.mark.parametrize("suffix", ["", ".subgnn"])
def test_repeated_edges_with_other_weights_are_said_with_the_one_that_is_kept(tmp_path, suffix):
    """In a table, in a folder, and where the graph of a folder is built on disk."""
    edges = table(tmp_path, "e.csv", "source,target,weight\nA,B,1\nB,A,9\nB,C,2\n")
    line = "1 repeated edge has a different weight; the first is kept ('B' - 'A': 1, not 9); to join "
    line += "them, pass --repeated sum (or mean, max, last, count)"
    called = call("data", "convert", edges, "--out", tmp_path / f"table{suffix}")
    assert (called.code, called.error) == (0, f"warning: {line}")
    folder = write_sample(tmp_path / "f", {"edge_list.txt": "0 1 1\n1 0 9\n1 2 2\n2 3 1\n3 4 1\n0 4 1\n"})
    called = call("data", "convert", folder, "--out", tmp_path / f"x{suffix}")
    assert called.code == 0
    assert called.error.startswith(f"warning: {folder}/edge_list.txt: 1 repeated edge has a different weight")


def test_a_third_column_of_numbers_without_a_header_is_the_weight(tmp_path):
    notes = []
    graph = read_edge_table(table(tmp_path, "e.txt", "10 20 0.5\n20 30 2\n"), ReadOptions(on_note=notes.append))
    assert edges_of(graph) == {("10", "20"): 0.5, ("20", "30"): 2}
    assert notes == [f"{tmp_path}/e.txt: no header line; edges are the first two columns and weights the third"]


TITLES = {
    "a usual pair": ("note,GENE1,Gene2\nx,a,b\ny,b,c\n", ["source from 'GENE1', target from 'Gene2'", "ignored: note"]),
    "a comment sign": (
        "#node1\tnode2\tt\na\tb\tx\nb\tc\ty\n",
        ["source from 'node1', target from 'node2'", "ignored: t"],
    ),
    "the first two": (
        "left,right,n\na,b,1\nb,c,2\n",
        ["source from 'left', target from 'right'", "ignored: n (use --weight n)"],
    ),
    "an index": (",source,target\n0,a,b\n1,b,c\n", []),
}


@pytest.mark.parametrize(("content", "said"), TITLES.values(), ids=TITLES)
def test_columns_of_edges_are_guessed_and_said(tmp_path, content, said):
    notes = []
    graph = read_edge_table(table(tmp_path, "e.csv", content), ReadOptions(on_note=notes.append))
    assert set(edges_of(graph)) == {("a", "b"), ("b", "c")}
    assert notes == [f"{tmp_path}/e.csv: {note}" for note in said]


def test_a_line_end_in_quotes(tmp_path):
    graph = read_edge_table(table(tmp_path, "e.csv", 'source,target,note\na,b,"one\ntwo"\nb,c,x\n'))
    assert set(edges_of(graph)) == {("a", "b"), ("b", "c")}


@pytest.mark.parametrize(("kind", "largest"), [(np.float16, 2**11), (np.float32, 2**24), (np.float64, 2**53)])
def test_ids_that_a_column_of_real_numbers_cannot_hold(kind, largest):
    """2**24 + 1 is 2**24 in 32 bits: another node."""
    for column in ("source", "target"):
        frame = {"source": np.array([3, 1], kind), "target": np.array([1, 2], kind)}
        frame[column] = np.array([0, largest], kind)
        with pytest.raises(DataError, match=f"column has type .*as real numbers, whole ones below {largest}"):
            read_edge_table(pa.table(frame))
        frame[column] = np.array([0, largest - 1], kind)
        assert str(largest - 1) in list(read_edge_table(pa.table(frame)).names)
