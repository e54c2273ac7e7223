"""A limit on memory: it is read, kept to, and changes no number."""

from dataclasses import replace

import pytest

from subgnn.channels import distances
from subgnn.errors import UserError
from subgnn.parallel import memory
from tests.models.subgnn.examples import ALL_CHANNELS, SMALL, prepare_example
from tests.prepared_equal import assert_same


def test_too_little_is_refused():
    with (
        pytest.raises(UserError, match=r"--memory: 300 MB is too little; accepted: .* at least 1GB"),
        memory.memory_limit("300MB"),
    ):
        pass


def test_a_limit_ends_with_its_block():
    before = memory.limit()
    with memory.memory_limit("2GB"), memory.memory_limit(None):
        assert memory.limit() == 2 * 10**9
        with memory.memory_limit(3 * 10**9):
            assert memory.share(0.5) == 15 * 10**8
    assert memory.limit() == before
    assert 0 < before <= memory.machine_memory()


@pytest.mark.parametrize("how", ["exact", "bounded"])
def test_results_do_not_depend_on_the_limit(monkeypatch, how):
    settings = replace(SMALL, own_hops=how)
    for name, value in (("HOP_EDGES", 3), ("HOP_CUTOFF", 3), ("LANDMARKS", 2)):
        monkeypatch.setattr(distances, name, value)
    _, whole = prepare_example(4, settings=settings)
    monkeypatch.setattr(distances, "PAIRS_AT_ONCE", 3)
    monkeypatch.setattr(distances, "share", lambda part: 1)
    monkeypatch.setattr(distances, "_SMALL", 0)
    monkeypatch.setattr(distances, "WORD", 1)
    _, cut = prepare_example(4, settings=settings)
    assert_same(whole, cut)


def test_a_graph_that_does_not_fit_is_refused_before_the_work(monkeypatch):
    monkeypatch.setattr(distances, "limit", lambda: 100)
    with pytest.raises(UserError, match=r"--memory: one search needs .* GB, but the limit is .* GB; raise --memory"):
        prepare_example(4)
    structure = tuple(channel for channel in ALL_CHANNELS if channel.kind == "structure")
    prepare_example(4, channels=structure)


@pytest.mark.parametrize(
    ("text", "size"),
    [("8GB", 8 * 10**9), ("1.5 mb", 1_500_000), ("700", 700), ("2T", 2 * 10**12), ("0", 0), ("3k", 3000)],
)
def test_sizes(text, size):
    assert memory.parse_size(text, "here") == size


@pytest.mark.parametrize("text", ["", "much", "-1GB", "5 XB", "1e3", "GB", "10 apples"])
def test_text_that_is_not_a_size(text):
    with pytest.raises(UserError, match=r"here: '.*' is not a size; accepted: a number with KB, .* as 5GB; or none$"):
        memory.parse_size(text, "here", hint="or none")
