"""The suggested commands lead from tables to predictions, each once; completion of commands by the shell."""

import shlex

import pytest

from subgnn.cli.output import continuing_command
from tests.cli.command import Call, call
from tests.pages import ROOT

GENES = ROOT / "examples" / "genes"
TO_THE_END = ["data check", "data describe", "train", "predict"]


def next_command(called: Call) -> list[str]:
    """The words of the suggested command, without ``subgnn``; none where there is no suggestion."""
    assert called.code == 0, called.err
    lines = [line for line in called.out.splitlines() if line.startswith("next: ")]
    assert len(lines) <= 1
    return shlex.split(lines[0])[2:] if lines else []


def verb(words: list[str]) -> str:
    return " ".join(words[: 2 if words[0] == "data" else 1])


@pytest.mark.parametrize(
    "first",
    [
        ("data", "convert", GENES / "edges.csv", "--subgraphs", GENES / "members.csv", "--out", "my genes"),
        ("data", "generate", "component", "--num-nodes", 500, "--num-subgraphs", 60, "--out", "my data"),
    ],
    ids=["convert", "generate"],
)
def test_suggestions_lead_to_predictions(first, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words, visited = next_command(call(*first)), []
    while words:
        visited.append(verb(words))
        assert visited == TO_THE_END[: len(visited)]
        if visited[-1] == "train":
            words += ["--recipe", "bag"]  # a second instead of minutes
        if visited[-1] == "predict":
            data = first[-1]
            words[words.index("FILE")] = f"{data}/subgraphs.tsv"
        words = next_command(call(*words))
    assert visited == TO_THE_END
    assert (tmp_path / "predictions.tsv").is_file()


def test_options_are_part_of_the_suggestion(tmp_path):
    folder = tmp_path / "from one"
    folder.mkdir()
    (folder / "edge_list.txt").write_text("1 2\n2 3\n")
    (folder / "subgraphs.tsv").write_text("1-2\ta\ttrain\n2-3\tb\tval\n1-3\ta\ttest\n")
    described = next_command(call("data", "check", folder, "--id-base", 1))
    assert described == ["data", "describe", str(folder), "--id-base", "1"]
    trained = next_command(call(*described, "--split", "published"))
    assert trained == ["train", str(folder), "--id-base", "1", "--split", "published", "--out", "run"]


def test_the_shell_completes_commands_and_recipes(monkeypatch):
    def complete(words: str) -> list[str]:
        monkeypatch.setenv("_SUBGNN_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(len(words.split(" ")) - 1))
        return call().out.split()

    assert complete("subgnn data con") == ["convert"]
    assert complete("subgnn pre") == ["predict", "pretrain", "prepare"]
    assert complete("subgnn train x --recipe bag") == ["bag", "bag-1hop"]


def test_a_longer_time_replaces_the_one_that_was_too_short():
    for given in (["--time", "20m"], ["--time=20m"], []):
        words = ["train", "DIR", *given, "--out", "run"]
        assert continuing_command(words, "40s") == "subgnn train DIR --out run --time 40s --resume"
    assert continuing_command(["train", "DIR", "--time", "20m"]) == "subgnn train DIR --time 20m --resume"
