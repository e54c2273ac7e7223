"""``prepare`` and ``pretrain``, as they are typed."""

import pytest

from subgnn import write_folder
from subgnn.embeddings.sources import read_stored
from subgnn.parallel import memory
from subgnn.prepare import measure as preparing
from tests.cli.command import call
from tests.training.examples import dataset

FEW = ("--set", "pretrain.epochs=2", "--set", "pretrain.steps=2", "--set", "pretrain.batch_size=64", "--device", "cpu")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("SUBGNN_CACHE", str(tmp_path / "cache"))
    write_folder(dataset(), tmp_path / "data")
    return tmp_path / "data"


def entries():
    return call("info", "--json").json["cache_content"]["entries"]


def test_prepare_as_json(folder, tmp_path):
    first = call("prepare", folder, "--recipe", "subgnn", "--seed", 3, "--json").json
    assert (first["num_subgraphs"], first["layers"], first["seed"], first["recipe"]) == (30, 1, 3, "subgnn")
    assert first["num_components"] >= 30
    assert (first["num_touched_nodes"], first["anchors"]["structure/border"]) == (24, 15)
    (kept,) = (tmp_path / "cache" / "prepared").iterdir()
    assert (first["found"], first["file"]) == (False, str(kept))
    assert call("prepare", folder, "--recipe", "subgnn", "--seed", 3, "--json").json["found"]
    size = kept.stat().st_size
    content = {"entries": 1, "bytes": size, "limit_bytes": 20_000_000_000}
    assert (first["bytes"], call("info", "--json").json["cache_content"]) == (size, content)


def test_the_next_command_finds_what_was_prepared(folder, tmp_path):
    called = call("prepare", folder, "--recipe", "structure", "--seed", 1, "--set", "model.layers=1")
    assert (called.code, called.err) == (0, "")
    for word in ("subgraphs", "touched nodes", "anchors, structure/internal", "found in the cache", "seconds"):
        assert word in called.out
    last = called.out.splitlines()[-1]
    assert last.startswith(f"next: subgnn train {folder} --recipe structure --seed 1 --set model.layers=1 --out ")
    arguments = last.removeprefix("next: subgnn ").split()
    call(*arguments[:-1], tmp_path / "run", "--set", "training.epochs=1")
    assert entries() == 1


def test_memory_and_limits(folder, monkeypatch):
    seen, measured = [], preparing.prepare
    monkeypatch.setattr(
        preparing, "prepare", lambda *a, **options: seen.append(memory.limit()) or measured(*a, **options)
    )
    before = memory.limit()
    assert call("prepare", folder, "--memory", "3GB", "--json").code == 0
    assert (seen, memory.limit()) == ([3_000_000_000], before)
    called = call("prepare", folder, "--memory", "much")
    assert (called.code, called.out) == (2, "")
    assert called.error.startswith("--memory: 'much' is not a size; accepted: a number with KB, MB, GB or TB")
    monkeypatch.setenv("SUBGNN_CACHE_LIMIT", "much")
    assert call("prepare", folder).error.startswith("SUBGNN_CACHE_LIMIT: 'much' is not a size")


@pytest.mark.parametrize("method", ["gin", "graphsaint"])
def test_pretrain_then_train(folder, tmp_path, method):
    out = tmp_path / f"{method}.safetensors"
    called = call("pretrain", folder, "--method", method, "--out", out, "--dim", 8, *FEW, "--json")
    found = called.json
    assert called.err == ""
    assert {"val_auroc", "val_matched_auroc", "selected_epoch", "seconds", "peak_memory_mb", "unused"} <= set(found)
    assert (found["method"], found["dim"], found["epochs"], found["out"]) == (method, 8, 2, str(out))
    vectors, metadata = read_stored(out)
    assert (vectors.shape, metadata["graph_hash"]) == ((24, 8), found["graph_hash"])
    settings = (f"embeddings.source={out}", "embeddings.dim=8", "training.epochs=1")
    words = [word for setting in settings for word in ("--set", setting)]
    assert call("train", folder, "--recipe", "structure", *words, "--out", tmp_path / "run").code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--set", "training.lr=1"), "'training.lr=1' is not a pretraining setting; accepted: pretrain.KEY=VALUE"),
        (("--set", "pretrain.epoch=1"), "unknown setting 'pretrain.epoch'"),
        (("--method", "gat"), "'gat' is not one of 'gin', 'graphsaint'"),
        (("--set", "pretrain.fraction=2.0"), "pretrain.fraction is 2.0"),
        (("--out", "other.npy"), "accepted: .safetensors"),
    ],
)
def test_pretrain_refuses_and_leaves_nothing(folder, tmp_path, arguments, message):
    called = call("pretrain", folder, "--out", tmp_path / "no.safetensors", *arguments)
    assert called.code == 2
    assert message in called.error
    assert not list(tmp_path.glob("no.*"))
