"""Training subgraphs by cosine, beside all pairs; and examples to start with."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from subgnn.ragged import Ragged
from subgnn.serve import runs
from subgnn.serve.runs import TrainingSet
from tests.serve.examples import served


def cosines(a, b):
    return (a @ b) / (np.linalg.norm(a, axis=1) * np.linalg.norm(b))


@pytest.mark.parametrize("portion", [3, 64])
def test_nearest_are_the_largest_cosines(portion, monkeypatch):
    monkeypatch.setattr(runs, "_TRAINING_PART", portion)
    run = served()
    training = TrainingSet(run.predictor, run.subgraphs)
    assert not training.ready
    nodes = np.array([0, 1, 9, 22], np.int32)
    found = training.nearest(nodes, 4)
    assert training.ready
    rows = run.subgraphs.indices("train")
    every = cosines(
        run.predictor.embeddings(run.subgraphs.nodes.take(rows)),
        run.predictor.embeddings(Ragged.from_rows([nodes]))[0],
    )
    order = np.argsort(-every, kind="stable")[:4]
    assert [place for place, _ in found] == rows[order].tolist()
    np.testing.assert_allclose([cosine for _, cosine in found], every[order], rtol=1e-4)


def test_a_subgraph_of_training_is_nearest_to_itself():
    run = served()
    own = run.subgraphs.nodes[3]
    described = run.nearest(own, 1)["nearest"][0]
    assert described["nodes"] == own.tolist()
    assert described["similarity"] == pytest.approx(1)
    assert described["labels"] == [run.subgraphs.classes[run.subgraphs.targets[3]]]


@pytest.mark.parametrize("splits", [None, [0] * 30, [0] * 20 + [1] * 10, [0] * 20 + [1] * 5 + [2] * 5])
def test_examples_are_of_every_class_and_of_test_if_there_is_one(splits):
    run = served()
    subgraphs = replace(run.subgraphs, splits=None if splits is None else np.array(splits, np.int8))
    found = replace(run, subgraphs=subgraphs).examples()
    split = "all" if splits is None else ("train", "val", "test")[max(splits)]
    assert {one["split"] for one in found} == {split}
    rows = range(30) if splits is None else subgraphs.indices(split)
    assert {one["place"] for one in found} <= set(rows)
    assert len(found) == min(8, len(rows))
    assert len({label for one in found[:3] for label in one["labels"]}) == 3
    assert [one["nodes"] for one in found] == [subgraphs.nodes[one["place"]].tolist() for one in found]
    assert replace(run, subgraphs=None).examples() == []


def test_more_than_there_are_and_none_at_all():
    run = served()
    assert len(run.training.nearest(np.array([0], np.int32), 50)) == len(run.training) == 20
    assert TrainingSet(run.predictor, None).nearest(np.array([0], np.int32), 5) == []


def test_work_that_was_given_up_goes_on_where_it_ended(monkeypatch):
    monkeypatch.setattr(runs, "_TRAINING_PART", 8)
    run = served()
    training = TrainingSet(run.predictor, run.subgraphs)
    assert not training.advance()
    assert not training.advance()
    asked = []
    embeddings = run.predictor.embeddings
    monkeypatch.setattr(type(run.predictor), "embeddings", lambda _, rows: asked.append(len(rows)) or embeddings(rows))
    training.vectors()
    assert asked == [4]
