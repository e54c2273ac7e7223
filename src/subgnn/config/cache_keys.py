"""Settings of a recipe that enter a cache key."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from subgnn.config.settings import Recipe


def recipe_key(recipe: Recipe) -> dict[str, Any]:
    """All settings of a recipe but its name, note and published number.

    Of the candidates of a portfolio, those for graphs with certain attributes do not enter: predictions of each are
    kept under a key of their own.
    """
    settings = {key: value for key, value in asdict(recipe).items() if key not in ("name", "note", "published")}
    candidates = tuple(one for one in settings["auto"]["candidates"] if not one["for_graphs_with"])
    return settings | {"auto": settings["auto"] | {"candidates": candidates}}
