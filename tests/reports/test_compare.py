"""Runs side by side: their table, the settings that differ, and the page."""

import json
import shutil
from dataclasses import replace

import pytest

from subgnn.api.train_recipe import train
from subgnn.errors import DataError
from subgnn.models.recipes import find_recipe
from subgnn.reports.compare import read_runs, write_comparison
from subgnn.result import RESULTS
from tests.cli.command import call
from tests.training.examples import dataset, recipe

from .reading import read

NASTY = "<script>alert(1)</script> & 'co'"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("compare") / "runs"
    for name, settings, seed, task in (
        ("bag", find_recipe("bag", []), 0, "multi-class"),
        ("deep/one", recipe(3), 0, "multi-class"),
        ("deep/two & <b>", replace(recipe(4), name=NASTY), 1, "multi-class"),
        ("value", find_recipe("bag", []), 0, "regression"),
    ):
        train(dataset(task), settings, made / name, seed=seed, device="cpu", cache=False, report=name == "bag")
    (made / ".hidden").mkdir()
    shutil.copytree(made / "bag", made / ".hidden" / "bag")
    shutil.copytree(made / "bag", made / "broken")
    (made / "broken" / RESULTS).write_text("{")
    shutil.copytree(made / "bag", made / "unfinished")
    (made / "unfinished" / RESULTS).unlink()
    return made


def test_runs_are_sorted_by_validation_and_problems_are_listed(folder):
    runs, problems = read_runs(folder)
    assert {run.name for run in runs} == {"bag", "deep/one", "deep/two & <b>", "value"}
    assert [run.result.headline for run in runs] == ["micro_f1"] * 3 + ["r2"]
    scores = [run.score("val")[0] for run in runs[:3]]
    assert scores == sorted(scores, reverse=True)
    for run in runs:
        results = json.loads((run.path / RESULTS).read_text())
        score, interval = run.score("test")
        assert score == results["test"][run.result.headline]
        assert list(interval) == results["intervals"]["test"]
    assert len(problems) == 2
    assert "run.json: this is not valid JSON" in problems[0]
    assert "no finished run" in problems[1]


def test_the_page_compares_and_names_stay_text(folder, tmp_path):
    runs, _ = read_runs(folder)
    write_comparison(runs, tmp_path / "page.html", title=NASTY)
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert text.count("<script") == 1
    page = read(text)
    assert page.one("h1").text == NASTY
    rows = page.one("table", id="runs-table").one("tbody").children
    assert [[cell.text for cell in row.children] for row in rows] == [run.cells() for run in runs]
    (link,) = page.one("table", id="runs-table").all("a")
    assert (tmp_path / link.attributes["href"]).resolve() == (folder / "bag" / "report.html").resolve()
    charts = page.one("section", id="scores").all("svg", role="img")
    assert len(charts) == 2
    assert sum("val" in title.text for title in charts[0].all("title")) == 3
    with pytest.raises(DataError, match="exists already"):
        write_comparison(runs, tmp_path / "page.html", title="again")
    write_comparison(runs, tmp_path / "page.html", title="again", overwrite=True)


def test_the_command(folder, tmp_path):
    called = call("runs", folder, "--json")
    assert called.code == 0
    assert [run["name"] for run in called.json["runs"]] == [run.name for run in read_runs(folder)[0]]
    assert len(called.json["problems"]) == 2
    called = call("runs", folder, "--page", tmp_path / "out.html")
    assert called.code == 0
    assert "deep/one" in called.out
    assert f"{tmp_path / 'out.html'}: open it in a browser" in called.out
    assert "warning: " in called.err
    assert call("runs", folder, "--page", tmp_path / "out.html").code == 2
    assert call("runs", folder, "--page", tmp_path / "out.html", "--force").code == 0
