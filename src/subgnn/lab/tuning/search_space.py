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
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any

from subgnn.channels.table import CHANNELS, channel_names
from subgnn.config.files import parse_recipe, read_toml
from subgnn.config.settings import Recipe
from subgnn.errors import UserError, choices, excerpt
from subgnn.models.registry import find_model

SECTIONS = tuple(f.name for f in fields(Recipe) if is_dataclass(f.default_factory))
_SPACES = Path(__file__).parent / "spaces"
_RANGE_KEYS = ("low", "high", "log", "step")
_HINT = "accepted: {low = .., high = ..}, optionally with log = true or step = ..; or {choices = [..]}"


@dataclass(frozen=True, slots=True)
class Range:
    """Numbers from low to high, both included: any, whole ones, in steps, or uniform in the logarithm."""

    low: float
    high: float
    log: bool = False
    step: float | None = None
    whole: bool = False

    def __contains__(self, value: object) -> bool:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not self.low <= value <= self.high:
            return False
        steps = 0.0 if self.step is None else (value - self.low) / self.step
        return abs(steps - round(steps)) < 1e-9


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


@dataclass(frozen=True, slots=True)
class ChannelSpace:
    """The choices for a subchannel: whether it is used, and its number of anchors."""

    use: Choices | None = None
    num_anchors: Dimension | None = None


@dataclass(frozen=True, slots=True)
class SearchSpace:
    """Settings by ``section.key`` and subchannels by ``kind/side``, or by ``kind`` for both sides."""

    name: str
    note: str = ""
    settings: dict[str, Dimension] = field(default_factory=dict)
    channels: dict[str, ChannelSpace] = field(default_factory=dict)

    def channel(self, name: str) -> tuple[str, ChannelSpace]:
        """The key and entry of a subchannel; its entry takes precedence over that of its kind."""
        for key in (name, name.partition("/")[0]):
            if key in self.channels:
                return key, self.channels[key]
        return name, ChannelSpace()

    def plain(self) -> dict[str, Any]:
        """The settings and channels as plain data, without name and note: equal for equal spaces."""
        content = {"settings": asdict(self)["settings"], "channels": asdict(self)["channels"]}
        found: dict[str, Any] = json.loads(json.dumps(content))
        return found


def read_space(path: Path) -> SearchSpace:
    """Read a search space.

    Raises:
        UserError: if the file does not exist, is not valid TOML, or is refused by :func:`parse_space`.
    """
    return parse_space(read_toml(path, "search space"), str(path), name=path.stem)


def parse_space(content: Mapping[str, Any], where: str, *, name: str = "unnamed") -> SearchSpace:
    """Make a search space from a mapping, and check it.

    Raises:
        UserError: for a setting that does not exist, a value it does not accept, or an invalid range.
    """
    note = content.get("note", "")
    if not isinstance(note, str):
        raise UserError(f"note is {excerpt(str(note))}", where=where, hint="accepted: text")
    settings: dict[str, Dimension] = {}
    for section, entries in content.items():
        if section in ("note", "channels"):
            continue
        if section not in SECTIONS:
            hint = choices(section, (*SECTIONS, "channels", "note"))
            raise UserError(f"unknown section '{section}'", where=where, hint=hint)
        for key, entry in _table(entries, section, where).items():
            settings[f"{section}.{key}"] = _of_setting(section, key, entry, where)
    found = {
        key: _of_channel(key, entry, where)
        for key, entry in _table(content.get("channels", {}), "channels", where).items()
    }
    if not settings and not found:
        raise UserError("the search space is empty", where=where, hint="as in: training.lr = {low = 1e-4, high = 1e-2}")
    return SearchSpace(name=name, note=note, settings=settings, channels=found)


def _table(content: Any, path: str, where: str) -> Mapping[str, Any]:
    if not isinstance(content, Mapping):
        raise UserError(f"{path} is {excerpt(str(content))}", where=where, hint="a table is accepted")
    return content


def _of_setting(section: str, key: str, entry: Any, where: str) -> Dimension:
    """A setting's dimension; each of its ends or choices must be a value that a recipe accepts."""
    default = getattr(getattr(Recipe(), section), key, None)
    if default is None:
        parse_recipe({section: {key: 0}}, where)  # refuses the unknown name, with a hint
    first = default[0] if isinstance(default, tuple) else default
    dimension = _dimension(entry, f"{section}.{key}", where, whole=type(first) is int)
    if isinstance(dimension, Choices):
        values: tuple[Any, ...] = dimension.values
    else:
        ends = (dimension.low, dimension.high)
        values = tuple([end] * len(default) for end in ends) if isinstance(default, tuple) else ends
    for value in values:
        parse_recipe({section: {key: value}}, where)
    return dimension


def _of_channel(key: str, entry: Any, where: str) -> ChannelSpace:
    path = f"channels.{key}"
    known = (*channel_names(), *CHANNELS)
    if key not in known:
        raise UserError(f"unknown channel '{key}'", where=where, hint=choices(key, known))
    use: Choices | None = None
    anchors: Dimension | None = None
    for name, inner in _table(entry, path, where).items():
        if name == "use":
            switch = _dimension(inner, f"{path}.use", where)
            if not isinstance(switch, Choices) or not all(type(value) is bool for value in switch.values):
                hint = "accepted: {choices = [true, false]}"
                raise UserError(f"{path}.use is {excerpt(str(inner))}", where=where, hint=hint)
            use = switch
        elif name == "num_anchors":
            anchors = _dimension(inner, f"{path}.num_anchors", where, whole=True)
            for value in anchors.values if isinstance(anchors, Choices) else (anchors.low, anchors.high):
                kind, _, side = key.partition("/")
                parse_recipe({"channels": [{"kind": kind, "side": side or "border", "num_anchors": value}]}, where)
        else:
            hint = choices(str(name), ("use", "num_anchors"))
            raise UserError(f"unknown setting '{path}.{name}'", where=where, hint=hint)
    return ChannelSpace(use, anchors)


def _dimension(entry: Any, path: str, where: str, *, whole: bool = False) -> Dimension:
    if not isinstance(entry, Mapping):
        raise UserError(f"{path} is {excerpt(str(entry))}", where=where, hint=_HINT)
    if "choices" in entry:
        values = entry["choices"]
        if len(entry) > 1 or not isinstance(values, list) or not values:
            raise UserError(f"{path} is {excerpt(str(dict(entry)))}", where=where, hint=_HINT)
        found = Choices(tuple(values))
        if len(set(map(repr, found.labels))) < len(values):
            raise UserError(f"{path} has a choice twice", where=where, hint="give each once")
        return found
    for key in entry:
        if key not in _RANGE_KEYS:
            hint = choices(str(key), (*_RANGE_KEYS, "choices"))
            raise UserError(f"unknown key '{path}.{key}'", where=where, hint=hint)
    return _range(entry, path, where, whole)


def _range(entry: Mapping[str, Any], path: str, where: str, whole: bool) -> Range:
    def refuse(what: str, hint: str = _HINT) -> UserError:
        return UserError(f"{path}: {what}", where=where, hint=hint)

    for key in ("low", "high"):
        if key not in entry:
            raise refuse(f"{key} is missing")
    log, step = entry.get("log", False), entry.get("step")
    numbers = {key: entry[key] for key in ("low", "high", "step") if key in entry}
    for key, value in numbers.items():
        if type(value) not in ((int,) if whole else (int, float)):
            raise refuse(f"{key} is {excerpt(str(value))}", f"accepted: a {'whole ' if whole else ''}number")
    if type(log) is not bool:
        raise refuse(f"log is {excerpt(str(log))}", "accepted: true or false")
    if not entry["low"] < entry["high"]:
        raise refuse(f"low is {entry['low']} and high {entry['high']}", "low must be below high")
    if log and (entry["low"] <= 0 or step is not None):
        raise refuse(f"log from {entry['low']} with step {step}", "log needs a low above 0, and takes no step")
    if step is not None and not 0 < step <= entry["high"] - entry["low"]:
        raise refuse(f"step is {step}", "accepted: a number above 0, and no more than high - low")
    kind = int if whole else float
    return Range(kind(entry["low"]), kind(entry["high"]), log, None if step is None else kind(step), whole)


def space_names() -> list[str]:
    """The search spaces that come with the package."""
    return sorted(path.stem for path in _SPACES.glob("*.toml"))


def find_space(name: str) -> SearchSpace:
    """A search space by name, or by the path of a file."""
    if name.endswith(".toml"):
        return read_space(Path(name))
    if name not in space_names():
        raise UserError(f"unknown search space '{name}'", where="--space", hint=choices(name, space_names()))
    return read_space(_SPACES / f"{name}.toml")


Suggest = Callable[[str, Dimension, Any], Any]
"""Called with a parameter's name, its dimension and the recipe's value; returns the trial's value.

Names are as a study stores them: ``training.lr``, ``model.head[0]``, ``channels.structure.use``.
"""


def draw_recipe(space: SearchSpace, recipe: Recipe, suggest: Suggest) -> Recipe:
    """The recipe with every setting of the space replaced by the value that ``suggest`` returns.

    A subchannel that the recipe does not have, and that the space does not switch on, stays off; nothing is drawn for
    it, nor for the anchors of one that is off. Baselines have no subchannels.
    """
    content = asdict(recipe)
    for path, dimension in space.settings.items():
        section, _, key = path.partition(".")
        current = content[section][key]
        if isinstance(current, tuple) and not isinstance(dimension, Choices):
            drawn: Any = [suggest(f"{path}[{i}]", dimension, value) for i, value in enumerate(current)]
        else:
            drawn = suggest(path, dimension, current)
        content[section][key] = drawn
    if find_model(recipe.method).has_channels:
        content["channels"] = _draw_channels(space, recipe, suggest)
    return parse_recipe(content, f"search space {space.name}")


def _draw_channels(space: SearchSpace, recipe: Recipe, suggest: Suggest) -> list[dict[str, Any]]:
    """The subchannels of a trial: those of the recipe in their order, then the others."""
    given = {channel.name: channel for channel in recipe.channels}
    drawn = []
    for name in (*given, *(name for name in channel_names() if name not in given)):
        key, found = space.channel(name)
        used = name in given
        if found.use is not None:
            used = suggest(f"channels.{key}.use", found.use, used)
        if not used:
            continue
        anchors = given[name].num_anchors if name in given else None
        if found.num_anchors is not None:
            anchors = suggest(f"channels.{key}.num_anchors", found.num_anchors, anchors)
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
    """The values of the recipe, by name, as far as they lie in the space.

    Raises:
        UserError: if the space has nothing that could be changed in this recipe, or a subchannel that it may switch on
            has no number of anchors.
    """
    drawn = 0
    inside: dict[str, Any] = {}

    def suggest(name: str, dimension: Dimension, current: Any) -> Any:
        nonlocal drawn
        drawn += 1
        if current in dimension:
            inside[name] = dimension.label(current) if isinstance(dimension, Choices) else current
        return current

    def switch_on(name: str, dimension: Dimension, current: Any) -> Any:
        if isinstance(dimension, Range):
            return dimension.low
        return True in dimension.values if name.endswith(".use") else dimension.values[0]

    draw_recipe(space, recipe, suggest)
    draw_recipe(space, recipe, switch_on)
    if not drawn:
        what = f"nothing in it can be changed in the recipe {recipe.name}"
        raise UserError(what, where=f"search space {space.name}", hint="name settings, or subchannels of the recipe")
    return inside
