from __future__ import annotations

import pytest

from subgnn.errors import UserError
from subgnn.parallel.sizes import parse_size


@pytest.mark.parametrize(
    ("text", "size"),
    [("8GB", 8 * 10**9), ("1.5 mb", 1_500_000), ("700", 700), ("2T", 2 * 10**12), ("0", 0), ("3k", 3000)],
)
def test_sizes(text, size):
    assert parse_size(text, "here") == size


@pytest.mark.parametrize("text", ["", "much", "-1GB", "5 XB", "1e3", "GB"])
def test_no_size(text):
    with pytest.raises(UserError, match=r"here: '.*' is no size; accepted: a number with KB, .* as 5GB; or none$"):
        parse_size(text, "here", hint="or none")
