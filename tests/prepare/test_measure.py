"""Preparation: progress is told, pieces do not change a number, and files give it back bit for bit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from subgnn.channels import distances
from subgnn.channels.table import channel_of
from subgnn.config.settings import ChannelSettings, PrepareSettings
from subgnn.errors import DataError
from subgnn.parallel import progress as pacing
from subgnn.prepare.measure import encode, read_prepared
from subgnn.storage.arrays import write_parts
from tests.models.subgnn.examples import ALL_CHANNELS, prepare_example
from tests.prepared_equal import assert_same


@pytest.mark.parametrize("seconds", [0.0, 1e9])
def test_results_do_not_depend_on_the_pieces(monkeypatch, seconds):
    _, whole = prepare_example(4)
    monkeypatch.setattr(pacing, "SECONDS", seconds)
    monkeypatch.setattr(distances, "PAIRS_AT_ONCE", 5)
    monkeypatch.setattr(distances, "TABLE_AT_ONCE", 5)
    monkeypatch.setattr(distances, "WORD", 1)
    _, cut = prepare_example(4)
    assert_same(whole, cut)


@pytest.mark.parametrize("some", [None, [0], [3, 1]])
def test_touched_nodes_are_those_of_components_anchors_and_walks(some):
    _, found = prepare_example(1)
    chosen = np.arange(len(found.components.nodes))
    if some is not None:
        chosen = np.flatnonzero(np.isin(found.components.subgraph, some))
    nodes = {v for c in chosen for v in found.components.nodes[c].tolist()}
    for shared_row, inputs_row in zip(found.frame.shared, found.inputs, strict=True):
        for channel, shared, inputs in zip(ALL_CHANNELS, shared_row, inputs_row, strict=True):
            if channel.kind == "structure":
                nodes |= set(shared.walks.values.tolist())
            elif channel_of(channel).shared:
                nodes |= set(shared.nodes.tolist())
            else:
                nodes |= {v for c in chosen if inputs.own.present[c] for v in inputs.own.nodes[c].tolist()}
    touched = found.touched(None if some is None else np.array(some))
    assert touched.tolist() == sorted(nodes)
    assert touched.dtype == np.int32


def read(path, prepared, key="key"):
    return read_prepared(path, prepared.frame, key=key, graph_hash=prepared.graph_hash)


@settings(max_examples=60, derandomize=True)
@given(
    seed=st.integers(0, 100),
    layers=st.integers(1, 3),
    picked=st.lists(st.sampled_from(ALL_CHANNELS), max_size=6, unique=True),
    hops=st.integers(1, 2),
    frozen=st.booleans(),
)
def test_round_trip(tmp_path_factory, seed, layers, picked, hops, frozen):
    small = PrepareSettings(hops=hops, patch_length=5, walks=2, walk_length=4)
    _, prepared = prepare_example(seed, layers=layers, channels=tuple(picked), settings=small)
    if frozen:
        prepared.components.nodes.values.flags.writeable = False
    path = tmp_path_factory.getbasetemp() / "round-trip.prepared"
    write_parts(path, encode(prepared, "key"), overwrite=True)
    assert_same(read(path, prepared), prepared)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    channels = (ChannelSettings("neighborhood", "border", 1), ChannelSettings("structure", "internal", 1))
    _, prepared = prepare_example(0, layers=1, channels=channels)
    path = tmp_path_factory.mktemp("damage") / "x.prepared"
    write_parts(path, encode(prepared, "key"), overwrite=True)
    return path, path.read_bytes(), prepared


def test_another_key_is_noticed(written):
    path, whole, prepared = written
    path.write_bytes(whole)
    read(path, prepared)
    with pytest.raises(DataError, match="prepared from different content"):
        read(path, prepared, key="other")
