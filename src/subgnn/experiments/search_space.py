"""What a hyper-parameter search may change, read from TOML and held to the settings of a recipe.

A space names settings, each with a range or with choices, and subchannels:

.. code-block:: toml

    note = "Why these."
    training.lr = {low = 1e-4, high = 1e-3, log = true}
    model.layers = {low = 1, high = 4}
    model.norm = {choices = ["none", "batch"]}
    model.head = {low = 32, high = 64, step = 32}                   # of a list, each number by itself

    [channels."position/border"]
    use = {choices = [true, false]}                                 # on or off
    num_anchors = {low = 50, high = 200, step = 50}                 # where it is on

``channels.structure`` stands for both sides at once, which then have one number of anchors.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any

from subgnn.channels.table import CHANNELS, channel_names
from subgnn.config.files import parse_recipe, read_toml
from subgnn.config.settings import Recipe
from subgnn.errors import UserError, choices, excerpt

SECTIONS = tuple(f.name for f in fields(Recipe) if is_dataclass(f.default_factory))
_RANGE_KEYS = ("low", "high", "log", "step")
_HINT = "accepted: {low = .., high = ..}, with log = true or step = .. where wanted; or {choices = [..]}"


@dataclass(frozen=True, slots=True)
class Range:
    """Numbers from low to high, both included; whole ones, in steps, or even in logarithms, where asked."""

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
        """The values as a study keeps them: a list as text."""
        return [self.label(value) for value in self.values]

    def label(self, value: Any) -> Any:
        """A value as a study keeps it."""
        return json.dumps(value) if isinstance(value, (list, tuple)) else value

    def value(self, label: Any) -> Any:
        """The value behind a label."""
        return self.values[self.labels.index(label)]


Dimension = Range | Choices


@dataclass(frozen=True, slots=True)
class ChannelSpace:
    """Of a subchannel: whether it may be switched, and how many anchors it may have."""

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
        """What there is for a subchannel, and under which key; its own entry goes before that of its kind."""
        for key in (name, name.partition("/")[0]):
            if key in self.channels:
                return key, self.channels[key]
        return name, ChannelSpace()

    def plain(self) -> dict[str, Any]:
        """What may be drawn, as plain data: two spaces with the same are the same."""
        found: dict[str, Any] = json.loads(json.dumps({k: v for k, v in asdict(self).items() if k not in _WORDS}))
        return found


_WORDS = ("name", "note")


def read_space(path: Path) -> SearchSpace:
    """Read a search space.

    Raises:
        UserError: where the file is not there, is not valid TOML, or :func:`parse_space` refuses it.
    """
    return parse_space(read_toml(path, "search space"), str(path), name=path.stem)


def parse_space(content: Mapping[str, Any], where: str, *, name: str = "unnamed") -> SearchSpace:
    """Check a mapping and make it a search space.

    Raises:
        UserError: for a setting that does not exist, a value it does not take, or a range that is none.
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
    """A setting's dimension; each of its ends or choices must be a value that a recipe takes."""
    default = getattr(getattr(Recipe(), section), key, None)
    if default is None:
        parse_recipe({section: {key: 0}}, where)  # which knows the names, and refuses this one
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
