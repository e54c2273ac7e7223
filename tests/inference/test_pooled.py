"""Outputs from the workers of an engine, which are those of one process, byte for byte."""

from types import SimpleNamespace

import numpy as np
import pytest

from subgnn.api.train_recipe import train
from subgnn.data.formats.bundle import write_bundle
from subgnn.data.formats.folder import write_folder
from subgnn.errors import UserError
from subgnn.inference import predictor as pieces
from subgnn.inference.open import open_run
from subgnn.inference.predictor import pooled
from subgnn.models.recipes import find_recipe
from subgnn.parallel.engine import Failure, Held, LocalEngine
from tests.cli.command import call
from tests.training.examples import dataset


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Runs of two recipes, one on a folder and one on a bundle, and a file of 35 subgraphs."""
    found, data = tmp_path_factory.mktemp("pooled"), dataset()
    write_folder(data, found / "folder")
    write_bundle(data, found / "data.subgnn")
    for recipe, source in (("enrichment", "folder"), ("diffusion", "data.subgnn")):
        options = {"source": str(found / source), "report": False, "cache": False}
        train(data, find_recipe(recipe), found / recipe, **options)
    rows = [np.unique(np.random.default_rng(i).integers(0, data.graph.num_nodes, 6)) for i in range(35)]
    (found / "new.txt").write_text("".join("-".join(map(str, row)) + "\n" for row in rows))
    return found


@pytest.mark.quick(1)
@pytest.mark.parametrize("recipe", ["enrichment", "diffusion"])
def test_two_processes_write_what_one_writes(folder, monkeypatch, tmp_path, recipe):
    monkeypatch.setattr(pieces, "BATCH", 4)
    for processes in (1, 2):
        words = ("--subgraphs", folder / "new.txt", "--out", tmp_path / f"{processes}.tsv", "--processes", processes)
        assert call("predict", folder / recipe, *words).code == 0
    assert len((tmp_path / "1.tsv").read_text().splitlines()) == 36
    assert (tmp_path / "1.tsv").read_bytes() == (tmp_path / "2.tsv").read_bytes()


def test_vectors_come_from_the_workers_too(folder, monkeypatch):
    monkeypatch.setattr(pieces, "BATCH", 8)
    opened = open_run(folder / "enrichment")
    nodes = opened.subgraphs.nodes
    with LocalEngine(2) as engine:
        predictor = pooled(opened.predictor, engine)
        assert predictor.fitted is not opened.predictor.fitted
        for name in ("outputs", "embeddings"):
            np.testing.assert_array_equal(getattr(predictor, name)(nodes), getattr(opened.predictor, name)(nodes))
    assert pooled(opened.predictor, None) is pooled(opened.predictor, LocalEngine()) is opened.predictor


@pytest.mark.parametrize(
    ("failure", "error", "message"),
    [
        (Failure("it was killed"), UserError, "workers: it was killed; use fewer processes"),
        (Failure.of(UserError("no", where="here")), UserError, "here: no"),
        (Failure.of(KeyError("x")), RuntimeError, "KeyError: 'x'"),
    ],
)
def test_a_failure_of_a_worker_is_raised(folder, monkeypatch, failure, error, message):
    monkeypatch.setattr(pieces, "BATCH", 8)
    opened = open_run(folder / "enrichment")
    engine = SimpleNamespace(slots=2, share=Held, map=lambda _, jobs: [(job, failure) for job in jobs])
    with pytest.raises(error, match=message):
        pooled(opened.predictor, engine).outputs(opened.subgraphs.nodes)
