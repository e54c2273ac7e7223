"""A client of a small run for the tests of a module."""

from __future__ import annotations

import pytest

from tests.serve.examples import client


@pytest.fixture(scope="module")
def asking():
    with client() as found:
        yield found
