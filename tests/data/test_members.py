"""Subgraphs of users' files: long and wide tables, gene sets, lines of nodes."""

import json

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from subgnn import DataError, DataWarning, Graph, NodeNames
from subgnn.data.formats.format import Columns, ReadOptions
from subgnn.data.formats.members import find_separator, read_members
from subgnn.data.read_tables import match_nodes

NAMES = ["TP53", "BAX", "HLA-A", "B2M", "x y", "a,b", "-5", "007", "7", "Ünal", "CASP9", "12"]


def graph_of(names):
    return Graph.from_edges(range(len(names) - 1), range(1, len(names)), names=NodeNames.of(names))


GRAPH = graph_of(NAMES)


def read(path, content=None, graph=GRAPH, **options):
    """The subgraphs as (name, nodes), the file's labels and splits, and the notes."""
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    notes = []
    found = read_members(path, graph, ReadOptions(on_note=notes.append, **options))
    return {found.names[i]: found.nodes_of(i) for i in range(len(found))}, found, notes


LONG = "subgraph,node,label,split\ns,TP53,x,train\nt,HLA-A,y-z,val\ns,BAX,x,train\n"
SETS = {"s": ["TP53", "BAX"], "t": ["HLA-A"]}
FORMS = {
    "long": ("m.csv", LONG),
    "utf-16": ("m.txt", LONG.replace(",", "\t").encode("utf-16")),
    "wide with semicolons": ("m.csv", "subgraph,nodes,label,split\ns,TP53;BAX,x,train\nt,HLA-A,y-z,val\n"),
    "wide with spaces": ("m.csv", "subgraph,nodes,label,split\ns,TP53 BAX,x,train\nt,HLA-A,y-z,val\n"),
    "wide with commas": ("m.csv", 'subgraph,nodes,label,split\ns,"TP53, BAX",x,train\nt,HLA-A,y-z,val\n'),
    "wide with bars": ("m.tsv", "subgraph\tnodes\tlabel\tsplit\ns\tTP53|BAX\tx\ttrain\nt\tHLA-A\ty-z\tval\n"),
    "wide with hyphens": ("m.csv", "subgraph,nodes,label,split\ns,TP53-BAX,x,train\nt,HLA-A,y-z,val\n"),
    "json lines": (
        "m.jsonl",
        "".join(
            json.dumps(dict(zip(("subgraph", "nodes", "label", "split"), row, strict=True))) + "\n"
            for row in (("s", ["TP53", "BAX"], "x", "train"), ("t", ["HLA-A"], "y-z", "val"))
        ),
    ),
}


@pytest.mark.parametrize(("name", "content"), FORMS.values(), ids=FORMS)
def test_forms_of_tables(tmp_path, name, content):
    sets, found, _ = read(tmp_path / name, content)
    assert sets == SETS
    assert (found.labels, found.splits) == (["x", "y-z"], ["train", "val"])
    assert found.named


@pytest.mark.parametrize("name", ["m.gmt", "sets"])
def test_gene_sets(tmp_path, name):
    text = "s\thttp://example.org\tTP53\tBAX\nt\tna\tHLA-A\nu\tna\tB2M\tBAX\tCASP9\n"
    sets, found, _ = read(tmp_path / name, text)
    assert sets == SETS | {"u": ["B2M", "BAX", "CASP9"]}
    assert found.labels is None
    if name == "m.gmt":
        assert read(tmp_path / name, columns=Columns(label="description"))[1].labels[1] == "na"


@pytest.mark.parametrize("rows", ["s1\tTP53\ns1\tBAX\n", "s1\tTP53;BAX\ns2\tBAX;7\n"], ids=["long", "wide"])
def test_a_table_without_a_header_does_not_lose_its_first_row(tmp_path, rows):
    path = tmp_path / "m.tsv"
    path.write_text(rows)
    with pytest.raises(DataError, match=r"m.tsv: no header line: the first line has 'TP53.*' above other nodes; write"):
        read_members(path, GRAPH, labelled=False)


@pytest.mark.parametrize("rows", ["s1,TP53,x\ns1,BAX,x\n", "TP53,s1\nBAX,s1\n", "TP53;BAX,x\nHLA-A,y\n"])
def test_a_table_without_a_header_is_not_lines_of_nodes(tmp_path, rows):
    with pytest.raises(DataError, match=r"m.csv: no header line: the first line has 'TP53"):
        read(tmp_path / "m.csv", rows)


@pytest.mark.parametrize("text", ["a,b\nTP53,BAX\nBAX,B2M\n", "gene1,gene2\nx,y\ny,z\n"])
def test_a_table_of_edges_in_place_of_subgraphs(tmp_path, text):
    with pytest.raises(DataError, match=r"; are the two tables swapped\? the edges come first; if not, name"):
        read(tmp_path / "m.csv", text)


LINES = {
    "joined": "TP53-BAX\nHLA-A\n",
    "with labels": "TP53-BAX\tx\ttrain\nHLA-A\ty\tval\n",
    "spaces": "TP53 BAX\nHLA-A\n",
    "commas": "TP53,BAX\nHLA-A\n",
    "rows": "#0-#1\n#2\n",
}


@pytest.mark.parametrize("text", LINES.values(), ids=LINES)
def test_lines_of_nodes(tmp_path, text):
    _, found, _ = read(tmp_path / "m.tsv", text)
    assert [row.tolist() for row in match_nodes(found, GRAPH).nodes] == [[0, 1], [2]]
    assert list(found.names) == [line.split("\t")[0] for line in text.splitlines()]
    assert not found.named


def test_columns_are_guessed_and_said(tmp_path):
    text = "Pathway,Gene_Symbol,CATEGORY\np1,TP53,x\np1,BAX,x\np2,B2M,y\n"
    sets, found, notes = read(tmp_path / "m.csv", text)
    assert sets == {"p1": ["TP53", "BAX"], "p2": ["B2M"]}
    assert found.labels == ["x", "y"]
    assert notes == [f"{tmp_path}/m.csv: subgraph from 'Pathway', node from 'Gene_Symbol', label from 'CATEGORY'"]


def test_columns_are_named_in_any_case(tmp_path):
    text = "a,b,c,d\nTP53,s,x,train\n"
    columns = Columns(subgraph="B", node="A", label="C", split="D")
    sets, found, _ = read(tmp_path / "m.csv", text, columns=columns)
    assert (sets, found.labels, found.splits) == ({"s": ["TP53"]}, ["x"], ["train"])


def test_an_error_names_the_options_that_take_the_columns(tmp_path):
    with pytest.raises(DataError) as error:
        read(tmp_path / "m.csv", "a set,who,kind\np1,someone,x\n")
    what = "which column holds the subgraphs and nodes? its columns are a set, who, kind"
    assert str(error.value).endswith(f"{what}; name them: subgraph_column=\"a set\" node_column='who'")


def test_a_column_of_nodes_is_known_by_its_content(tmp_path):
    text = "set,kind,who\np1,x,TP53\np1,x,BAX\np2,y,nobody\n"
    sets, _, notes = read(tmp_path / "m.csv", text)
    assert sets == {"p1": ["TP53", "BAX"], "p2": ["nobody"]}
    said = ["subgraph from 'set', node from 'who'", "ignored: kind (predictions give it back)"]
    assert notes == [f"{tmp_path}/m.csv: {line}" for line in said]


def test_latin_1_is_offered(tmp_path):
    content = "subgraph,node\nGène,Ünal\nGène,BAX\n".encode("latin-1")
    with pytest.raises(DataError, match="this is not text in UTF-8; pass encoding='latin-1'"):
        read(tmp_path / "m.csv", content)
    assert read(tmp_path / "m.csv", content, encoding="latin-1")[0] == {"Gène": ["Ünal", "BAX"]}
    with pytest.raises(DataError, match="encoding: 'latin-x' is not an encoding of text files"):
        read(tmp_path / "m.csv", content, encoding="latin-x")


BAD = {
    "two labels": ("subgraph,node,label\ns,TP53,x\ns,BAX,y\n", ": row 2: subgraph 's' has two labels"),
    "subgraph again": ("subgraph,nodes\ns,TP53;BAX\nt,B2M;BAX\ns,7;12\n", ": row 3: the subgraph 's' again, which is"),
    "an empty label": ("subgraph,node,label\ns,TP53,x\ns,BAX,\n", ": row 2: the label is missing, but subgraph 's'"),
    "a label below NA": ("subgraph,node,label\ns,TP53,NA\ns,BAX,x\n", ": row 1: the label is missing, but subgraph"),
    "an empty split": ("subgraph,node,split\ns,TP53,train\ns,BAX,\n", ": row 2: the split is missing, but subgraph"),
    "no node": ("subgraph,node\ns,TP53\ns,\n", ": row 2: no node; fill or drop empty cells"),
    "no rows": ("subgraph,node\n", ": no subgraphs; a row for each node"),
    "no such column": ("subgraph,node\ns,TP53\n", ": no column 'x'; accepted: subgraph, node"),
    "a short row": ("subgraph,node,label\ns,TP53,x\ns,BAX\n", ":3: this row has 2 columns, but the first has 3"),
    "not JSON": ('{"subgraph": "s"\n', ":1: this is not valid JSON"),
    "an object in an object": ('{"subgraph": {"s": 1}}\n', ":1: an object is nested in an object"),
}


@pytest.mark.parametrize(("text", "message"), BAD.values(), ids=BAD)
def test_bad_tables(tmp_path, text, message):
    options = {"columns": Columns(label="x")} if "'x'" in message else {}
    with pytest.raises(DataError) as error:
        read(tmp_path / "m.csv", text, **options)
    assert str(error.value).startswith(f"{tmp_path}/m.csv{message}")


def test_unknown_nodes_are_listed_once_with_counts(tmp_path):
    text = "subgraph,node\ns,TP53\ns,TP35\nt,TP35\nt,BAX\nu,CASP8\nu,B2M\n"
    found = read(tmp_path / "m.csv", text)[1]
    with pytest.raises(DataError) as error:
        match_nodes(found, GRAPH)
    assert str(error.value) == (
        f"{tmp_path}/m.csv: row 2: 2 nodes are not in the graph, in 3 of 3 subgraphs: 'TP35' (nearest: 'TP53'), "
        "'CASP8' (nearest: 'CASP9'); correct them, or pass unknown='drop' to leave them out"
    )
    dropped = match_nodes(found, GRAPH, ReadOptions(unknown="drop"))
    assert [row.tolist() for row in dropped.nodes] == [[0], [1], [3]]
    assert (dropped.unknown, dropped.dropped.tolist()) == ({"TP35": 2, "CASP8": 1}, [1, 1, 1])
    with pytest.warns(DataWarning, match=r"2 nodes are not in the graph, .*; left out"):
        dropped.warn()


def test_a_case_that_two_nodes_share_is_refused(tmp_path):
    found = read(tmp_path / "m.csv", "subgraph,node\ns,ABC\n", graph_of(["abc", "Abc", "d"]))[1]
    with pytest.raises(DataError, match="row 1: 'ABC' names several nodes"):
        match_nodes(found, graph_of(["abc", "Abc", "d"]), ReadOptions(unknown="drop"))


def test_an_exact_reading_of_a_list_comes_before_one_by_case(tmp_path):
    graph = graph_of(["HLA", "a", "HLA-A"])
    found = read(tmp_path / "m.tsv", "HLA-A\nHLA-a\n", graph)[1]
    assert [found.nodes_of(i) for i in range(2)] == [["HLA-A"], ["HLA", "a"]]


def test_names_that_a_spreadsheet_has_turned_into_dates(tmp_path):
    found = read(tmp_path / "m.csv", "subgraph,node\ns,1-Mar\ns,TP53\n")[1]
    with pytest.raises(DataError, match="a spreadsheet has turned names into dates"):
        match_nodes(found, GRAPH)


def test_row_numbers_of_a_graph_without_names(tmp_path):
    graph = Graph.from_edges([0, 1], [1, 2])
    found = read(tmp_path / "m.csv", "subgraph,node\ns,0\ns,2\nt,3\n", graph)[1]
    with pytest.raises(DataError, match=r"node '3' is not in the graph .*; ids run 0..2; was the file .* id_base=1"):
        match_nodes(found, graph)


@pytest.mark.parametrize(("text", "hint"), [("2", "if 2 is a row number, write #2"), ("35142", "leave it out")])
def test_a_row_number_is_offered_where_it_can_be_one(tmp_path, text, hint):
    graph = graph_of(["a", "b", "c"])
    found = read(tmp_path / "m.csv", f"subgraph,node\ns,a\nt,b\nt,{text}\n", graph)[1]
    with pytest.raises(DataError, match=rf"m.csv: row 3: node '{text}' is not in the graph \(in 1 of 2 .*{hint}$"):
        match_nodes(found, graph)


NODE = st.text("aB-, |#7é", min_size=1, max_size=6).map(str.strip).filter(bool)


@settings(max_examples=50)
@given(st.lists(st.lists(NODE, min_size=2, max_size=5, unique=True), min_size=1, max_size=5))
def test_the_separator_of_any_names_is_found(lists):
    """Names may contain any separator but the one that joins them."""
    names = sorted({name for row in lists for name in row})
    found = find_separator([";".join(row) for row in lists], graph_of(names) if len(names) > 1 else GRAPH)
    assert found == ";"


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from([*NAMES, "nobody", "TP35"])), min_size=1, max_size=30))
def test_matching_equals_its_definition(rows):
    table = pa.table({"subgraph": [f"s{key}" for key, _ in rows], "node": [name for _, name in rows]})
    found = read_members(table, GRAPH, ReadOptions(columns=Columns(subgraph="subgraph", node="node")))
    matched = match_nodes(found, GRAPH, ReadOptions(unknown="drop"))
    keys = list(dict.fromkeys(key for key, _ in rows))
    for i, key in enumerate(keys):
        texts = {name for other, name in rows if other == key}
        assert matched.nodes[i].tolist() == sorted(NAMES.index(name) for name in texts if name in NAMES)
        assert matched.dropped[i] == sum(name not in NAMES for name in texts)
    unknown = {name: len({key for key, other in rows if other == name}) for _, name in rows if name not in NAMES}
    assert matched.unknown == unknown
