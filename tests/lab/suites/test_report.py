"""The report of a benchmark: ranks and pairs over datasets, tables from elsewhere, the page, tables of documents."""

import re
import runpy
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import friedmanchisquare

from subgnn.errors import DataError
from subgnn.lab.suites.comparison import pair_over_datasets, rank_models
from subgnn.lab.suites.page import benchmark_page
from subgnn.lab.suites.report import PACKAGED, open_benchmark, paired_rows, put_beside, read_tables, write_table
from tests.cli.command import call
from tests.pages import ROOT

SETS = ["ppi_bp", "patients", "mag10_venue", "dblp_authors", "movie_genres", "recipes_cuisine"]
MODELS = ["auto", "GLASS", "bag", "topology"]
TABLES = runpy.run_path(str(ROOT / "docs" / "tools" / "tables.py"))
fill_document = TABLES["fill_document"]


@pytest.fixture
def table(tmp_path):
    """Runs of four models; GLASS has failed on one dataset."""
    rng, rows = np.random.default_rng(0), []
    for i, dataset in enumerate(SETS):
        for j, model in enumerate(MODELS):
            if (model, dataset) == ("GLASS", "patients"):
                rows.append({"dataset": dataset, "model": model, "seed": 0, "failure": "killed <b>"})
                continue
            for seed in range(2):
                score = 0.9 - 0.05 * i - 0.1 * j + 0.01 * rng.random()
                about = {"dataset": dataset, "model": model, "seed": seed, "micro_f1": score, "tested": 100}
                rows.append({**about, "seconds": 10.0**j, "majority": 0.3, "macro_f1": score / 2, "failure": ""})
    path = tmp_path / "runs.csv"
    pd.DataFrame(rows).to_csv(path, index=False)
    return path


def test_ranks_critical_difference_and_groups():
    rng = np.random.default_rng(1)
    values = rng.random((4, 14)) + np.array([[0.9], [0.5], [0.4], [0.0]])
    scores = pd.DataFrame(values, ["a", "b", "c", "d"], [f"d{i}" for i in range(14)])
    scores.loc["gone"] = [np.nan, *[0.5] * 13]
    found = rank_models(scores)
    slow = {name: np.mean([1 + sum(v[k, j] > v[i, j] for k in range(4)) for v in [values] for j in range(14)])
            for i, name in enumerate("abcd")}  # fmt: skip
    assert dict(zip(found.models, found.ranks, strict=True)) == pytest.approx(slow)
    assert found.p == pytest.approx(friedmanchisquare(*values).pvalue)
    assert found.critical_difference == pytest.approx(1.25, abs=0.005)  # Demšar 2006, section 3.2.2
    assert found.rank("gone") is None
    joined = {pair for first, last in found.groups for pair in combinations(range(first, last + 1), 2)}
    near = {(i, j) for i, j in combinations(range(4), 2) if found.ranks[j] - found.ranks[i] <= 1.25}
    assert joined == near


def test_pairs_over_datasets_by_hand():
    scores = pd.DataFrame([[0.5, 0.6, 0.7, None], [0.4, 0.6, 0.5, 0.9]], ["a", "b"], list("wxyz"))
    (found,) = pair_over_datasets(scores, "a")
    assert (found["datasets"], found["wins"], found["losses"]) == (3, 2, 0)
    assert found["difference"] == pytest.approx(0.1)
    assert (found["p"], found["sign_p"]) == (0.5, 0.5)  # of four signs of two differences, two are as extreme


def test_the_page_shows_what_is_there_and_what_is_missing(table):
    page = benchmark_page(open_benchmark([table]))
    assert page.count("<figure>") == len(SETS) + 2  # a dot plot each, ranks, seconds
    assert "killed &lt;b&gt;" in page
    assert 'class="missing" title="GLASS on patients: killed' in page
    assert "Not ranked, because runs are missing: GLASS." in page
    assert "3 models on 6 datasets. Friedman test: p = 0.002" in page
    for asset in ("<script src", "http://", "https://", "<link", "src=", "killed <b>"):
        assert asset not in page


@pytest.mark.parametrize("name", ["theirs.csv", "theirs.csv.gz", "theirs.parquet"])
def test_results_from_elsewhere(table, tmp_path, name):
    given = [
        {"dataset": d.replace("_", "-"), "model": m, "micro_f1": 0.95} for d in SETS[:3] for m in ("theirs", "bag")
    ]
    frame, path = pd.DataFrame(given), tmp_path / name
    frame.to_parquet(path) if name.endswith("parquet") else frame.to_csv(path, index=False)
    called = call("benchmark", "compare", path, "--against", table, "--out", tmp_path / "page.html")
    assert called.code == 0, called.err
    assert "theirs, stored" in called.out
    found = put_beside(open_benchmark([table]), [path])
    assert found.given == ("theirs", "bag (given)")
    pairs = {(row["model"], row["against"]): row for row in paired_rows(found)}
    assert pairs["theirs", "auto"]["wins"] == 3
    assert pairs["theirs", "GLASS"]["datasets"] == 2
    assert "In orange: theirs, bag (given)" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            "dataset,model,micro_f1\npatient,a,0.5\n",
            "the dataset 'patient' is not in our table; .*did you mean 'patients'",
        ),
        ("dataset,model,micro_f1\npatients,a,65\n", "micro_f1 of run 1 is not from 0 to 1; 0.65 stands for 65 %"),
        ("dataset,model\npatients,a\n", "the column micro_f1 is missing; a line for each run"),
    ],
)
def test_tables_that_are_refused(table, tmp_path, content, said):
    (tmp_path / "theirs.csv").write_text(content)
    with pytest.raises(DataError, match=said):
        put_beside(open_benchmark([table]), [tmp_path / "theirs.csv"])


def test_tables_of_a_document(table, tmp_path):
    text = "Before\n<!-- benchmark datasets=patients|ppi_bp -->\nold\n<!-- end of benchmark -->\nAfter\n"
    words = ("benchmark", "report", table, "--out", tmp_path / "x.html", "--table", tmp_path / "all.csv.gz")
    assert call(*words).code == 0
    text = fill_document(text, open_benchmark([table]))
    auto = {name: open_benchmark([table]).scores("stored").at["auto", name] for name in ("patients", "ppi_bp")}
    best = [f"**{auto[name]:.3f}**".replace("0.", ".") for name in auto]
    assert f"| auto | 1.0 | {' | '.join(best)} |\n" in text
    assert re.search(r"\| GLASS \| — \| — \| \.\d+ \[\.619\] \|\n", text)
    assert text.startswith("Before\n<!-- benchmark ")
    assert text.endswith("<!-- end of benchmark -->\nAfter\n")
    assert fill_document(text, open_benchmark([tmp_path / "all.csv.gz"])) == text


def test_a_table_is_read_as_it_was_written(table, tmp_path):
    runs = read_tables([table])
    write_table(runs, tmp_path / "again.csv.gz")
    again = read_tables([tmp_path / "again.csv.gz"])
    assert len(again) == len(runs)
    first = (tmp_path / "again.csv.gz").read_bytes()
    write_table(again, tmp_path / "again.csv.gz")
    assert (tmp_path / "again.csv.gz").read_bytes() == first


@pytest.mark.skipif(not PACKAGED.is_file(), reason="there are no packaged runs")
@pytest.mark.parametrize("page", TABLES["PAGES"], ids=lambda page: page.name)
def test_numbers_of_documents_are_those_of_the_packaged_table(page):
    text, packaged = page.read_text(encoding="utf-8"), open_benchmark([])
    assert "<!-- benchmark" in text
    assert fill_document(text, packaged) == text
    assert (ROOT / "docs" / "subgraphbench.html").read_text(encoding="utf-8") == benchmark_page(packaged)
