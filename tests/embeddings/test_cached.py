"""Pretrained embeddings in the cache."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pytest

from subgnn.config.settings import EmbeddingSettings, Recipe
from subgnn.embeddings import pretrain as module
from subgnn.embeddings.pretrain import cache_file, pretrained_vectors
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
    """The settings of the pretrainings."""
    states = []
    real = module.pretrain
    monkeypatch.setattr(module, "pretrain", lambda *a, **k: states.append(k["settings"]) or real(*a, **k))
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
