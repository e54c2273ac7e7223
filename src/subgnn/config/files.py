"""Dataclasses from TOML, JSON and text: numbers have bounds, and unknown keys are refused with the closest match."""

import math
import numbers
import re
import types
import typing
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from subgnn.errors import UserError, choices, excerpt, shortened
from subgnn.storage.files import MAX_TOML, parse_toml, read_bounded


@dataclass(frozen=True, slots=True)
class Bounds:
    """Finite numbers from low to high, both included.

    Example:
        >>> 1.0 in Bounds(0, 1), 1.5 in Bounds(0, 1), math.inf in Bounds()
        (True, False, False)
        >>> str(Bounds(0, 1)), str(Bounds(1, 10**6)), str(Bounds(0.5))
        ('from 0 to 1', 'from 1 to 1,000,000', 'from 0.5')
    """

    low: float = 0
    high: float = math.inf

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high and value < math.inf

    def __str__(self) -> str:
        return f"from {self.low:,}" + (f" to {self.high:,}" if self.high < math.inf else "")


LARGEST = 10**9  # the largest whole number of a setting: compiled code counts in 32 bits
Count = Annotated[int, Bounds(1, LARGEST)]  # a number of things, at least one
Size = Annotated[int, Bounds(1, 10**6)]  # a length of arrays in memory: a width, a number of anchors, a length of walks
Width = Annotated[int, Bounds(1, 65_536)]  # the width of a node embedding
Depth = Annotated[int, Bounds(1, 1000)]  # a number of networks, layers or draws, each of which has weights or anchors
Seed = Annotated[int, Bounds(0, 2**63 - 1)]  # a seed of random numbers
Probability = Annotated[float, Bounds(0, 1)]  # a probability or a fraction
Damping = Annotated[float, Bounds(0, 0.99)]  # the probability that a random walk goes on
AnyNumber = Annotated[float, None]  # any number of a result, also below 0, infinite or undefined (NaN)


def with_bounds(kind: Any) -> tuple[Any, Bounds | None]:
    """A type without its bounds, and the bounds; by default numbers are from 0 and fit into 32 bits."""
    if typing.get_origin(kind) is Annotated:
        plain, bounds = typing.get_args(kind)
        return plain, bounds
    return kind, {int: Bounds(0, LARGEST), float: Bounds(0, 1e30)}.get(kind)


Where = Callable[[str], str]
Table = typing.TypeVar("Table")
_UNIONS = (types.UnionType, typing.Union)


def read_toml(path: Path, what: str) -> dict[str, Any]:
    """The content of a TOML file; ``what`` is the kind of file, for errors."""
    if not path.exists():
        raise UserError(f"no such {what}", where=str(path))
    try:
        text = read_bounded(path, MAX_TOML).decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"this is not valid TOML ({error})", where=str(path)) from None
    return parse_toml(text.replace("\r\n", "\n"), str(path))


def parse_table(
    kind: type[Table], content: Any, where: str | Where, path: str = "", *, also_known: Collection[str] = ()
) -> Table:
    """A dataclass from a mapping, checked.

    ``where`` is the file, for errors, or a function from a setting's path to where it was given; ``path`` is the place
    of the table in the file, and ``also_known`` names that stand beside the fields in the hint about an unknown one.
    """
    place = (lambda _: where) if isinstance(where, str) else where
    return typing.cast("Table", _build(kind, content, place, path, also_known))


def parse_options(kinds: Mapping[str, type], options: Mapping[str, Any], where: str) -> dict[str, dict[str, Any]]:
    """Values for several dataclasses, by name, read as by ``--set``: every option goes to the one with such a field."""
    owner = {}  # of fields that one text can give: numbers, words and lists of them
    for name, kind in kinds.items():
        for option, hint in _types(kind).items():
            plain = with_bounds(hint)[0]
            if plain in (int, float, bool, str) or typing.get_origin(plain) in (tuple, Literal, types.UnionType):
                owner[option] = name
    found: dict[str, dict[str, Any]] = {name: {} for name in kinds}
    for option, given in options.items():
        if option not in owner:
            raise UserError(f"no option '{option}'", where=where, hint=choices(option, owner))
        hint = _types(kinds[owner[option]])[option]
        value: Any = given
        if isinstance(given, str):
            value = _from_text(given, hint)
        elif isinstance(given, numbers.Real) and not isinstance(given, bool):  # of NumPy, too
            value = int(value) if value == value // 1 else float(value)
        found[owner[option]][option] = _value(hint, value, lambda _: where, option)
    return found


def _from_text(text: str, annotated: Any = None) -> Any:
    """A value in the syntax of TOML; plain words need no quotes, and lists of a known type no brackets."""
    kind, _ = with_bounds(annotated)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is tuple:
        return [_from_text(part, arguments[0]) for part in text.strip(" []").split(",") if part.strip()]
    if kind is str or origin is Literal:
        return text.strip()
    try:
        return parse_toml(f"value = {text}", "--set")["value"]
    except UserError:
        return text.strip()


def with_overrides(content: Mapping[str, Any], where: str, overrides: Sequence[str]) -> tuple[dict[str, Any], Where]:
    """Content with overrides, ``section.key=value``, and a function from a setting's path to where it was given."""
    merged = {key: dict(value) if isinstance(value, Mapping) else value for key, value in content.items()}
    overridden = {path for override in overrides for path in apply_override(merged, override)}
    return merged, lambda path: "--set" if path.partition("[")[0] in overridden else where


def apply_override(content: dict[str, Any], override: str) -> list[str]:
    """Change a setting by ``section.key=value``; returns what changed: the setting, and its section if that is new."""
    key, sign, text = override.partition("=")
    section, dot, name = (part.strip() for part in key.partition("."))
    if sign and section == "channels":
        content["channels"] = _with_channels(content.get("channels", []), name, text)
        return ["channels"]
    if not sign or not dot:
        hint = "accepted: section.key=value, e.g. training.epochs=5"
        raise UserError(f"{excerpt(override)}", where="--set", hint=hint)
    changed = [f"{section}.{name}"] + ([section] if section not in content else [])
    content.setdefault(section, {})
    if not isinstance(content[section], dict):
        raise UserError(f"{section} is not a section", where="--set", hint="accepted: section.key=value")
    content[section][name] = _from_text(text)
    return changed


CHANNEL_LETTERS = {"P": "position", "N": "neighborhood", "S": "structure"}
_ANCHORS = 15


def _with_channels(entries: Sequence[Mapping[str, Any]], entry: str, text: str) -> list[dict[str, Any]]:
    """The entries of ``[[channels]]`` after ``channels=P,N`` or, for one ``entry``, ``channels.structure/border=20``.

    A channel is a letter of the paper or a kind, on both sides unless it names one; one that the recipe does not have
    gets 15 anchors a side.
    """
    name, _, key = entry.partition(".")
    if not entry:
        found = []
        for word in text.strip(" []").split(","):
            kind, sides = _channel(word)
            known = {str(one.get("side")): dict(one) for one in entries if one.get("kind") == kind}
            found += [known.get(side, {"kind": kind, "num_anchors": _ANCHORS} | {"side": side}) for side in sides]
        return found
    kind, sides = _channel(name)
    chosen = [one.get("kind") == kind and one.get("side") in sides for one in entries]
    if not any(chosen):
        has = ", ".join(f"{one.get('kind')}/{one.get('side')}" for one in entries) or "none"
        hint = f"the recipe has {has}; --set channels=P,N,S chooses others"
        raise UserError(f"no channel {excerpt(name)}", where="--set", hint=hint)
    changed = {key or "num_anchors": _from_text(text)}
    return [dict(one) | (changed if there else {}) for one, there in zip(entries, chosen, strict=True)]


def _channel(word: str) -> tuple[str, tuple[str, ...]]:
    kind, _, side = word.strip(" '\"").partition("/")
    return CHANNEL_LETTERS.get(kind, kind), (side,) if side else ("internal", "border")


@cache
def _types(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind, include_extras=True)


def _build(kind: type, content: Any, where: Where, path: str, also_known: Collection[str] = ()) -> Any:
    if not isinstance(content, Mapping):
        what = f"{path or 'the file'} is {excerpt(str(content))}"
        raise UserError(what, where=where(path), hint="a table is accepted")
    hints = _types(kind)
    names = [f.name for f in fields(kind) if not f.metadata.get("derived")]
    for key in content:
        if key not in names:
            full = f"{path}.{key}" if path else key
            hint = choices(str(key), [*names, *also_known])
            raise UserError(f"unknown setting '{shortened(full)}'", where=where(full), hint=hint)
    needed = [f.name for f in fields(kind) if f.default is MISSING and f.default_factory is MISSING]
    missing = [name for name in needed if name not in content]
    if missing:
        called = next((content[key] for key in ("label", "name") if isinstance(content.get(key), str)), "")
        entry = f"{path}{f' ({excerpt(called)})' if called else ''}" if path else "the file"
        lacking = " and no ".join(f"'{name}'" for name in missing[:3])
        lacking += f", nor {len(missing) - 3} others" if len(missing) > 3 else ""
        raise UserError(f"{entry} has no {lacking}", where=where(path), hint=f"needed: {', '.join(needed)}")
    return kind(**{k: _value(hints[k], v, where, f"{path}.{k}" if path else k) for k, v in content.items()})


def _value(annotated: Any, value: Any, where: Where, path: str) -> Any:
    kind, bounds = with_bounds(annotated)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in _UNIONS and type(None) in arguments:
        if value is None:
            return None
        arguments = tuple(one for one in arguments if one is not type(None))
        if len(arguments) == 1:
            return _value(arguments[0], value, where, path)
    if is_dataclass(kind) and isinstance(kind, type):
        return _build(kind, value, where, path)
    if type(value) is int and (kind is float or (float in arguments and int not in arguments)):
        value = float(value)
    if origin is Literal:
        fits = value in arguments
    elif origin is tuple:
        fits = isinstance(value, (list, tuple)) and (arguments[-1] is Ellipsis or len(value) == len(arguments))
    elif origin is dict:
        fits = isinstance(value, Mapping)
    elif origin in _UNIONS:
        fits, bounds = type(value) in arguments, with_bounds(type(value))[1]
    else:
        fits = type(value) is kind
    if not fits:
        accepted = choices(str(value), map(str, arguments)) if origin is Literal else f"accepted: {describe(annotated)}"
        raise UserError(f"{path} is {excerpt(str(value))}", where=where(path), hint=accepted)
    if bounds is not None and value not in bounds:
        raise UserError(f"{path} is {value}", where=where(path), hint=f"accepted: {describe(annotated)}")
    if origin is tuple:
        return tuple(_value(arguments[0], item, where, f"{path}[{i}]") for i, item in enumerate(value))
    if origin is dict:
        inner = arguments[1]
        return {k: v if inner is Any else _value(inner, v, where, f"{path}.{k}") for k, v in value.items()}
    return value


def describe(annotated: Any) -> str:
    """The values that a setting of this type accepts, in words."""
    kind, bounds = with_bounds(annotated)
    if typing.get_origin(kind) is tuple:
        inner = typing.get_args(kind)
        count = "" if inner[-1] is Ellipsis else f"{len(inner)} "
        return f"a list of {count}" + re.sub("(number|table|list)", r"\1s", describe(inner[0]).removeprefix("a "))
    if typing.get_origin(kind) in _UNIONS:
        return ", or ".join(map(describe, typing.get_args(kind)))
    names = {types.NoneType: "nothing", int: "a whole number", float: "a number", bool: "true or false", str: "text"}
    found = names.get(kind, "a table") if not isinstance(kind, types.GenericAlias) else "a table"
    return found if bounds is None else f"{found} {bounds}"
