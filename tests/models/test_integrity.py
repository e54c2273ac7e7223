"""A checkpoint is checked before it is used: nothing in it is believed, whoever wrote it."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

from subgnn import DataError, DataWarning, Ragged, UserError
from subgnn.api.train_recipe import train
from subgnn.inference.open import open_run
from subgnn.inference.predictor import Predictor
from subgnn.models import checkpoint
from subgnn.models.checkpoint import load_checkpoint
from subgnn.models.recipes import find_recipe
from subgnn.result import RESULTS
from subgnn.storage.arrays import encode_arrays, read_arrays, save_state, write_parts
from subgnn.training.options import Callbacks
from subgnn.training.run import PROGRESS as FORMAT
from subgnn.training.run import load_progress
from subgnn.training.run_dir import CHECKPOINT, LAST
from tests.training.examples import dataset, recipe

SMALL = ["embeddings.dim=4", "training.epochs=1", "embeddings.source=random"]
ROWS = Ragged.from_rows([[0, 1, 2, 10, 11, 20], [3, 9]])


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Checkpoints by name: a network with all its parts, and baselines."""
    made = {}
    settings = {
        "network": recipe(1, topology=True, trainable_components=True, hidden_norm="batch"),
        "members": replace(recipe(1), training=replace(recipe(1).training, members=2)),
        "correcting": recipe(1, baseline="bag"),
        "regression": recipe(1, channels=()),
        "avg": find_recipe("avg", SMALL),
        "gc": find_recipe("gc", SMALL),
        "glass": find_recipe("glass", SMALL),
        "ssnp": find_recipe("ssnp", SMALL),
        "bag": find_recipe("bag", []),
        "bag-1hop": find_recipe("bag-1hop", []),
        "s2v-n": find_recipe("s2v-n", SMALL),
        "topology": find_recipe("topology", ["topology.classifier=forest"]),
        "s2n": find_recipe("s2n", [*SMALL, "s2n.threshold=0.0"]),
        "wlks": find_recipe("wlks", ["wlks.rounds=[2]", "wlks.mix=[0.7]", "wlks.inverse_penalty=[2.0]"]),
        "diffusion": find_recipe("diffusion", []),
        "unsupervised": find_recipe("unsupervised", ["vectors.width=40"]),
    }

    def of(name):
        if name not in made:
            out = tmp_path_factory.mktemp("runs") / name
            task = "regression" if name == "regression" else "multi-class"
            train(dataset(task), settings[name], out, device="cpu", cache=False, report=False)
            made[name] = out / CHECKPOINT
        return made[name]

    return of


def changed(path, out, change):
    """The file as someone would leave it who changed arrays and content and gave it a checksum that fits."""
    file = read_arrays(path, checkpoint._CHECKPOINT)
    arrays = {name: np.array(array) for name, array in file.arrays.items()}
    content = json.loads(file.metadata["content"])
    change(arrays, content)
    write_parts(out, encode_arrays(arrays, checkpoint._CHECKPOINT, content), overwrite=True)
    return out


def answer(path):
    return Predictor(path, dataset().graph).outputs(ROWS)


def put(name, place, value):
    """A number of an array."""
    return lambda arrays, _: arrays[name].__setitem__(place, value)


def array(name, value):
    """An array in place of another one."""
    return lambda arrays, _: arrays.__setitem__(name, value(arrays.get(name)) if callable(value) else value)


def drop(name):
    return lambda arrays, _: arrays.pop(name)


def drop_all(prefix):
    return lambda arrays, _: [arrays.pop(name) for name in list(arrays) if name.startswith(prefix)]


def content(name, value):
    return lambda _, content: content.__setitem__(name, value)


def setting(section, name, value):
    return lambda _, content: content["recipe"][section].__setitem__(name, value)


# By what is said: the run, and what was changed. The layer's channels are those of tests.training.examples.CHANNELS.
CHANGES = [
    ("network", "a node that is not in the graph", put("table_nodes", -1, 10**6)),
    ("network", "a node that is not in the graph", put("anchors.0.1.nodes", 0, -1)),
    ("network", "a node that is not in the graph", put("anchors.0.4.patches.values", 0, 2**31 - 1)),
    ("network", "a node that is not in the graph", put("anchors.0.5.walks.values", 0, -(2**31))),
    ("network", "offsets do not describe the values", put("anchors.0.4.patches.offsets", 1, 10**9)),
    ("network", "nodes of its table are not in order", put("table_nodes", 1, 0)),
    ("network", "is incomplete.*anchors", drop("anchors.0.1.nodes")),
    ("network", "is incomplete", array("anchors.0.1.nodes", np.zeros(4, np.float32))),
    ("network", "unknown part", array("anchors.0.0.nodes", np.zeros(3, np.int32))),
    ("network", "layers is 2", content("layers", 2)),
    ("network", "'head.layers.0.weight' is missing", drop("weights.head.layers.0.weight")),
    ("network", "'extra' is unknown", array("weights.extra", np.zeros(1, np.float32))),
    ("network", "'table' is float32", array("weights.table", lambda w: w[:1])),
    ("network", "'table' is float64", array("weights.table", lambda w: w.astype(np.float64))),
    ("network", "'table' is missing", drop("weights.table")),
    ("network", "'table' are not finite", array("weights.table", lambda w: w * np.float32("nan"))),
    ("network", r"model.head\[0\] is 1000000000000", setting("model", "head", [10**12, 10**12])),
    ("network", "do not fit", setting("model", "head", [10**5, 10**5])),
    ("network", "model.lstm_layers is 1000000000", setting("model", "lstm_layers", 10**9)),
    ("network", "training.members is 1000000000", setting("training", "members", 10**9)),
    ("gc", "model.layers is 1000000000", setting("model", "layers", 10**9)),
    ("network", "embeddings.dim is 100000000", setting("embeddings", "dim", 10**8)),
    ("network", "unknown setting", setting("model", "hidden", 1)),
    ("network", "keys of its components", lambda a, _: a["component_keys"].fill(3)),
    ("network", "component_states", array("component_keys", np.empty(0, np.int64))),
    ("network", "'subgraph' are missing", drop_all("standards.subgraph.")),
    ("network", "'subgraph' are not 8 numbers", array("standards.subgraph.mean", np.ones(7))),
    ("network", "not above 0", lambda a, _: a["standards.component.deviation"].fill(0)),
    ("regression", "'target' are missing", drop_all("standards.target.")),
    ("network", "class names are not distinct", content("classes", ["clique1"] * 3)),
    ("network", "do not fit", lambda _, c: c["classes"].append("another")),
    ("network", "task is 'other'", content("task", "other")),
    ("network", "seed is str", content("seed", "0")),
    ("network", "unknown part 'code'", content("code", "import os")),
    *[("network", f"'{name}' is missing", lambda _, c, n=name: c.pop(n)) for name in ("recipe", "seed", "layers")],
    ("network", "is incomplete", content("recipe", [])),
    ("network", "nested more than 32 deep", content("recipe", json.loads("[" * 100 + "]" * 100))),
    ("members", "holds 1 networks, but its recipe says 2", drop_all("weights.member")),
    ("correcting", "are not nodes of the graph", put("parts.0.weights.columns", -1, 72)),
    ("correcting", "unknown part 'parts.0", content("parts", {})),
    ("correcting", "baseline that it corrects is missing",
     lambda a, c: (drop_all("parts.")(a, c), c.update(parts={}))),
    ("correcting", "baseline that it corrects is missing", lambda a, c: c.update(parts={"b": c["parts"]["baseline"]})),
    ("correcting", "has a different task", lambda a, c: c["parts"]["baseline"].update(classes=["a", "b", "c"])),
    ("correcting", "parts is list", content("parts", [])),
    ("correcting", "it has 65 parts; at most 64 are allowed", content("parts", dict.fromkeys(map(str, range(65))))),
    ("avg", "nodes of its table", put("weights.nodes", -1, 24)),
    ("avg", "not a row for each node", array("weights.table", lambda w: w[:1])),
    ("gc", "nodes of its table", put("weights.nodes", 0, -1)),
    ("glass", "reference nodes are not in order, or not in the graph", put("weights.reference", -1, 24)),
    ("glass", "its table is", array("weights.table", lambda w: w[:1])),
    ("ssnp", "its table is", array("weights.table", lambda w: w[:-1])),
    ("bag", "are not nodes of the graph", put("weights.columns", 0, -1)),
    ("bag-1hop", "are not nodes of the graph", put("weights.columns", -1, 72)),
    ("bag", "do not fit", array("weights.bias", lambda w: w[:2])),
    ("s2v-n", "subgraphs do not fit their vectors", put("weights.offsets", 1, 10**9)),
    ("s2v-n", "a node that is not in the graph", put("weights.values", 0, 24)),
    ("topology", "a label that is not a class", put("weights.targets", 0, 9)),
    ("topology", "training table has the wrong shape", array("weights.features", lambda w: w[:, :4])),
    ("s2n", "nodes that its table lacks", array("weights.train_nodes", lambda w: w + 1000)),
    ("s2n", "does not fit them", array("weights.train_offsets", lambda w: w + 1)),
    ("s2n", "an edge to a subgraph that does not exist", array("weights.edge_sources", lambda w: w + 1000)),
    ("s2n", "a weight that is not above 0", array("weights.edge_weights", lambda w: -w)),
    ("s2n", "two numbers, the second above 0", array("weights.standard", lambda w: 0 * w)),
    ("wlks", "not one for each node", array("weights.graph_colours_2", lambda w: w[:-1])),
    ("wlks", "wrong shape or type", array("weights.graph_colours_2", lambda w: w.astype(np.int64))),
    ("wlks", "not in order", array("weights.graph_columns_2", lambda w: w[::-1].copy())),
    ("wlks", "have invalid offsets", array("weights.signature_offsets_1", lambda w: w + 1)),
    ("diffusion", "not sets of nodes", array("weights.nodes", lambda w: np.full_like(w, 10**6))),
    ("diffusion", "are not above 0", array("weights.lengths", lambda w: -w - 1)),
    ("unsupervised", "hold a node that is not in the graph", array("weights.nodes", lambda w: w + 100)),
    ("unsupervised", "are not sets of nodes", array("weights.nodes", lambda w: w[::-1].copy())),
    ("unsupervised", "are not above 0", array("weights.deviation", np.zeros_like)),
    ("unsupervised", "have the wrong shape", array("weights.deviation", lambda w: w[:5])),
    ("unsupervised", "have the wrong shape", array("weights.basis", lambda w: w[:-1])),
    ("unsupervised", "are not finite", array("weights.basis", lambda w: w * np.nan)),
]  # fmt: skip


@pytest.mark.parametrize(("run", "said", "change"), CHANGES)
def test_what_does_not_hold_together_is_refused(run, said, change, runs, tmp_path):
    path = changed(runs(run), tmp_path / "wrong", change)
    with pytest.raises(UserError, match=said) as caught:
        answer(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)
    assert "train again" in str(caught.value)


@pytest.mark.parametrize(
    "run", ["network", "members", "correcting", "avg", "gc", "glass", "ssnp", "bag", "s2v-n", "topology"]
)
def test_what_was_written_is_read(run, runs, tmp_path):
    path = changed(runs(run), tmp_path / "same", lambda *_: None)
    if run != "s2v-n":
        np.testing.assert_array_equal(answer(path), answer(runs(run)))
    assert load_checkpoint(path).spec.classes == ("clique0", "clique1", "clique2")


@pytest.fixture
def interrupted(tmp_path):
    """A run that was interrupted after its first epoch."""

    def stop(record):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        go_on(tmp_path / "run", resume=False, callbacks=Callbacks(on_epoch=stop))
    return tmp_path / "run"


def go_on(run, **options):
    return train(dataset(), recipe(2), run, device="cpu", cache=False, report=False, **{"resume": True} | options)


PROGRESS = [
    lambda c: c["progress"].pop("epoch"),
    lambda c: c["progress"].update(other=1),
    lambda c: c["fitted"].append(c["progress"]),
    lambda c: c["model"].update(table=c["model"]["table"][:1]),
    lambda c: c.pop("model"),
    lambda c: c["optimizer"].pop("param_groups"),
]


@pytest.mark.parametrize("change", PROGRESS)
def test_progress_that_does_not_fit_is_refused(change, interrupted):
    content = load_progress(interrupted / LAST)
    change(content)
    save_state(content, interrupted / LAST, FORMAT)
    with pytest.raises(UserError, match=r"saved progress does not fit the run; remove .* to start from the beginning"):
        go_on(interrupted)


@pytest.mark.parametrize("name", ["progress", "fitted", "metrics", "devices"])
def test_progress_that_lacks_a_part_is_not_gone_on_with(name, interrupted):
    content = load_progress(interrupted / LAST)
    del content[name]
    save_state(content, interrupted / LAST, FORMAT)
    with pytest.warns(DataWarning, match="the run starts from the beginning"):
        go_on(interrupted)


RESULT_CHANGES = {
    r"the file is '\[\]'": "[]",
    "source is '3'": '{"source": 3}',
    "not valid JSON": "[" * 100_000,
    "dataset is not there": '{"source": "a\\u0000b"}',
    "the run names no dataset": '{"source": ""}',
}


@pytest.mark.parametrize("said", RESULT_CHANGES)
def test_results_of_a_wrong_kind_are_refused(said, runs, tmp_path):
    shutil.copytree(runs("network").parent, tmp_path / "run")
    path, text = tmp_path / "run" / RESULTS, RESULT_CHANGES[said]
    if text.startswith("{"):
        text = json.dumps(json.loads(path.read_text()) | json.loads(text))
    path.write_text(text)
    with pytest.raises(DataError, match=said) as caught:
        open_run(tmp_path / "run")
    assert "\n" not in str(caught.value)
