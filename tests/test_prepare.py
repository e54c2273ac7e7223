"""Preparation: progress is told, and pieces do not change a number."""

from __future__ import annotations

import pytest

from subgnn import own_hops, pacing, prepare, similarity
from tests.nn.examples import ALL_CHANNELS, SMALL, prepare_example, random_graph, random_subgraphs
from tests.prepared_equal import assert_same


@pytest.mark.parametrize("seconds", [0.0, 1e9])
def test_results_do_not_depend_on_the_pieces(monkeypatch, seconds):
    _, whole = prepare_example(4)
    monkeypatch.setattr(pacing, "SECONDS", seconds)
    monkeypatch.setattr(own_hops, "PAIRS_AT_ONCE", 5)
    monkeypatch.setattr(similarity, "_PAIRS_AT_ONCE", 5)
    monkeypatch.setattr(similarity, "WORD", 1)
    monkeypatch.setattr(own_hops, "WORD", 1)
    _, cut = prepare_example(4)
    assert_same(whole, cut)


def test_progress_is_told():
    told = []
    graph, subgraphs = random_graph(4), random_subgraphs(4)
    prepare.prepare(
        graph,
        subgraphs,
        channels=ALL_CHANNELS,
        layers=2,
        settings=SMALL,
        seed=4,
        on_progress=lambda *a: told.append(a),
    )
    assert {what for what, _, _ in told} == {
        "hops to own anchors",
        "hops to far own anchors",
        "hops to shared anchors",
        "anchors at borders",
        "structure/internal, layer 1: time warping",
        "structure/internal, layer 2: time warping",
        "structure/border, layer 1: time warping",
        "structure/border, layer 2: time warping",
    }
    assert all(0 <= done <= total for _, done, total in told)
    for what in {what for what, _, _ in told}:
        last = [(done, total) for name, done, total in told if name == what][-1]
        assert last[0] == last[1] > 0
