"""Search in a run, an export and files of vectors, beside all pairs of vectors."""

import csv
import io
import json

import numpy as np
import pytest

import subgnn
from subgnn import Ragged, SubgraphSet
from subgnn.errors import DataError, UserError
from subgnn.inference.open import export_run, open_run
from subgnn.inference.predictor import Predictor
from subgnn.inference.search import KnownSubgraphs, SearchOptions
from subgnn.storage.cache import cache_folder
from tests.cli.command import call
from tests.inference.explained import named_run

HIT = ("rank", "row", "nearest", "label", "split", "distance")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return named_run(tmp_path_factory.mktemp("search"), prefix="G")


def expected(run, rows, top, *, splits=("train", "val")):
    """Rows of the dataset by the cosine of vectors less their mean, one pair at a time."""
    opened = open_run(run)
    subgraphs = opened.subgraphs
    known = sorted(int(i) for split in splits for i in subgraphs.indices(split))
    vectors = opened.predictor.embeddings(subgraphs.nodes).astype(float)
    mean = vectors[known].mean(axis=0)
    found = []
    for query in opened.predictor.embeddings(rows).astype(float) - mean:
        pairs = []
        for i in known:
            other = vectors[i] - mean
            lengths = np.linalg.norm(query) * np.linalg.norm(other)
            pairs.append((round(1 - query @ other / lengths, 9), i))
        found.append(sorted(pairs)[:top])
    return found


def printed(text, delimiter="\t"):
    return list(csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter))


def test_the_nearest_of_each_subgraph(run, tmp_path):
    (tmp_path / "new.tsv").write_text("G0-G1\nG9\n")
    rows = printed(call("search", run, "--subgraphs", tmp_path / "new.tsv", "--by", "class", "--top", 3).out)
    assert list(rows[0]) == ["subgraph", *HIT, "shared", "shared_nodes", "nodes", "known", "new"]
    assert [row["subgraph"] for row in rows] == ["G0-G1"] * 3 + ["G9"] * 3
    assert [row["rank"] for row in rows] == ["1", "2", "3"] * 2
    wanted = [pair for some in expected(run, Ragged.from_rows([[0, 1], [9]]), 3) for pair in some]
    np.testing.assert_allclose([float(row["distance"]) for row in rows], [d for d, _ in wanted], atol=1e-5)
    subgraphs = open_run(run).subgraphs
    for row in rows:
        place = int(row["row"])
        assert row["label"] == subgraphs.label_text(place)
        assert row["nearest"] == "-".join(f"G{node}" for node in subgraphs.nodes[place])
        assert place in subgraphs.indices(row["split"])
        assert row["split"] != "test"
    frame = subgnn.load(run).search([["G0", "G1"], ["G9"]], top=3, by="class")
    assert list(frame.columns) == list(rows[0])
    assert frame["row"].tolist() == [int(row["row"]) for row in rows]


@pytest.mark.parametrize("by", ["place", "nodes"])
def test_place_and_nodes_beside_dense_rows(run, by):
    opened = open_run(run)
    graph, subgraphs = opened.predictor.graph, opened.subgraphs
    adjacency = subgnn.to_scipy(graph).toarray() > 0
    known = np.flatnonzero(subgraphs.splits != 2)

    def row(nodes):
        bag = np.zeros(graph.num_nodes)
        bag[nodes] = 1
        found = bag + sum(adjacency[node] / adjacency[node].sum() for node in nodes)
        return found / np.linalg.norm(found)

    def distance(one, other):
        if by == "nodes":
            return 1 - len(set(one) & set(other)) / len(set(one) | set(other))
        mean = np.mean([row(subgraphs.nodes[i]) for i in known], axis=0)
        first, second = row(one) - mean, row(other) - mean
        return 1 - first @ second / (np.linalg.norm(first) * np.linalg.norm(second))

    for query in ([0, 1], [9], subgraphs.nodes[int(known[3])].tolist()):
        wanted = sorted((round(distance(query, subgraphs.nodes[i].tolist()), 9), i) for i in known.tolist())[:5]
        found = subgnn.load(run).search(SubgraphSet.from_lists([query], num_nodes=graph.num_nodes), top=5, by=by)
        assert found["row"].tolist() == [i for _, i in wanted]
        np.testing.assert_allclose(found["distance"], [value for value, _ in wanted], atol=1e-6)
        shared = [sorted(set(query) & set(subgraphs.nodes[i].tolist())) for i in found["row"]]
        assert found["shared"].tolist() == [len(some) for some in shared]
        assert found["shared_nodes"].tolist() == [";".join(f"G{node}" for node in some) for some in shared]
    with pytest.raises(UserError, match="accepted: place, nodes, class"):
        SearchOptions(by="far")


def test_json_has_the_answers_unless_they_are_in_a_file(run, tmp_path):
    (tmp_path / "new.tsv").write_text("G0-G1\nG9\n")
    options = ("--subgraphs", tmp_path / "new.tsv", "--by", "class", "--top", 2, "--include-test", "--json")
    answer = json.loads(call("search", run, *options).out)
    assert (answer["run"], answer["by"], answer["notes"]) == (str(run), "class", [])
    assert [one["subgraph"] for one in answer["results"]] == ["G0-G1", "G9"]
    rows = Ragged.from_rows([[0, 1], [9]])
    for one, wanted in zip(answer["results"], expected(run, rows, 2, splits=("train", "val", "test")), strict=True):
        np.testing.assert_allclose([hit["distance"] for hit in one["nearest"]], [d for d, _ in wanted], atol=1e-5)
        assert list(one["nearest"][0]) == [*HIT, "shared", "shared_nodes"]
    written = json.loads(call("search", run, *options, "--out", tmp_path / "near.tsv").out)
    assert written == {"run": str(run), "out": str(tmp_path / "near.tsv"), "num_subgraphs": 2, "notes": []}


def test_vectors_are_stored_and_read_again(run, tmp_path, monkeypatch):
    monkeypatch.setenv("SUBGNN_CACHE", str(tmp_path / "cache"))
    opened = open_run(run)
    first = KnownSubgraphs(opened.predictor, opened.subgraphs, part=8)
    assert not first.advance()
    assert not first.is_ready(SearchOptions(by="class"))
    asked = []
    embeddings = Predictor.embeddings
    monkeypatch.setattr(Predictor, "embeddings", lambda self, rows: asked.append(len(rows)) or embeddings(self, rows))
    vectors = first.vectors()
    assert asked == [8, 8, 6]  # and 8 before
    np.testing.assert_array_equal(vectors, embeddings(opened.predictor, opened.subgraphs.nodes))
    (stored,) = (cache_folder() / "subgraph_vectors").iterdir()
    again = KnownSubgraphs(opened.predictor, opened.subgraphs)
    np.testing.assert_array_equal(again.vectors(), vectors)
    assert asked == [8, 8, 6]
    # Other subgraphs have another key; a damaged file is computed anew.
    fewer = KnownSubgraphs(opened.predictor, opened.subgraphs.take(range(5)))
    np.testing.assert_array_equal(fewer.vectors(), vectors[:5])
    assert len(list(stored.parent.iterdir())) == 2
    stored.write_bytes(stored.read_bytes()[:-1] + b"?")
    with pytest.warns(subgnn.DataWarning, match="damaged"):
        np.testing.assert_array_equal(KnownSubgraphs(opened.predictor, opened.subgraphs).vectors(), vectors)
    monkeypatch.setenv("SUBGNN_CACHE_LIMIT", "0")
    asked.clear()
    KnownSubgraphs(opened.predictor, opened.subgraphs).vectors()
    assert asked == [30]


def test_an_export_searches_with_its_dataset_alone(run, tmp_path):
    export_run(run, tmp_path / "small.subgnn", with_graph=True)
    (tmp_path / "new.tsv").write_text("G0-G1\n")
    options = ("--subgraphs", tmp_path / "new.tsv", "--top", 2)
    refused = call("search", tmp_path / "small.subgnn", *options)
    assert (refused.code, refused.out) == (2, "")
    assert refused.err == "search: no labelled subgraphs; say where the dataset is with --data\n"
    found = call("search", tmp_path / "small.subgnn", *options, "--data", run.parent / "data")
    assert found.out == call("search", run, *options).out


def test_wrong_input_is_one_line(run, tmp_path):
    (tmp_path / "new.tsv").write_text("G0-G1\n")
    cases = [
        ((run, "--subgraphs", tmp_path / "nowhere"), "nowhere: no such file"),
        ((tmp_path / "nowhere", "--subgraphs", tmp_path / "new.tsv"), "nowhere"),
        ((run, "--subgraphs", tmp_path / "new.tsv", "--top", 0), "--top"),
        ((run, "--subgraphs", tmp_path / "new.tsv", "--by", "far"), "--by"),
    ]
    for words, message in cases:
        done = call("search", *words)
        assert (done.code, done.out) == (2, ""), words
        assert message in done.err, words
        assert done.err.count("\n") == 1, words


def test_a_run_whose_subgraphs_are_all_of_test(run):
    opened = open_run(run)
    tested = opened.subgraphs.take(opened.subgraphs.indices("test"))
    known = KnownSubgraphs(opened.predictor, tested)
    with pytest.raises(DataError, match="every subgraph is in the test split; pass include_test=True"):
        known.find(tested.nodes, SearchOptions())
    places, distances = known.find(tested.nodes, SearchOptions(top=1, test=True))
    np.testing.assert_allclose(distances, 0, atol=1e-9)
    assert places.shape == (len(tested), 1)
