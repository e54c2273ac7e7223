"""Options of predictions, and equal answers of the command line, Python and the server."""

import io
import json
from dataclasses import fields
from inspect import signature

import numpy as np
import pandas as pd
import pytest
from typer.main import get_command

import subgnn
from subgnn.api.run import Run
from subgnn.cli.app import app
from subgnn.data.subgraphs import label_separator
from subgnn.errors import DataError, DataWarning, UserError
from subgnn.inference.options import PredictOptions
from subgnn.models.checkpoint import load_checkpoint
from subgnn.storage.arrays import encode_arrays, read_arrays, write_parts
from subgnn.training.run_dir import CHECKPOINT
from tests.cli.command import call
from tests.serve.examples import client, run_folder

TASKS = ("multi-class", "binary", "multi-label", "regression")
SETS = "set,genes,team\na,GENE0;GENE1,x\nb,HLA-A;NOBODY,y\nc,GENE3;GENE2;GENE9,z\n"


@pytest.fixture
def sets(tmp_path):
    path = tmp_path / "sets.csv"
    path.write_text(SETS)
    return path


@pytest.mark.parametrize("task", TASKS)
def test_the_command_line_python_and_the_server_agree(sets, task):
    run, by = subgnn.load(run_folder(task)), "value" if task == "regression" else "probability"
    options = {"coverage": 0.6, "sort": by, "unknown": "drop"}
    with pytest.warns(DataWarning, match="'NOBODY' is not in the graph"):
        frame = run.predict(str(sets), **options)
    typed = [part for name, value in options.items() for part in (f"--{name}", value)]
    text = call("predict", run_folder(task), "--subgraphs", sets, *typed, "--out", "-").out
    table = pd.read_csv(io.StringIO(text), sep="\t")
    assert list(table) == list(frame)
    assert frame[by].is_monotonic_decreasing
    asked = {name: options[name] for name in ("coverage", "unknown")}
    with client(task) as asking:
        headers = {"content-type": "text/csv"}
        params = options | {"format": "tsv"}
        assert asking.post("/api/runs/small/table", content=SETS, headers=headers, params=params).text == text
        body = {"subgraphs": [["GENE0", "GENE1"], ["HLA-A", "NOBODY"], ["GENE3", "GENE2", "GENE9"]]} | asked
        found = asking.post("/api/runs/small/predict", json=body).json()["predictions"]
    for row in frame.set_index("name").loc[["a", "b", "c"]].reset_index().to_dict("records"):
        one = found["abc".index(row["name"])]
        for name in ("probability", "value", "low", "high", "novelty"):
            assert one[name] == (pytest.approx(row[name], abs=2e-6) if name in row else None)
        assert (one["label"], one["known"], one["new"], one["note"]) == (row["label"], row["known"], row["new"], "")
        joined = None if one["labels"] is None else label_separator(run.classes).join(one["labels"])
        assert joined == row.get("labels")


def test_options_have_the_same_defaults_everywhere():
    shown = signature(Run.predict).parameters
    typed = {parameter.name for parameter in get_command(app).commands["predict"].params}
    with client() as asking:
        served = asking.get("/openapi.json").json()["paths"]["/api/runs/{run}/table"]["post"]["parameters"]
    defaults = {one["name"]: one["schema"].get("default") for one in served}
    for field in fields(PredictOptions):
        assert field.name in typed
        assert shown[field.name].default == field.default == defaults[field.name]
    assert shown["unknown"].default == defaults["unknown"] == "error"


def test_sets_and_intervals(sets):
    run = subgnn.load(run_folder())
    small, large = (run.predict([["GENE0"], ["GENE9"]], coverage=p) for p in (0.2, 0.8))
    limits = run.predictor.spec.held_out.limits(0.8, 3)
    for few, many, (_, row) in zip(small["labels"], large["labels"], large.iterrows(), strict=True):
        assert set(filter(None, few.split("-"))) <= set(many.split("-"))
        assert many.split("-") == [name for name in run.classes if 1 - row[name] <= limits[0]]
    options = ("--unknown", "drop", "--coverage", 0.6, "--out", sets.parent / "o.csv")
    done = call("predict", run_folder(), "--subgraphs", sets, *options)
    assert "sets of labels are from the validation split" in done.out
    value = subgnn.load(run_folder("regression"))
    found = value.predict([["GENE0"]], coverage=0.6)
    width = value.predictor.spec.held_out.limits(0.6, 1)[0]
    ends = found[["low", "high"]].to_numpy()[0] - found["value"][0]
    np.testing.assert_allclose(ends, [-width, width], rtol=1e-6)


@pytest.mark.parametrize(
    ("task", "options", "message"),
    [
        (
            "multi-class",
            {"coverage": 0.99},
            r"0.99 cannot be promised from \d+ labelled subgraphs; accepted: up to 0\.8",
        ),
        ("multi-class", {"coverage": 2}, "the coverage is 2; accepted: above 0 and below 1"),
        ("multi-class", {"coverage_by_class": True}, "there is no coverage to hold"),
        ("multi-class", {"sort": "probability:cliqe1"}, "cannot sort by .*cliqe1'.*did you mean 'probability:clique1'"),
        ("multi-class", {"min_known": 2}, "the share is 2; accepted: 0 to 1"),
        ("multi-class", {"top": 0}, "top: 0 classes; accepted: 1 or more"),
        ("regression", {"coverage": 0.5, "coverage_by_class": True}, "the labels are values, not classes"),
        ("regression", {"sort": "probability"}, "cannot sort by 'probability'"),
    ],
)
def test_what_cannot_be_answered_is_refused(task, options, message):
    with pytest.raises(UserError, match=message):
        subgnn.load(run_folder(task)).predict([["GENE0"]], **options)


def test_a_class_of_few_is_in_every_set():
    run = subgnn.load(run_folder())
    counts = np.bincount(run.predictor.spec.held_out.labels, minlength=3)
    coverage = (counts.max() / (counts.max() + 1)) - 0.01  # enough for the most frequent class alone
    few = [name for name, count in zip(run.classes, counts, strict=True) if count < counts.max()]
    with pytest.warns(DataWarning, match=f"--coverage-by-class: {len(few)} classes .* contains them: {few[0]}"):
        found = run.predict([["GENE0"]], coverage=coverage, coverage_by_class=True)
    assert set(few) <= set(found["labels"][0].split("-"))


def test_sorting_by_a_class_puts_rows_without_an_answer_last(sets):
    options = ("--unknown", "drop", "--min-known", 0.9, "--sort", "probability:clique1", "--no-members", "--out", "-")
    done = call("predict", run_folder(), "--subgraphs", sets, *options)
    table = pd.read_csv(io.StringIO(done.out), sep="\t")
    assert table["name"].iloc[-1] == "b"
    assert table["clique1"].iloc[:2].is_monotonic_decreasing
    assert table["note"].iloc[-1] == "only 1 of 2 nodes are in the graph, fewer than 90%"
    assert list(table)[-1] == "team"


def test_a_column_called_sort_keeps_its_title_in_sorted_predictions(sets):
    sets.write_text(SETS.replace("team", "sort"))
    with pytest.warns(DataWarning, match="'NOBODY' is not in the graph"):
        found = subgnn.load(run_folder()).predict(str(sets), sort="probability", unknown="drop", members=False)
    assert list(found)[-1] == "sort"


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("held_out.scores", lambda a: a.astype(np.float64), "held-out scores have the wrong type"),
        ("held_out.scores", lambda a: a * np.nan, "held-out scores are not finite"),
        ("held_out.labels", lambda a: a + 100, "of a class that it does not have"),
        ("held_out.offsets", lambda a: a[::-1].copy(), "do not have the same length"),
        ("held_out.labels", None, "held_out.labels' is missing"),
        ("novelty.references.values", lambda a: a + 10**6, "a node that is not in the graph"),
        ("novelty.references.offsets", lambda a: a * 0, "do not fit their distances"),
        ("novelty.distances", lambda a: a[::-1] - 1, "are not from 0 to 2, or do not rise"),
        ("novelty.distances", lambda a: a[:-1], "do not fit their distances"),
        ("novelty.references.values", lambda a: a.astype(np.int64), "have the wrong type"),
    ],
)
def test_arrays_of_a_checkpoint_are_checked(tmp_path, name, change, message):
    from subgnn.inference.predictor import Predictor
    from subgnn.models import checkpoint

    graph = subgnn.load(run_folder()).graph
    file = read_arrays(run_folder() / CHECKPOINT, checkpoint._CHECKPOINT)
    arrays = dict(file.arrays)
    if change is None:
        del arrays[name]
    else:
        arrays[name] = np.ascontiguousarray(change(np.array(arrays[name])))
    write_parts(tmp_path / "c", encode_arrays(arrays, checkpoint._CHECKPOINT, json.loads(json.dumps(file.content()))))
    with pytest.raises(DataError, match=message):
        Predictor(load_checkpoint(tmp_path / "c"), graph)
