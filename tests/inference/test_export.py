"""An exported run answers as the run does; a file that is not what it says is refused."""

import json
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from subgnn import DataError, Ragged, UserError
from subgnn.inference.explain import Explainer
from subgnn.inference.open import EXPORT, export_run, open_run
from subgnn.models.baselines.bag import BagSettings
from subgnn.models.recipes import find_recipe
from subgnn.storage.arrays import encode_arrays, read_arrays, write_parts
from subgnn.training.run_dir import CHECKPOINT
from tests.inference.explained import named_run
from tests.training.examples import recipe

ROWS = Ragged.from_rows([[0, 1, 2, 10, 11, 20], [3, 9]])


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    return named_run(tmp_path_factory.mktemp("exported"), recipe(2, topology=True, trainable_components=True))


@pytest.fixture(scope="module")
def file(run) -> Path:
    out = run.parent / "whole.safetensors"
    export_run(run, out, with_graph=True)
    return out


def same(run: Path, out: Path, data: Path | None = None) -> None:
    before, after = open_run(run).predictor, open_run(out, data).predictor
    np.testing.assert_array_equal(before.outputs(ROWS), after.outputs(ROWS))
    np.testing.assert_array_equal(before.embeddings(ROWS), after.embeddings(ROWS))
    assert before.checkpoint.spec.recipe() == after.checkpoint.spec.recipe()
    assert before.checkpoint.spec.classes == after.checkpoint.spec.classes


def test_it_answers_as_the_run_does(run, file):
    same(run, file)
    opened = open_run(file)
    assert list(opened.predictor.graph.names.primary)[:2] == ["n0", "n1"]
    assert opened.subgraphs is None
    assert opened.result == replace(open_run(run).result, run="", source="")


def test_other_tasks(tmp_path):
    run = named_run(tmp_path, recipe(2, hidden_norm="batch"), "regression")
    export_run(run, tmp_path / "it", with_graph=True)
    same(run, tmp_path / "it")
    np.testing.assert_array_equal(
        open_run(run).predictor.probabilities(ROWS), open_run(tmp_path / "it").predictor.probabilities(ROWS)
    )


@pytest.mark.quick(3)
@pytest.mark.parametrize("method", ["avg", "bag", "gc", "topology", "glass", "ssnp", "wlks", "s2n"])
def test_baselines(method, tmp_path):
    small = {"bag": [], "topology": ["topology.classifier=forest"]}
    others = ["embeddings.dim=4", "embeddings.source=random", "training.epochs=1"]
    run = named_run(tmp_path, find_recipe(method, small.get(method, others)))
    export_run(run, tmp_path / "it", with_graph=True)
    same(run, tmp_path / "it")


@pytest.fixture(scope="module")
def correcting(tmp_path_factory) -> Path:
    """A run whose network corrects a baseline, exported; the run is beside it."""
    folder = tmp_path_factory.mktemp("correcting")
    settings = recipe(3, baseline="bag").with_method_settings(BagSettings(normalize="rows"))
    run = named_run(folder, settings)
    export_run(run, folder / "it", with_graph=True)
    return folder / "it"


def test_a_baseline_that_is_corrected_travels_with_its_network(correcting):
    same(correcting.parent / "run", correcting)
    assert open_run(correcting).predictor.checkpoint.parts["baseline"].spec.method == "bag"
    before, after = (Explainer.of_run(open_run(path)).explain(ROWS) for path in (correcting.parent / "run", correcting))
    assert [one.to_json() for one in before] == [one.to_json() for one in after]
    assert "baseline" in [part.name for part in after[0].by_channel]
    assert after[0].reference == "training mean"


@pytest.mark.parametrize(
    "change",
    [
        lambda a, c: c["checkpoint"].__setitem__("parts", None),
        lambda a, c: c["checkpoint"].pop("parts"),
        lambda a, c: c["checkpoint"]["parts"]["baseline"]["recipe"].__setitem__("method", "avg"),
        lambda a, c: c["checkpoint"]["parts"]["baseline"].__setitem__("task", "regression"),
        lambda a, c: a.pop("checkpoint.parts.0.table_nodes"),
    ],
)
def test_a_network_without_the_baseline_it_corrects_is_refused(change, correcting, tmp_path):
    said = "is incomplete or malformed|is missing, wrong or not needed|has a different task"
    with pytest.raises(DataError, match=said):
        open_run(rewritten(correcting, tmp_path / "wrong", change))


def test_embeddings_of_a_file_travel_with_it(tmp_path):
    np.save(tmp_path / "given.npy", np.random.default_rng(0).normal(size=(24, 8)).astype(np.float32))
    settings = recipe(1)
    given = replace(settings.embeddings, source=str(tmp_path / "given.npy"))
    run = named_run(tmp_path, replace(settings, embeddings=given))
    export_run(run, tmp_path / "it", with_graph=True)
    expected = open_run(run).predictor.outputs(ROWS)
    (tmp_path / "given.npy").unlink()
    (run / "embeddings.safetensors").unlink()
    np.testing.assert_array_equal(open_run(tmp_path / "it").predictor.outputs(ROWS), expected)


def test_without_the_graph_the_dataset_is_asked_for(run, tmp_path):
    export_run(run, tmp_path / "it")
    with pytest.raises(DataError, match="the graph of cliques is not in the file; say where it is with data, give"):
        open_run(tmp_path / "it")
    same(run, tmp_path / "it", run.parent / "data")


def test_nothing_is_pickled_and_no_place_is_told(run, file, monkeypatch):
    assert str(run.parent).encode() not in file.read_bytes()

    def refuse(*_, **__):
        raise AssertionError("pickle")

    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, refuse)
    monkeypatch.setattr(torch, "load", refuse)
    open_run(file)


def test_an_export_can_be_exported(file, tmp_path):
    export_run(file, tmp_path / "again", with_graph=True)
    assert (tmp_path / "again").read_bytes() == file.read_bytes()


def rewritten(file: Path, out: Path, change) -> Path:
    """A file that someone changed, and gave a checksum that fits."""
    opened = read_arrays(file, EXPORT)
    content = json.loads(opened.metadata["content"])
    arrays = {name: np.array(array) for name, array in opened.arrays.items()}
    change(arrays, content)
    write_parts(out, encode_arrays(arrays, EXPORT, content))
    return out


CHANGES = {
    "node that is not in the graph": lambda a, c: a["checkpoint.table_nodes"].__setitem__(-1, 10**6),
    "nodes of its table are not in order": lambda a, c: a["checkpoint.table_nodes"].__setitem__(1, 0),
    "graph is not the one": lambda a, c: c["checkpoint"].__setitem__("graph_hash", "0" * 64),
    "graph does not match its hash": lambda a, c: c["graph"].__setitem__("graph_hash", "0" * 64),
    "neighbours of node 0 are not .*; export the run again": lambda a, c: a["graph.graph.neighbors"].__setitem__(0, 99),
    "weights do not fit": lambda a, c: a.pop("checkpoint.weights.head.layers.0.weight"),
    "is incomplete .*table_nodes": lambda a, c: a.pop("checkpoint.table_nodes"),
    "is incomplete or malformed": lambda a, c: c["checkpoint"].__setitem__("layers", 7),
    "unknown setting": lambda a, c: c["checkpoint"]["recipe"].__setitem__("code", "import os"),
    "mean vector does not fit": lambda a, c: a.__setitem__("reference", np.zeros((1, 3), np.float32)),
    "embeddings are not those": lambda a, c: a.__setitem__("vectors", np.zeros((24, 8), np.float32)),
}
ANCHORS = {
    "missing": lambda a, c: a.pop("checkpoint.anchors.0.1.nodes"),
    "too few": lambda a, c: a.__setitem__("checkpoint.anchors.0.1.nodes", np.zeros(2, np.int32)),
    "of another type": lambda a, c: a.__setitem__("checkpoint.anchors.0.1.nodes", np.zeros(4, np.float32)),
    "overlapping": lambda a, c: a["checkpoint.anchors.0.4.walks.offsets"].__setitem__(1, 10**9),
}


@pytest.mark.parametrize("change", ANCHORS)
def test_anchors_are_those_of_the_recipe(change, file, tmp_path):
    wrong = rewritten(file, tmp_path / "wrong", ANCHORS[change])
    with pytest.raises(DataError, match=r"is incomplete or malformed|do not describe the values"):
        open_run(wrong)


@pytest.mark.parametrize("said", CHANGES)
def test_what_does_not_hold_together_is_refused(said, file, tmp_path):
    wrong = rewritten(file, tmp_path / "wrong", CHANGES[said])
    with pytest.raises(UserError, match=said):
        open_run(wrong)


@pytest.mark.parametrize("place", [0, 20, 2000, -5])
def test_a_flipped_byte_is_noticed(place, file, tmp_path):
    content = bytearray(file.read_bytes())
    content[place] ^= 0x15
    (tmp_path / "flipped").write_bytes(content)
    with pytest.raises(DataError):
        open_run(tmp_path / "flipped")


def test_other_files_are_refused(run, file, tmp_path):
    (tmp_path / "short").write_bytes(file.read_bytes()[:-100])
    with pytest.raises(DataError, match="the exported run ends within"):
        open_run(tmp_path / "short")
    for other in (run / CHECKPOINT, run / "run.json"):
        with pytest.raises(DataError, match="this is not a subgnn exported run; make one with subgnn export"):
            open_run(other)
    with pytest.raises(DataError, match="nothing: no finished run"):
        open_run(tmp_path / "nothing")
