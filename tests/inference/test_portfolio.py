"""Everything a run can do, with a portfolio: files, tables of embeddings, scores, explanations and answers."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from subgnn import DataError, Ragged
from subgnn.api.train_recipe import train
from subgnn.embeddings.sources import save_run_vectors, source_vectors, vectors_hash
from subgnn.inference.explain import Explainer
from subgnn.inference.open import EXPORT, evaluate_split, export_run, open_run
from subgnn.models.checkpoint import load_checkpoint
from subgnn.reports.run_page import run_report
from subgnn.result import Candidate, read_result
from subgnn.storage.arrays import encode_arrays, read_arrays, write_parts
from subgnn.training.run_dir import CHECKPOINT
from tests.models.portfolios import SHARES, given_embeddings, named_dataset, opened, portfolio, write_run

pytestmark = pytest.mark.slow

ROWS = Ragged.from_rows([[0, 1, 2, 10, 11, 20], [3, 9]])
TASKS = ("multi-class", "multi-label", "regression")


@pytest.fixture(scope="module", params=TASKS)
def run(request, tmp_path_factory) -> Path:
    """A run of each task."""
    return write_run(tmp_path_factory.mktemp("portfolio"), portfolio(request.param), request.param)


def test_an_export_answers_as_the_run_does(run, tmp_path):
    export_run(run, tmp_path / "it", with_graph=True)
    before, after = open_run(run).predictor, open_run(tmp_path / "it").predictor
    np.testing.assert_array_equal(before.outputs(ROWS), after.outputs(ROWS))
    np.testing.assert_array_equal(before.embeddings(ROWS), after.embeddings(ROWS))
    assert before.predict(ROWS) == after.predict(ROWS)
    explained = [Explainer.of_run(open_run(path)).explain(ROWS)[0].to_json() for path in (run, tmp_path / "it")]
    assert explained[0] == explained[1]
    export_run(tmp_path / "it", tmp_path / "again", with_graph=True)
    assert (tmp_path / "again").read_bytes() == (tmp_path / "it").read_bytes()


def test_scores_count_labels_above_their_thresholds(run):
    task = open_run(run).predictor.spec.task
    data, predictor = opened(task)
    rows = data.subgraphs.indices("test")
    targets = np.asarray(data.subgraphs.targets)[rows]
    found = evaluate_split(run, "test").test
    if task == "regression":
        error = predictor.probabilities(data.subgraphs.nodes.take(rows))[:, 0] - targets
        assert found["rmse"] == pytest.approx(np.sqrt((error**2).mean()), rel=1e-4)
        return
    labels = predictor.predict(data.subgraphs.nodes.take(rows))
    truth = [data.subgraphs.label_text(int(row)) for row in rows]
    assert found["accuracy"] == pytest.approx(np.mean([a == b for a, b in zip(labels, truth, strict=True)]))


def differ(one, other):
    return np.abs(np.array(one) - np.array(other)).max()


def test_contributions_are_differences_of_the_whole(run):
    predictor, explainer = open_run(run).predictor, Explainer.of_run(open_run(run))
    real = predictor.spec.task == "regression"
    unit = predictor.spec.standards["target"].deviation[0] if real else 1.0
    whole = predictor.outputs(ROWS)[0]
    found = explainer.explain(ROWS)[0]
    assert (found.method, found.label, found.member) == ("auto", predictor.predict(ROWS)[0], "channels")
    assert differ(found.logits, predictor.probabilities(ROWS)[0] if real else whole) < 1e-5
    for node in found.by_node:
        rest = predictor.outputs(Ragged.from_rows([[n for n in found.nodes if n != node.node]]))[0]
        assert differ(node.contributions, (whole - rest) * unit) < 1e-4
    assert len(found.by_component) > 1
    assert "channels and anchors are those of member channels, which has 30% of the weight" in found.notes
    assert {"baseline", "z0"} <= {part.name for part in found.by_channel}
    assert found.by_anchor


def test_members_are_left_out_of_the_whole(run):
    predictor = open_run(run).predictor
    real, several = (predictor.spec.task == task for task in ("regression", "multi-label"))
    found = Explainer.of_run(open_run(run)).explain(ROWS)[0]
    assert {item.name: round(item.weight, 6) for item in found.by_member} == SHARES
    assert found.sentence.count("bag 50%") == 1
    assert "topology 20%" in found.sentence
    assert len(found.by_statistic) == 17
    own = {item.name: np.array(item.scores) for item in found.by_member}
    weights = {name: predictor.checkpoint.weights[name] for name in ("scale", "offset")}
    for item in found.by_member:
        assert item.label == predictor.part(item.name).predict(ROWS)[0]
        rest = {name: share for name, share in SHARES.items() if name != item.name}
        mean = sum(share * own[name] for name, share in rest.items()) / sum(rest.values())
        if real:
            expected = np.array(found.logits) - mean  # where the scale is 1 and the offset 0
        else:
            logits = np.log(mean / (1 - mean)) if several else np.log(mean)
            expected = np.array(found.logits) - (weights["scale"] * logits + weights["offset"])
        assert differ(item.contributions, expected) < 1e-3


def test_channels_are_masked_through_the_whole(run):
    predictor, explainer = open_run(run).predictor, Explainer.of_run(open_run(run))
    member = predictor.part("channels")
    source = explainer.reference()
    measured = member.measured(ROWS)
    network = measured.networks[0].network
    with torch.no_grad():
        vectors = network.embed(measured.inputs.whole)
        for columns in network.parts()["position/border"]:
            vectors[:, columns] = torch.from_numpy(source[0, columns])
        masked = network.head(vectors).numpy()
    own = predictor.fitted.member_outputs(ROWS.take([0]))
    (whole,) = predictor.fitted.outputs_given_member("channels", own)
    (part,) = (p for p in explainer.explain(ROWS)[0].by_channel if p.name == "position/border")
    scale = predictor.spec.standards["target"].deviation[0] if predictor.spec.task == "regression" else 1.0
    expected = (predictor.outputs(ROWS)[0] - whole(masked[:1])[0]) * scale
    assert differ(part.contributions, expected) < 1e-4
    np.testing.assert_allclose(whole(member.outputs(ROWS)[:1])[0], predictor.outputs(ROWS)[0], atol=1e-5)


def test_the_page_shows_the_parts_of_the_member_with_channels(run):
    result = read_result(run)
    task = result.task
    row = Candidate(name="", recipe="a recipe", score=0.5, low=0.4, high=0.6, seconds=1.0, weight=0.0, note="")
    metric = "r2" if task == "regression" else "micro_f1"
    more = {
        "leaderboard": tuple(replace(row, name=name, weight=share) for name, share in SHARES.items()),
        "metric": metric,
        "signal": "The labels depend on the nodes.",
        "chosen": "ensemble",
        "val": {metric: 0.5},
        "test": {metric: 0.5},
    }
    replace(result, **more).save(run)
    page = run_report(run, named_dataset(task))
    assert ("above its threshold" in page) == (task == "multi-label")


@pytest.fixture(scope="module")
def tables(tmp_path_factory) -> Path:
    """A run of three members, two of which start from one table, and the third from another."""
    folder, data = tmp_path_factory.mktemp("tables"), named_dataset()
    parts, made = {}, []
    for name, seed in {"one": 0, "same": 0, "other": 1}.items():
        settings = given_embeddings(folder, seed)
        train(data, settings, folder / name, device="cpu", cache=False, report=False)
        parts[name] = load_checkpoint(folder / name / CHECKPOINT)
        made.append(source_vectors(settings, data.graph))
    whole = portfolio()
    weights = whole.weights | {"member_weights": np.array([0.5, 0.25, 0.25], np.float32)}
    run = write_run(folder, replace(whole, parts=parts, weights=weights))
    save_run_vectors(made, data.graph, run)
    for path in folder.glob("*.npy"):
        path.unlink()
    return run


def test_each_table_is_kept_once(tables, tmp_path):
    names = sorted(path.name for path in tables.glob("embeddings*"))
    assert names == ["embeddings-1.safetensors", "embeddings.safetensors"]
    predictor = open_run(tables).predictor
    assert set(predictor.tables) == {part.spec.vectors_hash for part in predictor.checkpoint.parts.values()}
    assert len(predictor.tables) == 2
    folder = tables.parent
    alone = open_run(folder / "other", folder / "data").predictor
    np.testing.assert_array_equal(predictor.part("other").outputs(ROWS), alone.outputs(ROWS))
    export_run(tables, tmp_path / "it", with_graph=True)
    names = [name for name in read_arrays(tmp_path / "it", EXPORT).arrays if name.startswith("vectors")]
    assert sorted(names) == ["vectors", "vectors.1"]
    np.testing.assert_array_equal(open_run(tmp_path / "it").predictor.outputs(ROWS), predictor.outputs(ROWS))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda arrays: arrays.pop("vectors.1"), "node embeddings are missing"),
        (lambda arrays: arrays.update({"vectors.2": arrays["vectors"]}), "not those the run was trained with"),
        (lambda arrays: arrays.update({"vectors.1": arrays["vectors"]}), "not those the run was trained with"),
        (lambda arrays: arrays.update({"vectors.x": arrays["vectors"]}), "unknown part 'vectors.x'"),
    ],
)
def test_other_tables_in_an_export_are_refused(change, message, tables, tmp_path):
    export_run(tables, tmp_path / "it", with_graph=True)
    file = read_arrays(tmp_path / "it", EXPORT)
    arrays = dict(file.arrays)
    change(arrays)
    write_parts(tmp_path / "it", encode_arrays(arrays, EXPORT, file.content()), overwrite=True)
    with pytest.raises(DataError, match=message):
        open_run(tmp_path / "it")


def test_a_missing_table_is_named(tables, tmp_path):
    moved = tmp_path / "run"
    moved.mkdir()
    for path in tables.iterdir():
        if path.name != "embeddings-1.safetensors":
            (moved / path.name).write_bytes(path.read_bytes())
    with pytest.raises(DataError, match="the run's folder does not have its node embeddings"):
        open_run(moved, tables.parent / "data")


def test_a_name_of_embeddings_that_no_one_uses_is_refused(tmp_path):
    found = portfolio()
    wrong = replace(found, spec=replace(found.spec, vectors_hash=vectors_hash(np.ones((24, 8), np.float32))))
    run = write_run(tmp_path, wrong)
    with pytest.raises(DataError, match="names node embeddings that its recipe does not use"):
        open_run(run)
