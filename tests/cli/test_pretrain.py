"""pretrain, as it is typed."""

from __future__ import annotations

import pytest

from subgnn.data.formats.folder import write_folder
from subgnn.embeddings.stored import read_stored
from tests.cli.command import call
from tests.training.examples import dataset

FEW = ("--set", "pretrain.epochs=2", "--set", "pretrain.steps=2", "--set", "pretrain.batch_size=64", "--device", "cpu")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pretrain")
    write_folder(dataset(), folder / "data")
    return folder


@pytest.mark.parametrize("method", ["gin", "graphsaint"])
def test_pretrain_then_train(folder, method):
    out = folder / f"{method}.safetensors"
    called = call("pretrain", folder / "data", "--method", method, "--out", out, "--dim", 8, *FEW, "--json")
    assert called.code == 0, called.err
    results = called.json
    assert set(results) == {
        "method",
        "dim",
        "val_auroc",
        "val_matched_auroc",
        "epochs",
        "selected_epoch",
        "seconds",
        "peak_memory_mb",
        "unused",
        "graph_hash",
        "out",
    }
    assert (results["method"], results["dim"], results["epochs"]) == (method, 8, 2)
    assert called.err == ""
    vectors, metadata = read_stored(out)
    assert vectors.shape == (24, 8)
    assert metadata["graph_hash"] == results["graph_hash"]
    trained = call(
        "train",
        folder / "data",
        "--recipe",
        "structure",
        "--set",
        f"embeddings.source={out}",
        "--set",
        "embeddings.dim=8",
        "--set",
        "training.epochs=1",
        "--out",
        folder / f"run-{method}",
        "--json",
    )
    assert trained.code == 0, trained.err


def test_it_names_the_next_command(folder):
    out = folder / "table.safetensors"
    called = call("pretrain", folder / "data", "--out", out, "--dim", 4, "--seed", 3, *FEW)
    assert called.code == 0, called.err
    assert "val auroc" in called.out
    assert f"next: subgnn train {folder / 'data'} --set embeddings.source={out}" in called.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--set", "training.lr=1"), "'training.lr=1' is not a setting of pretraining; accepted: pretrain.KEY=VALUE"),
        (("--set", "pretrain.epoch=1"), "unknown setting 'pretrain.epoch'"),
        (("--method", "gat"), "'gat' is not one of 'gin', 'graphsaint'"),
        (("--set", "pretrain.fraction=2.0"), "pretrain.fraction is 2.0"),
    ],
)
def test_mistakes_are_named_and_nothing_is_left(folder, arguments, message):
    called = call("pretrain", folder / "data", "--out", folder / "no.safetensors", *arguments)
    assert called.code == 2
    assert message in called.error
    assert not list(folder.glob("no.*"))


def test_a_file_that_is_there_is_kept(folder):
    (folder / "there.safetensors").write_text("mine")
    called = call("pretrain", folder / "data", "--out", folder / "there.safetensors")
    assert called.code == 2
    assert "exists already" in called.error
    called = call("pretrain", folder / "data", "--out", folder / "other.npy")
    assert "accepted: .safetensors" in called.error
