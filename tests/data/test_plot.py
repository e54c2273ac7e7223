"""The two pictures of a dataset: there, whole, the same every time, and for every kind of dataset."""

from __future__ import annotations

import builtins
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from subgnn.data.dataset import Dataset
from subgnn.data.graph import Graph
from subgnn.data.layout import MAX_BORDER, MAX_NODES, Drawing, stress_layout
from subgnn.data.plot import _choose, plot_dataset
from subgnn.data.subgraphs import SubgraphSet
from subgnn.errors import DataError, DataWarning, MissingExtra

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


@pytest.mark.parametrize("name", CASES)
def test_every_kind_of_dataset_can_be_drawn_and_leaves_the_program_as_it_was(name: str, tmp_path: Path) -> None:
    settings = dict(matplotlib.rcParams)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _check(plot_dataset(CASES[name], tmp_path / "plots"), tmp_path / "plots")
    assert dict(matplotlib.rcParams) == settings


def test_equal_datasets_give_equal_pictures(tmp_path: Path) -> None:
    pixels = [_pixels(path) for path in plot_dataset(_dataset(None), tmp_path)]
    for path, before in zip(plot_dataset(_dataset(None), tmp_path), pixels, strict=True):
        assert_array_equal(_pixels(path), before)
    _check([tmp_path / "properties.png", tmp_path / "subgraphs.png"], tmp_path)


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


def test_what_cannot_be_drawn_or_written_is_said(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no subgraphs to draw"):
        plot_dataset(Dataset("none", _graph(), SubgraphSet.from_lists([], num_nodes=NODES)), tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot be written"):
        plot_dataset(_dataset(None), tmp_path / "file")


def test_a_drawing_by_hand() -> None:
    # 0 - 1   2, each with a neighbour of its own outside, and 5 is a neighbour of both pieces.
    graph = Graph.from_edges([0, 0, 2, 1, 2], [1, 3, 4, 5, 5])
    drawn = Drawing.of(graph, np.array([0, 1, 2]), np.random.default_rng(0))
    assert drawn.inside.tolist() == [0, 1, 2]
    assert drawn.colour.tolist() == [0, 0, 1]
    assert drawn.border.tolist() == [3, 4, 5]
    assert drawn.edges.tolist() == [[0, 1]]
    assert sorted(map(tuple, drawn.cut_edges.tolist())) == [(0, 3), (1, 5), (2, 4), (2, 5)]
    assert (drawn.size, drawn.components, drawn.border_size) == (3, 2, 3)
    assert np.linalg.norm(drawn.at[:3], axis=1).max() <= 1 + 1e-9
    assert_allclose(np.linalg.norm(drawn.at[3:], axis=1), 1.45)


def test_a_large_drawing_is_thinned_out() -> None:
    n = 2 * MAX_NODES
    graph = Graph.from_edges(np.arange(n), np.arange(n) + n, num_nodes=2 * n)
    drawn = Drawing.of(graph, np.arange(n), np.random.default_rng(0))
    assert (len(drawn.inside), len(drawn.border)) == (MAX_NODES, MAX_BORDER)
    assert (drawn.size, drawn.components, drawn.border_size) == (n, n, n)


def test_a_path_is_laid_out_straight_and_pieces_apart() -> None:
    edges = np.array([[i, i + 1] for i in range(5)])
    at = stress_layout(6, edges, np.random.default_rng(0))
    steps = np.linalg.norm(np.diff(at, axis=0), axis=1)
    assert_allclose(steps, steps.mean(), rtol=0.05)
    assert_allclose(np.linalg.norm(at[0] - at[5]), steps.sum(), rtol=0.02)
    apart = stress_layout(6, np.array([[0, 1], [1, 2], [0, 2], [3, 4], [4, 5], [3, 5]]), np.random.default_rng(0))
    inside = np.linalg.norm(apart[:3] - apart[:3].mean(axis=0), axis=1).max()
    assert np.linalg.norm(apart[:3].mean(axis=0) - apart[3:].mean(axis=0)) > 2 * inside


@pytest.mark.parametrize("n", [1, 2, 3, 25])
def test_every_graph_has_a_layout_in_the_unit_disk(n: int) -> None:
    complete = np.array([[i, j] for i in range(n) for j in range(i)], np.int64).reshape(-1, 2)
    for edges in (complete, np.empty((0, 2), np.int64)):
        at = stress_layout(n, edges, np.random.default_rng(0))
        assert at.shape == (n, 2)
        assert np.isfinite(at).all()
        assert np.linalg.norm(at, axis=1).max() <= 1 + 1e-9
        if n > 1:
            apart = np.linalg.norm(at[:, None] - at[None], axis=2)[~np.eye(n, dtype=bool)]
            assert apart.min() > 0.05
