"""Set-up of the tests of searches and suites."""

import pytest


@pytest.fixture(scope="session", autouse=True)
def _databases(databases_without_waiting: None) -> None:
    """Searches are stored in databases."""
