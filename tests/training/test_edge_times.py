"""Times: splits by time, and the refusal of edges from after the first held-out subgraph."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import subgnn
from subgnn.api.train_recipe import train
from subgnn.channels.topology import subgraph_statistics
from subgnn.cli.app import app
from subgnn.config.settings import AutoSettings
from subgnn.data.dataset import Dataset
from subgnn.data.formats import read_dataset
from subgnn.data.formats.folder import write_folder
from subgnn.data.graph import Graph
from subgnn.data.own_times import timed
from subgnn.data.splits import first_held_out, split_subgraphs, time_split
from subgnn.data.subgraphs import SubgraphSet
from subgnn.errors import DataError, UserError
from subgnn.inference.open import export_run, open_run
from subgnn.models.kernel_machines.rows import view_of
from subgnn.models.kernel_machines.views import DiffusionSettings
from subgnn.models.recipes import find_recipe, unused_line
from subgnn.training.portfolio import CrossValidation
from tests.cli.command import call
from tests.training.examples import dataset

BAG = find_recipe("bag-1hop", ["bag.inverse_penalty=1", "bag.normalize=rows"])


def dated():
    """A dataset whose subgraphs are at 0, 1, 2, ... in their order, and whose edges are at 0, 1, 2, ... in theirs."""
    data = dataset()
    tails, heads, _ = data.graph.edges()
    graph = Graph.from_edges(tails, heads, num_nodes=data.graph.num_nodes, times=np.arange(len(tails)))
    subgraphs = replace(data.subgraphs, times=np.arange(len(data.subgraphs)))
    return replace(data, graph=graph, subgraphs=split_subgraphs(subgraphs, method="time", seed=0))


@given(st.lists(st.integers(0, 8), min_size=3, max_size=40).filter(lambda times: len(set(times)) >= 3))
def test_a_split_by_time_is_in_order_and_keeps_equal_times_together(times):
    given_ = np.array(times)
    splits = time_split(given_, (0.5, 0.25, 0.25))
    parts = [given_[splits == i] for i in range(3)]
    assert all(len(part) for part in parts)
    assert parts[0].max() < parts[1].min() <= parts[1].max() < parts[2].min()
    if len(set(times)) == len(times) and len(times) >= 8:
        assert np.abs(np.bincount(splits) - len(times) * np.array([0.5, 0.25, 0.25])).max() <= 1


def test_a_split_by_time_needs_times():
    plain = SubgraphSet.from_lists([[0], [1], [2]], num_nodes=3)
    with pytest.raises(DataError, match="the subgraphs have no times"):
        split_subgraphs(plain, method="time", seed=0)
    with pytest.raises(DataError, match="2 different times"):
        split_subgraphs(replace(plain, times=np.array([1, 1, 2])), method="time", seed=0)


def test_a_split_that_is_not_by_time_holds_out_from_no_time():
    data = dated()
    assert first_held_out(data.subgraphs) == data.subgraphs.times[data.subgraphs.splits > 0].min()
    assert first_held_out(split_subgraphs(data.subgraphs, method="random", seed=0)) is None
    assert first_held_out(replace(data.subgraphs, times=None)) is None


def test_edges_from_after_the_first_held_out_subgraph_are_refused(tmp_path):
    data = dated()
    first = first_held_out(data.subgraphs)
    later = data.graph.num_edges - 1 - first
    message = rf"split is by time, but {later:,} edges are newer .*, {first}; .* drop them with edges_until={first}, or"
    with pytest.raises(DataError, match=message):
        train(data, BAG, tmp_path / "run", as_of="now")
    with pytest.raises(DataError, match=message):  # of a model that cannot measure subgraphs at their own times
        train(data, find_recipe("avg"), tmp_path / "run")
    with pytest.raises(DataError, match="edges are newer"):
        train(data, BAG, tmp_path / "run", edges_until=first + 1)
    assert not (tmp_path / "run").exists()
    results = train(data, BAG, tmp_path / "ahead", allow_look_ahead=True, report=False)
    assert results.look_ahead is True
    random = replace(data, subgraphs=split_subgraphs(data.subgraphs, method="random", seed=0))
    assert not train(random, BAG, tmp_path / "random", report=False).look_ahead


def test_predictions_leave_out_the_edges_that_training_left_out(tmp_path):
    data = dated()
    first = first_held_out(data.subgraphs)
    results = train(data, BAG, tmp_path / "run", edges_until=first, report=False)
    assert results.edges_until == first
    plain = train(replace(data, graph=data.graph.until(first)), BAG, tmp_path / "plain", report=False)
    assert results.test == plain.test
    opened = open_run(tmp_path / "run", data)
    assert opened.predictor.graph.num_edges == first + 1
    export_run(open_run(tmp_path / "run", data), tmp_path / "run.subgnn", with_graph=True)
    nodes = data.subgraphs.nodes
    for source in (None, data):
        again = open_run(tmp_path / "run.subgnn", source).predictor
        np.testing.assert_array_equal(again.outputs(nodes), opened.predictor.outputs(nodes))
    with pytest.raises(DataError, match="different settings"):
        train(data, BAG, tmp_path / "run", edges_until=first - 1, resume=True)


LABEL_AT = {"before": -1, "after": 1}


def labelled_by_edges(when: int, *, count: int = 150) -> Dataset:
    """Pairs of subgraphs of own nodes; those of one class are joined within themselves just before or after their time.

    All have edges to the same few nodes before, so that only when edges come tells the classes apart.
    """
    rng = np.random.default_rng(0)
    size, hubs = 5, 10
    tails, heads, times, sets, labels = [], [], [], [], []
    for i in range(count):
        members, time = hubs + size * i + np.arange(size), 10 * i
        positive = bool(rng.integers(2))
        inside = [(a, b) for a in members for b in members if a < b]
        edges = [(int(a), int(rng.integers(hubs)), time - 5) for a in members]
        edges += [(int(a), int(b), time + when) for a, b in inside if positive]
        # The others are joined as well, at a time when nobody looks.
        edges += [(int(a), int(b), 10 * count + 100) for a, b in inside if not positive]
        for tail, head, at in edges:
            tails.append(tail), heads.append(head), times.append(at)
        sets.append(members), labels.append("ring" if positive else "other")
    number = hubs + size * count
    graph = Graph.from_edges(tails, heads, num_nodes=number, times=times)
    subgraphs = SubgraphSet.from_lists(sets, labels=labels, num_nodes=number, times=10 * np.arange(count))
    return Dataset("rings", graph, split_subgraphs(subgraphs, method="time", seed=0))


@pytest.mark.parametrize("recipe", ["topology", "diffusion-topology", "bag-1hop", "auto"])
@pytest.mark.quick(2)
def test_a_label_that_only_the_future_carries_cannot_be_learned(recipe, tmp_path):
    """Each subgraph is measured as of its own time: edges from before tell the class, and edges from after do not."""
    overrides = {"auto": ['auto.only=["topology"]', "auto.repeats=1"], "topology": ["topology.classifier=boosting"]}
    chosen = find_recipe(recipe, overrides.get(recipe, []))
    before = train(labelled_by_edges(LABEL_AT["before"]), chosen, tmp_path / "before", report=False)
    after = train(labelled_by_edges(LABEL_AT["after"]), chosen, tmp_path / "after", report=False)
    assert (before.as_of, after.as_of) == ("subgraph", "subgraph")
    assert 0.25 < after.test["auroc"] < 0.75
    if recipe != "bag-1hop":  # which knows nodes, and none occurs in two subgraphs
        assert before.test["auroc"] > 0.95
        assert before.val["micro_f1"] > 0.9
    data = labelled_by_edges(LABEL_AT["before"])
    opened = open_run(tmp_path / "before", data)
    scores = opened.predictor.probabilities(opened.split("test", "run"))
    test = data.subgraphs.take(data.subgraphs.indices("test"))
    np.testing.assert_array_equal(opened.predictor.probabilities(test), scores)
    again = open_run(tmp_path / "before", graph=data.graph)
    np.testing.assert_allclose(again.predictor.probabilities(again.split("test", "run")), scores, atol=1e-6)


def test_predictions_are_as_of_the_times_in_the_table(tmp_path):
    data = labelled_by_edges(LABEL_AT["before"], count=60)
    write_folder(data, tmp_path / "data")
    recipe = find_recipe("topology", ["topology.classifier=forest"])
    train(read_dataset(tmp_path / "data"), recipe, tmp_path / "run", report=False)
    run = subgnn.load(tmp_path / "run", tmp_path / "data")
    held = data.subgraphs.take(data.subgraphs.indices("test"))
    expected = run.predictor.probabilities(timed(held).nodes)[:, 1]
    rows = ["alert,node,time\n"]
    rows += [f"{i},{node},{held.times[i]}\n" for i, nodes in enumerate(held.nodes) for node in nodes]
    for number, table in enumerate((rows, [row.rpartition(",")[0] + "\n" for row in rows])):
        (tmp_path / "new.csv").write_text("".join(table))
        asked = ("--subgraphs", tmp_path / "new.csv", "--subgraph-column", "alert", "--data", tmp_path / "data")
        words = (*asked, "--out", tmp_path / f"{number}.csv")
        found = call("predict", tmp_path / "run", *words, "--json")
        assert any("no times" in note for note in found.json["notes"]) == bool(number), found.json
    now, then = (pd.read_csv(tmp_path / f"{number}.csv")["ring"] for number in (1, 0))
    np.testing.assert_allclose(then, expected, atol=1e-5)
    assert not np.allclose(now, expected, atol=1e-3)
    np.testing.assert_allclose(run.predict(held)["ring"], expected, atol=1e-6)
    nodes = timed(held).nodes.take(range(len(held)))
    for why, probability, own in zip(run.explain(held), expected, nodes, strict=True):
        assert why.probabilities[1] == pytest.approx(probability, abs=1e-5)
        assert why.nodes == tuple(own.tolist())
    # Edges inside a ring come just before its time: seen earlier, its members are all apart.
    early = replace(held, times=held.times - 2)
    assert {len(why.by_component) for why in run.explain(early)} == {5}
    (tmp_path / "new.csv").write_text("".join(rows))
    for verb in ("search", "complete"):
        found = call(verb, tmp_path / "run", *asked, "--out", tmp_path / f"{verb}.csv", "--json")
        assert any("the graph as it is now" in note for note in found.json["notes"]), verb


def test_own_times_agree_with_one_graph_for_each_subgraph():
    data = labelled_by_edges(LABEL_AT["after"], count=12)
    own = timed(data.subgraphs)
    statistics = subgraph_statistics(data.graph, own.nodes)
    walks = view_of(data.graph, own.nodes, "lift", DiffusionSettings(damping=0.5, algorithm="exact")).values
    for i, time in enumerate(data.subgraphs.times):
        then, alone = data.graph.until(time), data.subgraphs.nodes.take([i])
        np.testing.assert_allclose(statistics[i], subgraph_statistics(then, alone)[0])
        expected = view_of(then, alone, "lift", DiffusionSettings(damping=0.5, algorithm="exact")).values
        np.testing.assert_allclose(walks[i], expected[0], rtol=1e-5, atol=1e-6)
    assert timed(data.subgraphs, 40.0).nodes.times.tolist() == [40.0 * (10 * i // 40) for i in range(12)]


def test_folds_of_a_portfolio_learn_from_the_past_alone():
    data = labelled_by_edges(LABEL_AT["before"], count=40)
    pool = CrossValidation.of(replace(data, subgraphs=timed(data.subgraphs)), AutoSettings(), seed=0)
    times, judged = np.asarray(pool.dataset.subgraphs.times), np.zeros(len(pool.dataset.subgraphs), bool)
    for splits in pool.folds(0, 5):
        held = splits == 2
        assert times[splits < 2].max() < times[held].min()
        assert not judged[held].any()
        judged |= held
    np.testing.assert_array_equal(np.flatnonzero(judged), pool.judged)
    assert set(pool.whole()) == {0, 1, 2}


def test_train_says_what_times_are_for():
    assert unused_line(BAG, dated().graph).endswith(
        "edge times (for data split --method time, --as-of and --edges-until)"
    )


def test_a_time_for_edges_without_times_is_refused(tmp_path):
    with pytest.raises(UserError, match="the edges have no times"):
        train(dataset(), BAG, tmp_path / "run", edges_until=3)
    with pytest.raises(DataError, match="'soon' is not a time"):
        train(dated(), BAG, tmp_path / "run", edges_until="soon")
    with pytest.raises(UserError, match=r"no edge is from -1 or before; their times are 0 to \d+; give one of these"):
        train(dated(), BAG, tmp_path / "run", edges_until=-1)


def test_the_command_line_splits_by_time_and_refuses_to_look_ahead(tmp_path):
    data, runner = dated(), CliRunner()
    write_folder(replace(data, subgraphs=split_subgraphs(data.subgraphs, method="random", seed=0)), tmp_path / "data")

    def call(*arguments):
        return runner.invoke(app, [str(argument) for argument in arguments])

    found = call("data", "split", tmp_path / "data", "--out", tmp_path / "by_time", "--method", "time")
    assert found.exit_code == 0, found.output
    subgraphs = read_dataset(tmp_path / "by_time").subgraphs
    np.testing.assert_array_equal(subgraphs.splits, data.subgraphs.splits)
    options = ("--recipe", "bag-1hop", "--set", "bag.inverse_penalty=1", "--out", tmp_path / "run", "--json")
    refused = call("train", tmp_path / "by_time", *options, "--as-of", "now")
    assert isinstance(refused.exception, DataError)
    first = first_held_out(subgraphs)
    trained = call("train", tmp_path / "by_time", *options, "--edges-until", first)
    assert json.loads(trained.stdout)["edges_until"] == first
    call("predict", tmp_path / "run", "--subgraphs", tmp_path / "by_time/subgraphs.tsv", "--out", tmp_path / "p.tsv")
    assert len((tmp_path / "p.tsv").read_text().splitlines()) == len(subgraphs) + 1
