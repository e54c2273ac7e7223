"""``subgnn complete`` and ``Run.complete``: files and lists in, tables out."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import subgnn
from subgnn import DataWarning, NodeNames
from subgnn.api.inputs import as_members
from subgnn.data.formats.format import ReadOptions
from subgnn.data.read_tables import match_nodes
from subgnn.data.strings import Strings
from subgnn.errors import DataError, UserError
from subgnn.inference.answers import Query
from subgnn.inference.complete import NAMES, Completer, Ranker, completion_table, read_candidates
from subgnn.inference.open import open_run
from tests.cli.command import call
from tests.inference.explained import named_run
from tests.training.examples import dataset

TITLES = ["rank", "node", "probability", "neighbours", "reason", "diffusion", "common_neighbours", "known_subgraphs"]
SETS = {"one": ["g-0", "g-1", "g-2"], "two": ["g-9", "g-10"]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A finished run, and a file of new subgraphs."""
    here = tmp_path_factory.mktemp("complete")
    named_run(here, prefix="g-")
    (here / "new.tsv").write_text("g-0-g-1-#2\n#9-#10\n")
    return here


@pytest.fixture(scope="module")
def run(folder):
    return subgnn.load(folder / "run")


def test_table(folder, tmp_path):
    out = tmp_path / "some.csv"
    done = call("complete", folder / "run", "--subgraphs", folder / "new.tsv", "--top", 3, "--out", out)
    assert done.out == f"{out}: nodes suggested for 2 subgraphs\n"
    found = pd.read_csv(out)
    assert list(found) == ["subgraph", *TITLES, "nodes", "known", "new"]
    assert list(found["subgraph"]) == ["g-0-g-1-#2"] * 3 + ["#9-#10"] * 3
    assert list(found["rank"]) == [1, 2, 3] * 2
    assert not set(found["node"][:3]) & {"g-0", "g-1", "g-2"}
    assert set(found["node"][:3]) <= {f"g-{i}" for i in range(8)}  # of the same clique
    assert (found["neighbours"] > 0).all()
    assert "exists already" in call("complete", folder / "run", "--subgraphs", folder / "new.tsv", "--out", out).error
    printed = call("complete", folder / "run", "--subgraphs", folder / "new.tsv", "--top", 3, "--json").json
    assert (printed["num_subgraphs"], printed["notes"]) == (2, [])
    rows = pd.DataFrame(printed["suggestions"])
    assert rows[["subgraph", "rank", "node"]].equals(found[["subgraph", "rank", "node"]])


def test_among(folder, tmp_path):
    (tmp_path / "some.txt").write_text("g-3\tignored\n\ng-20\ng-0\nG-3\n")
    asked = ("complete", folder / "run", "--subgraphs", folder / "new.tsv", "--among", tmp_path / "some.txt", "--json")
    rows = call(*asked).json["suggestions"]
    assert [row["node"] for row in rows if row["subgraph"] == "g-0-g-1-#2"] == ["g-3", "g-20"]
    assert len([row for row in rows if row["subgraph"] == "#9-#10"]) == 3
    (tmp_path / "some.txt").write_text("g-3\nnobody\n")
    done = call(*asked)
    assert (done.code, done.out) == (2, "")
    assert done.error.startswith(f"{tmp_path / 'some.txt'}: node 'nobody' is not in the graph")
    done = call(*asked, "--unknown", "drop")
    assert {row["node"] for row in done.json["suggestions"]} == {"g-3"}
    (tmp_path / "some.txt").write_text("\n")
    assert call(*asked).error == f"{tmp_path / 'some.txt'}: no nodes to choose from; give one node per line"
    assert "no such file" in call(*asked[:-2], tmp_path / "none.txt").error


def test_mistakes(folder, tmp_path):
    asked = ("complete", folder / "run", "--subgraphs")
    (tmp_path / "wrong.tsv").write_text("g-0\ng-99\n")
    assert call(*asked, tmp_path / "wrong.tsv").error.startswith(f"{tmp_path / 'wrong.tsv'}:2: ")
    (tmp_path / "empty.tsv").write_text("")
    assert call(*asked, tmp_path / "empty.tsv").code == 2
    assert call(*asked, folder / "new.tsv", "--top", 0).code == 2
    (tmp_path / "dropped.csv").write_text("name,nodes\na,g-0;g-1\nb,nobody\n")
    done = call(*asked, tmp_path / "dropped.csv", "--unknown", "drop", "--top", 1, "--json")
    row, nothing = done.json["suggestions"]
    assert (nothing["name"], nothing["node"], nothing["rank"], nothing["dropped"]) == ("b", None, None, "nobody")
    assert (row["name"], row["dropped"]) == ("a", "")


def test_an_export_needs_the_dataset(folder, tmp_path):
    file = tmp_path / "run.safetensors"
    call("export", folder / "run", "--with-graph", "--out", file)
    asked = ("complete", file, "--subgraphs", folder / "new.tsv", "--top", 2)
    done = call(*asked)
    assert (done.code, done.out) == (2, "")
    assert done.error == (
        f"{file}: an exported run contains no known subgraphs to learn from; give the dataset with --data, or the "
        "folder of the run"
    )
    wanted = call("complete", folder / "run", "--subgraphs", folder / "new.tsv", "--top", 2).out
    assert call(*asked, "--data", folder / "data").out == wanted


def test_test_subgraphs_are_not_known(folder):
    opened = open_run(folder / "run")
    known = Completer.of_run(opened, "run").features.known
    wanted = opened.subgraphs.nodes.take(range(25))  # 20 of train, 5 of val
    assert [row.tolist() for row in known] == [row.tolist() for row in wanted]


def test_in_python(run, folder, tmp_path):
    found = run.complete(SETS, top=2)
    assert list(found) == ["subgraph", *TITLES, "name", "nodes", "known", "new"]
    assert list(found["name"]) == ["one", "one", "two", "two"]
    assert found["probability"].between(0, 1).all()
    every = run.complete(SETS, top=10**6)
    assert every["name"].value_counts().to_dict() == {"one": 21, "two": 22}
    assert list(run.complete(SETS, among=["g-3", "g-4", "g-0"])["name"]) == ["one"] * 2 + ["two"] * 3
    (tmp_path / "some.txt").write_text("g-3\n")
    assert list(run.complete(SETS, among=str(tmp_path / "some.txt"))["node"]) == ["g-3", "g-3"]
    with pytest.raises(UserError, match="cannot suggest 0 nodes"):
        run.complete(SETS, top=0)
    with pytest.raises(DataError, match="among: node 'nobody' is not in the graph"):
        run.complete(SETS, among=["nobody"])


def test_candidates_without_names():
    graph = dataset().graph
    assert read_candidates([5, 3, "#3"], graph).tolist() == [3, 5]
    with pytest.warns(DataWarning, match="left out"):
        assert read_candidates([5, 99], graph, ReadOptions(unknown="drop")).tolist() == [5]


def test_nodes_are_named_by_text_rather_than_by_numbers(run):
    columns = {"id": Strings.of(str(100 + i) for i in range(24)), "symbol": Strings.of(f"g-{i}" for i in range(24))}
    graph = replace(run.graph, names=NodeNames(columns))
    features = Completer.of_run(open_run(run.path), "run").features
    features.graph = graph
    blank = Completer(features, Ranker(np.zeros(len(NAMES)), np.zeros(len(NAMES)), 0.0))
    query = Query(as_members([["100", "g-1"]], graph), match_nodes(as_members([["100", "g-1"]], graph), graph))
    (part,) = completion_table(blank, query, top=2).parts
    assert [row[2] for row in zip(*part, strict=True)] == ["g-2", "g-3"]
