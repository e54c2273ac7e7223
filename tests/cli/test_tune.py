"""tune, as it is typed."""

import re

import pytest

from subgnn.data.formats.folder import write_folder
from tests.cli.command import call
from tests.training.examples import dataset

pytestmark = pytest.mark.usefixtures("databases_without_waiting")
SPACE = """
training.lr = {low = 1e-3, high = 1e-1, log = true}
model.head = {low = 4, high = 16, step = 4}
"""
SMALL = ("prepare.patch_length=5", "prepare.walks=2", "prepare.walk_length=4")
SMALL += ("embeddings.dim=8", "training.batch_size=8", "training.epochs=1")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("tune")
    write_folder(dataset(), found / "data")
    (found / "mine.toml").write_text(SPACE)
    return found


def tune(folder, *arguments):
    changes = [word for setting in SMALL for word in ("--set", setting)]
    space = () if "--space" in arguments else ("--space", folder / "mine.toml")
    return call("tune", folder / "data", "--recipe", "structure", "--device", "cpu", *space, *changes, *arguments)


def test_tune_and_go_on(folder):
    first = tune(folder, "--trials", 2, "--out", folder / "out")
    assert (first.code, first.err) == (0, "")
    assert "cliques/structure/mine: 2 complete" in first.out
    assert "no test subgraph was seen" in first.out
    assert f"next: subgnn train {folder / 'data'} --recipe {folder / 'out' / 'recipe.toml'}" in first.out
    again = tune(folder, "--trials", 3, "--out", folder / "out", "--json")
    assert again.code == 0
    found = again.json
    assert found["trials"] == {"complete": 3}
    assert set(found["best"]["parameters"]) == {"training.lr", "model.head[0]", "model.head[1]"}
    trained = call("train", folder / "data", "--recipe", found["files"]["recipe"], "--out", folder / "run", "--json")
    assert trained.code == 0
    assert trained.json["recipe"] == "structure_tuned"
    assert trained.json["epochs"] == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--space", "papr"), "--space: unknown search space 'papr'; accepted: paper, .*mean 'paper'"),
        (("--space", "nowhere.toml"), "nowhere.toml: no such search space"),
        (("--space", "FOLDER/bad.toml"), "bad.toml: unknown setting 'training.lrr'; .*did you mean 'lr'\\?$"),
    ],
)
def test_refused_in_a_line(folder, arguments, message, tmp_path):
    (folder / "bad.toml").write_text("training.lrr = {low = 0.1, high = 1}")
    words = [str(word).replace("FOLDER", str(folder)) for word in arguments]
    called = tune(folder, "--out", tmp_path / "out", "--trials", 1, *words)
    assert called.code == 2
    assert re.search(message, called.error)
