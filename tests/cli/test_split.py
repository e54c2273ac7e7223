"""``subgnn data split``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from subgnn.cli.data import split_dataset
from subgnn.data.formats import read_dataset
from subgnn.data.splits import count_leaks
from subgnn.errors import UserError

app = typer.Typer()
app.command()(split_dataset)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "given"
    found.mkdir()
    (found / "edge_list.txt").write_text("".join(f"{i} {i + 1}\n" for i in range(24)))
    (found / "subgraphs.tsv").write_text("".join(f"{i}-{i + 1}\t{'ab'[i % 2]}\ttrain\n" for i in range(20)))
    text = (found / "subgraphs.tsv").read_text().replace("18-19\ta\ttrain", "18-19\ta\tval")
    (found / "subgraphs.tsv").write_text(text.replace("19-20\tb\ttrain", "19-20\tb\ttest"))
    return found


def test_split_writes_the_same_subgraphs_under_a_new_split(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = CliRunner().invoke(app, [str(folder), "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert f"{out}: train 10, val 5, test 5" in result.stdout
    before, after = read_dataset(folder).subgraphs, read_dataset(out).subgraphs
    assert [row.tolist() for row in before.nodes] == [row.tolist() for row in after.nodes]
    assert read_dataset(out).card["split"] == {"method": "stratified", "fractions": [0.5, 0.25, 0.25], "seed": 0}
    assert count_leaks(after) == 0


def test_json_is_one_object_and_the_seed_decides(folder: Path, tmp_path: Path) -> None:
    found = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        arguments = [str(folder), "--out", str(tmp_path / name), "--method", "random", "--seed", str(seed), "--json"]
        result = CliRunner().invoke(app, [*arguments, "--fractions", "0.8,0.1,0.1"])
        assert json.loads(result.stdout)["splits"] == {"train": 16, "val": 2, "test": 2}
        found.append((tmp_path / name / "subgraphs.tsv").read_text())
    assert found[0] == found[1] != found[2]


def test_groups_come_from_a_file(folder: Path, tmp_path: Path) -> None:
    groups = tmp_path / "groups.txt"
    groups.write_text("".join(f"family {i // 2}\n" for i in range(20)))
    out = tmp_path / "out"
    arguments = [str(folder), "--out", str(out), "--method", "group", "--groups", str(groups), "--json"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    splits = read_dataset(out).subgraphs.splits
    assert splits is not None
    assert splits[::2].tolist() == splits[1::2].tolist()


def test_groups_of_the_dataset_are_taken_where_no_file_is_given(folder: Path, tmp_path: Path) -> None:
    lines = [f"name {i}\ttitle\tfamily {i // 2}\n" for i in range(20)]
    (folder / "subgraph_names.tsv").write_text("".join(lines))
    out = tmp_path / "out"
    result = CliRunner().invoke(app, [str(folder), "--out", str(out), "--method", "group", "--json"])
    assert result.exit_code == 0, result.output
    again = read_dataset(out).subgraphs
    assert again.splits is not None
    assert again.splits[::2].tolist() == again.splits[1::2].tolist()
    assert list(again.groups or ()) == [f"family {i // 2}" for i in range(20)]


def test_a_bundle_is_written_where_the_name_asks_for_one(folder: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, [str(folder), "--out", str(tmp_path / "out.subgnn")])
    assert result.exit_code == 0, result.output
    assert len(read_dataset(tmp_path / "out.subgnn").subgraphs.indices("train")) == 10


def test_errors_are_the_users(folder: Path, tmp_path: Path) -> None:
    groups = tmp_path / "groups.txt"
    groups.write_text("a\n\nb\n")
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").write_text("")
    for arguments, match in (
        (["--fractions", "half"], "three numbers joined by commas"),
        (["--fractions", "0.5,0.5"], "three numbers above 0"),
        (["--method", "group"], "no groups are given"),
        (["--method", "group", "--groups", str(groups)], "2 groups for 20 subgraphs"),
        (["--method", "group", "--groups", str(tmp_path / "none")], "no such file"),
    ):
        result = CliRunner().invoke(app, [str(folder), "--out", str(tmp_path / "out"), *arguments])
        assert isinstance(result.exception, UserError), result.output
        assert match in str(result.exception)
        assert not (tmp_path / "out").exists()
    result = CliRunner().invoke(app, [str(folder), "--out", str(tmp_path / "taken")])
    assert "exists already" in str(result.exception)
