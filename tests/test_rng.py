import numpy as np

from subgnn.rng import stream, stream_key


def test_key_does_not_change_between_releases():
    assert stream_key(0, "split") == 0x667DFC4CB9567920


def test_streams_do_not_move_each_other():
    alone = stream(3, "b").random(5)
    stream(3, "a").random(1000)
    np.testing.assert_array_equal(stream(3, "b").random(5), alone)
    assert not np.array_equal(stream(3, "a").random(5), alone)
    assert not np.array_equal(stream(4, "b").random(5), alone)


def test_global_seed_is_neither_read_nor_set():
    np.random.seed(0)  # noqa: NPY002
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    first = stream(0, "x").random()
    np.random.seed(1)  # noqa: NPY002
    assert stream(0, "x").random() == first
    np.random.seed(0)  # noqa: NPY002
    stream(0, "x").random()
    np.testing.assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002
