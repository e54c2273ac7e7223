"""Batches by hand: which rows they pick, and how they are filled up."""

from __future__ import annotations

import numpy as np
import torch

from subgnn.models.subgnn.batches import Beside, Inputs

from .examples import prepare_example


def example():
    """Prepared subgraphs, the table of touched nodes, and inputs with everything that may come along."""
    graph, prepared = prepare_example(5)
    table = prepared.touched()
    components, count = len(prepared.components.nodes), len(prepared.components.counts)
    extra = {
        "component_stats": np.arange(2 * components, dtype=np.float32).reshape(-1, 2),
        "subgraph_stats": -np.arange(3 * count, dtype=np.float32).reshape(-1, 3),
        "known": np.arange(components) % 3,
        "scores": np.arange(count, dtype=np.float32)[:, None] / 7,
    }
    return graph, prepared, table, Inputs(prepared, table, Beside(**extra)), extra


def test_a_batch_has_the_rows_of_its_subgraphs():
    _, prepared, table, inputs, extra = example()
    assert len(inputs) == 5
    rows = np.array([3, 0, 3])
    batch = inputs.batch(rows)
    chosen = np.concatenate([np.flatnonzero(prepared.components.subgraph == s) for s in rows])
    counts = prepared.components.counts[rows]
    assert batch.num_subgraphs == 3
    assert batch.spare == 0
    assert batch.subgraph.tolist() == np.repeat(np.arange(3), counts).tolist()
    nodes = [prepared.components.nodes[c] for c in chosen]
    assert table[batch.nodes.numpy()].tolist() == np.concatenate(nodes).tolist()
    assert batch.sizes.tolist() == [len(row) for row in nodes]
    assert batch.node_starts.tolist() == (np.cumsum([len(row) for row in nodes]) - batch.sizes.numpy()).tolist()
    assert batch.beside.component_stats.tolist() == extra["component_stats"][chosen].tolist()
    assert batch.beside.subgraph_stats.tolist() == extra["subgraph_stats"][rows].tolist()
    assert batch.beside.known.tolist() == extra["known"][chosen].tolist()
    assert batch.beside.scores.tolist() == extra["scores"][rows].tolist()
    for layer, given in zip(batch.channels, prepared.inputs, strict=True):
        for channel, seen in zip(layer, given, strict=True):
            np.testing.assert_array_equal(channel.similarity, seen.similarity[chosen])
            assert (channel.own is None) == (seen.own is None)
            if seen.own is not None:
                present = seen.own.present[chosen]
                np.testing.assert_array_equal(table[channel.own.numpy()][present], seen.own.nodes[chosen][present])
                assert not channel.own[~torch.from_numpy(present)].any()
