"""Where what was computed once is kept."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """``SUBGNN_CACHE`` where it is set, else ``subgnn`` in the user's cache folder."""
    given = os.environ.get("SUBGNN_CACHE")
    if given:
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "subgnn"
