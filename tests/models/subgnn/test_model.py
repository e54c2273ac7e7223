"""The factored network against the naive one, and what must not change its answers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from subgnn.channels.channel import NodeAnchors
from subgnn.data.graph import Graph
from subgnn.models.subgnn.batches import Beside, Inputs
from subgnn.ragged import Ragged

from . import naive
from .examples import ALL_CHANNELS, SMALL, build_model, prepare_example, random_subgraphs


def double(batch):
    """The batch with its distances in double precision."""
    channels = [[replace(c, similarity=c.similarity.double()) for c in layer] for layer in batch.channels]
    return replace(batch, channels=channels)


def states_of_some(prepared):
    """Every other distinct node set has a learned state: rows by node set, and by component with 0 for none."""
    sets = [frozenset(row.tolist()) for row in prepared.components.nodes]
    known = {nodes: i + 1 for i, nodes in enumerate(list(dict.fromkeys(sets))[::2])}
    return known, np.array([known.get(nodes, 0) for nodes in sets], np.int64)


def compare(prepared, *, known_components=False, **options) -> None:
    known, rows = states_of_some(prepared) if known_components else ({}, None)
    model, nodes = build_model(prepared, num_known=len(known), **options)
    rng = np.random.default_rng(0)
    counts = (len(prepared.components.nodes), len(prepared.components.counts))
    drawn = [rng.normal(size=(count, 8)) for count in counts] if model.num_stats else None
    beside = Beside(*(drawn or (None, None)), known=rows)
    inputs = Inputs(prepared, nodes, beside)
    compare_with_naive(model, inputs.whole, naive.forward(model, prepared, nodes, known=known, stats=drawn))


def compare_with_naive(model, batch, expected) -> None:
    logits = model(batch)
    torch.testing.assert_close(logits, expected, rtol=0, atol=1e-10)
    weights = torch.randn(logits.shape, dtype=logits.dtype, generator=torch.Generator().manual_seed(1))
    parameters = [p for p in model.parameters() if p.requires_grad]
    ours = torch.autograd.grad((logits * weights).sum(), parameters, allow_unused=True, materialize_grads=True)
    theirs = torch.autograd.grad((expected * weights).sum(), parameters, allow_unused=True, materialize_grads=True)
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-10)


OPTIONS = [
    {},
    {"component_init": "mean", "readout": "mean"},
    {"component_init": "max", "readout": "max", "lstm_layers": 2},
    {"norm": "none", "initial": False},
    {"hidden_norm": "batch"},
    {"hidden_norm": "batch", "readout": "mean", "known_components": True},
    {"features": "beside"},
    {"features": "instead", "component_init": "max", "known_components": True},
    {"known_components": True, "topology": True},
]


@pytest.mark.quick(4)
@pytest.mark.parametrize("options", OPTIONS, ids=lambda o: "-".join(map(str, o.values())) or "paper")
def test_logits_and_gradients_equal_the_naive_network(options):
    compare(prepare_example(3)[1], **options)


@pytest.mark.slow
@settings(max_examples=30, derandomize=True)
@given(
    seed=st.integers(0, 10_000),
    channels=st.sets(st.integers(0, 5), min_size=1),
    layers=st.integers(1, 3),
    hops=st.integers(1, 2),
    options=st.fixed_dictionaries(
        {
            "features": st.sampled_from(["none", "beside", "instead"]),
            "known_components": st.booleans(),
            "component_init": st.sampled_from(["sum", "mean", "max"]),
            "initial": st.booleans(),
            "hidden_norm": st.sampled_from(["none", "batch"]),
        }
    ),
)
def test_any_channels_and_options_equal_the_naive_network(seed, channels, layers, hops, options):
    chosen = tuple(ALL_CHANNELS[i] for i in sorted(channels))
    compare(
        prepare_example(seed, layers=layers, channels=chosen, settings=replace(SMALL, hops=hops))[1],
        seed=seed,
        **options,
    )


def test_logits_do_not_depend_on_the_batch():
    _, prepared = prepare_example(5)
    model, nodes = build_model(prepared, norm="batch", hidden_norm="batch")
    inputs = Inputs(prepared, nodes)
    model(double(inputs.whole))
    model.eval()
    whole = model(double(inputs.whole))
    for rows in ([2], [4, 0], [3, 3, 1], [0, 1, 2, 3, 4]):
        torch.testing.assert_close(model(double(inputs.batch(np.array(rows)))), whole[rows], rtol=0, atol=1e-12)


@pytest.mark.parametrize("readout", ["sum", "mean", "max"])
def test_filling_a_batch_up_to_fixed_shapes_changes_nothing(readout):
    _, prepared = prepare_example(5)
    options = {"norm": "batch", "hidden_norm": "batch", "readout": readout}
    model, nodes = build_model(prepared, **options)
    other, _ = build_model(prepared, **options)
    inputs = Inputs(prepared, nodes)
    for rows in ([2, 4, 0], [3, 3, 1]):
        shape = inputs.padded_shape(np.array(rows))
        plain = other(double(inputs.batch(np.array(rows))))
        chosen, (c, m) = inputs.positions(np.array(rows), shape), shape
        assert [len(t) for t in chosen.tensors] == [3, c, c, m, c]
        filled = model(double(inputs.pick(chosen)))
        torch.testing.assert_close(filled, plain, rtol=0, atol=1e-12)
        torch.testing.assert_close(model.state_dict(), other.state_dict(), rtol=0, atol=1e-12)


def test_new_subgraphs_get_the_numbers_they_would_have_had_in_training():
    graph, prepared = prepare_example(6)
    order = [4, 2, 0, 3, 3]
    rows = [c for s in order for c in np.flatnonzero(prepared.components.subgraph == s)]
    extended = prepared.extend(graph, random_subgraphs(6).take(order))
    for layer, again in zip(prepared.inputs, extended.inputs, strict=True):
        for before, after in zip(layer, again, strict=True):
            np.testing.assert_array_equal(before.similarity[rows], after.similarity)
            assert before.own is None or np.array_equal(before.own.nodes[rows], after.own.nodes)


def test_relabelling_nodes_with_their_anchors_leaves_logits_unchanged():
    graph, prepared = prepare_example(7, channels=(ALL_CHANNELS[1], ALL_CHANNELS[4], ALL_CHANNELS[5]))
    model, nodes = build_model(prepared)
    expected = model(double(Inputs(prepared, nodes).whole))
    new = np.random.default_rng(0).permutation(graph.num_nodes).astype(np.int32)
    tails, heads, _ = graph.edges()
    renamed_graph = Graph.from_edges(new[tails], new[heads], num_nodes=graph.num_nodes)
    shared = []
    for layer in prepared.frame.shared:
        row = []
        for anchors in layer:
            if isinstance(anchors, NodeAnchors):
                row.append(NodeAnchors(new[anchors.nodes]))
            else:
                patches = Ragged.from_rows([np.sort(new[p]) for p in anchors.patches])
                walks = Ragged(new[anchors.walks.values], anchors.walks.offsets)
                row.append(replace(anchors, patches=patches, walks=walks))
        shared.append(row)
    subgraphs = Ragged.from_rows([np.sort(new[row]) for row in random_subgraphs(7)])
    renamed = replace(prepared, frame=replace(prepared.frame, shared=shared)).extend(renamed_graph, subgraphs)
    other, other_nodes = build_model(renamed)
    with torch.no_grad():
        state = {k: v for k, v in model.state_dict().items() if k != "table" and not k.startswith("anchors.")}
        other.load_state_dict(state, strict=False)
        place = {int(new[node]): i for i, node in enumerate(nodes)}
        other.table[:] = model.table[[place[int(node)] for node in other_nodes]]
    torch.testing.assert_close(other(double(Inputs(renamed, other_nodes).whole)), expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("options", OPTIONS, ids=lambda o: "-".join(map(str, o.values())) or "-")
def test_parts_are_the_columns_they_say(options):
    _, prepared = prepare_example(2)
    # Offsets and statistics of the inputs are left out: they change no column's part.
    options = {key: value for key, value in options.items() if key not in ("known_components", "topology")}
    model, nodes = build_model(prepared, **options | {"norm": "none"})
    parts = model.parts()
    columns = sorted(i for slices in parts.values() for s in slices for i in range(s.start, s.stop))
    assert columns == list(range(model.head.layers[0].in_features))
    batch = double(Inputs(prepared, nodes).whole)
    before = model.embed(batch)
    for i, channel in enumerate(prepared.frame.channels):
        changed = [list(layer) for layer in batch.channels]
        for layer in changed:
            layer[i] = replace(layer[i], similarity=0.7 * layer[i].similarity)
        moved = (model.embed(replace(batch, channels=changed)) != before).any(dim=0)
        mine = torch.zeros_like(moved)
        for some in parts[channel.name]:
            mine[some] = True
        assert not moved[~mine].any(), channel.name
        assert moved[mine].any(), channel.name
