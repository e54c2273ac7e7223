"""Datasets and settings at the edges of what is accepted: they work, or are refused in one line that leaves nothing."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.command import Call, call

NODES = 16
SPLIT = ["train"] * 6 + ["val"] * 3 + ["test"] * 3
CLASSES = ["a", "b", "c"] * 4
SMALL = (
    *("training.epochs=2", "embeddings.dim=4", "pretrain.epochs=1", "pretrain.steps=2", "model.head=[4, 4]"),
    *("prepare.patch_length=4", "prepare.walks=2", "prepare.walk_length=3", "topology.classifier=forest"),
)


def write(folder: Path, labels: list[str], splits: list[str], **more: Any) -> Path:
    """A ring with chords, and a subgraph of three nodes for each label."""
    folder.mkdir()
    edges = more.get("edges", [(i, (i + step) % NODES) for i in range(NODES) for step in (1, 3)])
    (folder / "edge_list.txt").write_text("".join(f"{u} {v}\n" for u, v in edges))
    rows = [
        f"{i % NODES}-{(i + 1) % NODES}-{(2 * i + 5) % NODES}\t{x}\t{s}\n"
        for i, (x, s) in enumerate(zip(labels, splits, strict=True))
    ]
    (folder / "subgraphs.tsv").write_text("".join(rows))
    if "features" in more:
        np.save(folder / "features.npy", more["features"])
    (folder / "dataset.json").write_text(json.dumps(more.get("card", {})))
    return folder


def train(data: Path, recipe: str, *settings: str) -> tuple[Call, Path]:
    out = data.parent / "run"
    given = [word for setting in (*SMALL, *settings) for word in ("--set", setting)]
    return call("train", data, "--recipe", recipe, "--out", out, "--device", "cpu", "--json", *given), out


def works_or_is_refused(called: Call, out: Path, told: str) -> None:
    assert "Traceback" not in called.err
    assert "bug in subgnn" not in called.err
    if not told:
        assert called.code == 0, called.err
        assert json.loads(called.out)["epochs"] >= 1
        return
    assert called.code == 2, called.err
    assert told in called.err.splitlines()[-1]
    assert not out.exists(), "a refusal leaves nothing behind"


VALUES = [f"{i}.5" for i in range(12)]
DATASETS: dict[str, tuple[dict[str, Any], str]] = {
    "one class": ({"labels": ["a"] * 12}, "all subgraphs have the label 'a'; at least two classes are needed"),
    "one label of several": ({"labels": ["a"] * 12, "card": {"task": "multi-label"}}, ""),
    "one training subgraph": ({"labels": ["a", "b", "a", "b"], "splits": ["train", "val", "test", "test"]}, ""),
    "three subgraphs": ({"labels": ["a", "b", "a"], "splits": ["train", "val", "test"]}, ""),
    "three values": ({"labels": ["0.5", "1.5", "-2.25"], "splits": ["train", "val", "test"]}, ""),
    "a class that training never sees": ({"labels": ["a", "b"] * 3 + ["c"] * 6}, ""),
    "equal values": ({"labels": ["0.1"] * 12}, "all subgraphs have the label '0.1'; at least two values are needed"),
    "equal values but one": ({"labels": ["0.1"] * 6 + ["0.3"] * 6}, ""),
    "large values": ({"labels": [f"{i}.5e25" for i in range(12)]}, ""),
    "values that are too large": ({"labels": [f"{i}.5e300" for i in range(12)]}, "subgraphs.tsv:1: label '0.5e300'"),
    "a value that is not finite": ({"labels": [*VALUES[:11], "nan"]}, "subgraphs.tsv:12: the label is missing ('nan')"),
    "values that are too close": ({"labels": [f"{i}.5e-300" for i in range(12)]}, "have a standard deviation of "),
    "a value far from the others": ({"labels": [*VALUES[:11], "1e29"]}, "standard deviations from the mean"),
    "features that are too large": ({"labels": CLASSES, "features": np.full((NODES, 2), 1e200)}, "1e+200 at row 0"),
    "features that are equal": ({"labels": CLASSES, "features": np.ones((NODES, 2))}, ""),
    "no test split": ({"labels": CLASSES, "splits": ["train"] * 6 + ["val"] * 6}, "no subgraph in split 'test'"),
}  # fmt: skip


@pytest.mark.parametrize("recipe", ["subgnn", "bag", "avg"])
@pytest.mark.parametrize("case", DATASETS)
def test_datasets(tmp_path, case, recipe):
    given, told = DATASETS[case]
    data = write(tmp_path / "data", **{"splits": SPLIT} | given)
    features = ["embeddings.features=beside"] if recipe == "subgnn" and "features" in given else []
    works_or_is_refused(*train(data, recipe, *features), told)


SETTINGS = {
    "training.batch_size=1": "",
    "model.layers=0": "",
    "prepare.hops=1000000000": "",
    "prepare.hops=1099511627776": "prepare.hops is 1099511627776; accepted: a whole number from 1 to 1,000,000,000",
    "training.lr=1e30": "lower training.lr",
    "training.lr=nan": "--set: training.lr is nan; accepted: a number from 0 to 1e+30",
    "training.lr=0.0": "",
    "embeddings.scale=1e300": "embeddings.scale is 1e+300; accepted: a number from 0 to 1e+30",
    "embeddings.dim=1000000": "accepted: a whole number from 1 to 65,536",
    "model.readout=max": "",
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_extreme_settings(tmp_path, setting):
    works_or_is_refused(*train(write(tmp_path / "data", CLASSES, SPLIT), "subgnn", setting), SETTINGS[setting])
