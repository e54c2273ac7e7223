"""The two pictures of a dataset: there, whole, the same every time, and for every kind of dataset."""

from __future__ import annotations

import builtins
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from subgnn.data.dataset import Dataset
from subgnn.data.graph import Graph
from subgnn.data.plot import _choose, plot_dataset
from subgnn.data.subgraphs import SubgraphSet
from subgnn.errors import DataWarning, MissingExtra

matplotlib = pytest.importorskip("matplotlib")

NODES = 60


def _graph(*, directed: bool = False) -> Graph:
    ends = np.random.default_rng(0).integers(0, NODES, (2, 150))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return Graph.from_edges(*ends, num_nodes=NODES, directed=directed)


def _sets(count: int, largest: int = 9) -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    return [rng.choice(NODES, rng.integers(1, largest), replace=False) for _ in range(count)]


def _dataset(labels: list[object] | None, **options: object) -> Dataset:
    count = 7 if labels is None else len(labels)
    subgraphs = SubgraphSet.from_lists(_sets(count), num_nodes=NODES, labels=labels, **options)  # type: ignore[arg-type]
    return Dataset("toy", _graph(), subgraphs)


def _dataset_of(nodes: list[list[int] | range], labels: list[object], graph: Graph | None = None) -> Dataset:
    subgraphs = SubgraphSet.from_lists([list(row) for row in nodes], num_nodes=NODES, labels=labels)  # type: ignore[arg-type]
    return Dataset("toy", _graph() if graph is None else graph, subgraphs)


def _pixels(path: Path) -> np.ndarray:
    from matplotlib.image import imread

    assert path.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    return np.asarray(imread(path))


def _check(paths: list[Path], folder: Path) -> None:
    assert paths == [folder / "properties.png", folder / "subgraphs.png"]
    assert sorted(folder.iterdir()) == sorted(paths)
    for path in paths:
        pixels = _pixels(path)
        assert 400 < pixels.shape[0] < 2500
        assert 600 < pixels.shape[1] < 2500
        assert np.ptp(pixels[..., :3]) > 0.5


CASES: dict[str, Dataset] = {
    "multi-class, named": _dataset(["x$y", "z$_1", "c"] * 3, names=[f"disease {i}" for i in range(9)]),
    "many classes with long names": _dataset([f"a class with a long name {i}" for i in range(13)]),
    "multi-label": _dataset([["a", "b"], ["b"], []] * 2),
    "regression": _dataset([i + 0.25 for i in range(6)]),
    "single nodes, no edges": _dataset_of([[0, 4], [1], [2]], [0, 1, 0], Graph.from_edges([], [], num_nodes=NODES)),
    "the whole graph, directed": _dataset_of([range(NODES)], ["a"], _graph(directed=True)),
}


@pytest.mark.quick(1)
@pytest.mark.parametrize("name", CASES)
def test_every_kind_of_dataset_can_be_drawn_and_leaves_the_program_as_it_was(name: str, tmp_path: Path) -> None:
    settings = dict(matplotlib.rcParams)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _check(plot_dataset(CASES[name], tmp_path / "plots"), tmp_path / "plots")
    assert dict(matplotlib.rcParams) == settings


def test_a_few_subgraphs_of_every_class_are_chosen_by_the_seed() -> None:
    subgraphs = _dataset(["a", "b", "c"] * 10).subgraphs
    chosen = _choose(subgraphs, 0)
    assert chosen == _choose(subgraphs, 0) != _choose(subgraphs, 1)
    assert [subgraphs.label_text(i) for i in chosen] == ["a"] * 3 + ["b"] * 3 + ["c"] * 3
    assert len(_choose(_dataset([f"{i}" for i in range(30)]).subgraphs, 0)) == 10
    real = _dataset([i + 0.5 for i in range(30)]).subgraphs
    assert _choose(real, 0) == sorted(_choose(real, 0))


def test_matplotlib_is_asked_for_by_name_where_it_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def fail(name: str, *rest: object, **options: object) -> object:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *rest, **options)  # type: ignore[arg-type]

    for module in [m for m in sys.modules if m.startswith("matplotlib.figure")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setattr(builtins, "__import__", fail)
    with pytest.raises(MissingExtra, match=r"plots needs the package matplotlib.*subgnn\[plot\]"):
        plot_dataset(_dataset(None), tmp_path / "plots")
    assert not (tmp_path / "plots").exists()
