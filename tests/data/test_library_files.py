"""Files of other libraries, through ``data convert``."""

import io
import json
import pickle
import zipfile

import networkx as nx
import pytest
import torch
from torch_geometric.data import Data

from subgnn import DataError, read_dataset
from subgnn.data.formats.format import ReadOptions
from subgnn.data.formats.libraries import GRAPH_FILES
from tests.cli.command import call
from tests.data.samples import tree, write_files, write_sample

NAMED = [("cow", "bee"), ("bee", "ant-2"), ("ant-2", "dog")]
MEMBERS = "subgraph,node,label,split\ns,cow,x,train\ns,bee,x,train\nt,ant-2,y,val\nu,dog,x,test\n"


def read_graph(path):
    return next(each for each in GRAPH_FILES if each.accepts(path)).read_graph(path, ReadOptions())


WRITERS = {
    ".graphml": lambda path, graph: nx.write_graphml(graph, path),
    ".graphml.gz": lambda path, graph: nx.write_graphml(graph, path),
    ".json": lambda path, graph: path.write_text(json.dumps(nx.node_link_data(graph, edges="edges"))),
}
OF_NAMES = (".graphml", ".graphml.gz", ".json")


@pytest.mark.parametrize("suffix", OF_NAMES)
@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
def test_graphs_with_names(tmp_path, suffix, directed):
    path = tmp_path / f"zoo{suffix}"
    WRITERS[suffix](path, nx.DiGraph(NAMED) if directed else nx.Graph(NAMED))
    members = write_files(tmp_path, {"m.csv": MEMBERS}) / "m.csv"
    called = call("data", "convert", path, "--subgraphs", members, "--out", tmp_path / "out", "--json")
    assert (called.code, called.err) == (0, "")
    assert called.json["layout"] == "folder"
    dataset = read_dataset(tmp_path / "out")
    assert dataset.name == "out"
    assert dataset.graph.directed == directed
    names = list(dataset.graph.names.primary)
    assert sorted(names) == ["ant-2", "bee", "cow", "dog"]
    tails, heads, _ = dataset.graph.edges()
    found = [(names[u], names[v]) for u, v in zip(tails, heads, strict=True)]
    assert sorted(found if directed else map(sorted, found)) == sorted(NAMED if directed else map(sorted, NAMED))
    assert [sorted(names[v] for v in row) for row in dataset.subgraphs.nodes] == [["bee", "cow"], ["ant-2"], ["dog"]]


def test_graphs_with_numbers(tmp_path):
    path = tmp_path / "five.pt"
    edges = torch.tensor([[0, 1, 1, 3], [1, 0, 2, 2]])
    torch.save(Data(edge_index=edges, x=torch.arange(10.0).reshape(5, 2)), path)
    text = "0-1\ta\ttrain\n2\tb\tval\n3-4\ta\ttest\n"
    subgraphs = write_files(tmp_path, {"s.tsv": text}) / "s.tsv"
    called = call("data", "convert", path, "--subgraphs", subgraphs, "--out", tmp_path / "five.subgnn")
    assert (called.code, called.err) == (0, "")
    dataset = read_dataset(tmp_path / "five.subgnn")
    assert [dataset.graph.neighbors_of(v).tolist() for v in range(5)] == [[1], [0, 2], [1, 3], [2], []]
    assert [row.tolist() for row in dataset.subgraphs.nodes] == [[0, 1], [2], [3, 4]]
    assert dataset.graph.features is not None
    assert dataset.graph.names is None


def test_another_object_in_a_pt_file(tmp_path):
    torch.save({"weights": torch.zeros(3)}, tmp_path / "x.pt")
    with pytest.raises(DataError, match="this holds a dict; one torch_geometric Data is accepted"):
        read_graph(tmp_path / "x.pt")


def opens(path):
    """A pickle, written by hand, that makes the file when it is loaded."""
    name = str(path).encode()
    return b"cbuiltins\nopen\n(X" + len(name).to_bytes(4, "little") + name + b"X\x01\x00\x00\x00wtR."


def object_npy(payload):
    header = b"{'descr': '|O', 'fortran_order': False, 'shape': (5, 2), }".ljust(118)
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + payload


def archive(members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as packed:
        for name, content in members.items():
            packed.writestr(name, content)
    return file.getvalue()


def torch_archive(payload):
    return archive({"x/data.pkl": payload, "x/byteorder": "little", "x/version": "3\n"})


def scipy_archive(payload):
    parts = ("format", "shape", "data", "indices", "indptr")
    return archive({f"{part}.npy": object_npy(payload) for part in parts})


def test_the_pickle_of_these_tests_bites(tmp_path):
    pickle.loads(opens(tmp_path / "bitten")).close()
    assert (tmp_path / "bitten").exists()


@pytest.mark.parametrize(
    ("name", "wrap"), [("x.pt", bytes), ("x.pt", torch_archive), ("x.json", bytes)], ids=["pt", "pt archive", "json"]
)
def test_a_malicious_pickle_is_refused(tmp_path, name, wrap):
    write_files(tmp_path, {name: wrap(opens(tmp_path / "bitten"))})
    called = call("data", "convert", tmp_path / name, "--out", tmp_path / "out")
    assert called.code == 2
    assert called.error.startswith(f"{tmp_path / name}: this cannot be read as")
    assert [p.name for p in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("wrap", [bytes, object_npy, torch_archive, scipy_archive])
def test_malicious_features_are_refused(tmp_path, wrap):
    folder = write_sample(tmp_path / "x", {"features.npy": wrap(opens(tmp_path / "bitten"))})
    for verb in ("describe", "check"):
        called = call("data", verb, folder)
        assert called.code == 2
        assert called.error.startswith(str(folder))
    assert [p.name for p in tmp_path.iterdir()] == ["x"]


@pytest.mark.parametrize("suffix", [".graphml", ".json"])
def test_the_weights_of_a_graph_file_are_kept(tmp_path, suffix):
    """By the titles that a table's column of weights is known by."""
    graph = nx.Graph()
    graph.add_edge("0", "1", weight=2.5)
    graph.add_edge("1", "2", weight=1.0)
    path = tmp_path / f"x{suffix}"
    WRITERS[suffix](path, graph)
    called = call("data", "convert", path, "--out", tmp_path / "out", "--json")
    assert tree(tmp_path / "out")["edge_list.txt"] == b"0 1 2.5\n1 2 1\n"
    assert called.json["notes"] == [f"{path}: edge weights from the attribute 'weight'"]
    assert call("data", "convert", path, "--weight", "weight", "--out", tmp_path / "again").code == 0
    assert tree(tmp_path / "again")["edge_list.txt"] == tree(tmp_path / "out")["edge_list.txt"]


def test_a_zip_that_unpacks_to_a_thousand_times_its_size(tmp_path):
    path = tmp_path / "x.pt"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("data.npy", bytes(100 * 2**20))
    with pytest.raises(DataError, match=r"x\.pt: it unpacks to more than"):
        read_graph(path)


def test_a_matrix_is_no_table_of_edges(tmp_path):
    (tmp_path / "x.mtx").write_text("%%MatrixMarket matrix coordinate real general\n3 3 1\n1 2 1\n")
    called = call("data", "convert", tmp_path / "x.mtx", "--out", tmp_path / "out")
    assert called.code == 2
    assert "x.mtx: this is a matrix, not a table; read it with scipy.io.mmread" in called.error


def test_nodes_are_named_by_an_attribute(tmp_path):
    """igraph and Cytoscape number the nodes, and name them in an attribute; either finds a node."""
    graph = nx.path_graph(3)
    nx.set_node_attributes(nx.relabel_nodes(graph, "n{}".format, copy=False), {"n0": "b", "n1": "a", "n2": "c"}, "name")
    nx.write_graphml(graph, tmp_path / "g.graphml")
    names = read_graph(tmp_path / "g.graphml").names
    assert list(names.primary) == ["b", "a", "c"]
    assert (names.find("a"), names.find("n2")) == (1, 2)


def test_entities_of_graphml_are_refused(tmp_path):
    path = tmp_path / "g.graphml"
    path.write_text('<!DOCTYPE x [<!ENTITY a "aaaa">]><graphml><graph edgedefault="undirected"/></graphml>')
    with pytest.raises(DataError, match=r"g\.graphml: it declares a document type or entities; remove"):
        read_graph(path)
