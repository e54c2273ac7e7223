"""The cache: found again by content alone, never trusted blindly, never in the way, and bounded."""

import os
import threading
import time
import warnings
from dataclasses import replace
from pathlib import Path

import pytest

from subgnn.config.settings import ChannelSettings, Recipe
from subgnn.errors import DataWarning
from subgnn.prepare import measure as preparing
from subgnn.prepare.measure import Plan, content_key, prepare_cached
from subgnn.storage.cache import cache_entries, cache_limit, make_room
from tests.models.subgnn.examples import SMALL, random_graph, random_subgraphs
from tests.prepared_equal import assert_same

CHANNELS = (ChannelSettings("neighborhood", "border", 2), ChannelSettings("structure", "border", 2))


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("SUBGNN_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("SUBGNN_CACHE_LIMIT", raising=False)
    return tmp_path / "cache" / "prepared"


def ask(seed=0, *, settings=SMALL, **options):
    recipe = Recipe(channels=CHANNELS, prepare=settings)
    return prepare_cached(recipe, random_graph(0), random_subgraphs(0), seed=seed, **options)


def files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*")) if folder.exists() else []


def test_the_second_time_it_is_found(monkeypatch):
    first = ask()
    assert not first.found
    assert first.path is not None
    monkeypatch.setattr(preparing, "prepare", lambda *_, **__: pytest.fail("computed again"))
    second = ask()
    assert second.found
    assert second.path == first.path
    assert_same(second.prepared, first.prepared)


def test_without_the_cache_nothing_is_written(folder):
    found = ask(cache=False)
    assert (found.path, found.found, files(folder)) == (None, False, [])


def test_the_key_follows_every_ingredient(monkeypatch):
    graph, subgraphs = random_graph(0), random_subgraphs(0)
    same = {"channels": CHANNELS, "layers": 1, "settings": SMALL, "seed": 0}
    first = content_key(graph.content_hash, subgraphs, Plan(**same))
    assert first == content_key(random_graph(0).content_hash, random_subgraphs(0), Plan(**same))
    fewer = replace(CHANNELS[0], num_anchors=1)
    keys = [
        first,
        content_key(random_graph(1).content_hash, subgraphs, Plan(**same)),
        content_key(graph.content_hash, random_subgraphs(1), Plan(**same)),
        content_key(graph.content_hash, subgraphs.take(range(4)), Plan(**same)),
        content_key(graph.content_hash, subgraphs.take([1, 0, 2, 3, 4]), Plan(**same)),
        content_key(graph.content_hash, subgraphs, Plan(**same | {"channels": CHANNELS[::-1]})),
        content_key(graph.content_hash, subgraphs, Plan(**same | {"channels": (fewer, CHANNELS[1])})),
        content_key(graph.content_hash, subgraphs, Plan(**same | {"layers": 2})),
        content_key(graph.content_hash, subgraphs, Plan(**same | {"seed": 1})),
    ]
    changes = {"hops": 2, "patch_length": 6, "walks": 3, "walk_length": 5, "beta": 0.5, "border_anchors": "heaviest"}
    assert set(changes) <= set(SMALL.__dataclass_fields__)
    for name, value in changes.items():
        changed = replace(SMALL, **{name: value})
        keys.append(content_key(graph.content_hash, subgraphs, Plan(**same | {"settings": changed})))
    monkeypatch.setattr(preparing, "ALGORITHM_VERSION", 10**6)
    keys.append(content_key(graph.content_hash, subgraphs, Plan(**same)))
    assert len(set(keys)) == len(keys)


DAMAGE = {
    "cut": lambda path, whole: path.write_bytes(whole[: len(whole) // 2]),
    "flip": lambda path, whole: path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1])),
    "empty": lambda path, _: path.write_bytes(b""),
    "foreign": lambda path, _: path.write_text("something else entirely"),
    "other key": lambda path, _: ask(seed=1).path.rename(path),
    "a folder": lambda path, _: (path.unlink(), path.mkdir()),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_file_is_said_and_replaced(damage):
    path = ask().path
    whole = path.read_bytes()
    damage(path, whole)
    with pytest.warns(
        DataWarning, match=r"\.prepared: damaged and ignored \(.*computed again and the file is replaced"
    ):
        again = ask()
    assert not again.found
    assert path.read_bytes() == whole
    assert ask().found
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_a_folder_that_cannot_be_written_is_done_without(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SUBGNN_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.warns(DataWarning, match="cannot be written .* continuing without the cache"):
        found = ask()
    assert found.path is None
    assert_same(found.prepared, ask(cache=False).prepared)


def test_the_least_recently_used_go_first(folder, monkeypatch):
    paths = [ask(seed=s).path for s in range(4)]
    for age, path in zip((40, 10, 30, 20), paths, strict=True):
        os.utime(path, (time.time() - age, time.time() - age))
    size = max(path.stat().st_size for path in paths)
    ask(seed=0)  # used again: no longer the oldest
    monkeypatch.setenv("SUBGNN_CACHE_LIMIT", str(3 * size))
    new = ask(seed=4).path
    assert {entry.path for entry in cache_entries()} == {paths[0], paths[1], new}
    assert sum(entry.size for entry in cache_entries()) <= cache_limit()


def test_what_is_larger_than_the_limit_is_not_kept(folder, monkeypatch):
    kept = ask().path
    monkeypatch.setenv("SUBGNN_CACHE_LIMIT", "1KB")
    with pytest.warns(DataWarning, match="not cached: .* more than SUBGNN_CACHE_LIMIT"):
        assert ask(seed=1).path is None
    assert files(folder) == [kept]
    monkeypatch.setenv("SUBGNN_CACHE_LIMIT", "0")
    assert ask(seed=1).path is None


def test_only_our_files_count_and_go(folder):
    kept = ask().path
    foreign = folder / "notes.prepared"
    foreign.write_text("x" * 100)
    assert [entry.path for entry in cache_entries()] == [kept]
    make_room(0, 0)
    assert files(folder) == [foreign]


def test_writers_at_once(folder):
    wanted = ask(cache=False).prepared
    found, go = [], threading.Barrier(4)

    def work() -> None:
        go.wait()
        for _ in range(5):
            found.append(ask())

    threads = [threading.Thread(target=work) for _ in range(4)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(found) == 20
    for one in found:
        assert_same(one.prepared, wanted)
    assert len(files(folder)) == 1
