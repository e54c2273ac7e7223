"""prepare, as it is typed."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from subgnn.config.recipes import find_recipe
from subgnn.data.formats.folder import write_folder
from subgnn.models.subgnn.build import touched_nodes
from subgnn.parallel import memory
from subgnn.prepare import cached as prepare_cached
from subgnn.prepare.cached import prepare_draws_cached
from tests.cli.command import call
from tests.training.examples import dataset


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("SUBGNN_CACHE", str(tmp_path / "cache"))
    write_folder(dataset(), tmp_path / "data")
    return tmp_path / "data"


def test_json(folder, tmp_path):
    first = call("prepare", folder, "--recipe", "subgnn", "--seed", 3, "--json").json
    assert (first["num_subgraphs"], first["layers"], first["seed"], first["recipe"]) == (30, 1, 3, "subgnn")
    assert first["num_components"] >= 30
    assert first["num_touched_nodes"] == 24
    assert first["anchors"]["structure/border"] == 15
    assert first["found"] is False
    (kept,) = (tmp_path / "cache" / "prepared").iterdir()
    assert (first["draws"], first["files"], first["bytes"]) == (1, [str(kept)], kept.stat().st_size)
    again = call("prepare", folder, "--recipe", "subgnn", "--seed", 3, "--json").json
    assert again["found"] is True
    assert call("info", "--json").json["cache_content"] == {
        "entries": 1,
        "bytes": kept.stat().st_size,
        "limit_bytes": 20_000_000_000,
    }


def test_table_and_the_command_that_follows(folder, tmp_path):
    called = call("prepare", folder, "--recipe", "structure", "--seed", 1, "--set", "model.layers=1")
    assert (called.code, called.err) == (0, "")
    for word in (
        "subgraphs",
        "components",
        "touched nodes",
        "anchors, structure/internal",
        "found in the cache",
        "seconds",
    ):
        assert word in called.out
    last = called.out.splitlines()[-1]
    assert last.startswith(f"next: subgnn train {folder} --recipe structure --seed 1 --set model.layers=1 --out ")
    # That command finds what was prepared.
    arguments = last.removeprefix("next: subgnn ").split()
    call(*arguments[:-1], tmp_path / "run", "--set", "training.epochs=1")
    assert call("info", "--json").json["cache_content"]["entries"] == 1


def test_all_draws_that_train_uses(folder, tmp_path):
    same = ("--recipe", "structure", "--set", "prepare.draws=3", "--set", "training.epochs=2")
    two = call("prepare", folder, *same, "--json").json
    kept = sorted((tmp_path / "cache" / "prepared").iterdir())
    assert (two["draws"], two["found"], sorted(two["files"])) == (2, False, [str(path) for path in kept])
    assert (len(kept), two["bytes"]) == (2, sum(path.stat().st_size for path in kept))
    # An ensemble asks all of them; two are there.
    three = call("prepare", folder, *same, "--set", "prepare.ensemble=true", "--json").json
    assert (three["draws"], three["found"], len(three["files"])) == (3, False, 3)
    assert set(two["files"]) < set(three["files"])
    table = call("prepare", folder, *same)
    assert re.search(r"draws +2 *\n", table.out)
    assert re.search(r"files +2 in ", table.out)
    assert (
        call(
            "train", folder, "--recipe", "subgnn", *same, "--set", "prepare.ensemble=true", "--out", tmp_path / "run"
        ).code
        == 0
    )
    assert call("info", "--json").json["cache_content"]["entries"] == 3


def test_the_nodes_of_all_draws_are_counted_once(tmp_path, monkeypatch):
    monkeypatch.setenv("SUBGNN_CACHE", str(tmp_path / "cache"))
    recipe = tmp_path / "few.toml"
    recipe.write_text('[[channels]]\nkind = "position"\nside = "border"\nnum_anchors = 1\n')
    data = dataset()
    write_folder(replace(data, subgraphs=data.subgraphs.take([0, 20, 25])), tmp_path / "few")
    counts = []
    for draws in (1, 4):
        found = call("prepare", tmp_path / "few", "--recipe", recipe, "--set", f"prepare.draws={draws}", "--json").json
        kept = prepare_draws_cached(
            find_recipe(str(recipe), [f"prepare.draws={draws}"]),
            data.graph,
            data.subgraphs.nodes.take([0, 20, 25]),
            seed=0,
        )
        assert found["num_touched_nodes"] == len(touched_nodes([draw.prepared for draw in kept]))
        counts.append(found["num_touched_nodes"])
    assert counts[0] < counts[1]


def test_no_cache(folder, tmp_path):
    called = call("prepare", folder, "--recipe", "structure", "--no-cache")
    assert (called.code, "not cached" in called.out) == (0, True)
    trained = call(
        "train", folder, "--recipe", "structure", "--set", "training.epochs=1", "--no-cache", "--out", tmp_path / "run"
    )
    assert trained.code == 0
    assert not (tmp_path / "cache").exists()


def test_a_damaged_file_is_one_line_of_warning(folder, tmp_path):
    call("prepare", folder, "--recipe", "structure")
    (kept,) = (tmp_path / "cache" / "prepared").iterdir()
    kept.write_bytes(kept.read_bytes()[:-5])
    called = call("prepare", folder, "--recipe", "structure", "--json")
    assert called.error.startswith(f"warning: {kept}: damaged, and not used")
    assert not called.json["found"]


def test_mistakes(folder, monkeypatch):
    assert call("prepare", folder, "--recipe", "defualt").code == 2
    monkeypatch.setenv("SUBGNN_CACHE_LIMIT", "much")
    called = call("prepare", folder)
    assert called.code == 2
    assert called.error.startswith("SUBGNN_CACHE_LIMIT: 'much' is not a size")


def test_memory(folder, monkeypatch):
    seen = []
    measured = prepare_cached.prepare
    monkeypatch.setattr(
        prepare_cached, "prepare", lambda *a, **options: seen.append(memory.limit()) or measured(*a, **options)
    )
    before = memory.limit()
    assert call("prepare", folder, "--memory", "3GB", "--json").code == 0
    assert seen == [3_000_000_000]
    assert memory.limit() == before
    called = call("prepare", folder, "--memory", "much")
    assert (called.code, called.out) == (2, "")
    assert called.error.startswith("--memory: 'much' is not a size; accepted: a number with KB, MB, GB or TB")
