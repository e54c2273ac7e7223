"""Files of the release before, one of each kind: they open, are verified, and predict as they did."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from subgnn import Ragged, read_dataset
from subgnn.embeddings.stored import read_vectors
from subgnn.errors import DataError
from subgnn.inference.export import export_run
from subgnn.inference.open import open_run
from subgnn.prepare.cached import prepare_cached, read_prepared
from subgnn.prepare.measure import Plan
from tests.training.examples import CHANNELS, dataset, recipe

EARLIER = Path(__file__).parents[1] / "files" / "earlier"
ROWS = Ragged.from_rows([[0, 1, 2, 10, 11, 20], [3, 9]])
RUNS = ("subgnn", "correcting", "members", "avg", "pretrained", "version5")
EXPORTS = ("correcting", "members", "pretrained", "version5")


def damaged(path: Path, folder: Path) -> Path:
    """A copy whose last byte was changed."""
    content = path.read_bytes()
    (folder / path.name).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    return folder / path.name


def test_bundle(tmp_path):
    before, now = read_dataset(EARLIER / "cliques.subgnn"), dataset()
    assert before.graph.content_hash == now.graph.content_hash
    assert [nodes.tolist() for nodes in before.subgraphs.nodes] == [nodes.tolist() for nodes in now.subgraphs.nodes]
    with pytest.raises(DataError, match="does not match its checksum; the file is damaged; convert the dataset again"):
        read_dataset(damaged(EARLIER / "cliques.subgnn", tmp_path))


@pytest.mark.parametrize("name", RUNS)
def test_run(name, tmp_path):
    predictor = open_run(EARLIER / name, EARLIER / "cliques.subgnn").predictor
    np.testing.assert_allclose(predictor.outputs(ROWS), np.load(EARLIER / f"{name}.npy"), atol=1e-6)
    export_run(EARLIER / name, tmp_path / "export", data=EARLIER / "cliques.subgnn", with_graph=True)
    np.testing.assert_array_equal(open_run(tmp_path / "export").predictor.outputs(ROWS), predictor.outputs(ROWS))


@pytest.mark.parametrize("name", EXPORTS)
def test_export(name, tmp_path):
    predictor = open_run(EARLIER / f"{name}.export").predictor
    np.testing.assert_allclose(predictor.outputs(ROWS), np.load(EARLIER / f"{name}.npy"), atol=1e-6)
    with pytest.raises(DataError, match="does not match its checksum; the file is damaged; export the run again"):
        open_run(damaged(EARLIER / f"{name}.export", tmp_path))


def test_embeddings(tmp_path):
    (path,) = EARLIER.glob("*.safetensors")
    assert read_vectors(path, dataset().graph).shape == (24, 8)
    with pytest.raises(DataError, match="does not match its checksum; the file is damaged; pretrain again"):
        read_vectors(damaged(path, tmp_path), dataset().graph)


def test_prepared_subgraphs_have_another_layout_and_are_computed_anew(tmp_path, monkeypatch):
    monkeypatch.setenv("SUBGNN_CACHE", str(tmp_path))
    (tmp_path / "prepared").mkdir()
    (path,) = EARLIER.glob("*.prepared")
    shutil.copy(path, tmp_path / "prepared")
    data, settings = dataset(), recipe(1)
    plan = Plan(CHANNELS[:1], 1, settings.prepare, seed=0)
    computed = prepare_cached(data.graph, data.subgraphs.nodes, plan)
    assert not computed.found
    assert prepare_cached(data.graph, data.subgraphs.nodes, plan).found
    with pytest.raises(DataError, match="it belongs to other content"):
        read_prepared(path, plan, key="another", graph_hash="")
