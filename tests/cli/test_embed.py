"""``embed --recipe``: vectors of the subgraphs of a graph, without labels and without a run."""

from dataclasses import replace

import numpy as np
import pytest
from pyarrow import parquet

import subgnn
from subgnn import NodeNames, write_bundle, write_folder
from tests.cli.command import call
from tests.training.examples import dataset

SMALL = ("--set", "vectors.width=24")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A dataset with names, its graph in other forms, and files of subgraphs without labels."""
    here = tmp_path_factory.mktemp("embed")
    data = dataset()
    named = replace(data, graph=replace(data.graph, names=NodeNames.of(f"g{i}" for i in range(24))))
    write_folder(named, here / "data")
    write_folder(named, here / "alone")
    (here / "alone" / "subgraphs.tsv").unlink()
    write_bundle(named, here / "data.subgnn")
    source, target, *_ = data.graph.edges()
    (here / "edges.csv").write_text(
        "source,target\n" + "".join(f"g{a},g{b}\n" for a, b in zip(source, target, strict=True))
    )
    rows = [[f"g{node}" for node in row] for row in data.subgraphs.nodes]
    (here / "sets.csv").write_text("name,nodes\n" + "".join(f"s{i},{';'.join(row)}\n" for i, row in enumerate(rows)))
    (here / "new.csv").write_text("name,nodes\nfirst,g0;g1;nobody\nsecond,nobody\nthird,g9\n")
    return here


def test_every_form_of_a_graph_gives_the_vectors_that_python_gives(folder, tmp_path):
    found = {}
    for graph in ("data", "alone", "data.subgnn", "edges.csv"):
        out = tmp_path / f"{graph}.npy"
        given = ("--recipe", "unsupervised", "--subgraphs", folder / "sets.csv", "--out", out, *SMALL)
        done = call("embed", folder / graph, *given, "--json")
        expected = {"run": str(folder / graph), "out": str(out), "num_subgraphs": 30, "width": 24}
        assert done.json.items() >= expected.items()
        found[graph] = np.load(out)
    for vectors in found.values():
        np.testing.assert_allclose(vectors, found["data"], atol=1e-3)
    options = {"settings": {"vectors.width": 24}}
    in_python = subgnn.embed_subgraphs(folder / "alone", folder / "sets.csv", **options)
    np.testing.assert_allclose(in_python, found["data"], atol=1e-6)
    assert list(in_python.index[:2]) == ["s0", "s1"]
    data = dataset()
    np.testing.assert_allclose(subgnn.embed_subgraphs(data, data.subgraphs, **options), found["data"], atol=1e-6)


def test_the_model_is_kept_for_further_subgraphs_which_may_lack_nodes(folder, tmp_path):
    first, again, new = (tmp_path / name for name in ("first.npy", "again.npy", "new.parquet"))
    model, given = tmp_path / "model.safetensors", ("--recipe", "unsupervised", *SMALL)
    done = call("embed", folder / "alone", *given, "--subgraphs", folder / "sets.csv", "--out", first, "--model", model)
    assert done.out.splitlines()[-2:] == [
        f"{first}: vectors of 24 numbers for 30 subgraphs",
        f"{model}: the model, to embed more subgraphs",
    ]
    assert call("embed", model, "--subgraphs", folder / "sets.csv", "--out", again).code == 0
    np.testing.assert_array_equal(np.load(again), np.load(first))
    assert call("embed", model, "--subgraphs", folder / "new.csv", "--out", new, "--unknown", "drop").code == 0
    vectors = np.array(parquet.read_table(new)["vector"].to_pylist())
    assert np.isnan(vectors).any(axis=1).tolist() == [False, True, False]
    for verb, out in (("predict", "labels.tsv"), ("explain", "why.json")):
        refused = call(verb, model, "--subgraphs", folder / "sets.csv", "--out", tmp_path / out)
        assert refused.code == 2
        assert "the model was fitted without labels" in refused.error
        assert not (tmp_path / out).exists()


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (("--recipe", "bag"), "--recipe: the recipe bag learns its vectors from labels; accepted: unsupervised"),
        (("--recipe", "unsupervise"), "--recipe: unknown recipe 'unsupervise'"),
        (
            ("--recipe", "unsupervised", "--data", "x"),
            "--data: this option does not apply here: --recipe computes vectors",
        ),
        (("--recipe", "unsupervised", "--set", "vectors.width=3"), "--set: vectors.width is 3; accepted: a whole num"),
        (("--set", "vectors.width=30"), "--set: this option does not apply here: a run is given; leave it out, or run"),
        ((), "no finished run; subgnn train writes one"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(folder, tmp_path, options, error):
    done = call("embed", folder / "data", *options, "--subgraphs", folder / "sets.csv", "--out", tmp_path / "out.npy")
    assert done.code == 2
    assert error in done.error
    assert not list(tmp_path.iterdir())
