"""A model and a channel in a package of their own: trained, opened in other processes, and never imported unasked."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

import subgnn
from subgnn.config.plugins import VARIABLE
from subgnn.data.formats.folder import write_folder
from subgnn.errors import UserError
from subgnn.models.registry import find_model
from subgnn.serve.app import create_app
from subgnn.serve.limits import Limits
from subgnn.serve.runs import open_runs
from tests.pages import ROOT
from tests.serve.examples import HOST
from tests.training.examples import dataset

PAGE = (ROOT / "docs" / "extend.md").read_text(encoding="utf-8")
SUBGRAPHS = "0 1 2\n3 20 21\n"


SCALED = """
from dataclasses import dataclass
from typing import ClassVar

from subgnn.config.settings import MethodSettings
from toy_plugin.degrees import DegreesModel


@dataclass(frozen=True, slots=True)
class ScaledSettings(MethodSettings):
    section: ClassVar[str] = "scaled"
    factor: float = 1.0


class ScaledModel(DegreesModel):
    settings = (ScaledSettings,)

    def start(self, data, recipe):
        found = super().start(data, recipe)
        return {"largest": found["largest"] * recipe.of(ScaledSettings).factor}


MODEL = ScaledModel()
"""


def code(heading: str) -> str:
    return re.search(r"```python\n(.*?)```", PAGE[PAGE.index(f"## {heading}\n") :], re.DOTALL)[1]


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A folder of installed packages with one that has the examples of docs/extend.md as plug-ins, and a dataset."""
    package = tmp_path / "site" / "toy_plugin"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    imported = f"from pathlib import Path\nPath({str(tmp_path / 'imported')!r}).touch()\n"
    (package / "degrees.py").write_text(f"{code('Add a model')}\n\n{imported}\nMODEL = DegreesModel()\nTEXT = 'text'\n")
    (package / "scaled.py").write_text(SCALED)
    (package / "hubs.py").write_text(code("Add a channel"))
    write_folder(dataset(), tmp_path / "data")
    (tmp_path / "asked.txt").write_text(SUBGRAPHS)
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    forget()
    yield tmp_path / "site"
    forget()


def forget() -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "toy_plugin"]:
        del sys.modules[name]


def install(site: Path) -> None:
    """Declare the plug-ins as entry points, as an installed package does."""
    about = site / "toy_plugin-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-plugin\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[subgnn.models]\ndegrees = toy_plugin.degrees:MODEL\n\n[subgnn.channels]\nhubs = toy_plugin.hubs:SIDES\n"
    )


def command(*words: str, site: Path | None, **variables: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(ROOT / "src"), *([str(site)] if site else [])])
    env = {**os.environ, "PYTHONPATH": path, **variables}
    called = [sys.executable, "-m", "subgnn", *words]
    return subprocess.run(called, env=env, capture_output=True, text=True, timeout=300)


def recipe(text: str) -> str:
    Path("my.toml").write_text(text)
    return "my.toml"


@pytest.mark.slow
def test_an_installed_model_does_what_every_model_does(site, monkeypatch):
    install(site)
    words = ("train", "data", "--recipe", recipe('method = "degrees"\n[training]\nepochs = 2\n'), "--out", "run")
    for step in (
        words,
        ("explain", "run", "--subgraphs", "asked.txt", "--out", "explained.json"),
        ("export", "run", "--out", "toy.subgnn", "--with-graph"),
        ("predict", "run", "--subgraphs", "asked.txt", "--out", "of_run.tsv"),
        ("predict", "toy.subgnn", "--subgraphs", "asked.txt", "--out", "of_export.tsv"),
    ):
        done = command(*step, site=site)
        assert done.returncode == 0, done.stderr
    assert Path("of_run.tsv").read_text() == Path("of_export.tsv").read_text()
    assert json.loads(Path("explained.json").read_text())
    missing = command("predict", "run", "--subgraphs", "asked.txt", "--out", "none.tsv", site=None)
    assert missing.returncode == 2
    assert "method is 'degrees'" in missing.stderr
    assert "entry point of subgnn.models" in missing.stderr
    assert len(missing.stderr.splitlines()) == 1

    monkeypatch.syspath_prepend(site)
    runs = open_runs([f"toy={Path('toy.subgnn').resolve()}"], limits=Limits())
    with TestClient(create_app(runs, limits=Limits()), base_url=HOST) as client:
        assert client.post("/api/runs/toy/predict", json={"subgraphs": [["#0", "#1"]]}).status_code == 200


def test_a_run_imports_no_module_that_the_user_did_not_choose(site, monkeypatch):
    monkeypatch.syspath_prepend(site)
    path = recipe('method = "toy_plugin.degrees:MODEL"\n[training]\nepochs = 1\n')
    run = subgnn.train(dataset(), "run", recipe=path, device="cpu", cache=False)
    expected = run.predictor.probabilities([[0, 1, 2]]).tolist()
    assert Path("imported").exists()
    forget()
    monkeypatch.delenv(VARIABLE)
    Path("imported").unlink()
    message = r"'toy_plugin\.degrees:MODEL', which is not part of subgnn; .*--plugin toy_plugin"
    with pytest.raises(UserError, match=message):
        subgnn.load("run").predictor.probabilities([[0, 1, 2]])
    assert not Path("imported").exists()
    monkeypatch.setenv(VARIABLE, "other, toy_plugin")
    assert subgnn.load("run").predictor.probabilities([[0, 1, 2]]).tolist() == expected


def test_a_candidate_of_a_portfolio_is_not_imported_unasked(site, monkeypatch):
    monkeypatch.syspath_prepend(site)
    recipe('method = "toy_plugin.degrees:MODEL"\n')
    text = '[[auto.candidates]]\nname = "toy"\nrecipe = "my.toml"\n'
    Path("auto.toml").write_text(f'method = "auto"\n{text}')
    with pytest.raises(UserError, match="which is not part of subgnn"):
        subgnn.train(dataset(), "run", recipe="auto.toml", device="cpu", cache=False)
    assert not Path("imported").exists()


def test_settings_of_its_own(site, monkeypatch):
    monkeypatch.syspath_prepend(site)
    path = recipe('method = "toy_plugin.scaled:MODEL"\n[training]\nepochs = 1\n[scaled]\nfactor = 4.0\n')
    run = subgnn.train(dataset(), "run", recipe=path, device="cpu", cache=False)
    four = run.embed([[0, 1, 2]]).to_numpy()
    plain = subgnn.train(dataset(), "plain", recipe=path, settings=["scaled.factor=1"], device="cpu", cache=False)
    assert (4 * four == plain.embed([[0, 1, 2]]).to_numpy()).all()
    assert (subgnn.load("run").embed([[0, 1, 2]]).to_numpy() == four).all()
    with pytest.raises(UserError, match=r"unknown setting 'scaled\.facto'; .*did you mean 'factor'"):
        subgnn.train(dataset(), "wrong", recipe=path, settings=["scaled.facto=1"], device="cpu")


@pytest.mark.slow
def test_the_command_line_allows_a_plugin(site):
    written = recipe('method = "toy_plugin.degrees:MODEL"\n[training]\nepochs = 1\n')
    assert command("train", "data", "--recipe", written, "--out", "run", site=site).returncode == 0
    words = ("predict", "run", "--subgraphs", "asked.txt", "--out", "found.tsv")
    assert "add --plugin toy_plugin.degrees" in command(*words, site=site).stderr
    assert command(*words, "--plugin", "toy_plugin.degrees", site=site).returncode == 0
    assert "--plugin: '../x'" in command(*words, "--plugin", "../x", site=site).stderr


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["toy_plugin.hubs:SIDES", "hubs"])
def test_a_channel_of_a_package(kind, site, monkeypatch):
    monkeypatch.syspath_prepend(site)
    if kind == "hubs":
        install(site)
    written = recipe(f'[training]\nepochs = 1\n[[channels]]\nkind = "{kind}"\nside = "border"\nnum_anchors = 4\n')
    run = subgnn.train(dataset(), "run", recipe=written, device="cpu", cache=False)
    expected = run.predictor.probabilities([[0, 1, 2]]).tolist()
    assert subgnn.load("run").predictor.probabilities([[0, 1, 2]]).tolist() == expected


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("toy_plugin.degrees:TEXT", "which is a str; a plug-in names an instance"),
        ("toy_plugin.degrees:NONE", "cannot be imported"),
        ("toy_plugin.nowhere:MODEL", "cannot be imported"),
        ("toy_plugin.degrees:MODEL.open", "method is 'toy_plugin.degrees:MODEL.open'; accepted"),
        ("os;system:x", "accepted: subgnn"),
    ],
)
def test_what_is_no_model(name, message, site, monkeypatch):
    monkeypatch.syspath_prepend(site)
    monkeypatch.setenv(VARIABLE, "toy_plugin")
    with pytest.raises(UserError, match=re.escape(message)):
        find_model(name)


@pytest.mark.slow
def test_a_model_of_ones_own_on_two_sets_of_the_benchmark(site):
    for name in ("patients", "movie_genres"):
        write_folder(dataset(), Path("sets") / name)
    words = ("benchmark", "run", "subgraphbench", "--data", "sets", "--out", "mine", "--seeds", "1", "--device", "cpu")
    done = command(*words, "--models", "toy_plugin.degrees:MODEL", "--set", "training.epochs=2", "--json", site=site)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["rows"]
    assert [(row["dataset"], row["model"]) for row in rows] == [
        ("patients", "toy_plugin.degrees:MODEL"),
        ("movie_genres", "toy_plugin.degrees:MODEL"),
    ]
    theirs = "dataset,model,micro_f1\n" + "".join(f"{row['dataset']},bag,0\n" for row in rows)
    Path("theirs.csv").write_text(theirs)
    done = command("benchmark", "compare", "mine", "--against", "theirs.csv", "--out", "page.html", "--json", site=None)
    assert done.returncode == 0, done.stderr
    (pair,) = json.loads(done.stdout)["pairs"]
    assert (pair["model"], pair["against"], pair["datasets"]) == ("toy_plugin.degrees:MODEL", "bag", 2)
    assert "toy_plugin" in Path("page.html").read_text()
