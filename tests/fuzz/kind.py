"""What is to be known of a kind of file, to damage and read it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.fuzz import mutations


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of file.

    Args:
        make: writes a good file, and what it needs beside it, into a folder, and gives its path.
        read: reads it as the package does; what it returns says what was read.
        damage: what is done to the file.
        signed: whether the file carries a checksum of its content, so that none may be read that differs. Of others, a
            damaged one may be read as another content.
    """

    make: Callable[[Path], Path]
    read: Callable[[Path], Any]
    damage: mutations.Damage = mutations.text
    signed: bool = False
