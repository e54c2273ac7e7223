"""Contributions are differences of predictions, nothing hangs on orders or names, and what labels hang on is found."""

import json
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
import torch

from subgnn import DataError, NodeNames, Ragged, to_networkx
from subgnn.channels.topology import subgraph_statistics
from subgnn.config.settings import (
    ChannelSettings,
    EmbeddingSettings,
    ModelSettings,
    PrepareSettings,
    Recipe,
    TrainingSettings,
)
from subgnn.data.dataset import Dataset
from subgnn.data.synthetic import generate
from subgnn.inference.explain import Explainer
from subgnn.inference.explanation import Explanation, MemberContribution, NodeContribution
from subgnn.inference.masking import subgraph_inputs
from subgnn.inference.predictor import Predictor
from tests.inference.explained import baseline, explain, explained, run_of

TASKS = ("multi-class", "binary", "multi-label", "regression")
CLOSE = {"atol": 2e-6, "rtol": 1e-5}
# Two cliques' worth of nodes and a lone one: three components.
ROW = [0, 1, 2, 10, 11, 20]


def values(predictor: Predictor, rows) -> np.ndarray:
    """Logits, or values in their own unit."""
    nodes = Ragged.from_rows([sorted(row) for row in rows])
    return (predictor.probabilities if predictor.checkpoint.spec.task == "regression" else predictor.outputs)(nodes)


@pytest.mark.quick(1)
@pytest.mark.parametrize("task", TASKS)
def test_leaving_out_is_predicting_the_smaller_subgraph(task):
    data, predictor = explained(task)
    found = explain(predictor, [ROW])[0]
    whole = values(predictor, [ROW])[0]
    np.testing.assert_allclose(found.logits, whole, **CLOSE)
    assert found.label == predictor.predict([ROW])[0]
    smaller = [[v for v in ROW if v != node] for node in ROW]
    towards = [round(found.of_class(item.contributions), 5) for item in found.by_node]
    assert towards == sorted(towards, reverse=True)
    by_node = sorted(found.by_node, key=lambda item: item.node)
    assert [item.node for item in by_node] == ROW
    np.testing.assert_allclose([item.contributions for item in by_node], whole - values(predictor, smaller), **CLOSE)
    parts = [[0, 1, 2], [10, 11], [20]]
    assert [list(item.nodes) for item in found.by_component] == parts
    left = [[v for v in ROW if v not in part] for part in parts]
    contributions = [item.contributions for item in found.by_component]
    np.testing.assert_allclose(contributions, whole - values(predictor, left), **CLOSE)
    assert [item.component for item in by_node] == [0, 0, 0, 1, 1, 2]
    if task == "regression":
        assert found.classes == ("value",)
        assert found.probabilities == found.by_node[0].probability_changes == ()
        return
    assert found.classes == data.subgraphs.classes
    assert found.of_class(found.logits) == max(found.logits)
    assert found.of_class(found.logits, found.classes[1]) == found.logits[1]
    chances = predictor.probabilities(Ragged.from_rows([ROW, *smaller]))
    np.testing.assert_allclose(found.probabilities, chances[0], **CLOSE)
    changes = [item.probability_changes for item in by_node]
    np.testing.assert_allclose(changes, chances[0] - chances[1:], **CLOSE)


@pytest.mark.quick(3)
@pytest.mark.parametrize("method", ["avg", "bag", "topology", "gc", "glass", "ssnp", "wlks", "s2n"])
def test_nodes_of_a_baseline(method):
    _, predictor = baseline(method)
    found = explain(predictor, [ROW])[0]
    expected = predictor.outputs(Ragged.from_rows([ROW])) - predictor.outputs(Ragged.from_rows([ROW[1:]]))
    (first,) = (item for item in found.by_node if item.node == ROW[0])
    np.testing.assert_allclose(first.contributions, expected[0], **CLOSE)
    assert len(found.by_component) == 3
    assert found.by_channel == found.by_anchor == ()
    assert found.notes == (f"{method} has no channels and no anchors",)


def test_topology_is_explained_by_its_statistics():
    data, predictor = baseline("topology")
    found = explain(predictor, [ROW])[0]
    inside, known = to_networkx(data.graph).subgraph(ROW), data.subgraphs.nodes.take(data.subgraphs.indices("train"))
    items = {item.name: item for item in found.by_statistic}
    assert len(items) == 17  # the mean degree inside is there twice
    expected = {
        "number of nodes": len(ROW),
        "density": nx.density(inside),
        "mean degree inside": 2 * inside.number_of_edges() / len(ROW),
        "mean clustering inside": nx.average_clustering(inside),
        "largest core number inside": max(nx.core_number(inside).values()),
        "number of components": nx.number_connected_components(inside),
    }
    assert {name: items[name].value for name in expected} == pytest.approx(expected)
    triangles = {tuple(sorted(edge)) for edge in inside.edges if set(inside[edge[0]]) & set(inside[edge[1]])}
    assert set(items["mean clustering inside"].edges) == {(str(a), str(b)) for a, b in triangles}
    assert json.loads(json.dumps(found.to_json())) == found.to_json()  # so that records of it can be verified
    sizes = np.array([len(row) for row in known])
    size = items["number of nodes"]
    assert (size.median, size.share_below, size.share_above) == pytest.approx(
        (np.median(sizes), np.mean(sizes < 6), np.mean(sizes > 6))
    )
    # The mean degree at its median, in both of its columns.
    row, table = subgraph_statistics(data.graph, Ragged.from_rows([ROW])), subgraph_statistics(data.graph, known)
    row[:, 2:4] = np.median(table[:, 2:4], axis=0)
    network = predictor.model.network(predictor.checkpoint)
    network.load_state_dict(predictor.checkpoint.weights)
    change = np.array(found.logits) - network(row)[0]
    np.testing.assert_allclose(items["mean degree inside"].contributions, change, **CLOSE)
    assert found.sentence.startswith(f"Predicted {found.label} with probability 0.")
    assert f"{found.by_statistic[0].name} is " in found.sentence
    assert json.loads(json.dumps(found.to_json()))["by_statistic"][0]["name"] == found.by_statistic[0].name


def test_sentences_of_one_member_and_of_nodes_that_change_little():
    member = MemberContribution("bag", "bag", 1.0, "a", (0.9, 0.1), contributions=(0.0, 0.0))
    node = NodeContribution(0, "n0", 0, contributions=(0.2, 0.0), probability_changes=(0.004, -0.004))
    about = {"nodes": (0,), "names": ("n0",), "method": "auto", "task": "binary", "label": "a", "classes": ("a", "b")}
    found = Explanation(**about, logits=(2.2, 0.0), probabilities=(0.9, 0.1), by_node=(node,), by_member=(member,))
    assert (
        found.sentence
        == "Predicted a with probability 0.90; no single node changes the probability by more than 0.005."
    )
    both = replace(found, by_member=(replace(member, weight=0.6), replace(member, name="gin", weight=0.4)), by_node=())
    assert both.sentence.endswith("; by weight, it is the mean of bag 60% (a), gin 40% (a).")


def test_a_method_that_knows_no_other_subgraphs():
    data, predictor = baseline("mn-gin")
    found = explain(predictor, data.subgraphs.nodes.take([0]))[0]
    assert found.by_node == found.by_component == ()
    assert "cannot predict new subgraphs" in found.notes[0]
    with pytest.raises(DataError, match="cannot predict new subgraphs"):
        explain(predictor, [ROW])


def test_orders_repeats_company_and_names_do_not_matter():
    data, predictor = explained()
    alone = explain(predictor, [ROW])[0]
    shuffled = explain(predictor, [[3, 4], [20, 11, 0, 2, 1, 10, 11]])[1]
    assert shuffled.nodes == alone.nodes
    for name in ("by_node", "by_component", "by_channel", "by_anchor"):
        before, after = getattr(alone, name), getattr(shuffled, name)
        numbers = [[item.contributions for item in items] for items in (before, after)]
        np.testing.assert_allclose(*numbers, **CLOSE)
    assert alone.names == tuple(map(str, ROW))
    called = NodeNames.of([f"gene-{24 - i}" for i in range(data.graph.num_nodes)])
    had = predictor.checkpoint
    renamed = replace(had, spec=replace(had.spec, names_hash=called.content_hash))
    named = Predictor(renamed, replace(data.graph, names=called))
    other = explain(named, [ROW])[0]
    assert [item.name for item in other.by_node] == [f"gene-{24 - item.node}" for item in alone.by_node]
    assert [item.contributions for item in other.by_node] == [item.contributions for item in alone.by_node]


@pytest.mark.quick(1)
def test_channels_become_the_training_mean_or_nothing():
    data, predictor = explained()
    train = data.subgraphs.nodes.take(data.subgraphs.indices("train"))
    rows = Ragged.from_rows([ROW])
    measured = predictor.measured(rows)
    network = measured.networks[0].network
    mean = network.embed(predictor.measured(train).inputs.whole).detach().mean(dim=0)
    for background, reference, word in ((train, mean, "training mean"), (None, torch.zeros_like(mean), "zero")):
        found = Explainer(predictor, background=background).explain(rows)[0]
        assert found.reference == word
        by_name = {(item.level, item.name): item.contributions for item in found.by_channel}
        for level, name in by_name:
            z = network.embed(measured.inputs.whole).detach().clone()
            for part, columns in network.parts().items():
                if part == name or part.startswith(f"{name}/"):
                    for some in columns:
                        z[:, some] = reference[some]
            expected = predictor.outputs(rows)[0] - network.head(z)[0].detach().numpy()
            np.testing.assert_allclose(by_name[level, name], expected, **CLOSE)
    assert {name for level, name in by_name if level == "channel"} == {"position", "neighborhood", "structure"}
    assert len([name for level, name in by_name if level == "subchannel"]) == 6


@pytest.mark.quick(1)
@pytest.mark.parametrize("model", [{}, {"layers": 2, "hidden_norm": "batch"}, {"topology": True}])
def test_a_masked_anchor_has_similarity_0(model):
    _, predictor = explained(**model)
    rows = Ragged.from_rows([ROW])
    found = explain(predictor, [ROW], max_anchors=1000)[0]
    measured = predictor.measured(rows)
    network = measured.networks[0].network
    inputs = next(subgraph_inputs(network, measured.inputs, measured.prepared))
    each = list(inputs.each_anchor())
    assert len(each) == len(found.by_anchor)
    channels = predictor.checkpoint.spec.channels
    by_key = {(a.channel, a.layer, a.nodes): a for a in found.by_anchor}
    assert len(by_key) == len(each)
    for anchor in each:
        whole = measured.inputs.whole
        changed = [list(layer) for layer in whole.channels]
        seen = changed[anchor.layer][anchor.channel]
        similarity = seen.similarity.clone()
        similarity[anchor.positions] = 0
        changed[anchor.layer][anchor.channel] = replace(seen, similarity=similarity)
        without = network(replace(whole, channels=changed))[0].detach().numpy()
        item = by_key[channels[anchor.channel].name, anchor.layer, anchor.nodes]
        np.testing.assert_allclose(item.contributions, predictor.outputs(rows)[0] - without, **CLOSE)
        assert 0 < item.similarity <= 1
    strengths = [abs(found.of_class(item.contributions)) for item in found.by_anchor]
    assert strengths == sorted(strengths, reverse=True)


def test_limits_are_noted():
    _, predictor = explained()
    found = explain(predictor, [ROW], max_nodes=4, max_anchors=2)[0]
    assert found.by_node == ()
    assert len(found.by_component) == 3
    assert len(found.by_anchor) == 2
    assert found.notes[0] == "6 nodes are more than max_nodes (4): they were not left out one by one"
    assert found.notes[1].startswith("2 of ")
    found = explain(predictor, [ROW], max_nodes=2)[0]
    assert found.by_component == ()
    assert "3 components are more than max_nodes (2): none was left out" in found.notes
    assert found.by_channel


def test_a_single_node_leaves_nothing():
    _, predictor = explained()
    found = explain(predictor, [[7]])[0]
    assert found.by_node == found.by_component == ()
    assert found.notes[:2] == (
        "the subgraph is a single node: without it, nothing is left",
        "the subgraph is a single component: without it, nothing is left",
    )
    assert found.by_channel


def test_the_whole_graph_has_no_border():
    data, predictor = explained()
    found = explain(predictor, [range(data.graph.num_nodes)], max_anchors=1000)[0]
    assert not [item for item in found.by_anchor if item.channel == "neighborhood/border"]


def test_json_is_plain_and_complete():
    _, predictor = explained()
    found = explain(predictor, [ROW])[0]
    plain = json.loads(json.dumps(found.to_json()))
    assert plain["label"] == found.label
    assert list(plain["logits"]) == list(found.classes)
    first = plain["by_node"][0]
    assert {"node", "name", "component", "contributions", "probability_changes"} == set(first)
    assert first["contributions"][found.classes[0]] == round(found.by_node[0].contributions[0], 6)


KINDS = [(kind, side) for kind in ("position", "neighborhood", "structure") for side in ("internal", "border")]


def channels(*counts: int) -> tuple[ChannelSettings, ...]:
    return tuple(ChannelSettings(kind, side, n) for (kind, side), n in zip(KINDS, counts, strict=True))


def carried(data: Dataset, settings: Recipe) -> dict[str, float]:
    """What each channel adds to the logit of the predicted class: the mean over test subgraphs."""
    predictor, subgraphs = run_of(data, settings), data.subgraphs
    background = subgraphs.nodes.take(subgraphs.indices("train"))
    explainer = Explainer(predictor, background=background, max_nodes=0, max_anchors=0)
    found = explainer.explain(subgraphs.nodes.take(subgraphs.indices("test")[:20]))
    names = [item.name for item in found[0].by_channel]
    numbers = [[one.of_class(item.contributions) for item in one.by_channel] for one in found]
    return dict(zip(names, np.mean(numbers, axis=0).tolist(), strict=True))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*the same nodes")
def test_density_hangs_on_structure():
    settings = Recipe(
        channels=channels(57, 183, 10, 43, 42, 42),
        prepare=PrepareSettings(hops=2),
        embeddings=EmbeddingSettings(dim=32),
        model=ModelSettings(component_init="max"),
        training=TrainingSettings(epochs=20, lr=3e-4, batch_size=64),
    )
    found = carried(generate("density", seed=0), settings)
    others = max(abs(found[name]) for name in ("z0", "position", "neighborhood"))
    assert found["structure"] > 5 * others


@pytest.mark.slow
def test_component_hangs_on_position():
    data = generate("component", seed=0, num_nodes=500, num_subgraphs=60)
    constant = np.ones((data.graph.num_nodes, 1), np.float32)
    settings = Recipe(
        channels=channels(10, 10, 5, 10, 5, 5),
        prepare=PrepareSettings(patch_length=10, walks=2, walk_length=5),
        embeddings=EmbeddingSettings(dim=8, features="instead"),
        model=ModelSettings(readout="mean", norm="batch", dropout=0.0),
        training=TrainingSettings(epochs=25, lr=5e-3, batch_size=20),
    )
    found = carried(replace(data, graph=replace(data.graph, features=constant, known_hash="")), settings)
    others = max(abs(found[name]) for name in ("z0", "neighborhood", "structure"))
    assert found["position"] > 5 * others
    assert found["position/internal"] > 5 * abs(found["position/border"])
