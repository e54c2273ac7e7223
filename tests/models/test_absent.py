"""Absent nodes, looked for and not found: read, stored, and used by bags, walks and profiles."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from subgnn import DataError, Dataset, Graph, NodeNames, SubgraphSet, load, train
from subgnn.data.formats import read_dataset
from subgnn.data.formats.bundle import write_bundle
from subgnn.data.formats.folder import write_folder
from subgnn.data.read_tables import read_tables
from subgnn.data.subgraphs import absent_of, absent_rows, with_absent
from subgnn.inference.explain import Explainer
from subgnn.inference.verify import verify
from subgnn.models.kernel_machines.rows import view_of
from subgnn.models.kernel_machines.views import DiffusionSettings
from subgnn.models.recipes import find_recipe, unused_line
from tests.cli.command import call

RECIPES = ("bag", "bag-1hop", "diffusion-topology", "profiles")
EDGES = "source,target\na,b\nb,c\nc,d\nd,e\n"
LONG = "subgraph,node,label,absent\ns,a,x,false\ns,b,x,no\ns,d,x,true\nt,e,y,0\n"
WIDE = "subgraph,nodes,label,absent\ns,a;b,x,d\nt,e,y,\n"


def named() -> Dataset:
    """Subgraphs of a ring of 40 nodes that only their absent nodes tell apart: below 10 for one class."""
    rng = np.random.default_rng(0)
    labels = [i % 2 for i in range(60)]
    nodes = [np.unique(rng.integers(20, 40, 4)) for _ in labels]
    absent = [rng.choice(10, 3, replace=False) + 10 * label for label in labels]
    graph = Graph.from_edges(range(40), [*range(1, 40), 0], names=NodeNames.of([f"n{i}" for i in range(40)]))
    splits = ["train"] * 40 + ["val"] * 10 + ["test"] * 10
    labels = ["low" if label == 0 else "high" for label in labels]
    subgraphs = SubgraphSet.from_lists(nodes, num_nodes=40, labels=labels, splits=splits, absent=absent)
    return Dataset("absent", graph, subgraphs)


def rows(ragged):
    return None if ragged is None else [row.tolist() for row in ragged]


@pytest.mark.parametrize("content", [LONG, WIDE])
def test_tables(tmp_path, content):
    (tmp_path / "edges.csv").write_text(EDGES)
    (tmp_path / "members.csv").write_text(content + "u,c,x,\nv,d,y,\nw,a,x,\n")
    with pytest.warns(UserWarning, match="the split was drawn"):
        found = read_tables(tmp_path / "edges.csv", tmp_path / "members.csv").subgraphs
    assert (rows(found.nodes)[:2], rows(found.absent)) == ([[0, 1], [4]], [[3], [], [], [], []])
    assert rows(found.take([1, 0]).absent) == [[], [3]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (LONG.replace("true", "maybe"), "column 'absent' has 'maybe'"),
        (LONG.replace("d,x,true", "a,x,true"), "node 'a' is in the subgraph and absent"),
        (WIDE.replace(",d\n", ",q\n"), "node 'q' is not in the graph"),
    ],
)
def test_wrong_tables(tmp_path, content, message):
    (tmp_path / "edges.csv").write_text(EDGES)
    (tmp_path / "members.csv").write_text(content)
    with pytest.raises(DataError, match=message):
        read_tables(tmp_path / "edges.csv", tmp_path / "members.csv")


def test_files_keep_them(tmp_path):
    data = named()
    write_bundle(data, tmp_path / "data.subgnn")
    write_folder(data, tmp_path / "folder")
    for path in ("data.subgnn", "folder"):
        found = read_dataset(tmp_path / path).subgraphs
        assert rows(found.absent) == rows(data.subgraphs.absent)
        assert found.content_hash == data.subgraphs.content_hash
    plain = replace(data.subgraphs, nodes=with_absent(data.subgraphs.nodes, None))
    assert plain.absent is None
    assert plain.content_hash != data.subgraphs.content_hash


def test_a_view_of_absent_nodes_is_that_of_subgraphs_of_them():
    data = named()
    nodes = data.subgraphs.nodes
    some = with_absent(nodes, absent_rows(nodes).take([0, 1]).from_rows([[1, 2], *[[]] * (len(nodes) - 1)]))
    for view, settings in product(
        ("bag", "lift", "one-hop"), [DiffusionSettings(algorithm=a) for a in ("exact", "push")]
    ):
        found = view_of(data.graph, some, f"absent {view}", settings).values
        expected = view_of(data.graph, absent_rows(some).take([0]), view, settings).values
        found, expected = (table.toarray() if hasattr(table, "toarray") else table for table in (found, expected))
        np.testing.assert_allclose(found[:1], expected, rtol=1e-5)
        assert not found[1:].any()


@pytest.mark.parametrize("recipe", RECIPES)
def test_models_learn_from_them(tmp_path, recipe):
    data = named()
    run = train(data, recipe=recipe, out=tmp_path / "run", report=False, progress=False)
    held = data.subgraphs.take(data.subgraphs.indices("test"))
    scores = run.predictor.probabilities(held)
    assert (scores.argmax(axis=1) == held.targets).mean() >= 0.8
    np.testing.assert_allclose(load(tmp_path / "run").predictor.probabilities(held), scores, atol=1e-5)
    order = np.arange(len(held))[::-1]
    np.testing.assert_allclose(run.predictor.probabilities(held.take(order)), scores[order], atol=1e-5)
    without = run.predictor.probabilities(replace(held, nodes=with_absent(held.nodes, None)))
    assert np.abs(without - scores).max() > 0.05


def test_a_weight_of_zero_ignores_them():
    data = named()
    held = data.subgraphs.take(data.subgraphs.indices("test"))
    with pytest.warns(UserWarning, match="not used by recipe profiles: absent nodes"):
        run = train(data, recipe=find_recipe("profiles", ["diffusion.absent=0"]), report=False, progress=False)
    plain = run.predictor.probabilities(replace(held, nodes=with_absent(held.nodes, None)))
    np.testing.assert_array_equal(run.predictor.probabilities(held), plain)


def test_explanations_and_records_keep_them(tmp_path):
    data = named()
    run = train(data, recipe="bag", out=tmp_path / "run", report=False, progress=False)
    held = data.subgraphs.take([50])
    (found,) = Explainer(run.predictor).explain(held.nodes)
    whole = run.predictor.outputs(held.nodes)[0]
    without = with_absent(held.nodes.from_rows([held.nodes[0][1:]]), absent_of(held.nodes))
    difference = whole - run.predictor.outputs(without)[0]
    (first,) = (item for item in found.by_node if item.node == held.nodes[0][0])
    np.testing.assert_allclose(first.contributions, difference, atol=1e-5)
    absent = ";".join(f"n{node}" for node in held.absent[0])
    (tmp_path / "new.csv").write_text(f"subgraph,nodes,absent\np,{';'.join(found.names)},{absent}\n")
    files = ("--subgraphs", tmp_path / "new.csv", "--record", tmp_path / "records", "--out", tmp_path / "out.csv")
    done = call("predict", tmp_path / "run", *files)
    assert done.code == 0
    assert [problem for _, problem in verify(tmp_path / "records")] == [""]


def test_recipes_that_ignore_them_say_so():
    data = named()
    line = unused_line(find_recipe("topology"), data.graph, data.subgraphs)
    assert line.startswith("not used by recipe topology: absent nodes (recipes that use them: auto, bag")
    assert unused_line(find_recipe("bag"), data.graph, data.subgraphs) == ""
