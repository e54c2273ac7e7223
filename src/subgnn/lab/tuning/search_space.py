"""Search spaces: TOML files with a range or choices for each setting that a search may change (docs/settings.md).

``channels.structure`` applies to both sides, which then have one number of anchors. A subchannel that the recipe does
not have stays off.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from subgnn.channels.table import CHANNELS, channel_names
from subgnn.config.files import read_toml
from subgnn.config.settings import Recipe
from subgnn.errors import UserError, choices, excerpt
from subgnn.models.recipes import parse_recipe

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

_SECTIONS = (*(f.name for f in fields(Recipe) if is_dataclass(f.default_factory)), "channels", "note")
_SPACES = Path(__file__).parent / "spaces"
_HINT = "accepted: {low = .., high = ..}, optionally with log = true or step = ..; or {choices = [..]}"


@dataclass(frozen=True, slots=True)
class SearchSpace:
    """Distributions by ``section.key`` or ``channels.KIND/SIDE``; KIND alone is both sides."""

    name: str
    dimensions: dict[str, BaseDistribution]

    def apply(self, recipe: Recipe, value_of: Callable[[str, BaseDistribution, Any], Any]) -> Recipe:
        """The recipe with the values of its parameters, from their names, distributions and own values."""
        wanted: dict[str, Any] = {path.partition(".")[0]: {} for path in self.dimensions}
        wanted.pop("channels", None)
        content = parse_recipe(wanted | recipe.plain(), recipe.name).plain()
        for path, dimension in self.dimensions.items():
            section, _, key = path.partition(".")
            if section == "channels":
                chosen = [one for one in content["channels"] if key in (one["kind"], f"{one['kind']}/{one['side']}")]
                for one in chosen:
                    one["num_anchors"] = value_of(path, dimension, one["num_anchors"])
            elif isinstance(own := content[section][key], tuple):
                content[section][key] = [value_of(f"{path}[{i}]", dimension, one) for i, one in enumerate(own)]
            else:
                content[section][key] = value_of(path, dimension, own)
        return parse_recipe(content, recipe.name)


def space_names() -> list[str]:
    """The search spaces that come with the package."""
    return sorted(path.stem for path in _SPACES.glob("*.toml"))


def find_space(name: str) -> SearchSpace:
    """A search space by name, or by the path of a file."""
    if not name.endswith(".toml") and name not in space_names():
        raise UserError(f"unknown search space '{name}'", where="--space", hint=choices(name, space_names()))
    path = Path(name) if name.endswith(".toml") else _SPACES / f"{name}.toml"
    return parse_space(read_toml(path, "search space"), str(path), name=path.stem)


def parse_space(content: Mapping[str, Any], where: str, *, name: str = "unnamed") -> SearchSpace:
    """Make a search space from a mapping, and check that a recipe accepts the ends of every range and every choice."""
    dimensions: dict[str, BaseDistribution] = {}
    for section, entries in content.items():
        if section not in _SECTIONS:
            raise UserError(f"unknown section '{section}'", where=where, hint=choices(section, _SECTIONS))
        for key, entry in _table(entries, section, where).items() if section != "note" else ():
            of = _of_channel if section == "channels" else _of_setting
            dimensions[f"{section}.{key}"] = of(section, key, entry, where)
    if not dimensions:
        hint = "give settings such as: training.lr = {low = 1e-4, high = 1e-2}"
        raise UserError("the search space is empty", where=where, hint=hint)
    return SearchSpace(name, dimensions)


def _table(content: Any, path: str, where: str) -> Mapping[str, Any]:
    if not isinstance(content, Mapping):
        raise UserError(f"{path} is {excerpt(str(content))}", where=where, hint="a table is accepted")
    return content


def _of_setting(section: str, key: str, entry: Any, where: str) -> BaseDistribution:
    settings = parse_recipe({section: {}}, where).plain()[section]
    if key not in settings:
        parse_recipe({section: {key: 0}}, where)  # refuses the unknown name, with a hint
    default, several = settings[key], isinstance(settings[key], tuple)
    whole = type(default[0] if several else default) is int
    dimension, ends = _distribution(entry, f"{section}.{key}", where, whole=whole)
    for value in ends:
        parse_recipe({section: {key: [value] * len(default) if several else value}}, where)
    return dimension


def _of_channel(_: str, key: str, entry: Any, where: str) -> BaseDistribution:
    settings = _table(entry, f"channels.{key}", where)
    known = (*channel_names(), *CHANNELS)
    for given, accepted in ((key, known), *((part, ("num_anchors",)) for part in settings)):
        if given not in accepted:
            raise UserError(f"unknown name '{given}' in channels.{key}", where=where, hint=choices(given, accepted))
    kind, _, side = key.partition("/")
    dimension, ends = _distribution(settings.get("num_anchors"), f"channels.{key}.num_anchors", where, whole=True)
    for value in ends:
        parse_recipe({"channels": [{"kind": kind, "side": side or "border", "num_anchors": value}]}, where)
    return dimension


def _distribution(entry: Any, path: str, where: str, *, whole: bool) -> tuple[BaseDistribution, list[Any]]:
    """A distribution, and its choices or ends."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    try:
        if set(entry) == {"choices"}:
            values = list(entry["choices"])
            return CategoricalDistribution(values), values
        numbers = {name: value for name, value in entry.items() if name != "log"}
        if any(type(value) not in ((int,) if whole else (int, float)) for value in numbers.values()):
            raise ValueError("its numbers must be whole" if whole else "numbers are needed")
        if entry["high"] - entry["low"] < numbers.get("step", 0):
            raise ValueError("step must be no more than high - low")
        return (IntDistribution if whole else FloatDistribution)(**entry), [entry["low"], entry["high"]]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        why = f" ({error})" if isinstance(error, ValueError) else ""
        raise UserError(f"{path} is {excerpt(str(entry))}{why}", where=where, hint=_HINT) from None
