"""Records of answers come out again, and batches that differ from training are told."""

import json

import numpy as np
import pytest

import subgnn
from subgnn.data.dataset import Dataset
from subgnn.data.formats.bundle import write_bundle
from subgnn.data.graph import Graph
from subgnn.data.strings import NodeNames
from subgnn.data.subgraphs import SubgraphSet
from subgnn.inference.open import open_run
from subgnn.inference.predictions import Drift
from subgnn.ragged import Ragged
from tests.cli.command import call

NODES = 60


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recorded")
    rng = np.random.default_rng(0)
    names = NodeNames.of(f"n{i}" for i in range(NODES))
    graph = Graph.from_edges(np.arange(NODES - 1), np.arange(1, NODES), names=names)
    sets = [np.unique(rng.integers(0, 20, 5) + 20 * (i % 2)) for i in range(80)]
    splits = (["train"] * 3 + ["val", "test"]) * 16
    labels = ["high" if i % 2 else "low" for i in range(80)]
    subgraphs = SubgraphSet.from_lists(sets, labels=labels, splits=splits, num_nodes=NODES)
    write_bundle(Dataset("line", graph, subgraphs), folder / "data.subgnn")
    subgnn.train(folder / "data.subgnn", folder / "run", recipe="bag-1hop", report=False, progress=False)
    return folder / "run"


def test_recorded_answers_come_out_again_until_something_changes(run, tmp_path):
    (tmp_path / "new.tsv").write_text("n1-n2-n3\nn30-n31\n")
    file, given = tmp_path / "answers.jsonl", ("--subgraphs", tmp_path / "new.tsv", "--out", tmp_path / "p.tsv")
    for extra in ((), ("--force",)):
        assert call("predict", run, *given, "--record", file, *extra).code == 0
    first = json.loads(file.read_text().splitlines()[0])
    assert first["matched"] == ["n1", "n2", "n3"]
    assert first["answer"]["label"] == "low"
    found = call("verify", file)
    assert (found.code, found.out.strip()) == (0, f"{file}: 4 of 4 answers come out as recorded")
    assert first["thresholds"] == [0.5]
    first["answer"]["scores"]["low"] -= 0.01
    other = first | {"graph_hash": "0" * 64}
    file.write_text(json.dumps(first) + "\n" + json.dumps(other) + "\n")
    changed = call("verify", file)
    assert changed.code == 2
    assert [line.partition(": ")[2][:22] for line in changed.err.splitlines()] == [
        "answer: scores: low is",
        "the graph is another o",
    ]
    file.write_text('{"record": 2, "run": 5}\n')
    assert call("verify", file).error.startswith(f"{file}:1: not a record of an answer")


def test_sets_of_labels_and_explanations_are_recorded_and_computed_again(run, tmp_path):
    (tmp_path / "new.tsv").write_text("n1-n2-n3\nn30-n31\n")
    file = tmp_path / "answers.jsonl"
    given = ("--subgraphs", tmp_path / "new.tsv", "--record", file)
    assert call("predict", run, *given, "--coverage", 0.9, "--out", tmp_path / "p.tsv").code == 0
    assert call("explain", run, *given, "--max-nodes", 2, "--out", tmp_path / "why.json").code == 0
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert lines[0]["answer"]["coverage"] == 0.9
    assert set(lines[0]["answer"]["labels"]) <= {"low"}
    shown = json.loads((tmp_path / "why.json").read_text())["explanations"]
    for line, explanation in zip(lines[2:], shown, strict=True):
        assert line["explanation"] | explanation == line["explanation"] | {"subgraph": explanation["subgraph"]}
    assert call("verify", file).out.strip() == f"{file}: 4 of 4 answers come out as recorded"
    lines[0]["answer"]["labels"] = ["high", "low"]
    lines[3]["explanation"]["by_node"][0]["contributions"]["low"] += 0.1
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    told = call("verify", file).err.splitlines()
    assert [line.partition(": ")[2].partition(" is")[0] for line in told] == [
        "answer: labels",
        "explanation: by_node: contributions: low",
    ]
    assert call("predict", run, *given[:2], "--record", tmp_path, "--out", tmp_path / "q.tsv").error.startswith(
        f"{tmp_path}: records cannot be written"
    )


def test_a_batch_that_differs_from_training_is_told(run, tmp_path):
    opened = open_run(run)
    usual, rng = Drift(opened.predictor, opened.subgraphs), np.random.default_rng(1)
    alike = opened.subgraphs.take(opened.subgraphs.indices("test")).nodes
    usual.add(alike.take(np.arange(10)), opened.predictor.probabilities(alike.take(np.arange(10))))
    assert usual.differences() == []  # of too few
    usual.add(alike, opened.predictor.probabilities(alike))
    assert usual.line() == ""
    learned = Drift(opened.predictor, opened.subgraphs)  # whose own nodes do not count as known
    training = opened.subgraphs.nodes.take(opened.subgraphs.indices("train"))
    learned.add(training, opened.predictor.probabilities(training))
    assert next(chance for what, chance, _ in learned.differences() if what.startswith("members known")) == 1.0
    far = Ragged.from_rows([np.sort(rng.choice(np.arange(40, 60), 12, replace=False)) for _ in range(40)])
    strange = Drift(opened.predictor, opened.subgraphs)
    strange.add(far, opened.predictor.probabilities(far))
    line = strange.line(unknown=160)
    assert line.startswith("these subgraphs differ from training: nodes of a subgraph (median 12, in training")
    assert "members known from training (median 0%" in line
    assert line.endswith("25% of nodes are not in the graph")
    (tmp_path / "far.tsv").write_text("".join("-".join(f"n{node}" for node in row) + "\n" for row in far))
    told = call("predict", run, "--subgraphs", tmp_path / "far.tsv", "--out", tmp_path / "p.tsv", "--json")
    assert any(note.startswith("these subgraphs differ from training") for note in told.json["notes"])
