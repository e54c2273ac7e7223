"""Batches by hand: which rows they pick, how they are filled up, and what a redraw leaves as it was."""

from __future__ import annotations

import numpy as np
import torch

from subgnn.models.subgnn.batches import Inputs, PaddedShape

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
        "baseline_scores": np.arange(count, dtype=np.float32)[:, None] / 7,
    }
    return graph, prepared, table, Inputs(prepared, table, **extra), extra


def test_a_batch_has_the_rows_of_its_subgraphs():
    _, prepared, table, inputs, extra = example()
    assert len(inputs) == 5
    rows = np.array([3, 0, 3])
    batch = inputs.batch(rows)
    chosen = np.concatenate([np.flatnonzero(prepared.components.subgraph == s) for s in rows])
    counts = prepared.components.counts[rows]
    assert batch.num_subgraphs == 3
    assert (batch.draw, batch.spare) == (0, 0)
    assert batch.subgraph.tolist() == np.repeat(np.arange(3), counts).tolist()
    nodes = [prepared.components.nodes[c] for c in chosen]
    assert table[batch.nodes.numpy()].tolist() == np.concatenate(nodes).tolist()
    assert batch.sizes.tolist() == [len(row) for row in nodes]
    assert batch.node_starts.tolist() == (np.cumsum([len(row) for row in nodes]) - batch.sizes.numpy()).tolist()
    assert batch.component_stats.tolist() == extra["component_stats"][chosen].tolist()
    assert batch.subgraph_stats.tolist() == extra["subgraph_stats"][rows].tolist()
    assert batch.known.tolist() == extra["known"][chosen].tolist()
    assert batch.baseline_scores.tolist() == extra["baseline_scores"][rows].tolist()
    for layer, given in zip(batch.channels, prepared.inputs, strict=True):
        for channel, seen in zip(layer, given, strict=True):
            np.testing.assert_array_equal(channel.measured.similarity, seen.measured.similarity[chosen])
            assert (channel.own is None) == (seen.own is None)
            if seen.own is not None:
                present = seen.own.present[chosen]
                np.testing.assert_array_equal(table[channel.own.numpy()][present], seen.own.nodes[chosen][present])
                assert not channel.own[~torch.from_numpy(present)].any()


def test_a_batch_is_filled_up_to_its_padded_shape():
    _, _, _, inputs, _ = example()
    rows = np.array([0, 1])
    plain = inputs.positions(rows)
    components, nodes = len(plain.tensors[1]), len(plain.tensors[3])
    filled = inputs.positions(rows, PaddedShape(components + 3, nodes + 4))
    assert (plain.spare, filled.spare) == (0, 1)
    assert filled.tensors[0].tolist() == plain.tensors[0].tolist() == [0, 1]
    for i, filler in enumerate(([], [0] * 3, [2] * 3, [0] * 4, [nodes, nodes + 1, nodes + 2])):
        assert filled.tensors[i].tolist() == [*plain.tensors[i].tolist(), *filler]
        assert filled.tensors[i].dtype == torch.int64
    assert inputs.pick(filled).spare == 1
    # Positions in the place of others of the same shapes.
    other = inputs.positions(np.array([1, 0]), PaddedShape(components + 3, nodes + 4))
    filled.overwrite(other)
    assert filled.joined.tolist() == other.joined.tolist()
