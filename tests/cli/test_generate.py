"""``data generate``: the folder it writes, what it prints, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from subgnn.cli.create import generate_dataset
from subgnn.data.formats import read_dataset
from subgnn.errors import DataError, UserError

SMALL = ("--num-nodes", 500, "--num-subgraphs", 24, "--subgraph-size", 10)


def run(*arguments: Any) -> Result:
    app = typer.Typer()
    app.command()(generate_dataset)
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_a_folder_is_written_and_shown_beside_the_paper(tmp_path: Path) -> None:
    result = run("density", "--out", tmp_path / "d", *SMALL, "--seed", 4)
    lines = result.stdout.splitlines()
    assert result.exit_code == 0
    assert sum("paper" in line for line in lines) >= 2
    assert any("29,521" in line for line in lines)
    assert not any(line.startswith("note:") for line in lines)
    assert lines[-1] == f"next: subgnn data check {tmp_path / 'd'}"
    dataset = read_dataset(tmp_path / "d")
    assert 495 <= dataset.graph.num_nodes <= 500  # without nodes that were cut off
    assert dataset.card["seed"] == 4


def test_json_is_one_object_with_the_settings_and_the_paper_s_numbers(tmp_path: Path) -> None:
    result = run(
        "density", "--out", tmp_path / "d", *SMALL, "--bins", 2, "--set", "max_density=0.6", "--json", "--gzip"
    )
    found = json.loads(result.stdout)
    assert result.stdout.count("\n") == 1
    assert found["num_subgraphs"] == 24
    assert found["label_counts"] == {"0": 12, "1": 12}
    assert found["settings"]["max_density"] == 0.6
    assert found["settings"]["max_depth"] == 3
    assert found["paper"]["num_edges"] == 29_521
    assert (tmp_path / "d" / "edge_list.txt.gz").is_file()


def test_what_is_there_is_kept_unless_forced(tmp_path: Path) -> None:
    run("density", "--out", tmp_path / "d", *SMALL)
    before = (tmp_path / "d" / "subgraphs.tsv").read_bytes()
    with pytest.raises(DataError, match=r"exists already; .*--force"):
        run("density", "--out", tmp_path / "d", *SMALL, "--seed", 1)
    assert (tmp_path / "d" / "subgraphs.tsv").read_bytes() == before
    run("density", "--out", tmp_path / "d", *SMALL, "--seed", 1, "--force")
    assert (tmp_path / "d" / "subgraphs.tsv").read_bytes() != before


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("densty",), r"unknown synthetic dataset 'densty'; accepted: density, .*; did you mean 'density'\?"),
        (("density", "--set", "min_core=2"), "recipe density: no option 'min_core'; accepted: num_nodes, m,"),
        (("density", "--set", "max_depth=x"), "max_depth is 'x'; accepted: a whole number"),
        (("density", "--set", "max_depth"), "--set: 'max_depth' is not a setting; KEY=VALUE is accepted"),
        (("density", "--set", "=3"), "KEY=VALUE is accepted"),
        (("density", "--bins", 100, "--set", "max_density=0.2"), "different values for 100 bins; use fewer bins"),
    ],
)
def test_mistakes_are_told_before_anything_is_written(tmp_path: Path, arguments: tuple[Any, ...], says: str) -> None:
    with pytest.raises(UserError, match=says):
        run(*arguments, "--out", tmp_path / "d")
    assert list(tmp_path.iterdir()) == []
