"""Tables as users have them: labels and aliases apart, repeated payments, unused columns, many problems at once."""

import warnings
from datetime import datetime

import networkx as nx
import openpyxl
import pyarrow as pa
import pytest

from subgnn import DataError, DataWarning, Graph, read_tables
from subgnn.data.formats.format import LabelFormat, ReadOptions
from subgnn.data.formats.graph_tables import read_aliases, read_attributes, read_edges
from subgnn.data.formats.members import read_members
from subgnn.data.read_tables import read_graph, read_subgraphs
from tests.cli.command import call
from tests.data.samples import write_files

EDGES = "source,target\nTP53,BAX\nBAX,BCL2\nBCL2,MDM2\nMDM2,TP53\n"
GMT = "s\tna\tTP53\tBAX\nt\tna\tBCL2\nu\tna\tMDM2\tBAX\nv\tna\tBAX\nw\tna\tTP53\tMDM2\nx\tna\tBCL2\tBAX\n"
LONG = "subgraph,node\n" + "".join(f"{r.split()[0]},{n}\n" for r in GMT.splitlines() for n in r.split()[2:])
WIDE = "name,nodes\n" + "".join(f"{r.split()[0]},{';'.join(r.split()[2:])};\n" for r in GMT.splitlines())
LABELS = "name,category\ns,a\nt,b\nu,a\nv,b\nx,NA\nother,b\n"


def tables(folder, **files):
    """Paths of files by name, with ``_`` for the dot."""
    named = {name.replace("_", "."): content for name, content in files.items()}
    return [write_files(folder, {name: content}) / name for name, content in named.items()]


@pytest.fixture
def graph(tmp_path):
    return read_edges(tables(tmp_path, e_csv=EDGES)[0])


def read_quietly(*given, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return read_subgraphs(*given, ReadOptions(**options))[0]


@pytest.mark.parametrize("members", [GMT, LONG, WIDE], ids=["gmt", "long", "wide"])
@pytest.mark.parametrize("labels", [LABELS, LABELS.split("\n", 1)[1], "category,name\na,S\nb,T\na,U\nb,V\n"])
def test_labels_are_joined_by_name(tmp_path, graph, members, labels):
    paths = tables(tmp_path, m_txt=members, l_csv=labels)
    found = read_quietly(paths[0], graph, label_table=paths[1])
    assert (found.classes, list(found.names)) == (("a", "b"), ["s", "t", "u", "v"])
    assert found.targets.tolist() == [0, 1, 0, 1]


def test_subgraphs_without_a_label_are_kept_to_be_predicted(tmp_path):
    edges, members, labels = tables(tmp_path, e_csv=EDGES, m_gmt=GMT, l_csv=LABELS)
    with pytest.warns(DataWarning) as told:
        data = read_tables(edges, members, labels=labels, unlabelled="predict")
    assert any("without a label and kept to be predicted: 2 of 6 subgraphs" in str(one.message) for one in told)
    assert (list(data.subgraphs.names), list(data.unlabelled.names)) == (["s", "t", "u", "v"], ["w", "x"])
    assert data.unlabelled.columns == {"description": ["na", "na"]}
    words = [edges, members, "--labels", labels, "--unlabelled", "predict", "--recipe", "bag", "--json"]
    trained = call("train", *words, "--out", tmp_path / "run")
    rows = (tmp_path / "run" / "unlabelled.tsv").read_text().splitlines()
    assert trained.json["unlabelled"] == str(tmp_path / "run" / "unlabelled.tsv")
    header, *cells = [row.split("\t") for row in rows]
    places = [header.index(title) for title in ("name", "description", "members")]
    assert [[row[i] for i in places] for row in cells] == [["w", "na", "MDM2-TP53"], ["x", "na", "BAX-BCL2"]]


def test_a_row_for_each_label(tmp_path, graph):
    labels = "name,label\ns,a-1\ns,b\nt,b\nu,a-1\nv,b\nw,a-1\nx,b\nx,c\n"
    paths = tables(tmp_path, m_gmt=GMT, l_csv=labels)
    with pytest.raises(DataError, match=r"'s' has two labels .'a-1' and 'b'.*; or pass task='multilabel' to keep both"):
        read_quietly(paths[0], graph, label_table=paths[1])
    several = {"labels": LabelFormat("multi-label")}
    found = read_quietly(paths[0], graph, label_table=paths[1], **several)
    assert (found.classes, found.targets[0].tolist()) == (("a-1", "b", "c"), [1, 1, 0])
    tidy = "subgraph,nodes,label\ns,TP53;BAX,a\ns,BAX;TP53,b\nt,BCL2;,b\nu,BAX;MDM2,a\nv,TP53;MDM2,b\n"
    (path,) = tables(tmp_path, tidy_csv=tidy)
    assert read_quietly(path, graph, **several).targets.tolist() == [[1, 1], [0, 1], [1, 0], [0, 1]]


def test_labels_of_other_sets_are_refused(tmp_path, graph):
    paths = tables(tmp_path, m_gmt=GMT, l_csv="name,label\nq,a\nr,b\n")
    with pytest.raises(DataError, match=r"none of its 2 names is one of the subgraphs .'q'.; those are called as 's'"):
        read_quietly(paths[0], graph, label_table=paths[1])


@pytest.mark.parametrize("kind", ["gmt", "wide", "json"])
@pytest.mark.parametrize("labelled", [True, False])
def test_a_name_that_occurs_twice(tmp_path, graph, kind, labelled):
    rows = [("s", "TP53 BAX"), ("t", "BCL2 BAX"), ("s", "BAX MDM2")]
    text = {
        "gmt": "".join(f"{a}\tx\t{b.replace(' ', chr(9))}\n" for a, b in rows),
        "wide": "subgraph,nodes\n" + "".join(f"{a},{b}\n" for a, b in rows),
        "json": "".join(f'{{"subgraph": "{a}", "nodes": {b.split()!s}}}\n'.replace("'", '"') for a, b in rows),
    }[kind]
    (path,) = tables(tmp_path, **{f"m_{'gmt' if kind == 'gmt' else 'txt'}": text})
    with pytest.raises(DataError, match=r"the subgraph 's' again, which is in (row|line) 1"):
        read_members(path, graph, labelled=labelled)


def test_classes_of_one_subgraph(tmp_path):
    edges, own = tables(tmp_path, e_csv=EDGES, own_gmt=GMT)
    own.write_text("".join(line.replace("na", line[0]) for line in GMT.splitlines(keepends=True)))
    checked = call("data", "check", edges, own, "--label-column", "description")
    assert checked.code == 2
    assert "each of the 6 classes has one subgraph ('s', 't', 'u', ...), so that nothing can be learned" in checked.out
    assert checked.out.count("error:") == 1
    assert checked.err == f"{edges}: 1 problem; fix the files and check again\n"
    own.write_text(GMT.replace("\tna\t", "\ta\t").replace("u\ta", "u\tb").replace("v\ta", "v\tc"))
    checked = call("data", "check", edges, own, "--label-column", "description")
    assert (checked.code, checked.out.count("2 classes have one subgraph ('b', 'c')")) == (0, 1)


def test_weights_are_guessed_and_columns_that_nobody_uses_are_named(tmp_path):
    notes = []
    (path,) = tables(tmp_path, e_csv="protein1,protein2,combined_score,note\nA,B,900,x\nB,C,400,y\n")
    graph = read_edges(path, ReadOptions(on_note=notes.append))
    assert graph.edges()[2].tolist() == [900, 400]
    said = f"{path}: source from 'protein1', target from 'protein2', weight from 'combined_score'"
    assert notes == [said, f"{path}: ignored: note"]
    path.write_text("from,to\nA,B\n")
    read_edges(path, ReadOptions(on_note=notes.append))
    said = f"{path}: source from 'from', target from 'to'"
    assert notes.pop() == f"{said}; directions are ignored (--directed keeps them)"
    read_edges(path, ReadOptions(on_note=notes.append, directed=True))
    assert notes.pop() == said
    path.write_text("source,target,n,confidence\nA,B,1,high\nB,C,2,low\n")
    notes.clear()
    assert read_edges(path, ReadOptions(on_note=notes.append)).weights is None
    assert notes[0].startswith(f"{path}: column 'confidence' is not used: ")
    assert notes[-1] == f"{path}: ignored: n (use --weight n)"
    path.write_text("source,target,amount\nA,B,1\nB,C,x\nC,D,2\n")
    with pytest.raises(DataError, match=r"column 'amount' is not all numbers .row 2: 'x'"):
        read_edges(path)


def test_columns_that_nobody_uses_may_be_of_any_type():
    days, notes = pa.array([datetime(2024, 1, 1), datetime(2024, 1, 2)]), []
    more = {"born": days, "tags": [["x"], []], "n": [1, 2]}
    graph = read_edges(pa.table({"source": ["a", "b"], "target": ["b", "c"]} | more), ReadOptions(on_note=notes.append))
    assert (graph.num_edges, notes) == (2, ["table: ignored: n, born, tags (use --weight n)"])


def test_edge_attributes_of_graphml_are_guessed_or_named(tmp_path):
    given, notes = nx.Graph(), []
    given.add_edge("A", "B", amount=2.0, age=3)
    nx.write_graphml(given, tmp_path / "g.graphml")
    graph = read_graph(tmp_path / "g.graphml", ReadOptions(on_note=notes.append))
    assert graph.weights.tolist() == [2, 2]
    said = ["edge weights from the attribute 'amount'", "ignored edge attributes: age"]
    assert [note.partition(".graphml: ")[2] for note in notes] == said
    several = nx.MultiGraph([("A", "B", {"weight": 2.0}), ("A", "B", {"weight": 3.0}), ("B", "C", {"weight": 1.0})])
    nx.write_graphml(several, tmp_path / "m.graphml")
    with pytest.warns(DataWarning, match="1 repeated edge joined"):
        graph = read_graph(tmp_path / "m.graphml", ReadOptions(repeated="sum"))
    assert graph.edges()[2].tolist() == [5, 1]


HOW = {"first": 10, "last": 7, "sum": 1_000_017, "mean": 1_000_017 / 3, "max": 1e6, "count": 3}


@pytest.mark.parametrize(("how", "weight"), HOW.items())
@pytest.mark.parametrize("directed", [False, True])
def test_repeated_edges_are_joined(how, weight, directed):
    ends = ([0, 0, 0, 1], [1, 1, 1, 2]) if directed else ([0, 1, 0, 1], [1, 0, 1, 2])
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        graph = Graph.from_edges(*ends, weights=[10, 1e6, 7, 4], directed=directed, repeated=how)
    expected = 1 if how == "count" else 4
    assert graph.edges()[2].tolist() == [pytest.approx(weight), expected]
    assert not any("different weights" in str(one.message) for one in told)


def test_an_edge_that_is_given_from_both_ends_is_not_added_to_itself():
    graph = Graph.from_edges([0, 1, 1, 2], [1, 0, 2, 1], weights=[3, 3, 5, 5], repeated="sum")
    assert graph.edges()[2].tolist() == [3, 5]


def test_a_joined_edge_is_as_old_as_its_latest_part():
    given = {"weights": [1.0, 2.0, 4.0], "times": [5, 9, 1], "types": ["a", "a", "b"]}
    with pytest.warns(DataWarning, match="1 repeated edge joined: the weight is the sum of theirs"):
        graph = Graph.from_edges([0, 0, 0], [1, 1, 1], **given, repeated="sum")
    assert (graph.times.tolist(), graph.weights.tolist()) == ([9, 9], [7, 7])
    assert graph.of_type("a").weights.tolist() == [3, 3]
    assert graph.until(8).num_edges == 0


def test_repeated_payments(tmp_path):
    (path,) = tables(tmp_path, e_csv="payer,payee,amount\nA,B,10\nA,B,1000000\nB,A,1000000\nB,C,1\n")
    called = call("data", "convert", path, "--out", tmp_path / "x")
    assert "2 repeated edges have different weights; the first is kept ('A' - 'B': 10, not 1e+06)" in called.err
    assert "--repeated sum" in called.err
    assert call("data", "convert", path, "--repeated", "sum", "--out", tmp_path / "y").code == 0
    assert (tmp_path / "y" / "edge_list.txt").read_text() == "0 1 2000010\n1 2 1\n"
    path.write_text("payer,payee\nA,B\nA,B\n")
    refused = call("data", "convert", path, "--repeated", "sum", "--out", tmp_path / "z")
    assert refused.error.startswith("--repeated: the edges have no weights to take the sum of; name the column")


@pytest.mark.parametrize(
    "aliases",
    ["alias,name\np53,TP53\nLFS1,TP53\nmdm,MDM2\nX,unknown\n", "symbol\tsynonyms\nTP53\tp53|LFS1\nMDM2\tmdm\n"],
)
def test_aliases_replace_names_and_say_so(tmp_path, aliases):
    rows = "subgraph,node,label\ns,p53,a\ns,BAX,a\nt,LFS1,b\nt,mdm,b\nu,BAX,a\n"
    edges, names, members = tables(tmp_path, e_csv=EDGES, a_txt=aliases, m_csv=rows)
    with pytest.warns(DataWarning) as told:
        data = read_tables(edges, members, aliases=names)
    found = data.graph.names
    assert [found[node] for node in data.subgraphs.nodes[1]] == ["MDM2", "TP53"]
    lines = [str(one.message) for one in told]
    replaced = "3 names replaced by aliases: 'p53' is 'TP53', 'LFS1' is 'TP53', 'mdm' is 'MDM2'"
    assert any(line.endswith(replaced) for line in lines)


def test_aliases_stay_with_the_graph_and_a_name_goes_before_them(tmp_path):
    aliases, more = "alias,name\nBAX|p53,TP53\np53x,MDM2\np53x,BAX\n", "node,synonyms\nMDM2,a|b\n"
    edges, names, attributes = tables(tmp_path, e_csv=EDGES, a_csv=aliases, n_csv=more)
    graph = read_aliases(names, read_edges(edges))
    assert [graph.names.find(text) for text in ("BAX", "p53", "p53x")] == [0, 3, -1]
    graph, _ = read_attributes(attributes, graph)
    assert graph.names.find("b") == graph.names.find("MDM2")
    assert call("data", "convert", edges, "--aliases", names, "--out", tmp_path / "x").code == 0
    nodes = (tmp_path / "x" / "nodes.tsv").read_text().splitlines()
    assert nodes[:2] == ["id\tname\taliases", "0\tBAX\tp53x"]


def test_an_alias_table_of_other_nodes_is_refused(tmp_path, graph):
    (path,) = tables(tmp_path, a_csv="alias,name\nx,y\n")
    with pytest.raises(DataError, match="none of its 1 rows has a node of the graph"):
        read_aliases(path, graph)


def test_numbers_of_accounts_have_no_nearest_name_and_words_do(tmp_path):
    edges, members = tables(
        tmp_path, e_csv="u,v\nACC10023,alice\nalice,4711\n", m_csv="subgraph,node\ns,ACC10024\ns,4712\ns,alicia\n"
    )
    with pytest.raises(DataError, match=r"'ACC10024', '4712', 'alicia' \(nearest: 'alice'\)"):
        read_subgraphs(members, read_edges(edges))


def test_every_problem_of_tables_is_listed(tmp_path):
    edges, members = tables(
        tmp_path,
        e_csv="from,to,amount\nA,B,1\nA,,2\n,B,3\nB,C,x\nC\nC,D,5\n,D,5\n",
        m_csv="case,account,outcome,split\nc1,A,bad,train\nc1,B,ok,train\nc2,C,ok,trian\nc3,Z,bad,val\nc3,,bad,val\nc4,D,ok,test\n",
    )
    called = call("data", "check", edges, members)
    listed = [line.removeprefix("error: ") for line in called.out.splitlines() if line.startswith("error: ")]
    assert [line.partition(";")[0] for line in listed] == [
        f"{edges}:6: this row has 1 column, but the first has 3 ('C')",
        f"{edges}: row 3: no source (2 rows: 3, 6)",
        f"{edges}: row 2: no target",
        f"{edges}: column 'amount' is not all numbers (row 4: 'x')",
        f"{members}: row 5: no node",
        f"{members}: row 2: subgraph 'c1' has two labels ('bad' and 'ok')",
        f"{members}: row 4: node 'Z' is not in the graph (in 1 of 4 subgraphs)",
        f"{members}: row 3: unknown split 'trian'",
        f"{members}: no subgraph in split 'val'",
    ]
    assert (called.code, called.error) == (2, f"{edges}: 9 problems; fix the files and check again")
    found = call("data", "check", edges, members, "--json").json
    assert (found["num_errors"], found["ok"], len(found["errors"])) == (9, False, 9)


@pytest.mark.parametrize("written", ["NA", "nan", "None"])
def test_missing_labels_are_classes_on_request_only(tmp_path, graph, written):
    sets = [line.split("\t") for line in GMT.splitlines()]
    rows = zip(sets, "xyxyxw", strict=True)
    text = "".join(f"{name},{';'.join(genes)};,{label}\n" for (name, _, *genes), label in rows)
    (path,) = tables(tmp_path, m_csv=f"subgraph,nodes,label\n{text}".replace(",w\n", f",{written}\n"))
    assert read_quietly(path, graph).classes == ("x", "y")
    assert set(read_quietly(path, graph, keep_na=True).classes) == {"x", "y", written}


def test_columns_of_members_come_back_in_predictions(tmp_path):
    sets = [line.split()[2:] for line in GMT.splitlines()]
    rows = (f"{i},{gene},{'ab'[i % 2]},r{i},{gene}\n" for i, genes in enumerate(sets) for gene in genes)
    table = "subgraph,node,label,region,rank\n" + "".join(rows)
    edges, members = tables(tmp_path, e_csv=EDGES, m_csv=table)
    trained = call("train", edges, members, "--recipe", "bag", "--out", tmp_path / "run")
    assert "ignored: region (predictions give it back)" in trained.out
    predicted = call("predict", tmp_path / "run", "--subgraphs", members, "--out", tmp_path / "p.tsv")
    assert "ignored: rank (different within a subgraph)" in predicted.out
    lines = [line.split("\t") for line in (tmp_path / "p.tsv").read_text().splitlines()]
    assert [line[lines[0].index("region")] for line in lines[1:]] == [f"r{i}" for i in range(6)]
    subgraphs = read_quietly(members, read_edges(edges))
    assert subgraphs[[3, 1]].columns == {"region": ["r3", "r1"]}


def test_a_few_more_subgraphs_may_each_have_a_class_of_its_own(tmp_path, graph):
    (more,) = tables(tmp_path, m_csv="name,nodes,label\nx,TP53;BAX,a\ny,BAX,b\nz,MDM2,c\n")
    found, _ = read_subgraphs(more, graph, ReadOptions(labels=LabelFormat("multi-class")), draw_split=False)
    assert (found.classes, found.splits) == (("a", "b", "c"), None)


def test_a_quote_that_takes_the_following_lines_into_a_node_is_found(tmp_path):
    (edges,) = tables(tmp_path, e_csv='source,target\nTP53,BAX\nBAX,"BCL2\nBCL2,MDM2\nMDM2,TP53\n')
    with pytest.raises(DataError, match=r"e.csv: row 2: the target 'BCL2.* has a line end; do its quotes match"):
        read_edges(edges)


def test_a_workbook_is_a_table_whatever_its_titles(tmp_path, graph):
    book = openpyxl.Workbook()
    for row in (("pathway", "contains"), ("x", "TP53;BAX"), ("y", "MDM2")):
        book.active.append(row)
    book.save(tmp_path / "m.xlsx")
    found = read_members(tmp_path / "m.xlsx", graph, labelled=False)
    assert (list(found.names), found.nodes_of(0)) == (["x", "y"], ["TP53", "BAX"])
    with pytest.raises(DataError, match=r"m\.xlsx: which column holds the nodes"):
        read_members(tmp_path / "m.xlsx", read_edges(tables(tmp_path, o_csv="source,target\nu,v\n")[0]))
