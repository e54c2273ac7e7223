"""The model of docs/extend.md, written to one file and entered by one line: it does what every model does."""

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

import subgnn
from subgnn.data.formats.folder import write_folder
from subgnn.errors import DataError, UserError
from subgnn.inference.open import evaluate_split
from subgnn.inference.predictor import Predictor
from subgnn.models.checkpoint import load_checkpoint
from subgnn.models.registry import MODELS
from subgnn.training.run_dir import CHECKPOINT
from tests.models.test_integrity import changed
from tests.training.examples import dataset

PAGE = (Path(__file__).parents[2] / "docs" / "extend.md").read_text()
SECTION = PAGE[PAGE.index("## Add a model") :]
NEW = [[0, 1, 2], [9], [3, 20, 21]]


@pytest.fixture
def entered(tmp_path, monkeypatch):
    """The page's file, imported, and its line, entered in the table."""
    file = tmp_path / "degrees.py"
    file.write_text(re.search(r"```python\n(.*?)```", SECTION, re.DOTALL)[1])
    spec = importlib.util.spec_from_file_location("subgnn.models.baselines.degrees", file)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    name, made = re.search(r'`"(\w+)": (\w+)\(\)`', SECTION).groups()
    monkeypatch.setitem(MODELS, name, getattr(module, made)())
    return name


@pytest.fixture
def run(entered, tmp_path):
    """A run of the model, trained from a recipe file."""
    recipe = tmp_path / "my.toml"
    recipe.write_text(f'method = "{entered}"\n[training]\nepochs = 3\n')
    write_folder(dataset(), tmp_path / "data")
    out = tmp_path / "run"
    made = subgnn.train(tmp_path / "data", out, recipe=recipe, device="cpu", cache=False)
    assert made.result.method == entered
    assert (out / "report.html").is_file()
    return out


def test_it_trains_and_predicts_new_subgraphs(run):
    loaded = subgnn.load(run).predictor
    assert loaded.probabilities(NEW).shape == (3, 3)
    assert set(loaded.predict(NEW)) <= set(dataset().subgraphs.classes)
    assert loaded.embeddings(loaded.rows(NEW)).shape == (3, 2)
    assert evaluate_split(run, "test").test["micro_f1"] >= 0


def test_a_wrong_checkpoint_of_it_is_refused(run, tmp_path):
    def one_number(arrays, content):
        arrays["weights.largest"] = arrays["weights.largest"][:1]

    wrong = tmp_path / CHECKPOINT
    with pytest.raises(DataError, match=r"two numbers above 0|do not fit"):
        Predictor(changed(run / CHECKPOINT, wrong, one_number), dataset().graph)
    assert load_checkpoint(run / CHECKPOINT).weights.keys() == {"largest", "linear.weight", "linear.bias"}


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("spec.num_outputs)", "spec.num_outputs + 1)", r"returns outputs of shape \(\d+, 4\)"),
        ("def embed", "def vectors", "the model degrees: the network has no method embed"),
    ],
)
def test_a_network_that_breaks_the_contract_is_refused(before, after, message, monkeypatch, tmp_path):
    code = re.search(r"```python\n(.*?)```", SECTION, re.DOTALL)[1]
    assert before in code
    module = ModuleType("degrees")
    exec(compile(code.replace(before, after), "degrees.py", "exec"), module.__dict__)
    monkeypatch.setitem(MODELS, "degrees", module.DegreesModel())
    recipe = tmp_path / "my.toml"
    recipe.write_text('method = "degrees"\n[training]\nepochs = 1\n')
    with pytest.raises(UserError, match=message):
        subgnn.train(dataset(), tmp_path / "run", recipe=recipe, device="cpu", cache=False)
