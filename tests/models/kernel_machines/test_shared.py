"""What fits share: computed by one process, and found by others."""

import multiprocessing
import pickle

import numpy as np
import pytest

from subgnn.errors import DataWarning
from subgnn.models.kernel_machines import rows, shared
from subgnn.models.recipes import find_recipe
from subgnn.models.registry import MODELS
from tests.models.examples import training_data
from tests.training.examples import dataset


@pytest.fixture(autouse=True)
def _nothing_is_shared_yet(monkeypatch):
    monkeypatch.setattr(rows, "SHARED", shared.SharedArrays())
    monkeypatch.setattr(shared, "SHARED", rows.SHARED)
    monkeypatch.setattr(rows, "_FEW_NUMBERS", 0)
    monkeypatch.setattr(rows, "_PART", 7)
    monkeypatch.setattr(rows, "_COLUMNS_AT_A_TIME", 5)


def set_up(name):
    """The inner products and the diffusion that fits of a recipe take."""
    data, chosen = dataset(), find_recipe(name)
    source = MODELS[chosen.method].set_up(training_data(data.graph, data.subgraphs), chosen).source
    found = {view: one for damping in (0.3, 0.6) for view, one in source._views.get(damping, {}).items()}
    every = np.arange(len(data.subgraphs))
    return {
        view: one.values if view in ("walk", "topology") else one.products(every, every) for view, one in found.items()
    }


@pytest.mark.parametrize("name", ["diffusion-topology", "profiles", "diffusion-root"])
def test_pieces_leave_nothing_to_fits_and_give_the_same_numbers(tmp_path, monkeypatch, name):
    expected = set_up(name)
    data, chosen = dataset(), find_recipe(name)
    rows.SHARED.__init__()
    with shared.share_views(tmp_path):
        stages = MODELS[chosen.method].shared_pieces(chosen, data.graph, data.subgraphs.nodes)
        pieces = [piece for stage in stages for piece in stage]
        parts = {piece.part for piece in pieces if piece.part is not None and not piece.products}
        groups = {piece.part for piece in pieces if piece.part is not None and piece.products}
        assert len(parts) == -(-len(data.subgraphs) // 7)
        assert groups == set(range(0 if name == "profiles" else len(rows.column_groups(data.graph.num_nodes))))
        for piece in pieces:
            sent = pickle.loads(pickle.dumps(piece))
            assert sent == piece
            sent(data.graph, data.subgraphs.nodes)
        rows.SHARED.__init__()
        rows.SHARED.folder = tmp_path
        for work in ("_diffuse", "multiply_all", "subgraph_statistics"):
            monkeypatch.setattr(rows, work, None)  # nothing is left to compute
        found = set_up(name)
    assert found.keys() == expected.keys()
    for view, numbers in expected.items():
        np.testing.assert_array_equal(found[view], numbers)
    assert not list(tmp_path.glob("*-0.safetensors")), "parts are removed when they are joined"


def compute_slowly(folder, key, calls):
    def compute():
        with calls.get_lock():
            calls.value += 1
        return {"values": np.arange(5.0)}

    with shared.share_views(folder):
        assert shared.SHARED.get(key, compute)["values"].tolist() == [0, 1, 2, 3, 4]


@pytest.mark.slow
def test_one_of_several_processes_computes(tmp_path):
    context = multiprocessing.get_context("spawn")
    calls = context.Value("i", 0)
    processes = [context.Process(target=compute_slowly, args=(tmp_path, "key", calls)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
        assert process.exitcode == 0
    assert calls.value == 1


def test_a_folder_that_cannot_be_written_is_reported(tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shared, "write_parts", full)
    with shared.share_views(tmp_path), pytest.warns(DataWarning, match="No space left"):
        assert rows.SHARED.get("key", lambda: {"values": np.ones(2)})["values"].tolist() == [1, 1]
