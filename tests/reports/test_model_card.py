"""The model card: what it says about a result, and where it is written."""

from dataclasses import replace

from subgnn.reports.run_page import model_card
from subgnn.result import DataFacts, read_result
from tests.cli.command import call
from tests.results import result

SIZES = {"nodes": 1234, "edges": 5, "splits": {"train": 3, "test": 1}, "classes": 2}
FACTS = DataFacts(**SIZES, graph_hash="ab", subgraphs_hash="cd", source="a <b>\nlab", licence="CC BY 4.0")


def test_a_card_says_what_the_result_holds():
    scores = {"loss": 0.1, "micro_f1": 0.5, "auroc": float("nan")}
    found = result(val=scores, test=scores, intervals={"test": (0.25, 0.75)}, calibration_error=0.125, data=FACTS)
    card = model_card(replace(found, warnings=("one class is rare",), late=("subgnn",)))
    for line in (
        "- Dataset: cliques, from a &lt;b&gt; lab",
        "- Graph: 1,234 nodes, 5 edges; SHA-256 `ab`",
        "- Subgraphs: train 3, test 1; 2 classes; SHA-256 of nodes, labels and splits `cd`",
        "| micro-F1 | 0.500 | 0.500 |",
        "| AUROC | undefined | undefined |",
        "95 % interval of micro-F1: 0.250 to 0.750 (test).",
        "The expected calibration error (test) is 0.125.",
        "- one class is rare",
        "- There was no time for: subgnn.",
        "Of the data: CC BY 4.0. The model is derived from the data: check what that licence asks of it.",
    ):
        assert line in card.splitlines(), line
    assert "loss" not in card


def test_without_scores_or_facts_sections_are_left_out():
    card = model_card(result(task="unlabelled"))
    assert "It computes a vector for a group of nodes" in card
    assert "## Calibration" not in card
    assert "| micro-F1" not in card
    assert "states no licence" in card


def test_train_and_export_write_it(tmp_path):
    call("data", "generate", "component", "--num-nodes", 300, "--num-subgraphs", 24, "--out", tmp_path / "d")
    assert call("train", tmp_path / "d", "--recipe", "bag", "--out", tmp_path / "run").code == 0
    card, found = (tmp_path / "run" / "model_card.md").read_text(), read_result(tmp_path / "run")
    assert card == model_card(found)
    assert found.data.graph_hash in card
    assert call("export", tmp_path / "run", "--out", tmp_path / "x.safetensors").code == 0
    assert (tmp_path / "x.card.md").read_text() == model_card(replace(found, run="", source=""))
    assert "x.card.md: exists already" in call("export", tmp_path / "run", "--out", tmp_path / "x.bin").error
