"""Pretrained embeddings in the cache: bounded, never in the way, and safe with several processes at once."""

from __future__ import annotations

import errno
import os
import threading
import warnings
from dataclasses import replace

import numpy as np
import pytest

from subgnn.config.settings import EmbeddingSettings, Recipe
from subgnn.embeddings import pretrain as module
from subgnn.embeddings.pretrain import cache_file, pretrain, pretrained_vectors
from subgnn.errors import DataError, DataWarning
from subgnn.storage.cache import cache_entries, cache_path
from tests.embeddings.examples import blocks, quick

GRAPH = blocks(2, 10)
SETTINGS = quick(epochs=3, steps=1)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("SUBGNN_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("SUBGNN_CACHE_LIMIT", raising=False)
    return tmp_path / "cache" / "embeddings"


@pytest.fixture
def count(monkeypatch):
    """The states that pretrainings were given."""
    states = []
    real = module.pretrain
    monkeypatch.setattr(module, "pretrain", lambda *a, **k: states.append(k["state"]) or real(*a, **k))
    return states


def pretrained(seed=0):
    return Recipe(embeddings=EmbeddingSettings(source="gin", dim=4), pretrain=replace(SETTINGS, seed=seed))


def ask(seed=0, **options):
    return pretrained_vectors(pretrained(seed), GRAPH, device="cpu", **options)


def file_of(seed=0):
    return cache_file(pretrained(seed), GRAPH)


def names(folder):
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def test_they_are_an_entry_and_being_found_renews_it(count, folder):
    first = ask()
    assert [entry.path for entry in cache_entries()] == [file_of()]
    assert names(folder) == [file_of().name]
    assert file_of() == cache_path("embeddings", file_of().stem)
    os.utime(file_of(), (1, 1))
    assert np.array_equal(ask(), first)
    assert len(count) == 1
    assert file_of().stat().st_mtime > 1


def test_a_state_that_cannot_be_written_is_said_and_work_goes_on(monkeypatch, tmp_path):
    def full(value, path, kind):
        raise DataError(f"cannot be written ({os.strerror(errno.ENOSPC)})", where=str(path))

    monkeypatch.setattr(module, "SECONDS_BETWEEN_SAVES", 0.0)
    monkeypatch.setattr(module, "save_state", full)
    with pytest.warns(DataWarning, match=r"state.*No space left on device\); pretraining continues, but cannot be"):
        found = pretrain(GRAPH, "gin", dim=4, settings=SETTINGS, device="cpu", state=tmp_path / "state.safetensors")
    assert np.array_equal(found.vectors, ask(cache=False))


def interrupted(monkeypatch):
    """A pretraining that was interrupted after its second epoch; returns its state's file."""

    def interrupt(record):
        if record["epoch"] == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(module, "SECONDS_BETWEEN_SAVES", 0.0)
    with pytest.raises(KeyboardInterrupt):
        ask(on_epoch=interrupt)
    return file_of().with_suffix(".state.safetensors")


def test_an_interrupted_one_goes_on_and_leaves_nothing_else(monkeypatch, folder):
    wanted = ask(cache=False)
    state = interrupted(monkeypatch)
    assert names(folder) == [state.name]
    assert [entry.path for entry in cache_entries()] == [state]
    seen = []
    assert np.array_equal(ask(on_epoch=seen.append), wanted)
    assert [record["epoch"] for record in seen] == [2]
    assert names(folder) == [file_of().name]


def test_a_damaged_state_is_said_and_replaced(monkeypatch, folder):
    wanted = ask(cache=False)
    state = interrupted(monkeypatch)
    state.write_bytes(state.read_bytes()[:-20])
    seen = []
    with pytest.warns(
        DataWarning, match="the state of a pretraining ends within .*; pretraining starts from the beginning"
    ):
        assert np.array_equal(ask(on_epoch=seen.append), wanted)
    assert len(seen) == 3
    assert names(folder) == [file_of().name]


def test_of_several_at_once_one_has_the_state(folder, monkeypatch):
    result = pretrain(GRAPH, "gin", dim=4, settings=SETTINGS, device="cpu")
    states, found, inside = [], [], threading.Barrier(4)

    def stub(*_, state, **__):
        states.append(state)
        inside.wait(timeout=200)  # all four are at it at once
        return result

    monkeypatch.setattr(module, "pretrain", stub)
    threads = [threading.Thread(target=lambda: found.append(ask())) for _ in range(4)]
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(map(str, states)) == sorted(["None"] * 3 + [str(file_of().with_suffix(".state.safetensors"))])
    assert len(found) == 4
    assert all(np.array_equal(one, result.vectors) for one in found)
    assert names(folder) == [file_of().name]
    assert np.array_equal(ask(), result.vectors)
