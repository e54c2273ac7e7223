"""A client of a small run for the tests of a module."""

import pytest

from tests.serve.examples import client


@pytest.fixture(scope="module")
def asking():
    with client() as found:
        yield found
