"""Bad input gets one clear line and exit 2, and leaves nothing behind."""

import gzip

import numpy as np
import pytest

from tests.cli.command import call
from tests.data.samples import EDGES, FEATURES, NODES, SUBGRAPHS, npy, tree, write_sample

COLUMNS = "accepted: 'u v' or 'u v weight', separated by spaces or tabs"
THREE = "three columns, separated by tabs: nodes joined by '-', label, train|val|test"
NO_NPY = "this is not an .npy array of numbers, or it is damaged; was it copied whole?"
LONG = npy(np.zeros((7, 2)))


def edges(text):
    return {"edge_list.txt": text}


def first(line):
    """The first line of the subgraphs replaced."""
    return {"subgraphs.tsv": line + SUBGRAPHS[SUBGRAPHS.index("\n") :]}


def features(array):
    return {"features.npy": npy(array)}


def raw_features(header, body=b"\0" * 80):
    header = header.encode().ljust(118)
    return {"features.npy": b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + body}


# What is changed; the file and line that are named; what the line says after them.
BAD = {
    "no edge list": ({"edge_list.txt": None}, "edge_list.txt", "no such file; a dataset folder holds edge_list.txt"),
    "no subgraphs": ({"subgraphs.tsv": None}, "subgraphs.tsv", "no such file; the subgraphs are in subgraphs.tsv or"),
    "one column": (edges("0 1\n1 2\n3\n3 4\n"), "edge_list.txt:3", f"the line has only one column; {COLUMNS}"),
    "mixed columns": (edges("0 1 2\n1 2\n"), "edge_list.txt:2", "some lines have a weight and some have none; give"),
    "word in edges": (edges("0 1\n# c\n\n1 x2\n"), "edge_list.txt:4", "'x2' is not an integer id; ids are integers"),
    "real id": (edges("0 1.0\n"), "edge_list.txt:1", "'1.0' is not an integer id"),
    "large id": (edges("0 4294967296\n"), "edge_list.txt:1", "node id '4294967296' is too large; ids run from 0 to"),
    "gap": (edges("0 1\n0 2000000000\n"), "edge_list.txt:2", "node 2000000000 is not in the graph; ids run 0.."),
    "nan weight": (edges("0 1 1\n1 2 nan\n"), "edge_list.txt:2", "weight 'nan' is not finite; weights must be finite"),
    "weight too large for its type": (edges("0 1 1\n1 2 1e39\n"), "edge_list.txt:2", "weight"),
    "word for weight": (edges("0 1 heavy\n"), "edge_list.txt:1", "weight 'heavy' is not a number; a decimal number is"),
    "edge outside the nodes": ({**edges("0 1\n0 5\n"), "nodes.tsv": NODES}, "edge_list.txt:2", "node 5 is not in the"),
    "truncated gzip": (
        {"edge_list.txt": None, "edge_list.txt.gz": gzip.compress(EDGES.encode() * 50)[:-20]},
        "edge_list.txt.gz",
        "the gzip file ends too early; was the download complete? fetch it again",
    ),
    "damaged gzip": (
        {"edge_list.txt": None, "edge_list.txt.gz": gzip.compress(EDGES.encode())[:-8] + b"12345678"},
        "edge_list.txt.gz",
        "this is not a gzip file, or it is damaged",
    ),
    "no such node": (first("0-7\ta\ttrain"), "subgraphs.tsv:1", "node 7 is not in the graph; ids run 0..4"),
    "ids from 1": (first("1-5\ta\ttrain"), "subgraphs.tsv:1", "node 5 is not in the graph; ids run 0..4; was the file"),
    "huge node": (first("0-" + "8" * 30 + "\ta\ttrain"), "subgraphs.tsv:1", f"node '{'8' * 30}' is not in the graph"),
    "word for node": (first("0-x\ta\ttrain"), "subgraphs.tsv:1", "'x' is not an integer id; nodes are ids from 0, or"),
    "unknown name": ({**first("TP53-x\ta\ttrain"), "nodes.tsv": NODES}, "subgraphs.tsv:1", "'x' is neither an id nor"),
    "ambiguous name": ({**first("gene-1\ta\ttrain"), "nodes.tsv": NODES}, "subgraphs.tsv:1", "'gene' names several"),
    "empty subgraph": (first("\ta\ttrain"), "subgraphs.tsv:1", "empty subgraph; at least one node is needed"),
    "nothing between dashes": (first("0--1\ta\ttrain"), "subgraphs.tsv:1", "a '-' without a node on both sides in"),
    "other digits": (first("0-٣\ta\ttrain"), "subgraphs.tsv:1", r"node '\u0663' is not in the graph"),
    "unknown split": (first("0\ta\ttrian"), "subgraphs.tsv:1", "unknown split 'trian'; accepted: train, val, test;"),
    "no split": (first("0\ta"), "subgraphs.tsv:1", f"the split is missing; {THREE}"),
    "no label": (first("0\t\ttrain"), "subgraphs.tsv:1", f"the label is missing; {THREE}"),
    "a dash for a label": (first("0\t-\ttrain"), "subgraphs.tsv:1", "the label is missing"),
    "spaces for tabs": (first("0-1 a train"), "subgraphs.tsv:1", "'1 a train' is not an integer id"),
    "split without subgraph": ({"subgraphs.tsv": SUBGRAPHS.replace("val", "test")}, "subgraphs.tsv", "no subgraph in"),
    "no lines": ({"subgraphs.tsv": "\n\n"}, "subgraphs.tsv", f"no subgraphs; {THREE}"),
    "NA for a label": (first("0\tNA\ttrain"), "subgraphs.tsv:1", "the label is missing ('NA')"),
    "names of other nodes": (
        {"nodes.tsv": "id\tname\n" + "".join(f"{i}\tx{i}\n" for i in range(5, 10))},
        "nodes.tsv",
        "none of its nodes is in the graph, whose ids run 0..4",
    ),
    "nan label": ({"subgraphs.tsv": "0\t0.5\ttrain\n1\tnan\tval\n2\t1\ttest\n"}, "subgraphs.tsv:2", "the label is"),
    "word for a real label": ({"dataset.json": '{"task": "regression"}'}, "subgraphs.tsv:1", "label 'a' is not a"),
    "names of other subgraphs": ({"subgraph_names.tsv": "a\nb\n"}, "subgraph_names.tsv", "2 names for 6 subgraphs;"),
    "not UTF-8": ({"subgraphs.tsv": SUBGRAPHS.encode() + b"0\t\xff\ttrain\n"}, "subgraphs.tsv:7", "this is not UTF-8"),
    "word for id in nodes": ({"nodes.tsv": NODES + "x\tn\n"}, "nodes.tsv:7", "'x' is not an integer id; accepted: id,"),
    "node twice": ({"nodes.tsv": NODES + "4\tn\n"}, "nodes.tsv:7", "node 4 again; each id has one line"),
    "node without name": (
        {"nodes.tsv": NODES + "5\n"},
        "nodes.tsv:7",
        "the line has only one column; accepted: id, name,",
    ),
    "no nodes": ({"nodes.tsv": ""}, "nodes.tsv", "no nodes; accepted: id, name, further columns; or leave the file"),
    "two columns have the same name": (
        {"nodes.tsv": "id\tn\tn\n0\ta\tb\n"},
        "nodes.tsv:1",
        "two columns have the same name; name",
    ),
    "node far away": ({"nodes.tsv": "0\ta\n2000000000\tb\n"}, "nodes.tsv", "node 2000000000 in a table of 2 lines;"),
    "too few features": (features(np.zeros((4, 2))), "features.npy", "4 rows, but the graph has 5 nodes; one row for"),
    "more features than nodes": ({"features.npy": LONG, "nodes.tsv": NODES}, "features.npy", "7 rows, but the graph"),
    "nan feature": (features([[0, 1], [2, 3], [4, float("nan")], [0, 0], [0, 0]]), "features.npy", "nan at row 2,"),
    "flat features": (features(np.zeros(5)), "features.npy", "the features have shape (5,); accepted: (5, F)"),
    "text features": (features([["a"]] * 5), "features.npy", "features of type <U1; numbers are accepted"),
    "truncated features": ({"features.npy": FEATURES[:-3]}, "features.npy", NO_NPY),
    "truncated header of features": ({"features.npy": FEATURES[:40]}, "features.npy", NO_NPY),
    "archive begun": ({"features.npy": b"PK\x03\x04 and no more"}, "features.npy", NO_NPY),
    "features of an open bracket": (raw_features("{'descr': '<f4', 'shape': (5, 2"), "features.npy", NO_NPY),
    "features without end": (
        raw_features("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999, 2), }"),
        "features.npy",
        NO_NPY,
    ),
    "features of true rows": (
        raw_features("{'descr': '<f4', 'fortran_order': False, 'shape': (True, 10), }"),
        "features.npy",
        "",
    ),
    "no JSON": ({"dataset.json": "{'name': 1}"}, "dataset.json", "this is not valid JSON; a JSON object with name,"),
    "a JSON list": ({"dataset.json": "[]"}, "dataset.json", "a JSON list; a JSON object is accepted"),
    "a word for true": ({"dataset.json": '{"directed": "no"}'}, "dataset.json", "directed is 'no'; accepted: true or"),
    "negative base": ({"dataset.json": '{"id_base": -1}'}, "dataset.json", "id_base is '-1'; an integer from 0 is"),
    "unknown task": ({"dataset.json": '{"task": "multi class"}'}, "dataset.json", "unknown task 'multi class';"),
    "base not kept": ({"dataset.json": '{"id_base": 1}'}, "edge_list.txt:1", "node 0; with --id-base 1 ids run from 1"),
}


@pytest.mark.parametrize(("changed", "where", "message"), BAD.values(), ids=BAD)
def test_bad_input(tmp_path, changed, where, message):
    folder = write_sample(tmp_path / "bad", changed)
    expected = f"{folder / where}: {message}"
    before = tree(tmp_path)

    described = call("data", "describe", folder)
    assert (described.code, described.out) == (2, "")
    assert described.error.startswith(expected)

    checked = call("data", "check", folder)
    assert checked.code == 2
    assert any(line.startswith(f"error: {expected}") for line in checked.out.splitlines()), checked.out
    assert checked.error.startswith(f"{folder}: ")
    assert checked.error.endswith("fix the files and check again")

    for name in ("out.subgnn", "out"):
        converted = call("data", "convert", folder, "--out", tmp_path / "new" / name)
        assert (converted.code, converted.out) == (2, "")
        assert converted.error == described.error
    assert tree(tmp_path) == before
    assert [p.name for p in tmp_path.iterdir()] == ["bad"]


def test_repeated_nodes_are_counted_and_dropped_with_a_warning(tmp_path):
    folder = write_sample(tmp_path / "x", first("1-0-1-1\ta\ttrain"))
    warning = f"warning: {folder / 'subgraphs.tsv'}:1: 2 repeated nodes in subgraphs; each counts once"
    described = call("data", "describe", folder, "--json")
    assert (described.code, described.error) == (0, warning)
    assert described.json["subgraphs"]["nodes"] == {"mean": 2.0, "std": 0.0}
    checked = call("data", "check", folder)
    assert (checked.code, checked.err) == (0, "")
    assert warning in checked.out.splitlines()


@pytest.mark.parametrize("verb", ["describe", "check"])
def test_a_missing_folder(tmp_path, verb):
    called = call("data", verb, tmp_path / "nowhere")
    assert called.code == 2
    text = called.error if verb == "describe" else called.out
    assert f"{tmp_path / 'nowhere'}: no such folder; a dataset folder holds edge_list.txt and subgraphs.tsv" in text


def test_a_missing_source(tmp_path):
    called = call("data", "convert", tmp_path / "nowhere", "--out", tmp_path / "out")
    assert called.code == 2
    assert called.error == f"{tmp_path / 'nowhere'}: no such file or folder; check the path"
