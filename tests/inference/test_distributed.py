"""Answers batch by batch on workers: equal, byte for byte, to those of this process."""

from __future__ import annotations

from dataclasses import replace

import pytest

from subgnn.api.train_recipe import train
from subgnn.inference.distributed import Workers
from subgnn.inference.predictor import Predictor
from subgnn.models.subgnn import build, fitted
from subgnn.parallel.engine import LocalEngine
from subgnn.training.run_dir import CHECKPOINT
from tests.training.examples import dataset, recipe


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("spread") / "run"
    asked = recipe(1, topology=True, trainable_components=True)
    asked = replace(asked, prepare=replace(asked.prepare, draws=2, ensemble=True))
    train(dataset(), asked, out, seed=0, device="cpu", cache=False, report=False)
    return out / CHECKPOINT


class Backwards(LocalEngine):
    """Ends jobs in the other order, and counts them."""

    count = 0

    def map(self, function, jobs):
        self.count += len(jobs)
        return super().map(function, list(reversed(jobs)))


@pytest.mark.quick(2)
@pytest.mark.parametrize("large", [False, True], ids=["table", "streamed"])
@pytest.mark.parametrize("method", ["outputs", "probabilities", "embeddings"])
def test_answers_are_equal(run, monkeypatch, large, method):
    for name in ("BATCH", "STREAMED_BATCH"):
        monkeypatch.setattr(fitted, name, 4)
    if large:
        monkeypatch.setattr(build, "LARGE", 0)
    graph, subgraphs = dataset().graph, dataset().subgraphs.nodes
    engine = Backwards()
    here = getattr(Predictor(run, graph), method)(subgraphs)
    there = getattr(Predictor(run, graph, workers=Workers(engine, graph)), method)(subgraphs)
    assert here.tobytes() == there.tobytes()
    assert engine.count > -(-len(subgraphs) // 4)
    some = getattr(Predictor(run, graph, workers=Workers(engine, graph)), method)(subgraphs.take([]))
    assert some.shape == (0, here.shape[1])
