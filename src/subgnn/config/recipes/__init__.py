"""Recipes: settings of a run as a file, named by what they are for, with the published number where there is one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from subgnn.config.files import read_recipe
from subgnn.config.recipes.published import published_recipe, published_rows
from subgnn.config.settings import Recipe
from subgnn.errors import UserError, choices

_FOLDER = Path(__file__).parent


def recipe_names() -> list[str]:
    """The recipes that come with the package."""
    return sorted([*(path.stem for path in _FOLDER.glob("*.toml")), *published_rows()])


def find_recipe(name: str, overrides: Sequence[str] = ()) -> Recipe:
    """A recipe by name, or by the path of a file.

    Args:
        overrides: ``section.key=value``.
    """
    if name.endswith(".toml"):
        return read_recipe(Path(name), overrides)
    if name not in recipe_names():
        raise UserError(f"unknown recipe '{name}'", where="--recipe", hint=choices(name, recipe_names()))
    if name in published_rows():
        return published_recipe(name, overrides)
    return read_recipe(_FOLDER / f"{name}.toml", overrides)
