import numpy as np
import pytest

from subgnn import Dataset, Graph, SubgraphSet, describe

# A triangle 0 1 2 with the tail 2 - 3 - 4, and node 5 alone.
TAILS, HEADS = [0, 1, 2, 2, 3], [1, 2, 0, 3, 4]
NODES = [[0, 1, 2], [3, 4, 5], [0, 4], [0, 1, 2, 3, 4, 5]]


def dataset(*, splits=("train", "train", "val", "test"), labels=("a", "b", "a", "a"), **options):
    graph = Graph.from_edges(TAILS, HEADS, num_nodes=6, **options)
    subgraphs = SubgraphSet.from_lists(NODES, num_nodes=6, labels=labels, splits=splits)
    return Dataset(name="small", graph=graph, subgraphs=subgraphs)


def test_tables_by_hand():
    found = describe(dataset())
    assert found["name"] == "small"
    assert (found["num_nodes"], found["num_edges"], found["density"]) == (6, 5, pytest.approx(5 / 15))
    assert (found["num_subgraphs"], found["num_labels"], found["task"]) == (4, 2, "binary")
    assert found["label_counts"] == {"a": 3, "b": 1}
    assert found["splits"] == {"train": 2, "val": 1, "test": 1}
    keys = ("isolated_nodes", "num_features", "weighted", "directed")
    assert [found[key] for key in keys] == [1, 0, False, False]
    by_hand = {
        "nodes": [3, 3, 2, 6],
        "density": [1, 1 / 3, 0, 5 / 15],
        "cut_ratio": [1 / 9, 1 / 9, 3 / 8, 0],
        "components": [1, 2, 2, 2],
    }
    assert set(found["subgraphs"]) == set(by_hand)
    for name, values in by_hand.items():
        assert found["subgraphs"][name]["mean"] == pytest.approx(np.mean(values)), name
        assert found["subgraphs"][name]["std"] == pytest.approx(np.std(values)), name


def test_a_val_part_smaller_than_test_is_noted():
    (note,) = describe(dataset(splits=("train", "val", "test", "test")))["notes"]
    assert "val is smaller than test" in note
    assert "with --split published" in note
    assert describe(dataset(splits=("train", "val", "val", "test")))["notes"] == []
