"""The pages of runs, in a browser."""

import csv
import io
from pathlib import Path

import pytest

from subgnn.lab.suites.page import benchmark_page
from subgnn.lab.suites.report import open_benchmark
from subgnn.render import write_page
from subgnn.reports.compare import read_runs, write_comparison
from subgnn.reports.run_page import write_report
from tests.serve.examples import run_folder

from .tabs import Tab

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def pages(tmp_path_factory) -> dict[str, Path]:
    """The page of a run for each task, and one that compares two runs."""
    folder = tmp_path_factory.mktemp("pages")
    found = {task: write_report(run_folder(task), folder / f"{task}.html") for task in ("multi-class", "regression")}
    runs = [run for task in found for run in read_runs(run_folder(task))[0]]
    write_comparison(runs, folder / "compare.html", title="Two runs")
    scores = [
        (d, m, 0.9 - i / 9) for d in ("patients", "ppi_bp") for i, m in enumerate(("auto", "bag", "GLASS", "SSNP"))
    ]
    table = "".join(f"{d},{m},{score},2\n" for d, m, score in scores[:-1])
    (folder / "runs.csv").write_text(f"dataset,model,micro_f1,seconds\n{table}")
    write_page(benchmark_page(open_benchmark([folder / "runs.csv"])), folder / "benchmark.html")
    return found | {name: folder / f"{name}.html" for name in ("compare", "benchmark")}


@pytest.fixture
def tab(browser):
    found = Tab(browser)
    yield found
    found.close()


def rows(tab: Tab, table: str) -> list[list[str]]:
    return tab.page.evaluate(
        """(id) => [...document.getElementById(id).tBodies[0].rows].filter((row) => !row.hidden)
        .map((row) => [...row.cells].map((cell) => cell.textContent))""",
        table,
    )


@pytest.mark.parametrize("name", ["multi-class", "regression", "compare", "benchmark"])
def test_pages_fit_wide_and_narrow_light_and_dark(browser, pages, name):
    for width in (1280, 390):
        for scheme in ("light", "dark"):
            tab = Tab(browser, width=width, scheme=scheme)
            tab.page.goto(pages[name].as_uri())
            assert tab.out_of_reach == []
            assert tab.contrast > 7
            tab.close()


def test_the_benchmark_is_sorted_and_filtered(tab, pages):
    tab.page.goto(pages["benchmark"].as_uri())
    assert [row[0] for row in rows(tab, "stored-table")] == ["auto", "bag", "GLASS", "SSNP"]
    column = "#stored-table thead th:nth-child(4) button"
    tab.page.click(column)
    tab.page.click(column)
    assert [row[3] for row in rows(tab, "stored-table")] == [".678", ".789", ".900", "—"]  # what is missing is last
    tab.page.fill("#tables input[type=search]", "ssnp")
    assert [row[0] for row in rows(tab, "stored-table")] == ["SSNP"]


def test_predictions_are_searched_sorted_and_downloaded(tab, pages):
    tab.page.goto(pages["multi-class"].as_uri())
    whole = rows(tab, "predictions-table")
    assert len(whole) == 5
    tab.page.fill("#table input[type=search]", f"{whole[1][0]} {whole[1][2][:4]}")
    assert rows(tab, "predictions-table") == [whole[1]]
    assert tab.page.inner_text("#table [role=status]") == "1 of 5"
    tab.page.fill("#table input[type=search]", "")
    tab.page.check("#table input[type=checkbox]")
    assert rows(tab, "predictions-table") == [row for row in whole if row[5] == "no"]
    tab.page.uncheck("#table input[type=checkbox]")
    tab.page.click("#predictions-table th >> text=probability")
    assert rows(tab, "predictions-table") == sorted(whole, key=lambda row: float(row[4]))
    tab.page.click("#predictions-table th >> text=probability")
    assert tab.page.get_attribute("#predictions-table th:has-text('probability')", "aria-sort") == "descending"
    name, content = tab.download("#table button[data-file]")
    assert name == "small_on_cliques_seed_0_predictions.csv"
    header, *found = csv.reader(io.StringIO(content.decode(), newline=""))
    assert header == ["subgraph", "nodes", "true", "predicted", "probability", "correct"]
    assert found == rows(tab, "predictions-table")


def test_downloads_hold_no_formulas(tab, pages):
    tab.page.goto(pages["multi-class"].as_uri())
    cells = ["=1+1", "-cmd", "@SUM(A1)", "-1.5", "+2e-7", "a=1"]
    place = "[...document.querySelector('#predictions-table tbody tr').cells]"
    tab.page.evaluate(f"texts => {place}.forEach((cell, i) => cell.textContent = texts[i])", cells)
    _, content = tab.download("#table button[data-file]")
    row = list(csv.reader(io.StringIO(content.decode(), newline="")))[1]
    assert row == ["'=1+1", "'-cmd", "'@SUM(A1)", "-1.5", "+2e-7", "a=1"]


def test_the_pointer_shows_the_name_of_a_mark(tab, pages):
    tab.page.goto(pages["multi-class"].as_uri())
    mark = tab.page.locator("#calibration svg.chart :is(circle, polygon)").last
    title = mark.locator("title").text_content()
    mark.hover()
    assert tab.page.inner_text(".tip") == title
    assert "observed" in title
    tab.page.hover("h1")
    assert tab.page.locator(".tip").is_hidden()


def test_a_page_is_whole_without_its_script(browser, pages, tmp_path):
    text = pages["multi-class"].read_text(encoding="utf-8")
    changed = tmp_path / "changed.html"
    changed.write_text(text.replace('"use strict";', '"use strict"; document.title = "run";'), encoding="utf-8")
    tab = Tab(browser)
    tab.page.goto(changed.as_uri())
    assert tab.page.title() != "run"
    assert len(rows(tab, "predictions-table")) == 5
    assert tab.page.locator("#table .tools").is_hidden()
    (refused,) = tab.complaints
    assert "Content Security Policy" in refused
    tab.complaints.clear()
    tab.close()
