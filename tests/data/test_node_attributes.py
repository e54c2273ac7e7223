"""Attributes of nodes: numbers and categories as features, other texts as names."""

import warnings

import numpy as np
import pyarrow as pa
import pytest

from subgnn import DataError, DataWarning, Graph, NodeNames
from subgnn.data.formats.format import Columns, ReadOptions
from subgnn.data.formats.graph_tables import read_attributes
from tests.cli.command import call

GRAPH = Graph.from_edges([0, 1, 2], [1, 2, 3], names=NodeNames.of(["a", "b", "c", "d"]))
TABLE = "node,length,kind,symbol\nB,10,x,s1\na,30,y,s2\nc,,x,s3\ne,20,x,s4\n"


def attributes(tmp_path, text=TABLE, graph=GRAPH, **options):
    path = tmp_path / "nodes.csv"
    path.write_text(text)
    notes = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return (*read_attributes(path, graph, ReadOptions(on_note=notes.append, **options)), notes)


def test_features_and_names(tmp_path):
    graph, card, notes = attributes(tmp_path)
    std = np.std([10, 30, 20])
    expected = [[10 / std, 0, 1], [-10 / std, 1, 0], [0, 1, 0], [0, 0, 0], [0, 1, 0]]
    np.testing.assert_allclose(graph.features, expected, rtol=1e-6)
    assert list(graph.names.primary) == ["a", "b", "c", "d", "e"]
    assert graph.names.find("s4") == 4
    assert (graph.num_nodes, graph.num_edges, graph.neighbors_of(4).tolist()) == (5, 3, [])
    number = {"column": "length", "kind": "number", "mean": 20.0, "std": pytest.approx(std), "missing": 1}
    assert card == {"features": [number, {"column": "kind", "kind": "category", "values": ["x", "y"]}]}
    assert notes == [
        f"{tmp_path}/nodes.csv: node from 'node'; standardised numbers length (1 missing, taken as the mean); "
        "categories kind; names symbol; 1 nodes have no row"
    ]


@pytest.mark.parametrize("missing", ["", "NA", "nan", "None", "null"])
@pytest.mark.parametrize("frame", [False, True], ids=["text", "frame"])
def test_numbers_with_a_missing_value_stay_numbers(tmp_path, missing, frame):
    if frame:
        table = pa.table({"node": ["a", "b", "c"], "x": [1.5, float("nan") if missing == "nan" else None, 2.5]})
        graph, card = read_attributes(table, GRAPH)
    else:
        graph, card, notes = attributes(tmp_path, f"node,x\na,1.5\nb,{missing}\nc,2.5\n")
        assert "standardised numbers x (1 missing, taken as the mean)" in notes[0]
    assert graph.features[:, 0].tolist() == [-1, 0, 1, 0]
    assert card["features"] == [{"column": "x", "kind": "number", "mean": 2.0, "std": 0.5, "missing": 1}]


def test_a_table_of_other_nodes_is_refused(tmp_path):
    with pytest.raises(DataError) as error:
        attributes(tmp_path, "node,x\ng1,1\ng2,2\n")
    what = "none of its 2 nodes is in the graph ('g1'); are nodes named as in the edges"
    assert str(error.value).startswith(f"{tmp_path}/nodes.csv: {what}")
    edges = tmp_path / "e.csv"
    edges.write_text("source,target\na,b\nb,c\n")
    called = call("data", "convert", edges, "--nodes", tmp_path / "nodes.csv", "--out", tmp_path / "out")
    assert (called.code, (tmp_path / "out").exists()) == (2, False)


def test_further_nodes_and_other_cases_are_warned_of(tmp_path):
    (tmp_path / "n.csv").write_text(TABLE)
    with pytest.warns(DataWarning) as told:
        read_attributes(tmp_path / "n.csv", GRAPH)
    assert [str(warning.message).removeprefix(f"{tmp_path}/n.csv: ") for warning in told] == [
        "1 nodes matched by ignoring case: 'B' is 'b'",
        "1 of 4 nodes are not in the graph and are added without edges ('e')",
    ]


BAD = {
    "a node again": ("node,x\na,1\nA,2\n", ": row 2: node 'A' occurs twice"),
    "no node": ("node,x\na,1\n,2\n", ": row 2: no node"),
    "infinite": ("node,x\na,1\nb,inf\n", ": row 2: inf in 'x'; accepted: numbers up to 1e30"),
    "one column": ("node\na\nb\n", ": which column holds the nodes?"),
    "no such column": ("node,x\na,1\n", ": no column 'y'"),
}


@pytest.mark.parametrize(("text", "message"), BAD.values(), ids=BAD)
def test_bad_tables(tmp_path, text, message):
    options = {"columns": Columns(node_id="y")} if "'y'" in message else {}
    with pytest.raises(DataError) as error:
        attributes(tmp_path, text, **options)
    assert str(error.value).startswith(f"{tmp_path}/nodes.csv{message}")
