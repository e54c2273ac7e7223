"""Options as a command line gives them, texts by name, turned into the settings of a builder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Literal, get_args, get_origin, get_type_hints

from subgnn.errors import DataError, choices, excerpt

_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def read_options(kinds: Mapping[str, type], options: Mapping[str, str], where: str) -> dict[str, dict[str, Any]]:
    """Values for each of several settings classes, every option going to the class that has such a field.

    Args:
        kinds: the classes, by a name for each; no two have a field in common.
        options: texts by field name.
        where: what the options belong to, for errors.

    Raises:
        DataError: for an option that no class has, or a text that is no value of its type.
    """
    found: dict[str, dict[str, Any]] = {name: {} for name in kinds}
    owner = {field.name: name for name, kind in kinds.items() for field in fields(kind) if _readable(kind, field.name)}
    for option, text in options.items():
        if option not in owner:
            raise DataError(f"no option '{option}'", where=where, hint=choices(option, sorted(owner)))
        kind = get_type_hints(kinds[owner[option]])[option]
        found[owner[option]][option] = _value(kind, text.strip(), f"{where}: {option}")
    return found


def read_labels(pairs: Sequence[str], prefix: str) -> dict[str, tuple[str, ...]]:
    """``NAME=ROOT`` or ``NAME=ROOT,ROOT`` as a mapping; ``prefix`` is taken off the roots.

    Example:
        >>> read_labels(["Lipid=ORPHA:309005", "Rest=1,2"], "ORPHA:")
        {'Lipid': ('309005',), 'Rest': ('1', '2')}
    """
    labels: dict[str, tuple[str, ...]] = {}
    for pair in pairs:
        name, _, roots = pair.partition("=")
        split = tuple(root.strip().removeprefix(prefix) for root in roots.split(",") if root.strip())
        if not name.strip() or not split or "-" in name or name.strip() in labels:
            hint = "NAME=ROOT or NAME=ROOT,ROOT is accepted, each name once and without '-', which joins labels"
            raise DataError(f"{excerpt(pair)} is no label", where="labels", hint=hint)
        labels[name.strip()] = split
    return labels


def _readable(kind: type, name: str) -> bool:
    """Whether a field can be given as one text: numbers, words and lists of them, not further settings."""
    hint = get_type_hints(kind)[name]
    return hint in (int, float, bool, str) or get_origin(hint) in (tuple, Literal)


def _value(kind: Any, text: str, where: str) -> Any:
    if get_origin(kind) is Literal:
        if text not in get_args(kind):
            raise DataError(f"{excerpt(text)}", where=where, hint=choices(text, get_args(kind)))
        return text
    if get_origin(kind) is tuple:
        inner = get_args(kind)[0]
        return tuple(_value(inner, piece.strip(), where) for piece in text.split(",") if piece.strip())
    try:
        return _TRUTH[text.lower()] if kind is bool else kind(text)
    except (KeyError, ValueError):
        accepted = {int: "a whole number", float: "a number", bool: "true or false"}.get(kind, "a value")
        raise DataError(f"{excerpt(text)}", where=where, hint=f"{accepted} is accepted") from None
