"""A run is fitted again on a graph that has grown, with its labels and new ones."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import subgnn
from subgnn.api.update import joined, selected_settings, update_run
from subgnn.data.subgraphs import SubgraphSet
from subgnn.errors import DataError
from subgnn.inference.open import match_graph
from subgnn.models.checkpoint import load_checkpoint
from subgnn.models.recipes import find_recipe
from subgnn.result import read_result
from subgnn.training.run_dir import CHECKPOINT, PAGE
from tests.cli.command import call


def halves(nodes: int = 40, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Edges and labelled subgraphs of two halves that are joined within themselves."""
    rng = np.random.default_rng(seed)
    ends = np.array([(u, v) for u in range(nodes) for v in range(u) if u % 2 == v % 2 and rng.random() < 0.3])
    edges = pd.DataFrame({"source": [f"n{u}" for u in ends[:, 0]], "target": [f"n{v}" for v in ends[:, 1]]})
    rows = []
    for i in range(36):
        for node in rng.choice(nodes // 2, 4, replace=False):
            rows.append((f"s{i}", f"n{2 * node + i % 2}", "odd" if i % 2 else "even"))
    members = pd.DataFrame(rows, columns=["subgraph", "node", "label"])
    return edges, members


@pytest.fixture(scope="module")
def grown(tmp_path_factory):
    """A run on tables, a table of more edges, and one of more subgraphs, which have a new class."""
    folder = tmp_path_factory.mktemp("grown")
    edges, members = halves()
    edges.to_csv(folder / "edges.csv", index=False)
    members.to_csv(folder / "members.csv", index=False)
    more = pd.DataFrame({"source": ["n0", "n2", "n1"], "target": ["new0", "new0", "new1"]})
    pd.concat([edges, more]).to_csv(folder / "grown.csv", index=False)
    added = [(f"t{i}", node, "mixed") for i in range(6) for node in ("new0", "new1", f"n{i}")]
    pd.DataFrame(added, columns=["subgraph", "node", "label"]).to_csv(folder / "more.csv", index=False)
    settings = ["--set", 'auto.only=["bag"]', "--set", "auto.repeats=1"]
    assert not call(
        "train", folder / "edges.csv", folder / "members.csv", "--out", folder / "run", "--json", *settings
    ).code
    return folder


def test_an_update_keeps_the_members_and_knows_the_new_class(grown):
    out = grown / "updated"
    done = call("update", grown / "run", "--graph", grown / "grown.csv", "--subgraphs", grown / "more.csv",
                     "--out", out, "--json")  # fmt: skip
    found, before = done.json, load_checkpoint(grown / "run" / CHECKPOINT)
    assert found["notes"][0].startswith("40 nodes as in training, 2 new, 0 gone")
    assert "6 labelled subgraphs added to 36" in found["notes"]
    after = load_checkpoint(out / CHECKPOINT)
    assert after.parts.keys() == before.parts.keys()
    assert after.spec.classes == ("even", "odd", "mixed")
    result = read_result(out)
    given = result.updated_from
    assert given is not None
    assert given.run == str((grown / "run").resolve())
    assert given.subgraphs == len(subgnn.load(out)._opened.subgraphs.indices("test"))
    assert "micro_f1" in given.before.keys() & given.after.keys()
    assert f"on the same {given.subgraphs} held-out subgraphs" in (out / PAGE).read_text()
    assert subgnn.load(out).predict([["new0", "new1", "n3"]])["label"][0] == "mixed"
    (grown / "edges.csv").unlink()
    (grown / "members.csv").unlink()
    with pytest.raises(DataError, match="exists already"):
        update_run(grown / "run", grown / "grown.csv", out)
    again = update_run(grown / "run", grown / "grown.csv", grown / "again")
    assert again.updated_from is not None


@pytest.mark.filterwarnings("ignore")
def test_another_graph_is_read_as_in_training(tmp_path):
    edges, members = halves()
    edges = pd.concat([edges, edges]).assign(first=1.0, second=2.0).rename(columns={"source": "x", "target": "y"})
    edges.to_csv(tmp_path / "edges.csv", index=False)
    dataset = subgnn.read_tables(edges, members, source="y", target="x", weight="second", repeated="sum")
    subgnn.train(dataset, tmp_path / "run", recipe="bag", report=False, progress=False)
    for run in (tmp_path / "run", update_run(tmp_path / "run", tmp_path / "edges.csv", tmp_path / "new").run):
        result = read_result(Path(run))
        again, _ = match_graph(tmp_path / "edges.csv", dataset, result.reading)
        assert again.content_hash == dataset.graph.content_hash == result.data.graph_hash


def test_selected_settings_are_those_the_recipe_left_open(grown):
    part = load_checkpoint(grown / "run" / CHECKPOINT).parts["bag"].spec
    found = selected_settings(find_recipe("bag"), part)
    assert {text.partition("=")[0] for text in found} <= {"bag.normalize", "bag.balance", "bag.inverse_penalty"}
    assert find_recipe("bag", found).methods["bag"] == part.methods["bag"]


def test_labels_of_another_kind_are_refused():
    one, other = (SubgraphSet.from_lists([[0]], labels=labels, num_nodes=1) for labels in ([0.5], [["a", "b"]]))
    with pytest.raises(DataError, match="the labels are multi-label, but those of the run are regression"):
        joined(one, other)


def test_an_exported_run_is_refused(tmp_path):
    (tmp_path / "run.safetensors").touch()
    done = call("update", tmp_path / "run.safetensors", "--graph", tmp_path / "edges.csv", "--out", tmp_path / "out")
    assert (done.code, "an exported run has no labels to fit to" in done.error) == (2, True)
