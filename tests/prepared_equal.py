"""Prepared subgraphs, compared array by array."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np


def arrays_of(value: Any, name: str = "prepared") -> Iterator[tuple[str, Any]]:
    """Everything in nested dataclasses and lists, with its place."""
    if isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            yield from arrays_of(item, f"{name}[{i}]")
    elif is_dataclass(value):
        for field in fields(value):
            yield from arrays_of(getattr(value, field.name), f"{name}.{field.name}")
    else:
        yield name, value


def assert_same(a: Any, b: Any) -> None:
    """Equal bit for bit, of equal types, and frozen alike."""
    ours, theirs = list(arrays_of(a)), list(arrays_of(b))
    assert [name for name, _ in ours] == [name for name, _ in theirs]
    for (name, x), (_, y) in zip(ours, theirs, strict=True):
        assert type(x) is type(y), name
        if isinstance(x, np.ndarray):
            assert (x.dtype, x.shape, x.flags.writeable) == (y.dtype, y.shape, y.flags.writeable), name
            assert x.tobytes() == y.tobytes(), name
        else:
            assert x == y, name
