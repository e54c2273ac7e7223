"""Search spaces: TOML files with a range or choices for each setting that a search may change.

.. code-block:: toml

    note = "Why these."
    training.lr = {low = 1e-4, high = 1e-3, log = true}
    model.norm = {choices = ["none", "batch"]}
    model.head = {low = 32, high = 64, step = 32}                   # each number of a list by itself

    [channels."position/border"]
    use = {choices = [true, false]}                                 # on or off
    num_anchors = {low = 50, high = 200, step = 50}

``channels.structure`` applies to both sides, which then have one number of anchors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from subgnn.channels.table import CHANNELS, channel_names
from subgnn.config.files import read_toml
from subgnn.config.settings import Recipe
from subgnn.errors import UserError, choices, excerpt
from subgnn.models.interface import ChannelModel
from subgnn.models.recipes import parse_recipe
from subgnn.models.registry import find_model

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

_SECTIONS = (*(f.name for f in fields(Recipe) if is_dataclass(f.default_factory)), "channels", "note")
_SPACES = Path(__file__).parent / "spaces"
_HINT = "accepted: {low = .., high = ..}, optionally with log = true or step = ..; or {choices = [..]}"


@dataclass(frozen=True, slots=True)
class SearchSpace:
    """Distributions by ``section.key``, ``channels.KIND/SIDE.use`` or ``.num_anchors``; KIND alone is both sides."""

    name: str
    note: str
    dimensions: dict[str, BaseDistribution]


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
        if section == "note":
            continue
        for key, entry in _table(entries, section, where).items():
            if section != "channels":
                dimensions[f"{section}.{key}"] = _of_setting(section, key, entry, where)
                continue
            for part, inner in _table(entry, f"channels.{key}", where).items():
                dimensions[f"channels.{key}.{part}"] = _of_channel(key, part, inner, where)
    if not dimensions:
        hint = "give settings such as: training.lr = {low = 1e-4, high = 1e-2}"
        raise UserError("the search space is empty", where=where, hint=hint)
    return SearchSpace(name, str(content.get("note", "")), dimensions)


def _table(content: Any, path: str, where: str) -> Mapping[str, Any]:
    if not isinstance(content, Mapping):
        raise UserError(f"{path} is {excerpt(str(content))}", where=where, hint="a table is accepted")
    return content


def _of_setting(section: str, key: str, entry: Any, where: str) -> BaseDistribution:
    default: Any = parse_recipe({section: {}}, where).plain()[section].get(key)
    if default is None:
        parse_recipe({section: {key: 0}}, where)  # refuses the unknown name, with a hint
    several = isinstance(default, tuple)
    whole = type(default[0] if several else default) is int
    dimension, ends = _distribution(entry, f"{section}.{key}", where, whole=whole)
    for value in ends:
        parse_recipe({section: {key: [value] * len(default) if several else value}}, where)
    return dimension


def _of_channel(key: str, part: str, entry: Any, where: str) -> BaseDistribution:
    for given, known in ((key, (*channel_names(), *CHANNELS)), (part, ("use", "num_anchors"))):
        if given not in known:
            raise UserError(f"unknown name '{given}' in channels.{key}", where=where, hint=choices(given, known))
    path, (kind, _, side) = f"channels.{key}.{part}", key.partition("/")
    dimension, ends = _distribution(entry, path, where, whole=part == "num_anchors")
    if part == "use" and not all(type(value) is bool for value in ends):
        hint = "accepted: {choices = [true, false]}"
        raise UserError(f"{path} is {excerpt(str(entry))}", where=where, hint=hint)
    for value in ends if part == "num_anchors" else ():
        parse_recipe({"channels": [{"kind": kind, "side": side or "border", "num_anchors": value}]}, where)
    return dimension


def _distribution(entry: Any, path: str, where: str, *, whole: bool) -> tuple[BaseDistribution, list[Any]]:
    """A distribution, and its choices or ends."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    try:
        if set(entry) == {"choices"}:
            values = list(entry["choices"])
            if len({repr(value) for value in values}) < len(values):
                raise ValueError("a choice occurs twice")
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


def parameters(space: SearchSpace, recipe: Recipe) -> tuple[dict[str, BaseDistribution], dict[str, Any]]:
    """The parameters of a recipe's trials by name, such as ``model.head[0]``, and the recipe's own values of them.

    A subchannel that the recipe does not have, and that the space does not switch on, stays off. Baselines have no
    subchannels.
    """
    found: dict[str, BaseDistribution] = {}
    current: dict[str, Any] = {}
    content = _complete(recipe, (name.partition(".")[0] for name in space.dimensions))
    anchors = {name: c.num_anchors for c in recipe.channels for name in (c.kind, c.name)}
    for path, dimension in space.dimensions.items():
        section, _, key = path.partition(".")
        if section == "channels":
            name, _, part = key.rpartition(".")
            if not isinstance(find_model(recipe.method), ChannelModel):
                continue
            if name in anchors or f"channels.{name}.use" in space.dimensions:
                found[path] = dimension
                current[path] = name in anchors if part == "use" else anchors.get(name)
            if part == "use" and name not in anchors and f"channels.{name}.num_anchors" not in space.dimensions:
                hint = f"give channels.{name}.num_anchors a range, too, or add the channel to the recipe"
                raise UserError(f"{name} may be switched on, but has no number of anchors", where=space.name, hint=hint)
        elif isinstance(content[section][key], tuple):
            names = [f"{path}[{i}]" for i in range(len(content[section][key]))]
            found |= dict.fromkeys(names, dimension)
            current |= dict(zip(names, content[section][key], strict=True))
        else:
            found[path], current[path] = dimension, content[section][key]
    if not found:
        what = f"nothing in it can be changed in the recipe {recipe.name}"
        raise UserError(what, where=f"search space {space.name}", hint="name settings, or subchannels of the recipe")
    return found, current


def with_parameters(recipe: Recipe, values: Mapping[str, Any]) -> Recipe:
    """The recipe of a trial, from the values of its parameters."""
    content = _complete(recipe, (name.partition(".")[0] for name in values))
    for name, value in values.items():
        section, _, key = name.partition(".")
        key, _, place = key.partition("[")
        if section == "channels":
            continue
        if place:
            numbers = list(content[section][key])
            numbers[int(place.removesuffix("]"))] = value
            value = numbers
        content[section][key] = value
    given = {f"{one['kind']}/{one['side']}": one for one in content["channels"]}
    kept = []
    for name in dict.fromkeys((*given, *channel_names())):
        kind, _, side = name.partition("/")
        own = {k: v for key in (kind, name) for k, v in _channel_values(values, key).items()}
        if own.pop("use", name in given):
            channel = given.get(name, {"kind": kind, "side": side}) | own
            kept += [channel] if "num_anchors" in channel else []
    return parse_recipe(content | {"channels": kept}, recipe.name)


def _channel_values(values: Mapping[str, Any], key: str) -> dict[str, Any]:
    names = ((part, f"channels.{key}.{part}") for part in ("use", "num_anchors"))
    return {part: values[name] for part, name in names if name in values}


def _complete(recipe: Recipe, sections: Any) -> dict[str, Any]:
    """The recipe as plain data, with these sections filled in."""
    wanted: dict[str, Any] = {name: {} for name in sections if name != "channels"}
    return parse_recipe(wanted | recipe.plain(), recipe.name).plain()
