"""The channel and the similarity of docs/extend.md: one file and one line each, and everything works with them."""

import re
from dataclasses import replace
from types import ModuleType

import networkx as nx
import numpy as np
import pytest
from fastapi.testclient import TestClient

from subgnn import Ragged, write_folder
from subgnn.api.train_recipe import train
from subgnn.channels.table import CHANNELS, SIMILARITIES, check_channels, similarity_of
from subgnn.config.settings import ChannelSettings, PrepareSettings
from subgnn.errors import UserError
from subgnn.inference.explain import Explainer
from subgnn.inference.open import export_run, open_run
from subgnn.models.recipes import parse_recipe
from subgnn.prepare.measure import Plan, prepare
from subgnn.serve.app import create_app
from subgnn.serve.limits import Limits
from subgnn.serve.runs import open_runs
from tests.models.subgnn.examples import SMALL, random_graph, random_subgraphs
from tests.pages import ROOT
from tests.training.examples import dataset, recipe

SETS = Ragged.from_rows([[0, 1, 2], [5, 9, 20], [23]])
HUBS = ChannelSettings("hubs", "border", 4)
ADJACENT = ChannelSettings("position", "border", 4, "adjacency")


def example(heading: str) -> ModuleType:
    """The module that a section of docs/extend.md shows."""
    page = (ROOT / "docs" / "extend.md").read_text(encoding="utf-8")
    section = page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    (code,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    name = re.search(r"`src/subgnn/channels/(\w+)\.py`", section)[1]
    module = ModuleType(name)
    exec(compile(code, f"{name}.py", "exec"), module.__dict__)
    line = re.search(rf'`"{name}": (\w+\.)?(\w+)`', section)
    module.entry = getattr(module, line[2])
    return module


@pytest.fixture(autouse=True)
def entered(monkeypatch):
    monkeypatch.setitem(CHANNELS, "hubs", example("Add a channel").entry)
    monkeypatch.setitem(SIMILARITIES, "adjacency", example("Add a similarity").entry)


def test_the_anchors_are_hubs():
    graph = random_graph(1)
    found = prepare(graph, random_subgraphs(1), Plan(channels=(HUBS,), layers=2, settings=SMALL, seed=0))
    for (anchors,) in found.frame.shared:
        degrees = np.diff(graph.offsets)
        assert sorted(degrees[anchors.nodes]) == sorted(degrees)[-4:]


def test_the_similarity_is_the_fraction_of_neighbours():
    graph = random_graph(2)
    found = prepare(graph, random_subgraphs(2), Plan(channels=(ADJACENT,), layers=1, settings=SMALL, seed=0))
    whole = nx.Graph(zip(*(ends.tolist() for ends in graph.edges()[:2]), strict=True))
    whole.add_nodes_from(range(graph.num_nodes))
    for component, row in zip(found.components.nodes, found.inputs[0][0].similarity, strict=True):
        for anchor, similarity in zip(found.frame.shared[0][0].nodes.tolist(), row, strict=True):
            assert similarity == np.float32(np.mean([whole.has_edge(u, anchor) for u in component.tolist()]))


@pytest.mark.parametrize("channel", [HUBS, ADJACENT], ids=["channel", "similarity"])
def test_a_run_is_trained_asked_explained_exported_and_served(channel, tmp_path):
    write_folder(dataset(), tmp_path / "data")
    plain = recipe(2)
    settings = replace(plain, channels=(channel, *plain.channels[2:]))
    train(dataset(), settings, tmp_path / "run", device="cpu", source=str(tmp_path / "data"), cache=False, report=False)
    predictor = open_run(tmp_path / "run").predictor
    outputs = predictor.outputs(SETS)
    assert np.isfinite(outputs).all()
    explained = Explainer.of_run(open_run(tmp_path / "run")).explain(SETS)[0]
    assert channel.name in [part.name for part in explained.by_channel]
    export_run(tmp_path / "run", tmp_path / "run.export", with_graph=True)
    np.testing.assert_array_equal(open_run(tmp_path / "run.export").predictor.outputs(SETS), outputs)
    runs = open_runs([f"small={tmp_path / 'run'}"], limits=Limits())
    with TestClient(create_app(runs, limits=Limits(), access=None), base_url="http://127.0.0.1") as asking:
        answered = asking.post("/api/runs/small/predict", json={"subgraphs": [[0, 1, 2]]})
    assert answered.status_code == 200, answered.text


def test_a_channel_that_is_not_there_is_refused_with_the_nearest():
    for entry, message in (
        ({"kind": "hub"}, r"recipe: channels\[0\]\.kind is 'hub'; accepted: .*; did you mean 'hubs'\?"),
        ({"side": "internl"}, r"recipe: channels\[0\]\.side is 'internl'; accepted: internal, border; did you mean"),
        (
            {"similarity": "hop"},
            r"channels\[0\]: .* position/border does not support the similarity 'hop'; .* 'hops'\?",
        ),
        ({"similarity": "warping"}, r"similarity 'warping'; accepted: hops, constant, adjacency"),
    ):
        content = {"kind": "position", "side": "border", "num_anchors": 3} | entry
        found = parse_recipe({"channels": [content]}, "recipe.toml")
        with pytest.raises(UserError, match=message):
            check_channels(found.channels, found.prepare)


def test_weights_need_the_heaviest_of_borders():
    channel = ChannelSettings("neighborhood", "border", 3, "weight")
    options = {"channels": (channel,), "layers": 1, "seed": 0}
    with pytest.raises(
        UserError, match=r"neighborhood/border have no weights; set prepare.border_anchors to .heaviest."
    ):
        prepare(random_graph(0), random_subgraphs(0), Plan(**options, settings=SMALL))
    heavy = PrepareSettings(border_anchors="heaviest")
    assert similarity_of(channel, heavy) is similarity_of(replace(channel, similarity=""), heavy)


def test_heavy_anchors_may_be_compared_by_hops():
    heavy = replace(SMALL, border_anchors="heaviest")
    for name in ("hops", "constant", "weight"):
        channel = ChannelSettings("neighborhood", "border", 3, name)
        found = prepare(random_graph(0), random_subgraphs(0), Plan((channel,), 1, heavy, seed=0))
        inputs = found.inputs[0][0]
        assert not inputs.own.present.all()
        assert (inputs.similarity[~inputs.own.present] == 0).all()
        assert (inputs.similarity[inputs.own.present].max(axis=1) > 0).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda found: found[:-1], "the similarity of position/border: it returned 1 layers; accepted: 2"),
        (lambda found: [f.T for f in found], r"it has the shape \(4, "),
        (lambda found: [f + 7 for f in found], "it ranges from .*from 0 to 1"),
        (lambda found: [f * np.nan for f in found], "it ranges from nan"),
    ],
)
def test_a_similarity_that_breaks_the_contract_is_refused(change, message, monkeypatch):
    honest = SIMILARITIES["adjacency"]
    broken = {kind: lambda *given, f=f: change(f(*given)) for kind, f in honest.measure.items()}
    monkeypatch.setitem(SIMILARITIES, "adjacency", replace(honest, measure=broken))
    with pytest.raises(UserError, match=message):
        prepare(random_graph(1), random_subgraphs(1), Plan(channels=(ADJACENT,), layers=2, settings=SMALL, seed=0))
