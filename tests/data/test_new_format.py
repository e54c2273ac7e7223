"""The dataset format that docs/extend.md adds as an example, from a file to a trained model."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from subgnn import read_dataset
from subgnn.data import convert, formats
from tests.cli.command import call

PAGE = (Path(__file__).parents[2] / "docs" / "extend.md").read_text()


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The code block of the section, executed, and its line in the table."""
    section = PAGE.split("## Add a dataset format")[1].split("\n## ")[0]
    (code,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    (entry,) = re.findall(r"The line is `(\w+),` in `FORMATS`", section)
    module: dict[str, Any] = {}
    exec(code, module)
    for user in (formats, convert):
        monkeypatch.setattr(user, "FORMATS", (module[entry], *formats.FORMATS))


def write(path: Path, **changed: Any) -> Path:
    ring = [[i, (i + 1) % 30] for i in range(30)]
    places = [(i, split) for i, split in enumerate(("train", "train", "train", "val", "test") * 4)]
    ways = [(i, split, label, step) for i, split in places for label, step in (("near", 1), ("far", 15))]
    rows = [{"nodes": [i, (i + step) % 30], "label": label, "split": split} for i, split, label, step in ways]
    path.write_text(json.dumps({"edges": ring, "subgraphs": rows} | changed))
    return path


def test_it_is_read_checked_and_converted(tmp_path: Path) -> None:
    path = write(tmp_path / "ring.one.json")
    dataset = read_dataset(path)
    assert (dataset.name, dataset.graph.num_edges, dataset.subgraphs.classes) == ("ring", 30, ("far", "near"))
    assert call("data", "check", path).code == 0
    assert call("data", "convert", path, "--out", tmp_path / "folder").code == 0
    assert read_dataset(tmp_path / "folder").subgraphs.content_hash == dataset.subgraphs.content_hash


def test_every_problem_is_listed(tmp_path: Path) -> None:
    path = write(tmp_path / "bad.one.json", subgraphs=[{"nodes": [0]}, {"nodes": [1], "label": "a"}])
    checked = call("data", "check", path)
    assert checked.code == 2
    assert all(f"subgraph {number}: it has ['" in checked.out + checked.err for number in (0, 1))


def test_a_model_is_trained_on_it(tmp_path: Path) -> None:
    path = write(tmp_path / "ring.one.json")
    trained = call("train", path, "--recipe", "topology", "--out", tmp_path / "run", "--json")
    assert trained.code == 0, trained.err
    assert trained.json["test"]["micro_f1"] == 1.0
