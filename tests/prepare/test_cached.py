"""Prepared subgraphs, written and read: the same bit for bit, and any damage is noticed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from subgnn.config.settings import ChannelSettings, PrepareSettings
from subgnn.errors import DataError
from subgnn.prepare.measure import Plan, encode, read_prepared
from subgnn.storage.arrays import write_parts
from tests.models.subgnn.examples import ALL_CHANNELS, prepare_example
from tests.prepared_equal import arrays_of, assert_same


def read(path, prepared, key="key"):
    frame = prepared.frame
    plan = Plan(frame.channels, frame.layers, frame.settings, frame.seed)
    return read_prepared(path, plan, key=key, graph_hash=prepared.graph_hash)


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
    with pytest.raises(DataError, match="belongs to other content"):
        read(path, prepared, key="other")


def test_an_array_that_stands_in_two_places_is_stored_once():
    _, prepared = prepare_example(0, layers=3, channels=(ChannelSettings("neighborhood", "internal", 2),))
    arrays = [value for _, value in arrays_of(prepared) if isinstance(value, np.ndarray)]
    assert len(encode(prepared, "key")) - 1 == len({id(array) for array in arrays}) < len(arrays)
