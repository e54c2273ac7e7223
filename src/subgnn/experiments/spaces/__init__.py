"""Search spaces that come with the package: the paper's ranges, and what is beyond it."""

from __future__ import annotations

from pathlib import Path

from subgnn.errors import UserError, choices
from subgnn.experiments.search_space import SearchSpace, read_space

_FOLDER = Path(__file__).parent


def space_names() -> list[str]:
    """The search spaces that come with the package."""
    return sorted(path.stem for path in _FOLDER.glob("*.toml"))


def find_space(name: str) -> SearchSpace:
    """A search space by name, or by the path of a file."""
    if name.endswith(".toml"):
        return read_space(Path(name))
    if name not in space_names():
        raise UserError(f"unknown search space '{name}'", where="--space", hint=choices(name, space_names()))
    return read_space(_FOLDER / f"{name}.toml")
