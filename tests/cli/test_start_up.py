"""What a command may import: nobody waits for a library that is not used."""

import json
import subprocess
import sys

import pytest

from subgnn import write_bundle
from tests.cli.command import call
from tests.training.examples import dataset

ARRAYS = ("numpy", "scipy", "numba", "pyarrow")
TORCH = ("torch", "torchmetrics", "torch_geometric", "lightning")
OTHERS = ("sklearn", "pandas", "matplotlib", "networkx", "jinja2", "ray", "optuna", "fastapi")
HEAVY = (*ARRAYS, *TORCH, *OTHERS, "torch._dynamo", "scipy.signal", "scipy.optimize", "scipy.stats")
# Runs commands one after another, and prints for each its exit code and the heavy modules that have been imported.
RUN = """
import contextlib, io, json, sys
import subgnn
found = [(0, [name for name in HEAVY if name in sys.modules])]
from subgnn.cli.app import main
for arguments in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        code = main(arguments)
    found.append((code, [name for name in HEAVY if name in sys.modules]))
print(json.dumps(found))
"""


def imported(*commands: tuple[object, ...]) -> list[tuple[int, list[str]]]:
    """The exit code of each command and the heavy modules in memory after it; before them, ``import subgnn``."""
    texts = [[str(word) for word in command] for command in commands]
    code = f"HEAVY = {HEAVY!r}{RUN}"
    done = subprocess.run([sys.executable, "-c", code, json.dumps(texts)], capture_output=True, text=True, check=True)
    return [(code, names) for code, names in json.loads(done.stdout)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A dataset, a run on it and a file of one subgraph."""
    here = tmp_path_factory.mktemp("start_up")
    write_bundle(dataset(), here / "data.subgnn")
    options = ("--recipe", "avg", "--set", "training.epochs=1", "--no-cache")
    assert call("train", here / "data.subgnn", *options, "--out", here / "run").code == 0
    (here / "new.tsv").write_text("0-1-2\n")
    return here


def test_help_imports_no_library_and_wrong_input_is_refused_without_torch(folder):
    run, new, out = folder / "run", folder / "new.tsv", folder / "out.tsv"
    shown = (("--help",), ("train", "--help"), ("predict", "--help"), ("data", "convert", "--help"), ("--version",))
    refused = (
        ("train", folder / "data.subgnn", "--recipe", "no-such-recipe", "--out", out),
        ("train", folder / "data.subgnn", "--set", "training.epochs=none", "--out", out),
        ("predict", folder / "nowhere", "--subgraphs", new, "--out", out),
        ("predict", run, "--subgraphs", folder / "nowhere", "--out", out),
        ("predict", run, "--subgraphs", new, "--out", new),
        ("evaluate", folder / "nowhere"),
        ("serve", folder / "nowhere"),
    )
    refused_after_reading = (
        ("train", folder / "nowhere", "--out", out),
        ("prepare", folder / "nowhere"),
        ("data", "describe", folder / "nowhere"),
    )
    found = imported(*shown, *refused, *refused_after_reading)
    cheap = len(shown) + 1
    assert found[:cheap] == [(0, [])] * cheap
    for command, (code, names) in zip((*refused, *refused_after_reading), found[cheap:], strict=True):
        assert code == 2, command
        assert not set(names) - set(ARRAYS if command in refused_after_reading else ("numpy",)), command


@pytest.mark.slow
def test_models_that_are_fitted_in_one_go_predict_without_torch(folder):
    settings = {
        "auto": "auto.only=['bag', 'profiles', 'enrichment', 'diffusion-topology']",
        "topology": "topology.classifier=forest",
    }
    for name, value in settings.items():
        options = ("--recipe", name, "--set", value, "--no-cache")
        assert call("train", folder / "data.subgnn", *options, "--out", folder / name).code == 0
    files = ("--subgraphs", folder / "new.tsv", "--out")
    found = imported(*(("predict", folder / name, *files, folder / f"{name}.tsv") for name in settings))
    assert [code for code, _ in found] == [0, 0, 0]
    assert not set(found[-1][1]) - {*ARRAYS}


@pytest.mark.slow
def test_a_prediction_imports_what_it_uses(folder):
    predict = ("predict", folder / "run", "--subgraphs", folder / "new.tsv", "--out", folder / "labels.tsv")
    code, names = imported(predict)[-1]
    assert code == 0
    assert not set(names) - {*ARRAYS, "torch"}
