"""Set-up of the kernel tests."""

from collections.abc import Iterator

import numba
import pytest


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Run on one thread: waking more for thousands of tiny graphs is slow on a busy machine.

    That their number changes nothing is a test of its own.
    """
    before = numba.get_num_threads()
    numba.set_num_threads(1)
    yield
    numba.set_num_threads(before)
