"""A tiny suite from end to end: what is reported, what is skipped, what fails, what is killed."""

import json
import shutil

import numpy as np
import pytest
from sklearn.metrics import f1_score, roc_auc_score

from subgnn.errors import DataError, UserError
from subgnn.lab.suites import job as jobs
from subgnn.lab.suites import run as runs
from tests.lab.suites.examples import MODELS, SMALL, folder, run, timeless, tiny


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    parent = tmp_path_factory.mktemp("suite")
    data = folder(parent)
    return data, parent / "out", run(tiny(), data, parent / "out")


def outcomes(out):
    return [json.loads(path.read_text()) for path in sorted(out.glob("runs/*/outcome.json"))]


def test_rows_are_recomputed_from_the_answers(ran):
    _, out, found = ran
    assert [(row["dataset"], row["n"]) for row in found["rows"]] == [("cliques", 2)] * 3
    assert [row["model"] for row in found["rows"]] == ["SubGNN", "bag", "avg"]
    for row in found["rows"]:
        micro, area = [], []
        for one, path in zip(outcomes(out), sorted(out.glob("runs/*/answers.npz")), strict=True):
            if one["models"][0] != row["model"]:
                continue
            with np.load(path) as kept:
                targets, said = kept["targets"], kept["probabilities"]
            micro.append(f1_score(targets, said.argmax(axis=1), average="micro"))
            there = [c for c in range(said.shape[1]) if 0 < (targets == c).sum() < len(targets)]
            area.append(np.mean([roc_auc_score(targets == c, said[:, c]) for c in there]))
        expected = [np.mean(micro), np.mean(area), np.std(micro, ddof=1)]
        assert [row["micro_f1"]["mean"], row["auroc"]["mean"], row["micro_f1"]["std"]] == pytest.approx(
            expected, abs=1e-4
        )
        assert row["protocol"] == "random"


def test_files(ran):
    _, out, found = ran
    assert {path.name for path in out.iterdir()} == {"suite.json", "runs", "results.csv", "paired.csv", "report.html"}
    page = (out / "report.html").read_text()
    for words in (
        "A tiny suite",
        "published: 0.750",
        "Random splits by seed",
        f"{found['rows'][0]['micro_f1']['mean']:.3f} ±",
    ):
        assert words in page
    for asset in ("<script src", "http://", "https://", "<link", "src="):
        assert asset not in page


def test_finished_runs_are_skipped(ran, monkeypatch):
    data, out, found = ran
    called = []
    monkeypatch.setattr(runs, "run_job", called.append)
    monkeypatch.setattr(runs, "table_rows", lambda *_: [])
    assert run(tiny(), data, out) == found
    assert called == []
    run(tiny(), data, out, seeds=3)
    assert sorted(job["seed"] for job in called) == [2, 2, 2]


def test_half_of_the_runs_deleted_and_run_again(ran, tmp_path):
    data, out, found = ran
    shutil.copytree(out, tmp_path / "out")
    for path in sorted((tmp_path / "out" / "runs").iterdir())[::2]:
        shutil.rmtree(path)
    for path in (tmp_path / "out").glob("runs/*/outcome.json"):  # of another suite, which has another name for the data
        path.write_text(json.dumps(json.loads(path.read_text()) | {"dataset": "groups"}))
    (tmp_path / "out" / "results.csv").unlink()
    assert runs.write_report(tmp_path / "out")["runs"] == 3
    (tmp_path / "out" / "results.csv").unlink()
    again = run(tiny(), data, tmp_path / "out")
    assert timeless(again) == timeless(found)


def test_other_overrides_make_rows_of_their_own(ran, tmp_path):
    data, out, _ = ran
    shutil.copytree(out, tmp_path / "out")
    both = run(tiny(), data, tmp_path / "out", seeds=1, models=["SubGNN"], overrides=(*SMALL, "training.lr=0.5"))
    names = [row["model"] for row in both["rows"]]
    assert len(names) == 4
    assert sum(name.startswith("SubGNN · ") for name in names) == 2
    assert [name for name in names if name.endswith("training.lr=0.5")]
    assert both["incomplete"]


def test_a_model_that_fails_is_listed_and_mended(ran, tmp_path):
    data, _, found = ran
    broken = {**MODELS[2], "label": "broken", "set": ["embeddings.source=nowhere.npy"]}
    suite = tiny(models=[broken, MODELS[1]])
    report = run(suite, data, tmp_path / "out")
    for left in (tmp_path / "out" / "runs").glob("*avg*"):
        (left / ".failure.json.0123abcd.part").touch()  # as of a process that was killed
    assert run(suite, data, tmp_path / "out") == report
    assert [row["model"] for row in report["rows"]] == ["bag"]
    assert timeless(report["rows"][0]) == timeless(found["rows"][1])
    assert [(f["label"], f["seed"]) for f in report["failures"]] == [("broken", 0), ("broken", 1)]
    assert report["failures"][0]["failure"].startswith("nowhere.npy: ")
    assert "broken on cliques, seed 0: nowhere.npy" in (tmp_path / "out" / "report.html").read_text()


@pytest.mark.slow
def test_killed_between_training_and_answers(ran, tmp_path, monkeypatch):
    data, _, found = ran

    def killed(*_: object, **__: object):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(jobs, "_save_predictions", killed)
        with pytest.raises(KeyboardInterrupt):
            run(tiny(), data, tmp_path / "out")
    (left,) = (tmp_path / "out" / "runs").iterdir()
    assert (left / "run.json").is_file()
    assert timeless(run(tiny(), data, tmp_path / "out")) == timeless(found)


def test_shared_work_is_done_once(ran, tmp_path, monkeypatch):
    data, _, _ = ran
    shared = []
    monkeypatch.setattr(runs, "share_job", lambda job: shared.append((job["share"], job["seed"])))
    pretrained = {**MODELS[2], "set": ["embeddings.source=gin"]}
    other = {**MODELS[0], "label": "other", "set": ["channels.structure=3", "training.lr=0.5"]}
    monkeypatch.setattr(runs, "run_job", lambda job: None)
    monkeypatch.setattr(runs, "table_rows", lambda *_: [])
    with pytest.raises(DataError, match="no finished runs"):
        run(tiny(models=[pretrained, MODELS[0], other]), data, tmp_path / "out")
    # One pretraining for two seeds of avg; for each seed, what the two SubGNNs have in common.
    assert shared == [("pretrain", 0), ("prepare", 0), ("prepare", 1)]


def test_names_that_the_suite_does_not_have(ran, tmp_path):
    data, out, _ = ran
    x, small = tmp_path / "x", tiny(name="small")
    for call, error, message in (
        (lambda: run(tiny(), data, x, models=["bog"]), UserError, "--models: the suite does not have 'bog'; .*did you"),
        (lambda: run(tiny(), data, x, datasets=["clique"]), UserError, "--datasets: the suite does not have 'clique'"),
        (lambda: runs.run_suite(tiny(), x, data={"x": data}), UserError, "data: the suite does not have 'x'"),
        (lambda: runs.run_suite(tiny(), x), UserError, "no dataset is given; give at least one folder, such as --data"),
        (lambda: run(tiny(), tmp_path / "gone", x), DataError, "no such folder; give the dataset with --data cliques="),
        (lambda: run(tiny(), data, x, overrides=("training.epoch=2",)), UserError, r"setting 'training\.epoch'"),
        (lambda: run(small, data, out), DataError, "holds a different suite, 'tiny'; choose a different --out"),
        (lambda: run(tiny(), data, data), DataError, "exists already"),
        (lambda: runs.write_report(data), DataError, "this is not the folder of a suite"),
    ):
        with pytest.raises(error, match=message):
            call()
    assert not x.exists()


def test_val_and_test_exchanged(tmp_path):
    data = folder(tmp_path)
    lines = (data / "subgraphs.tsv").read_text().splitlines()
    first = next(i for i, line in enumerate(lines) if line.endswith("val"))
    lines[first] = lines[first].removesuffix("val") + "test"  # so that val is smaller
    (data / "subgraphs.tsv").write_text("\n".join(lines) + "\n")
    suite = tiny(
        protocol={"split": "stored"},
        datasets=[
            {"name": "cliques"},
            {"name": "turned", "like": "cliques", "folder_of": "cliques", "split": "published"},
        ],
        models=MODELS[1:],
        compare=["bag"],
    )
    found = run(suite, data, tmp_path / "out", seeds=1)
    assert [row["dataset"] for row in found["rows"][::2]] == ["cliques", "turned"]
    assert {row["protocol"] for row in found["rows"]} == {"stored"}
    assert [(one["dataset"], one["model"]) for one in found["pairs"]] == [("cliques", "avg"), ("turned", "avg")]
    sizes = {}
    for one, path in zip(outcomes(tmp_path / "out"), sorted(tmp_path.glob("out/runs/*/answers.npz")), strict=True):
        with np.load(path) as kept:
            sizes[one["dataset"]] = set(kept["rows"].tolist())
    assert not sizes["cliques"] & sizes["turned"]
    # A suite that has come to know more datasets goes on in its folder.
    run(tiny(protocol={"split": "stored"}, models=[MODELS[1]]), data, tmp_path / "out", seeds=1)


def test_real_values_are_refused(tmp_path):
    with pytest.raises(DataError, match="cliques: its labels are real numbers; suites compare classifiers"):
        run(tiny(), folder(tmp_path, "regression"), tmp_path / "out")


def test_generated_data(tmp_path):
    options = {"num_nodes": 200, "num_subgraphs": 24, "subgraph_size": 6}
    suite = tiny(datasets=[{"name": "density", "generate": "density", "options": options}])
    given = {"models": ["bag"], "request": runs.Request(seeds=1, device="cpu")}
    found = runs.run_suite(suite, tmp_path / "out", **given)
    assert [(row["dataset"], row["model"], row["n"]) for row in found["rows"]] == [("density", "bag", 1)]
    assert runs.run_suite(suite, tmp_path / "out", **given) == found
    card = tmp_path / "out" / "data" / "density" / "dataset.json"
    card.write_text(json.dumps({k: v for k, v in json.loads(card.read_text()).items() if k != "version"}))
    with pytest.raises(DataError, match="a different version, or with a different seed or options; remove"):
        runs.run_suite(suite, tmp_path / "out", **given)
