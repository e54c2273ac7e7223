"""Search spaces: the settings that a search may change, and the recipes drawn from them.

A space is a TOML file that names settings, each with a range or with choices, and subchannels:

.. code-block:: toml

    note = "Why these."
    training.lr = {low = 1e-4, high = 1e-3, log = true}
    model.layers = {low = 1, high = 4}
    model.norm = {choices = ["none", "batch"]}
    model.head = {low = 32, high = 64, step = 32}                   # each number of a list by itself

    [channels."position/border"]
    use = {choices = [true, false]}                                 # on or off
    num_anchors = {low = 50, high = 200, step = 50}                 # if it is on

``channels.structure`` applies to both sides, which then have one number of anchors.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

from subgnn.channels.table import CHANNELS, channel_names
from subgnn.config.files import parse_table, read_toml
from subgnn.config.settings import Recipe
from subgnn.errors import UserError, choices, excerpt
from subgnn.models.interface import ChannelModel
from subgnn.models.recipes import parse_recipe
from subgnn.models.registry import find_model

SECTIONS = tuple(f.name for f in fields(Recipe) if is_dataclass(f.default_factory))
_SPACES = Path(__file__).parent / "spaces"
_HINT = "accepted: {low = .., high = ..}, optionally with log = true or step = ..; or {choices = [..]}"


@dataclass(frozen=True, slots=True)
class Range:
    """Numbers from low to high, both included: any, whole ones, in steps, or uniform in the logarithm."""

    low: int | float
    high: int | float
    log: bool = False
    step: int | float | None = None

    def __contains__(self, value: object) -> bool:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not self.low <= value <= self.high:
            return False
        steps = 0.0 if self.step is None else (value - self.low) / self.step
        return abs(steps - round(steps)) < 1e-9

    @property
    def problem(self) -> str:
        """The rule that it breaks, if any."""
        if not self.low < self.high:
            return "low must be below high"
        if self.log and (self.low <= 0 or self.step is not None):
            return "log needs a low above 0, and takes no step"
        if self.step is not None and not 0 < self.step <= self.high - self.low:
            return "step must be above 0, and no more than high - low"
        return ""


@dataclass(frozen=True, slots=True)
class Choices:
    """One of several values."""

    values: tuple[Any, ...]

    def __contains__(self, value: object) -> bool:
        return self.label(value) in self.labels

    @property
    def labels(self) -> list[Any]:
        """The values as a study stores them: a list as text."""
        return [self.label(value) for value in self.values]

    def label(self, value: Any) -> Any:
        """A value as a study stores it."""
        return json.dumps(value) if isinstance(value, (list, tuple)) else value

    def value(self, label: Any) -> Any:
        """The value behind a label."""
        return self.values[self.labels.index(label)]


Dimension = Range | Choices
Suggest = Callable[[str, Dimension, Any], Any]
"""Called with a parameter's name, its dimension and the recipe's value; returns the trial's value.

Names are as a study stores them: ``training.lr``, ``model.head[0]``, ``channels.structure.use``.
"""


@dataclass(frozen=True, slots=True)
class SearchSpace:
    """Dimensions by ``section.key``, ``channels.KIND/SIDE.use`` or ``.num_anchors``; KIND alone is both sides."""

    name: str
    note: str
    dimensions: dict[str, Dimension]

    def channel(self, name: str) -> tuple[str, Dimension | None, Dimension | None]:
        """Of a subchannel, the key and the dimensions of use and anchors; its own come before those of its kind."""
        for key in (name, name.partition("/")[0]):
            use, anchors = (self.dimensions.get(f"channels.{key}.{part}") for part in ("use", "num_anchors"))
            if use is not None or anchors is not None:
                return key, use, anchors
        return name, None, None

    def plain(self) -> dict[str, Any]:
        """The dimensions as plain data: equal for equal spaces, whatever their names and notes."""
        found: dict[str, Any] = json.loads(json.dumps(asdict(self)["dimensions"]))
        return found


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
    """Make a search space from a mapping, and check it."""
    note = content.get("note", "")
    if not isinstance(note, str):
        raise UserError(f"note is {excerpt(str(note))}", where=where, hint="accepted: text")
    dimensions: dict[str, Dimension] = {}
    for section, entries in content.items():
        if section not in (*SECTIONS, "channels", "note"):
            hint = choices(section, (*SECTIONS, "channels", "note"))
            raise UserError(f"unknown section '{section}'", where=where, hint=hint)
        for key, entry in {} if section == "note" else _table(entries, section, where).items():
            path = f"{section}.{key}"
            if section == "channels":
                dimensions |= _of_channel(key, _table(entry, path, where), where)
            else:
                dimensions[path] = _of_setting(section, key, entry, where)
    if not dimensions:
        raise UserError(
            "the search space is empty",
            where=where,
            hint="give settings such as: training.lr = {low = 1e-4, high = 1e-2}",
        )
    return SearchSpace(name, note, dimensions)


def _table(content: Any, path: str, where: str) -> Mapping[str, Any]:
    if not isinstance(content, Mapping):
        raise UserError(f"{path} is {excerpt(str(content))}", where=where, hint="a table is accepted")
    return content


def _of_setting(section: str, key: str, entry: Any, where: str) -> Dimension:
    """A setting's dimension; each of its ends or choices must be a value that a recipe accepts."""
    default: Any = parse_recipe({section: {}}, where).plain()[section].get(key)
    if default is None:
        parse_recipe({section: {key: 0}}, where)  # refuses the unknown name, with a hint
    several = isinstance(default, tuple)
    dimension = _dimension(entry, f"{section}.{key}", where, whole=type(default[0] if several else default) is int)
    for value in _extremes(dimension):
        repeat = several and isinstance(dimension, Range)
        parse_recipe({section: {key: [value] * len(default) if repeat else value}}, where)
    return dimension


def _of_channel(key: str, entry: Mapping[str, Any], where: str) -> dict[str, Dimension]:
    known = (*channel_names(), *CHANNELS)
    if key not in known:
        raise UserError(f"unknown channel '{key}'", where=where, hint=choices(key, known))
    found: dict[str, Dimension] = {}
    for name, inner in entry.items():
        path = f"channels.{key}.{name}"
        if name not in ("use", "num_anchors"):
            raise UserError(f"unknown setting '{path}'", where=where, hint=choices(name, ("use", "num_anchors")))
        found[path] = dimension = _dimension(inner, path, where, whole=name == "num_anchors")
        if name == "num_anchors":
            kind, _, side = key.partition("/")
            for value in _extremes(dimension):
                parse_recipe({"channels": [{"kind": kind, "side": side or "border", "num_anchors": value}]}, where)
        elif not isinstance(dimension, Choices) or not all(type(value) is bool for value in dimension.values):
            hint = "accepted: {choices = [true, false]}"
            raise UserError(f"{path} is {excerpt(str(inner))}", where=where, hint=hint)
    return found


def _extremes(dimension: Dimension) -> tuple[Any, ...]:
    return dimension.values if isinstance(dimension, Choices) else (dimension.low, dimension.high)


def _dimension(entry: Any, path: str, where: str, *, whole: bool) -> Dimension:
    if not isinstance(entry, Mapping):
        raise UserError(f"{path} is {excerpt(str(entry))}", where=where, hint=_HINT)
    if "choices" in entry:
        values = entry["choices"]
        if len(entry) > 1 or not isinstance(values, list) or not values:
            raise UserError(f"{path} is {excerpt(str(dict(entry)))}", where=where, hint=_HINT)
        found = Choices(tuple(values))
        if len(set(map(repr, found.labels))) < len(values):
            raise UserError(f"{path} lists a choice twice", where=where, hint="give each once")
        return found
    given = parse_table(Range, entry, where, path)
    ends = [given.low, given.high, given.step]
    problem = "its numbers must be whole" if whole and float in map(type, ends) else given.problem
    if problem:
        raise UserError(f"{path} is {excerpt(str(dict(entry)))}", where=where, hint=problem)
    low, high, step = ends if whole else [None if end is None else float(end) for end in ends]
    return Range(low, high, given.log, step)  # type: ignore[arg-type]


def draw_recipe(space: SearchSpace, recipe: Recipe, suggest: Suggest) -> Recipe:
    """The recipe with every setting of the space replaced by the value that ``suggest`` returns.

    A subchannel that the recipe does not have, and that the space does not switch on, stays off; nothing is drawn for
    it, nor for the anchors of one that is off. Baselines have no subchannels.
    """
    where = f"search space {space.name}"
    sections: dict[str, Any] = {
        path.partition(".")[0]: {} for path in space.dimensions if path.partition(".")[0] != "channels"
    }
    content = parse_recipe(sections | recipe.plain(), where).plain()
    for path, dimension in space.dimensions.items():
        section, _, key = path.partition(".")
        if section == "channels":
            continue
        current = content[section][key]
        if isinstance(current, tuple) and isinstance(dimension, Range):
            content[section][key] = [suggest(f"{path}[{i}]", dimension, value) for i, value in enumerate(current)]
        else:
            content[section][key] = suggest(path, dimension, current)
    if isinstance(find_model(recipe.method), ChannelModel):
        content["channels"] = _draw_channels(space, recipe, suggest)
    return parse_recipe(content, where)


def _draw_channels(space: SearchSpace, recipe: Recipe, suggest: Suggest) -> list[dict[str, Any]]:
    """The subchannels of a trial: those of the recipe in their order, then the others."""
    given = {channel.name: channel for channel in recipe.channels}
    drawn = []
    for name in (*given, *(name for name in channel_names() if name not in given)):
        key, use, range_of_anchors = space.channel(name)
        used = name in given
        if use is not None:
            used = suggest(f"channels.{key}.use", use, used)
        if not used:
            continue
        anchors = given[name].num_anchors if name in given else None
        if range_of_anchors is not None:
            anchors = suggest(f"channels.{key}.num_anchors", range_of_anchors, anchors)
        if anchors is None:
            hint = f"give channels.{key}.num_anchors a range, too, or add the channel to the recipe"
            raise UserError(f"{name} may be switched on, but has no number of anchors", where=space.name, hint=hint)
        kind, _, side = name.partition("/")
        similarity = given[name].similarity if name in given else ""
        drawn.append({"kind": kind, "side": side, "num_anchors": anchors, "similarity": similarity})
    return drawn


def apply_parameters(space: SearchSpace, recipe: Recipe, parameters: Mapping[str, Any]) -> Recipe:
    """The recipe of a trial, from the parameters that a study stores."""

    def suggest(name: str, dimension: Dimension, current: Any) -> Any:
        value = parameters[name]
        return dimension.value(value) if isinstance(dimension, Choices) else value

    return draw_recipe(space, recipe, suggest)


def recipe_parameters(space: SearchSpace, recipe: Recipe) -> dict[str, Any]:
    """The values of the recipe, by name, as far as they lie in the space."""
    drawn = 0
    inside: dict[str, Any] = {}

    def suggest(name: str, dimension: Dimension, current: Any) -> Any:
        nonlocal drawn
        drawn += 1
        if current in dimension:
            inside[name] = dimension.label(current) if isinstance(dimension, Choices) else current
        return current

    def switch_on(name: str, dimension: Dimension, current: Any) -> Any:
        values = _extremes(dimension)
        return True in values if name.endswith(".use") else values[0]

    draw_recipe(space, recipe, suggest)
    draw_recipe(space, recipe, switch_on)
    if not drawn:
        what = f"nothing in it can be changed in the recipe {recipe.name}"
        raise UserError(what, where=f"search space {space.name}", hint="name settings, or subchannels of the recipe")
    return inside
