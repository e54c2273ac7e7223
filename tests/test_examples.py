"""Examples run as they stand: the demo, a rare disease, own data, and fraud that the bare command finds."""

import csv
import runpy
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from subgnn.result import read_result
from tests.cli.command import call
from tests.pages import ROOT

pytestmark = pytest.mark.slow


@pytest.fixture
def examples(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder of examples, where Python looks for modules as it does for a script; work is done elsewhere."""
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    monkeypatch.chdir(tmp_path)
    for name in ("RARE_DISEASE_DATA", "RARE_DISEASE_OUT"):
        monkeypatch.delenv(name, raising=False)
    return ROOT / "examples"


def test_a_rare_disease_from_data_to_a_picture(examples, capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("RARE_DISEASE_EPOCHS", "6")
    found = runpy.run_path(str(examples / "rare_disease.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert "MADE UP: not medical data" in printed
    why = found["why"]
    assert set(why.names) == set(found["patient"])
    assert f"{max(why.probabilities):6.1%}  {found['predicted']}\n" in printed
    for title in ("phenotypes", "components", "channels", "anchors"):
        assert f"\n{title}, towards {found['predicted']}\n" in printed
    for item in (*why.by_node, *why.by_channel):
        assert f"  {why.of_class(item.contributions):+6.2f}  {item.name}\n" in printed
    # The patient has a part of a disease of the test split, and one thing more; no disease is the same.
    diseases, names = found["diseases"], found["graph"].names
    assert found["disease"] in diseases.indices("test")
    disease = set(diseases.nodes[found["disease"]].tolist())
    assert {names.find(name) for name in found["own"]} < disease
    assert names.find(found["other"]) not in disease
    assert all(list(why.nodes) != row.tolist() for row in diseases.nodes)
    out = tmp_path / "rare_disease"
    written = ET.parse(out / "patient.svg")
    assert set(found["patient"]) <= {text.text for text in written.iter("{http://www.w3.org/2000/svg}text")}
    assert (out / "run" / "report.html").is_file()

    # Once more, on a folder that is there already: nothing is made up, and the first run stays.
    monkeypatch.setenv("RARE_DISEASE_EPOCHS", "1")
    monkeypatch.setenv("RARE_DISEASE_DATA", str(out / "made_up"))
    again = runpy.run_path(str(examples / "rare_disease.py"), run_name="__main__")
    assert "MADE UP" not in capsys.readouterr().out
    assert again["patient"] == found["patient"]
    assert again["out"].name == "run-2"


def test_the_demo_has_the_paper_beside_both_models(examples, capsys, tmp_path):
    demo = runpy.run_path(str(examples / "demo.py"))["demo"]
    step = demo.__globals__["step"]
    few = {"paper": ("--set", "training.epochs=2"), "best": ("--set", 'auto.only=["bag", "topology"]')}
    demo.__globals__["step"] = lambda verb, *words: step(
        verb, *words, *(few[words[-1].name] if verb == "train" else ())
    )
    demo(tmp_path / "demo")
    printed = capsys.readouterr().out
    assert printed.count("\n$ subgnn ") == 6
    for line in ("(paper: 0.919)", "the structure channel ", "The labels depend on the shape", "A bag of nodes fails"):
        assert line in printed
    assert (tmp_path / "demo" / "compare.html").is_file()


def test_tables_of_payments_and_alerts(examples, tmp_path):
    write = runpy.run_path(str(examples / "fraud.py"))["write_fraud"]
    written, again = (write(tmp_path / name, accounts=400, alerts=500, by_time=True) for name in "ab")
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in written]
    paid, lines = (list(csv.DictReader(path.read_text(encoding="utf-8").splitlines())) for path in written)
    alerts = {line["alert"]: line for line in lines}
    assert [sum(one["label"] == label for one in alerts.values()) for label in ("fraud", "cleared")] == [10, 490]
    dates = {split: [one["date"] for one in alerts.values() if one["split"] == split] for split in ("train", "test")}
    assert max(dates["train"]) <= min(dates["test"])
    assert [one["date"] for one in paid] == sorted(one["date"] for one in paid)
    assert len({(one["source"], one["target"]) for one in paid}) < len(paid)  # payments are repeated


def test_the_bare_command_finds_fraud_that_is_rare(examples, tmp_path):
    """Accounts are drawn in the same way for all alerts, so that their shape alone shows which are fraud."""
    tables = runpy.run_path(str(examples / "fraud.py"))["write_fraud"](tmp_path, accounts=1500, alerts=1500)
    only = ("--set", 'auto.only=["bag", "profiles", "topology"]', "--device", "cpu")
    done = call("train", *tables, "--out", tmp_path / "run", *only)
    assert "\ncompared by AUPRC: 2.2 % of the subgraphs are fraud; set training.select_by to choose" in done.out
    found = read_result(tmp_path / "run")
    assert (found.metric, found.leaderboard[0].name, found.signals) == ("auprc", "topology", ("shape",))
    assert found.leaderboard[0].weight > 0.5
    assert found.val["auprc"] > 0.2
    assert found.signal.startswith("The labels depend on the shape of a subgraph (topology 0.")
    assert "ranking at random scores 0.022 (AUPRC). A simple model is the best: topology" in found.signal


def test_fraud_of_the_next_month_is_found_on_the_grown_graph(examples, monkeypatch, tmp_path):
    """The commands of the page, on fewer accounts: rings of new accounts are found on February's graph alone."""
    page = (ROOT / "docs" / "alerts.md").read_text(encoding="utf-8").partition("## The next month")[2]
    first, *commands = page.split("```")[1].strip().splitlines()
    monkeypatch.setattr(sys, "argv", [*first.split()[1:], "--accounts", "1500", "--alerts", "1500"])
    runpy.run_path(str(examples / "fraud.py"), run_name="__main__")
    only = ("--set", 'auto.only=["topology-weighted"]', "--device", "cpu")
    dropping = ["predict", "january", "--unknown", "drop", *commands[1].split()[5:9], "--out", "dropped.csv"]
    for words in [*(line.split()[1:] for line in commands), dropping]:
        done = call(*words, *(only if words[0] == "train" else ()))
        assert done.code == 0, done.err
    assert "answers come out as recorded" in call("verify", "answers.jsonl").out
    found = {}
    for name in ("dropped", "ranked", "updated"):
        rows = list(csv.DictReader((tmp_path / f"{name}.csv").read_text(encoding="utf-8").splitlines()))
        total = sum(row["outcome"] == "fraud" for row in rows)
        found[name] = sum(row["outcome"] == "fraud" for row in rows[: 2 * total]) / total
    assert found["dropped"] < 0.5 < 0.7 < min(found["ranked"], found["updated"]), found


def test_own_data_in_less_than_ten_commands(examples, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "argv", ["own_data.py", str(tmp_path / "own")])
    runpy.run_path(str(examples / "own_data.py"), run_name="__main__")
    printed = capsys.readouterr()
    assert printed.out.count("\n$ subgnn ") < 10
    assert "weight from 'combined_score'" in printed.out
    for said in ("4 names replaced by aliases: 'p53' is 'TP53'", "20 repeated edges joined: the weight is the sum"):
        assert said in printed.err
    tables = {path.name: path.read_text().splitlines() for path in (tmp_path / "own").rglob("*.tsv")}
    assert (len(tables["genes.tsv"]), len(tables["unlabelled.tsv"]), len(tables["alerts.tsv"])) == (49, 5, 41)
    titles = tables["alerts.tsv"][0].split("\t")
    assert {"label", "name", "region"} <= set(titles)
    right = [row.split("\t") for row in tables["alerts.tsv"][1:]]
    assert sum(row[titles.index("label")] == row[titles.index("outcome")] for row in right) > 30
